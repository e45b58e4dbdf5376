// The database when there is no room, and when its tab dies.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { rendererOf, until } from './support/browser.mjs';
import { ownRelay } from './support/relays.mjs';
import { assertHeld, assertSame, finished, generated, stage, synced } from './support/stage.mjs';

const QUOTA_BYTES = 4_000_000;
const DEATHS = 8;

test('without room the job waits, says so, and goes on when there is room again', async (test) => {
  const sample = await generated({ events: 20_000, burst: 1_500 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const { open, context, url } = await stage(test);
  // Before the database is opened: how much room there is the browser remembers for a while.
  const session = await context.newCDPSession(await context.newPage());
  await session.send('Storage.overrideQuotaForOrigin', { origin: url, quotaSize: QUOTA_BYTES });
  const tab = await open();
  await tab.evaluate((options) => globalThis.follow(options), { relays: [relay.url] });
  await until('the storage is full', () => tab.evaluate(async () => (await globalThis.db.storageInfo()).state === 'full'), 60_000);
  assert.ok(await tab.evaluate(() => globalThis.told.some(({ type, detail }) => type === 'storage' && detail.state === 'full')));
  const held = await tab.evaluate(() => globalThis.heldIds());
  assert.ok(held.length > 0 && held.length < 20_000, `${held.length} events`);
  // It can still be read, and the job is not over.
  assert.equal(await tab.evaluate(() => globalThis.heldCount()), held.length);
  assert.equal(await tab.evaluate(() => globalThis.heard.ended), false);

  await session.send('Storage.overrideQuotaForOrigin', { origin: url });
  const { report, heard } = await finished(tab);
  assert.equal(report.complete, true, JSON.stringify(report));
  assert.equal((await tab.evaluate(() => globalThis.db.storageInfo())).state, 'ok');
  await assertHeld(tab, sample.ids, heard);
});

test('a cap on its size removes the oldest events, and coverage with them', async (test) => {
  const sample = await generated({ events: 20_000, burst: 1_500 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const { open } = await stage(test);
  const bytesMax = 6_000_000;
  const tab = await open({ bytesMax });
  const { report } = await synced(tab, { relays: [relay.url] });
  const info = await tab.evaluate(() => globalThis.db.storageInfo());
  // What is cut out of a segment is reclaimed once an eighth of it is.
  assert.ok(info.bytes <= (bytesMax * 9) / 8, `${info.bytes} bytes`);
  assert.ok(info.floorSecs > 0);
  assert.equal(report.complete, false, 'a copy that lacks what was removed is not complete');
  const kept = new Set(await tab.evaluate(() => globalThis.heldIds()));
  const newest = sample.events.filter(({ created_at }) => created_at > info.floorSecs);
  assert.ok(newest.length > 1_000, `${newest.length} events`);
  assert.equal(newest.filter(({ id }) => !kept.has(id)).length, 0, 'the newest are kept');
  // Some older ones may still be there, as what came with the last commits: what is certain is what is newer.
  assert.ok(kept.size < sample.events.length, `${kept.size} events`);
  await assertCovered(tab, sample.events);
});

test(`a tab that is killed ${DEATHS} times in the middle leaves nothing half done`, async (test) => {
  const sample = await generated({ events: 20_000, burst: 1_500 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const { open, renderers } = await stage(test);
  let before = 0;
  for (let death = 0; death < DEATHS; death += 1) {
    const tab = await open();
    before = await assertWhole(tab, sample, before);
    const pid = await rendererOf(tab, renderers);
    await tab.evaluate((options) => globalThis.follow(options), { relays: [relay.url] });
    // At another moment each time, the first of them before anything is written.
    const wanted = Math.floor(death * 307);
    await tab.waitForFunction((wanted) => globalThis.heard.ids.length >= wanted, wanted, { timeout: 60_000 });
    const crashed = tab.waitForEvent('crash');
    process.kill(pid, 'SIGKILL');
    await crashed;
    await tab.close();
  }
  const tab = await open();
  await assertWhole(tab, sample, before);
  const { report } = await synced(tab, { relays: [relay.url] });
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids);
});

/** What is held is genuine, can be read in every way, is no less than `before`, and covers what is said to be covered. */
async function assertWhole(tab, sample, before) {
  const ids = await tab.evaluate(() => globalThis.heldIds());
  assert.equal(await tab.evaluate(() => globalThis.heldCount()), ids.length);
  assert.ok(ids.length >= before, `${ids.length} events after ${before}`);
  const wanted = new Set(ids);
  assertSame(ids, sample.ids.filter((id) => wanted.has(id)), 'held');
  await assertCovered(tab, sample.events);
  return ids.length;
}

/** Of every span that is proven, all events are held. */
async function assertCovered(tab, events) {
  const coverage = await tab.evaluate(() => globalThis.db.coverage({ kinds: [1, 7, 1111] }));
  const held = new Set(await tab.evaluate(() => globalThis.heldIds()));
  for (const { windows } of coverage) {
    for (const { since, until } of windows) {
      const within = events.filter(({ created_at }) => created_at >= (since ?? 0) && created_at <= (until ?? Infinity));
      assert.equal(within.filter(({ id }) => !held.has(id)).length, 0, `between ${since} and ${until} all is held`);
    }
  }
}
