import assert from "node:assert/strict";
import { test } from "node:test";
import { Disk, event } from "./support/core.js";
import { settle } from "./support/browser.js";
import { openDatabase, openReady } from "./support/database.js";

const relay = "wss://one.example";

function diskWith(count: number): Disk {
  const disk = new Disk();
  disk.relays.set(
    relay,
    Array.from({ length: count }, (_, at) => event(at + 1)),
  );
  return disk;
}

test("a job yields every event once, in order, and ends", async () => {
  const db = await openReady(diskWith(100));
  const job = db.sync({}, { relays: [relay] });
  const got: number[] = [];
  for await (const { event: each, relay: from, phase } of job) {
    assert.equal(from, relay);
    assert.equal(phase, "stored");
    got.push(each.created_at);
  }
  assert.deepEqual(
    got,
    Array.from({ length: 100 }, (_, at) => at + 1),
  );
  assert.equal((await job.done).complete, true);
  await db.close();
});

test("batches hold at least one event, and all of them together", async () => {
  const db = await openReady(diskWith(100), { config: { takeEventsMax: 9 } });
  let events = 0;
  for await (const batch of db.sync({}, { relays: [relay] }).batches()) {
    assert.ok(batch.length > 0 && batch.length <= 9);
    events += batch.length;
  }
  assert.equal(events, 100);
  await db.close();
});

test("a loop that is left goes on where it was left", async () => {
  const db = await openReady(diskWith(50));
  const job = db.sync({}, { relays: [relay] });
  const got: number[] = [];
  for await (const { event: each } of job) {
    got.push(each.created_at);
    if (got.length === 10) break;
  }
  for await (const { event: each } of job) got.push(each.created_at);
  assert.deepEqual(
    got,
    Array.from({ length: 50 }, (_, at) => at + 1),
  );
  await db.close();
});

test("a loop that is broken off while it waits loses nothing", async () => {
  const disk = diskWith(0);
  const db = await openReady(disk);
  const job = db.sync({}, { relays: [relay], live: true });
  await job.caughtUp;
  const first = job[Symbol.asyncIterator]();
  const waiting = first.next();
  await settle();
  await db.add(event(1));
  assert.equal((await waiting).value?.event.created_at, 1);
  await first.return();
  await db.add(event(2));
  const second = job[Symbol.asyncIterator]();
  assert.equal((await second.next()).value?.event.created_at, 2);
  await db.close();
});

test("two loops at a time are refused", async () => {
  const db = await openReady(diskWith(5));
  const job = db.sync({}, { relays: [relay], live: true });
  const first = job[Symbol.asyncIterator]();
  await first.next();
  await assert.rejects(job[Symbol.asyncIterator]().next(), { code: "busy" });
  await db.close();
});

test("events wait in the database, not in memory", async () => {
  const disk = diskWith(200);
  const db = await openReady(disk, { config: { takeEventsMax: 5 } });
  const job = db.sync({}, { relays: [relay] });
  await job.done;
  const loop = job[Symbol.asyncIterator]();
  for (let read = 0; read < 6; read += 1) await loop.next();
  await settle();
  assert.equal(disk.count("take"), 2);
  await db.close();
});

test("stop ends a live job and its loop, and gives the report", async () => {
  const db = await openReady(diskWith(20));
  const job = db.sync({}, { relays: [relay], live: true });
  let seen = 0;
  const loop = (async () => {
    for await (const _ of job) seen += 1;
  })();
  await job.caughtUp;
  await settle();
  assert.equal((await job.stop()).state, "done");
  await loop;
  assert.equal(seen, 20);
  assert.equal((await job.done).state, "done");
  assert.equal((await job.stop()).state, "done");
  await db.close();
});

test("an abort makes loops and promises throw its reason, and stops the job", async () => {
  const disk = diskWith(0);
  const db = await openReady(disk);
  const abort = new AbortController();
  const reason = new Error("enough");
  const job = db.sync({}, { relays: [relay], live: true, signal: abort.signal });
  await job.caughtUp;
  const waiting = job[Symbol.asyncIterator]().next();
  await settle();
  abort.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(job.done, reason);
  await settle();
  assert.equal(disk.count("stop"), 1);
  const late = db.sync({}, { relays: [relay], signal: abort.signal });
  await assert.rejects(late.caughtUp, reason);
  await db.close();
});

test("progress ends with the report at the end", async () => {
  const db = await openReady(diskWith(100), { config: { progressMs: 1 } });
  const states: string[] = [];
  for await (const report of db.sync({}, { relays: [relay] }).progress()) states.push(report.state);
  assert.equal(states.at(-1), "done");
  await db.close();
});

test("nobody has to await anything: closing raises no unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  const db = await openReady(diskWith(100));
  const job = db.sync({}, { relays: [relay], live: true });
  const loop = (async () => {
    for await (const _ of job);
  })();
  await settle();
  await db.close();
  await loop;
  await assert.rejects(job.done, { code: "closed" });
  await assert.rejects(db.count({}), { code: "closed" });
  await settle();
  process.off("unhandledRejection", note);
  assert.deepEqual(unhandled, []);
});

test("a job that cannot begin says why, once it is asked", async () => {
  const disk = diskWith(0);
  const { db, ready } = openDatabase(disk);
  await ready;
  const opened = disk.opener;
  assert.ok(opened);
  const { FakeCore } = await import("./support/core.js");
  const call = FakeCore.prototype.call;
  FakeCore.prototype.call = function (request) {
    return request.method === "job"
      ? Promise.reject({ code: "no_relays", message: "no relay", retryable: false })
      : call.call(this, request);
  };
  try {
    const job = db.sync({}, { relays: [relay] });
    await assert.rejects(job.caughtUp, { code: "invalid-argument", message: "no relay" });
    await assert.rejects(job[Symbol.asyncIterator]().next(), { code: "invalid-argument" });
  } finally {
    FakeCore.prototype.call = call;
  }
  await db.close();
});

test("subscribe yields what is stored from now on, and ends with its loop", async () => {
  const disk = diskWith(0);
  const db = await openReady(disk);
  await db.add(event(1));
  const news = db.subscribe({ kinds: [1] });
  const first = news.next();
  await settle();
  await db.addAll([event(2), event(3, 7), event(4)]);
  assert.equal((await first).value?.created_at, 2);
  assert.equal((await news.next()).value?.created_at, 4);
  await news.return();
  await settle();
  assert.equal(disk.count("unwatch"), 1);
  await db.close();
});
