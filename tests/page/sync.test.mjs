// Whole histories, from our relay and from relays of other makes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { otherRelay, ownRelay } from './support/relays.mjs';
import { assertHeld, begin, generated, stage, synced } from './support/stage.mjs';

test('20,000 events are there exactly, and after a reload nothing is fetched twice', async (test) => {
  const sample = await generated({ events: 20_000, burst: 1_500 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const { open } = await stage(test);
  const tab = await open();

  const first = await synced(tab, { relays: [relay.url] });
  assert.equal(first.report.complete, true, JSON.stringify(first.report));
  assert.equal(first.report.counts.stored, 20_000);
  await assertHeld(tab, sample.ids, first.heard);

  await tab.reload();
  await begin(tab);
  await assertHeld(tab, sample.ids);
  const again = await synced(tab, { relays: [relay.url] });
  assert.equal(again.report.complete, true, JSON.stringify(again.report));
  assert.equal(again.report.counts.received, 0);
  assert.deepEqual(again.heard.ids, []);
});

test('a page that is left in the middle goes on where it was', async (test) => {
  const sample = await generated({ events: 20_000, burst: 1_500 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const { open } = await stage(test);
  const tab = await open();

  await tab.evaluate((options) => globalThis.follow(options), { relays: [relay.url] });
  await tab.waitForFunction(() => globalThis.heard.ids.length > 4_000, undefined, { timeout: 60_000 });
  await tab.reload();
  await begin(tab);
  const held = await tab.evaluate(() => globalThis.heldCount());
  assert.ok(held > 4_000 && held < 20_000, `${held} events when it was left`);
  const { report } = await synced(tab, { relays: [relay.url] });
  assert.equal(report.complete, true, JSON.stringify(report));
  // What was on its way comes again; what was stored does not.
  assert.ok(report.counts.duplicate < 1_000, `${report.counts.duplicate} came twice`);
  await assertHeld(tab, sample.ids);
});

for (const make of ['npm', 'rust']) {
  test(`a relay of another make, ${make}, is fetched exactly`, async (test) => {
    const sample = await generated({ events: 3_000, burst: 60 });
    const relay = await otherRelay(make, { load: sample.path });
    test.after(() => relay.stop());
    const { open } = await stage(test);
    const tab = await open();
    const { report, heard } = await synced(tab, { relays: [relay.url] });
    assert.equal(report.complete, true, JSON.stringify(report));
    await assertHeld(tab, sample.ids, heard);
  });
}

test('what is added here is published there, and comes to another database', async (test) => {
  const { newSigner } = await import('./support/events.mjs');
  const sign = await newSigner('publisher');
  const event = sign({ kind: 1, created_at: 1_720_000_000, content: 'from a page' });
  const relay = await ownRelay();
  test.after(() => relay.stop());
  const { open } = await stage(test);
  const tab = await open({ relays: [relay.url] });
  const published = await tab.evaluate((event) => globalThis.db.publish(event), event);
  assert.equal(published.outcome, 'stored');
  assert.equal(published.relays.length, 1);
  assert.equal(published.relays[0].accepted, true, JSON.stringify(published));
  const other = await open({ name: 'another' });
  await synced(other, { relays: [relay.url] });
  await assertHeld(other, [event.id]);
});
