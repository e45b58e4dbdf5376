// Relays that misbehave.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BURST_SECS, newSigner } from './support/events.mjs';
import { oddRelay, REFUSALS } from './support/odd_relay.mjs';
import { assertHeld, generated, stage, synced } from './support/stage.mjs';

async function staged(test, options) {
  const relay = await oddRelay(options);
  test.after(() => relay.stop());
  const { open } = await stage(test);
  return { relay, open };
}

for (const refusal of Object.keys(REFUSALS)) {
  test(`a relay that claims NIP-77 and refuses it (${refusal}) is fetched by pages`, async (test) => {
    const sample = await generated({ events: 3_000 });
    const { relay, open } = await staged(test, { events: sample.events, pageEventsMax: 500, refusal, claims77: true });
    const tab = await open();
    // Who has nothing yet does not ask to reconcile.
    const lines = sample.events.slice(0, 1_500).map((event) => JSON.stringify(event)).join('\n');
    assert.equal((await tab.evaluate((lines) => globalThis.db.import(lines), lines)).stored, 1_500);
    const { report } = await synced(tab, { relays: [relay.url] });
    assert.equal(report.complete, true, JSON.stringify(report));
    assert.ok(relay.requests.some(([type]) => type === 'NEG-OPEN'), 'it was asked to reconcile');
    await assertHeld(tab, sample.ids);
  });
}

test('a second that fits into a page is fetched whole, wherever pages begin and end', async (test) => {
  const sample = await generated({ events: 3_000, burst: 450 });
  const { relay, open } = await staged(test, { events: sample.events, pageEventsMax: 500 });
  const tab = await open();
  const { report, heard } = await synced(tab, { relays: [relay.url], negentropy: 'never' });
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids, heard);
});

test('a second that is bigger than a page is fetched whole or is a gap on record', async (test) => {
  const sample = await generated({ events: 3_000, burst: 1_500 });
  const { relay, open } = await staged(test, { events: sample.events, pageEventsMax: 500 });
  const tab = await open();
  const { report } = await synced(tab, { relays: [relay.url] });
  const held = new Set(await tab.evaluate(() => globalThis.heldIds()));
  const missing = sample.events.filter(({ id }) => !held.has(id));
  assert.ok(missing.every(({ created_at }) => created_at === BURST_SECS), 'only of the second itself may some be missing');
  if (missing.length === 0 && report.complete) return;
  assert.equal(report.complete, false);
  const gaps = report.relays[0].gaps.filter(({ since, until }) => since <= BURST_SECS && until >= BURST_SECS);
  assert.equal(gaps.length, 1, JSON.stringify(report));
  assert.equal(gaps[0].until - gaps[0].since, 0, 'the gap is no more than that second');
});

test('a relay that cuts the connection in the middle is fetched exactly', async (test) => {
  const sample = await generated({ events: 3_000 });
  const { relay, open } = await staged(test, { events: sample.events, pageEventsMax: 500, dropEvery: 200, drops: 2 });
  const tab = await open();
  const { report, heard } = await synced(tab, { relays: [relay.url] });
  assert.equal(relay.dropsLeft, 0, 'it did cut');
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids, heard);
});

test('a relay that is slow and allows two subscriptions is fetched exactly', async (test) => {
  const sample = await generated({ events: 3_000 });
  const { relay, open } = await staged(test, { events: sample.events, pageEventsMax: 500, answerMs: 150, subscriptionsMax: 2 });
  const tab = await open();
  const { report, heard } = await synced(tab, { relays: [relay.url] });
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids, heard);
});

test('an event with a wrong signature is counted and not stored', async (test) => {
  const sign = await newSigner('forger');
  const genuine = sign({ kind: 1, created_at: 1_720_000_000, content: 'genuine' });
  const forged = { ...sign({ kind: 1, created_at: 1_720_000_001, content: 'forged' }), sig: genuine.sig };
  const { relay, open } = await staged(test, { events: [genuine, forged] });
  const tab = await open();
  const { report } = await synced(tab, { relays: [relay.url] });
  assert.equal(report.counts.invalid, 1, JSON.stringify(report));
  await assertHeld(tab, [genuine.id]);
});

test('a relay that is not there is a gap with its reason', async (test) => {
  const { relay, open } = await staged(test, { events: [] });
  await relay.stop();
  relay.stop = async () => undefined;
  const tab = await open();
  const { report } = await tab.evaluate(async (relays) => {
    globalThis.follow({ relays, live: true });
    const caughtUp = await globalThis.followed('caughtUp');
    await globalThis.job.stop();
    return caughtUp;
  }, [relay.url]);
  assert.equal(report.complete, false);
  assert.equal(report.relays[0].gaps[0]?.kind, 'unreachable', JSON.stringify(report));
});
