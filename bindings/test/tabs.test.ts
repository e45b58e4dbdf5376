import assert from "node:assert/strict";
import { test } from "node:test";
import type { RelaySync } from "../src/tab/relaysync.js";
import { Browser, settle } from "./support/browser.js";
import { Disk, event } from "./support/core.js";
import { openDatabase, openReady } from "./support/database.js";

const relay = "wss://one.example";
const total = 700;

function diskWith(count: number): Disk {
  const disk = new Disk();
  disk.relays.set(
    relay,
    Array.from({ length: count }, (_, at) => event(at + 1)),
  );
  return disk;
}

/** A browser with so many tabs; the first leads. */
async function tabs(disk: Disk, count: number) {
  const browser = new Browser();
  const opened = [];
  for (let made = 0; made < count; made += 1) {
    const tab = browser.open();
    const { db, ready } = openDatabase(disk, { tab });
    await browser.advance(1_000);
    await ready;
    opened.push({ tab, db });
  }
  return { browser, opened };
}

/** Reads a job of this tab to its end, into a list that can be looked at. */
function read(db: RelaySync): { readonly got: number[]; readonly ended: Promise<void> } {
  const got: number[] = [];
  const job = db.sync({}, { relays: [relay] });
  const ended = (async () => {
    for await (const { event: each } of job) got.push(each.created_at);
  })();
  return { got, ended };
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 2_000; turn += 1) {
    if (condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.fail(`not within bounds: ${what}`);
}

function exact(got: number[]): void {
  assert.deepEqual(
    got,
    Array.from({ length: total }, (_, at) => at + 1),
  );
}

test("one tab leads, the others are served by it", async () => {
  const disk = diskWith(0);
  const { opened } = await tabs(disk, 3);
  assert.deepEqual(
    opened.map(({ db }) => db.leading),
    [true, false, false],
  );
  assert.equal(disk.epoch, 1);
  assert.equal(await opened[2]?.db.add(event(1)), true);
  assert.equal(await opened[1]?.db.count({}), 1);
  for (const { db } of opened) await db.close();
});

for (const [name, end, wait] of [
  ["closed", (leader: { tab: { kill(): void }; db: RelaySync }) => void leader.db.close(), 1_000],
  ["killed", (leader: { tab: { kill(): void }; db: RelaySync }) => leader.tab.kill(), 1_000],
] as const) {
  test(`a follower's job survives its leader being ${name}: nothing lost, nothing twice`, async () => {
    const disk = diskWith(total);
    const { browser, opened } = await tabs(disk, 3);
    const [leader, follower] = opened;
    assert.ok(leader && follower);
    const reading = read(follower.db);
    await until(() => reading.got.length >= 100, "100 events");
    assert.ok(reading.got.length < total);
    end(leader);
    await browser.advance(wait);
    await reading.ended;
    exact(reading.got);
    assert.ok(disk.epoch > 1);
    assert.equal(opened.slice(1).filter(({ db }) => db.leading).length, 1);
    for (const { db } of opened.slice(1)) await db.close();
  });
}

test("a frozen leader is replaced, and follows when it is thawed", async () => {
  const disk = diskWith(total);
  const { browser, opened } = await tabs(disk, 3);
  const [leader, follower] = opened;
  assert.ok(leader && follower);
  const reading = read(follower.db);
  await until(() => reading.got.length >= 100, "100 events");
  const own = read(leader.db);
  await until(() => own.got.length >= 100, "100 events more");
  leader.tab.freeze();
  await browser.advance(14_000);
  await reading.ended;
  exact(reading.got);
  assert.equal(disk.epoch, 2);
  leader.tab.thaw();
  await browser.advance(3_000);
  assert.equal(leader.db.leading, false);
  assert.equal(opened.filter(({ db }) => db.leading).length, 1);
  await own.ended;
  // It began later, and was given what was stored from then on.
  assert.deepEqual(
    own.got,
    Array.from({ length: own.got.length }, (_, at) => total - own.got.length + 1 + at),
  );
  assert.equal(disk.epoch, 2);
  assert.equal(await leader.db.count({}), total);
  for (const { db } of opened) await db.close();
});

test("a follower that was frozen itself takes the lead from nobody", async () => {
  const disk = diskWith(0);
  const { browser, opened } = await tabs(disk, 2);
  opened[1]?.tab.freeze();
  await browser.advance(60_000);
  opened[1]?.tab.thaw();
  await browser.advance(20_000);
  assert.equal(disk.epoch, 1);
  assert.deepEqual(
    opened.map(({ db }) => db.leading),
    [true, false],
  );
  for (const { db } of opened) await db.close();
});

test("the jobs of a tab that is gone end", async () => {
  const disk = diskWith(0);
  const { browser, opened } = await tabs(disk, 2);
  const follower = opened[1];
  assert.ok(follower);
  await follower.db.sync({}, { relays: [relay], live: true }).caughtUp;
  follower.tab.kill();
  await browser.advance(1_000);
  assert.equal(disk.count("stop"), 1);
  await opened[0]?.db.close();
});

test("a job that is over is not begun again at another leader, unless what it has stored is read", async () => {
  const disk = diskWith(total);
  const { browser, opened } = await tabs(disk, 2);
  const [leader, follower] = opened;
  assert.ok(leader && follower);
  const job = follower.db.sync({}, { relays: [relay] });
  await job.done;
  leader.tab.kill();
  await browser.advance(1_000);
  assert.equal(follower.db.leading, true);
  assert.equal(disk.count("job"), 1);
  const got: number[] = [];
  for await (const { event: each } of job) got.push(each.created_at);
  exact(got);
  assert.equal(disk.count("job"), 2);
  await follower.db.close();
});

test("a lock that is granted to a tab while it is frozen, and taken again, is not used", async () => {
  const disk = diskWith(0);
  const { browser, opened } = await tabs(disk, 3);
  const [leader, sleeper, third] = opened;
  assert.ok(leader && sleeper && third);
  sleeper.tab.freeze();
  leader.tab.kill();
  await browser.advance(14_000);
  assert.equal(third.db.leading, true);
  assert.equal(disk.epoch, 2);
  sleeper.tab.thaw();
  await browser.advance(4_000);
  assert.equal(disk.epoch, 2);
  assert.equal(sleeper.db.leading, false);
  assert.equal(await sleeper.db.count({}), 0);
  await sleeper.db.close();
  await third.db.close();
});

test("messages of other versions and of strangers are ignored", async () => {
  const disk = diskWith(0);
  const { browser, opened } = await tabs(disk, 2);
  const stranger = browser.open();
  for (const name of ["relaysync:relaysync", "relaysync:relaysync:door", "relaysync:relaysync:tab:tab2"]) {
    const channel = stranger.means.channel(name);
    for (const message of [
      null,
      7,
      "beat",
      {},
      { relaysync: 99, from: "x", kind: "beat", term: "t" },
      { relaysync: 1 },
    ]) {
      channel.postMessage(message);
    }
    channel.close();
  }
  await browser.advance(4_000);
  assert.equal(await opened[1]?.db.count({}), 0);
  assert.equal(disk.epoch, 1);
  for (const { db } of opened) await db.close();
});

test("a leader of another version is not fought, and open says so in the end", async () => {
  const browser = new Browser();
  const other = browser.open();
  void other.means.locks.request("relaysync:relaysync", () => new Promise(() => undefined));
  const channel = other.means.channel("relaysync:relaysync");
  other.machine.every(2_000, () => channel.postMessage({ relaysync: 99, from: "other", kind: "beat", term: "t" }));
  const disk = new Disk();
  const { ready } = openDatabase(disk, { tab: browser.open(), config: { leaderWaitMs: 50 } });
  await browser.advance(30_000);
  await assert.rejects(ready, { code: "no-leader", retryable: true });
  assert.equal(disk.epoch, 0);
});

test("without multiTab, the second tab is told that the database is in use", async () => {
  const browser = new Browser();
  const disk = new Disk();
  const first = await openReady(disk, { tab: browser.open(), multiTab: false });
  const second = openDatabase(disk, { tab: browser.open(), multiTab: false, config: { lockWaitMs: 10 } });
  await assert.rejects(second.ready, { code: "in-use" });
  await first.close();
  const third = await openReady(disk, { tab: browser.open(), multiTab: false });
  await third.close();
});

test("a page that is put aside hands over the lead, and follows when it is back", async () => {
  const disk = diskWith(0);
  const browser = new Browser();
  const first = openDatabase(disk, { tab: browser.open() });
  await browser.advance(1_000);
  const second = openDatabase(disk, { tab: browser.open() });
  await browser.advance(1_000);
  await second.ready;
  first.client.notify("pause");
  await browser.advance(1_000);
  assert.equal(second.db.leading, true);
  first.client.notify("resume");
  await browser.advance(2_000);
  assert.equal(first.db.leading, false);
  assert.equal(await first.db.add(event(1)), true);
  assert.equal(await second.db.count({}), 1);
  await first.db.close();
  await second.db.close();
});

test("a tab that is put aside without leading goes on with its live jobs at the same leader", async () => {
  const disk = diskWith(0);
  const browser = new Browser();
  const leader = openDatabase(disk, { tab: browser.open() });
  await browser.advance(1_000);
  const other = openDatabase(disk, { tab: browser.open() });
  await browser.advance(1_000);
  await other.ready;
  const watch = other.db.subscribe({});
  const first = watch.next();
  await browser.advance(100);
  await leader.db.add(event(1));
  assert.equal((await first).value?.id, event(1).id);
  other.client.notify("pause");
  await browser.advance(1_000);
  await leader.db.add(event(2));
  other.client.notify("resume");
  await browser.advance(5_000);
  assert.equal((await watch.next()).value?.id, event(2).id);
  await other.db.close();
  await leader.db.close();
});

test("signatures are asked of a tab that has a signer", async () => {
  const disk = new Disk();
  let host: Parameters<ReturnType<Disk["opener"]>>[0] | undefined;
  const plain = disk.opener.bind(disk);
  disk.opener = (tab) => (given) => {
    host = given;
    return plain(tab)(given);
  };
  const browser = new Browser();
  const leader = openDatabase(disk, { tab: browser.open() });
  await browser.advance(1_000);
  await leader.ready;
  await assert.rejects(host?.sign?.("{}", relay) ?? Promise.resolve(), { code: "no-signer" });
  const signer = { getPublicKey: async () => "c".repeat(64), signEvent: async () => event(9) };
  const other = openDatabase(disk, { tab: browser.open(), signer });
  await browser.advance(2_500);
  await other.ready;
  assert.equal(await host?.publicKey?.(), "c".repeat(64));
  assert.equal(await host?.sign?.(JSON.stringify(event(9)), relay), JSON.stringify(event(9)));
  await settle();
  await leader.db.close();
  await other.db.close();
});
