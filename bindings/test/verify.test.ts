import assert from "node:assert/strict";
import { test } from "node:test";
import { defaults } from "../src/config.js";
import { Log } from "../src/log.js";
import { VerifyPool, eventBytes, type VerifyWorker } from "../src/serve/verify.js";

/** Genuine is what begins with an odd byte. */
function check(batch: Uint8Array): Uint8Array {
  return Uint8Array.from({ length: batch.length / eventBytes }, (_, at) => (batch[at * eventBytes] ?? 0) & 1);
}

function batchOf(events: number): Uint8Array {
  const batch = new Uint8Array(events * eventBytes);
  for (let at = 0; at < events; at += 1) batch[at * eventBytes] = at % 251;
  return batch;
}

/** Workers that answer, except those that fail. */
class Workers {
  made = 0;
  running = 0;
  shares = 0;

  constructor(readonly fail: boolean) {}

  spawn(): VerifyWorker {
    this.made += 1;
    this.running += 1;
    const worker: VerifyWorker = {
      onmessage: null,
      onerror: null,
      terminate: () => void (this.running -= 1),
      postMessage: (message: { readonly batch: Uint8Array }) => {
        this.shares += 1;
        setImmediate(() => {
          if (this.fail) worker.onerror?.call(worker as Worker, {} as ErrorEvent);
          else worker.onmessage?.call(worker as Worker, { data: { verdicts: check(message.batch) } } as MessageEvent);
        });
      },
    };
    return worker;
  }
}

function pool(workers: Workers, max: number): VerifyPool {
  return new VerifyPool(
    () => workers.spawn(),
    check,
    max,
    { ...defaults, verifyEventsMin: 10, verifyIdleMs: 5 },
    new Log("off"),
  );
}

test("verdicts are those of one thread, whatever the split", async () => {
  const workers = new Workers(false);
  const checked = pool(workers, 3);
  const sizes = [0, 1, 9, 10, 11, 29, 30, 31, 1_000];
  const all = await Promise.all(sizes.map((size) => checked.verify(batchOf(size))));
  all.forEach((verdicts, at) => assert.deepEqual(verdicts, check(batchOf(sizes[at] ?? 0))));
  assert.equal(workers.made, 3);
  assert.ok(workers.shares >= 8);
  checked.close();
});

test("workers end when there is nothing to do, and begin again", async () => {
  const workers = new Workers(false);
  const checked = pool(workers, 2);
  await checked.verify(batchOf(100));
  for (let turn = 0; turn < 1_000 && workers.running > 0; turn += 1)
    await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(workers.running, 0);
  assert.deepEqual(await checked.verify(batchOf(100)), check(batchOf(100)));
  checked.close();
});

test("what a worker fails to check is checked here", async () => {
  const workers = new Workers(true);
  const checked = pool(workers, 2);
  assert.deepEqual(await checked.verify(batchOf(500)), check(batchOf(500)));
  assert.equal(workers.running, 0);
  checked.close();
});

test("without any worker, everything is checked here", async () => {
  const checked = new VerifyPool(() => assert.fail("none"), check, 2, defaults, new Log("off"));
  assert.deepEqual(await checked.verify(batchOf(500)), check(batchOf(500)));
  checked.close();
});
