import assert from "node:assert/strict";
import { test } from "node:test";
import { RelaySyncError, fromWire, toWire } from "../src/errors.js";
import type { Filter, NostrEvent } from "../src/events.js";
import { settingsOf, type OpenOptions } from "../src/options.js";
import { Disk, event } from "./support/core.js";
import { openReady } from "./support/database.js";

const able = { indexedDB: true, workers: true, tabs: true };
const relay = "wss://one.example";

test("events are added, asked for and counted", async () => {
  const db = await openReady(new Disk());
  assert.equal(await db.add(event(1)), true);
  assert.equal(await db.add(event(1)), false);
  assert.deepEqual(await db.addAll([event(1), event(2, 7)]), ["duplicate", "stored"]);
  assert.deepEqual(
    (await db.query({})).map(({ created_at }) => created_at),
    [2, 1],
  );
  assert.deepEqual(
    (await db.query([{ kinds: [7] }], { limit: 1 })).map(({ created_at }) => created_at),
    [2],
  );
  assert.equal(await db.count({ kinds: [1] }), 1);
  assert.deepEqual(await db.event(event(1).id), event(1));
  assert.equal(await db.event("f".repeat(64)), undefined);
  assert.equal(await db.replaceable(0, "a".repeat(64)), undefined);
  assert.deepEqual(await db.supports(), ["subscribe"]);
  assert.equal((await db.storageInfo()).events, 2);
  assert.equal((await db.publish(event(3), { relays: [relay] })).relays[0]?.accepted, true);
  await db.close();
  await db.close();
  await assert.rejects(db.query({}), { code: "closed" });
});

test("only the fields of an event that are signed, or the signature, are sent", async () => {
  const disk = new Disk();
  const db = await openReady(disk);
  await db.add({ ...event(1), seen: true } as NostrEvent);
  assert.ok(!JSON.stringify(disk.calls).includes("seen"));
  await db.close();
});

