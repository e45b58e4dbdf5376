import assert from "node:assert/strict";
import { test } from "node:test";
import { defaults } from "../src/config.js";
import { Log } from "../src/log.js";
import { openOn, type Platform } from "../src/open.js";
import type { OpenOptions } from "../src/options.js";
import { Station } from "../src/serve/station.js";
import { attend } from "../src/tab/attention.js";
import { machine } from "../src/time.js";
import { Browser, settle } from "./support/browser.js";
import { Disk } from "./support/core.js";

/** A platform whose workers are made by `createWorker`, and whose own thread has the core for tests. */
function platform(createWorker: () => Worker, disk = new Disk()): Platform {
  return {
    abilities: () => ({ indexedDB: false, workers: true, tabs: false }),
    wasm: () => new ArrayBuffer(0),
    createWorker,
    loadHost: async () => ({
      host: (settings, _wasm, { port, ended }) => {
        const station = new Station({
          database: settings.name,
          tab: settings.tab,
          opener: disk.opener(),
          port,
          multiTab: false,
          tabs: undefined,
          machine,
          config: defaults,
          log: new Log("off"),
          serving: { signs: false },
          ended,
        });
        void station.start();
      },
    }),
  };
}

/** A worker that does nothing by itself. */
function silentWorker(): Worker {
  return {
    onmessage: null,
    onerror: null,
    terminate: () => undefined,
    postMessage: () => undefined,
  } as unknown as Worker;
}

const failures: Record<string, () => Worker> = {
  "cannot be made": () => {
    throw new DOMException("not allowed", "SecurityError");
  },
  "fails to load": () => {
    const worker = silentWorker();
    setImmediate(() => worker.onerror?.call(worker, { message: "404" } as ErrorEvent));
    return worker;
  },
  "does not start": silentWorker,
};

for (const [what, createWorker] of Object.entries(failures)) {
  test(`where a worker ${what}, everything runs in this thread`, async () => {
    const db = await openOn(platform(createWorker), { log: "off", config: { workerStartMs: 20 } });
    assert.equal(db.mode, "thread");
    assert.equal(db.leading, true);
    assert.equal(await db.count({}), 0);
    await db.close();
  });
}

test("opening can be aborted, at any time", async () => {
  const reason = new Error("enough");
  const options = (signal: AbortSignal): OpenOptions => ({ log: "off", signal });
  await assert.rejects(openOn(platform(silentWorker), options(AbortSignal.abort(reason))), reason);
  const abort = new AbortController();
  const opening = openOn(platform(silentWorker), options(abort.signal));
  await settle();
  abort.abort(reason);
  await assert.rejects(opening, reason);
});

test("an abort closes the database", async () => {
  const abort = new AbortController();
  const disk = new Disk();
  const db = await openOn(platform(silentWorker, disk), { log: "off", worker: false, signal: abort.signal });
  abort.abort();
  await settle();
  assert.equal(disk.count("close"), 1);
  await assert.rejects(db.count({}), { code: "closed" });
});

test("a fault while opening is what open rejects with", async () => {
  const disk = new Disk();
  disk.opener = () => () => Promise.reject({ code: "storage", message: "damaged", retryable: false });
  await assert.rejects(openOn(platform(silentWorker, disk), { worker: false }), {
    code: "storage",
    message: "damaged",
  });
});

test("a timer that comes late wakes connections", async () => {
  const browser = new Browser();
  const tab = browser.open();
  let woken = 0;
  const stop = attend(tab.machine, defaults, {
    wake: () => (woken += 1),
    pause: () => undefined,
    resume: () => undefined,
  });
  await browser.advance(60_000);
  assert.equal(woken, 0);
  tab.freeze();
  await browser.advance(60_000);
  tab.thaw();
  await browser.advance(5_000);
  assert.equal(woken, 1);
  stop();
  assert.equal(browser.timers.size, 0);
});
