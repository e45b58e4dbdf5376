// The network goes and comes back; a tab is in the background.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until } from './support/browser.mjs';
import { newSigner } from './support/events.mjs';
import { ownRelay } from './support/relays.mjs';
import { assertHeld, begin, finished, generated, stage } from './support/stage.mjs';

/** How far away the next try to connect is before the browser comes back, and how fast it then has to be, in seconds. */
const OFFLINE_BACK_SECS = 12;
const BACK_SECS = 6;

async function staged(test) {
  const sample = await generated({ events: 2_000, burst: 100 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const played = await stage(test);
  return { ...played, sample, relay, tab: await played.open() };
}

async function notes(count, content) {
  const sign = await newSigner(content);
  const now = Math.floor(Date.now() / 1_000);
  return Array.from({ length: count }, (_, index) => sign({ kind: 1, created_at: now - index, content: `${content} ${index}` }));
}

async function caughtUp(tab, relay) {
  await tab.evaluate((relays) => globalThis.follow({ relays, live: true }), [relay.url]);
  const { report } = await tab.evaluate(() => globalThis.followed('caughtUp'));
  assert.equal(report.complete, true, JSON.stringify(report));
}

function held(tab, count, timeoutMs = 60_000) {
  return until(`${count} events are held`, async () => (await tab.evaluate(() => globalThis.heldCount())) === count, timeoutMs);
}

test('what a relay got while it was away is fetched when it is back, and then followed live', async (test) => {
  const { sample, relay, tab } = await staged(test);
  await caughtUp(tab, relay);
  await relay.halt();
  const late = await notes(300, 'while it was away');
  relay.import(late);
  await relay.again();
  await held(tab, 2_300);
  const [live] = await notes(1, 'live');
  const other = await tab.evaluate(async ({ live, relay }) => {
    const other = await globalThis.relaysync.open({ name: 'another', multiTab: false });
    return other.publish(live, { relays: [relay] });
  }, { live, relay: relay.url });
  assert.equal(other.relays[0].accepted, true, JSON.stringify(other));
  await held(tab, 2_301);
  await tab.waitForFunction(() => globalThis.heard.ids.length === 2_301, undefined, { timeout: 10_000 });
  await tab.evaluate(() => globalThis.job.stop());
  const { heard } = await finished(tab);
  assert.ok(heard.phases.live >= 1, JSON.stringify(heard.phases));
  await assertHeld(tab, [...sample.ids, ...late.map(({ id }) => id), live.id], heard);
});

test('a browser that is offline and back connects at once, long before the next try', async (test) => {
  const { relay, tab, context } = await staged(test);
  await caughtUp(tab, relay);
  await context.setOffline(true);
  await relay.halt();
  // Tries grow rarer the longer it lasts.
  const pause = () => tab.evaluate(async () => (await globalThis.db.relays())[0].nextTrySecs);
  await until('the next try is far away', async () => (await pause()) > OFFLINE_BACK_SECS, 120_000);
  relay.import(await notes(50, 'offline'));
  await relay.again();
  assert.ok((await pause()) > BACK_SECS, 'the next try is still far away');
  await context.setOffline(false);
  await held(tab, 2_050, BACK_SECS * 1_000);
});

test('a big backlog is fetched by a tab in the background', async (test) => {
  const sample = await generated({ events: 20_000, burst: 1_500 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const { open, tab: newTab } = await stage(test, { plain: true });
  const tab = await open();
  const front = await newTab('about:blank');
  await front.bringToFront();
  await until('the tab is hidden', () => tab.evaluate(() => document.visibilityState === 'hidden'), 10_000);
  await tab.evaluate((options) => globalThis.follow(options), { relays: [relay.url] });
  const { report, heard } = await finished(tab);
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids, heard);
});

test('a page that comes back from the back/forward cache goes on', async (test) => {
  const { sample, relay, tab, url } = await staged(test);
  await caughtUp(tab, relay);
  await tab.goto(`${url}/page.js`);
  await tab.goBack();
  // The browser decides whether it kept the page.
  if (!(await tab.evaluate(() => globalThis.db !== undefined))) await begin(tab);
  await assertHeld(tab, sample.ids);
});