test("a mistake in an argument is told at once, and by name", async () => {
  const db = await openReady(new Disk());
  const wrong: [() => unknown, RegExp][] = [
    [() => db.sync({}), /^relays: /],
    [() => db.sync({}, { relays: ["https://one.example"] }), /^relays\[0\]: .*https/],
    [() => db.sync([], { relays: [relay] }), /^filters: /],
    [() => db.sync({ kinds: [1], limit: 5 }, { relays: [relay] }), /^filters\.limit: /],
    [() => db.sync([{ authors: ["npub1"] }], { relays: [relay] }), /^filters\[0\]\.authors\[0\]: .*npub1/],
    [() => db.sync({ kind: 1 } as unknown as Filter, { relays: [relay] }), /^filters\.kind: /],
    [() => db.sync({ kinds: undefined } as unknown as Filter, { relays: [relay] }), /^filters\.kinds: /],
    [() => db.sync({}, { relays: [relay], live: true, lives: true } as object), /^options\.lives: /],
    [() => db.sync({}, { relays: [relay], direction: "sideways" as "up" }), /^direction: /],
    [() => db.repos({ bootstrapRelays: [relay] }), /^addresses: /],
    [() => db.repos({ addresses: ["x"], bootstrapRelays: [relay] }), /^addresses\[0\]: /],
    [() => db.subscribe({ since: -1 }), /^filters\.since: /],
  ];
  for (const [call, message] of wrong) assert.throws(call, { code: "invalid-argument", message });
  await assert.rejects(db.add({} as NostrEvent), { code: "invalid-argument", message: /^events\[0\]\.id: / });
  await assert.rejects(db.event("x"), { code: "invalid-argument", message: /^id: / });
  await assert.rejects(db.query({ "#e": [7 as unknown as string] }), { message: /^filters\.#e\[0\]: / });
  await db.close();
});

test("options are checked, and filled in by what the platform has", () => {
  const wrong: [object, RegExp][] = [
    [{ nme: "x" }, /^options\.nme: /],
    [{ name: "" }, /^name: /],
    [{ storage: "disk" }, /^storage: /],
    [{ WebSocket: class {}, worker: true }, /^WebSocket: /],
    [{ storage: "memory", multiTab: true }, /^multiTab: /],
    [{ signer: {} }, /^signer: /],
    [{ config: { heartbeat: 1 } }, /^config\.heartbeat: /],
    [{ config: { heartbeatMs: "1" } }, /^config\.heartbeatMs: /],
    [{ signal: {} }, /^signal: /],
    [{ relays: ["x"] }, /^relays\[0\]: /],
  ];
  for (const [options, message] of wrong) {
    assert.throws(() => settingsOf(options as OpenOptions, able), { code: "invalid-argument", message });
  }
  const browser = settingsOf({}, able);
  assert.deepEqual([browser.storage, browser.worker, browser.multiTab], ["indexeddb", true, true]);
  const node = settingsOf({}, { indexedDB: false, workers: false, tabs: false });
  assert.deepEqual([node.storage, node.worker, node.multiTab], ["memory", false, false]);
  assert.equal(settingsOf({ WebSocket: Socket }, able).worker, false);
});

class Socket {
  readonly readyState = 0;
  readonly bufferedAmount = 0;
  constructor(readonly url: string) {}
  send(): void {}
  close(): void {}
}

test("errors keep what they say on their way", () => {
  const error = new RelaySyncError("relay", "refused", { relay, retryable: true });
  assert.deepEqual({ ...fromWire(toWire(error)), message: "refused" }, { ...error, message: "refused" });
  assert.equal(fromWire(toWire({ code: "unknown_job", message: "m", retryable: false })).code, "unknown-job");
  assert.equal(fromWire(toWire({ code: "quota", message: "m", retryable: true })).code, "storage-full");
  assert.equal(fromWire(toWire(new Error("m"))).code, "internal");
  assert.equal(fromWire(toWire("m")).message, "m");
});

test("a panic fails every call that waits, and says so", async () => {
  const disk = new Disk();
  let panic: (() => void) | undefined;
  const plain = disk.opener.bind(disk);
  disk.opener = () => (host) => {
    panic = () => host.status({ type: "panic", message: "out of bounds" });
    return plain()(host);
  };
  const db = await openReady(disk);
  const told = new Promise<RelaySyncError>((resolve) => db.addEventListener("error", ({ detail }) => resolve(detail)));
  const job = db.sync({}, { relays: [relay], live: true });
  panic?.();
  assert.equal((await told).code, "internal");
  await assert.rejects(job.done, { code: "internal", message: "out of bounds" });
  await assert.rejects(db.count({}), { code: "internal" });
  await db.close();
});

test("status becomes events", async () => {
  const disk = new Disk();
  let tell: ((state: "full" | "ok") => void) | undefined;
  const plain = disk.opener.bind(disk);
  disk.opener = () => (host) => {
    tell = (state) => host.status({ type: "storage", state, message: "no room" });
    return plain()(host);
  };
  const db = await openReady(disk);
  const told = new Promise((resolve) => db.addEventListener("storage", ({ detail }) => resolve(detail)));
  tell?.("full");
  assert.deepEqual(await told, { state: "full", message: "no room" });
  await db.close();
});

test("too many calls at a time are refused", async () => {
  const db = await openReady(new Disk(), { config: { callsMax: 3 } });
  const calls = [1, 2, 3, 4].map(() => db.count({}));
  await assert.rejects(calls[3] ?? Promise.resolve(), { code: "too-many", retryable: true });
  await Promise.all(calls.slice(0, 3));
  await db.close();
});

test("a call that is aborted rejects with the reason", async () => {
  const db = await openReady(new Disk());
  const reason = new Error("enough");
  await assert.rejects(db.query({}, { signal: AbortSignal.abort(reason) }), reason);
  await db.close();
});
