// Several tabs of one database: one leads, the others use it, and a job outlives whoever leads.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { rendererOf } from './support/browser.mjs';
import { ownRelay } from './support/relays.mjs';
import { HASTY, assertHeld, finished, generated, stage, synced } from './support/stage.mjs';

const TAKEOVER_TIMEOUT_MS = 20_000;

/** A relay with many events, a tab that leads, and others that do not. */
async function staged(test, followers) {
  const sample = await generated({ events: 10_000, burst: 1_500 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const played = await stage(test);
  const leader = await played.open({ config: HASTY });
  assert.equal(await leader.evaluate(() => globalThis.db.leading), true);
  const tabs = [];
  for (let index = 0; index < followers; index += 1) {
    const tab = await played.open({ config: HASTY });
    assert.equal(await tab.evaluate(() => globalThis.db.leading), false);
    tabs.push(tab);
  }
  return { ...played, sample, relay, leader, tabs };
}

/** Starts a job in a tab, and stops the relay for as long as `disturb` takes when the job is on its way. */
async function disturbed(tab, relay, disturb) {
  await tab.evaluate((options) => globalThis.follow(options), { relays: [relay.url] });
  await tab.waitForFunction(() => globalThis.heard.ids.length > 2_000, undefined, { timeout: 60_000 });
  relay.pause();
  try {
    assert.equal(await tab.evaluate(() => globalThis.heard.ended), false, 'the job still runs');
    await disturb();
  } finally {
    relay.resume();
  }
}

/** That the job of a tab ended with everything, each event once. */
async function assertExact(tab, sample) {
  const { report, heard } = await finished(tab);
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids, heard);
}

function leads(tab) {
  return tab.waitForFunction(() => globalThis.db.leading, undefined, { timeout: TAKEOVER_TIMEOUT_MS });
}

/** The process that shows a tab, and no other tab. */
async function processOf(tab, others, renderers) {
  const pid = await rendererOf(tab, renderers);
  for (const other of others) assert.notEqual(await rendererOf(other, renderers), pid, 'tabs have processes of their own');
  return pid;
}

test('a job in a second tab ends exactly, and both tabs see the same', async (test) => {
  const { sample, relay, leader, tabs: [tab] } = await staged(test, 1);
  const { report, heard } = await synced(tab, { relays: [relay.url] });
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids, heard);
  await assertHeld(leader, sample.ids);
});

test('the leading tab is closed while a job of another runs', async (test) => {
  const { sample, relay, leader, tabs: [tab] } = await staged(test, 1);
  await disturbed(tab, relay, async () => {
    await leader.close();
    await leads(tab);
  });
  await assertExact(tab, sample);
});

test('the leading tab is killed while jobs of two others run', async (test) => {
  const { sample, relay, leader, tabs, renderers } = await staged(test, 2);
  const pid = await processOf(leader, tabs, renderers);
  await tabs[1].evaluate((options) => globalThis.follow(options), { relays: [relay.url] });
  await disturbed(tabs[0], relay, async () => {
    process.kill(pid, 'SIGKILL');
    await Promise.any(tabs.map(leads));
  });
  for (const tab of tabs) await assertExact(tab, sample);
  const leading = await Promise.all(tabs.map((tab) => tab.evaluate(() => globalThis.db.leading)));
  assert.equal(leading.filter(Boolean).length, 1, 'one of them leads');
});

test('the leading tab freezes while a job of another runs, and follows when it wakes', async (test) => {
  const { sample, relay, leader, tabs: [tab], renderers } = await staged(test, 1);
  const pid = await processOf(leader, [tab], renderers);
  test.after(() => signal(pid, 'SIGCONT'));
  await disturbed(tab, relay, async () => {
    process.kill(pid, 'SIGSTOP');
    await leads(tab);
  });
  await assertExact(tab, sample);
  process.kill(pid, 'SIGCONT');
  await leader.waitForFunction(() => !globalThis.db.leading, undefined, { timeout: TAKEOVER_TIMEOUT_MS });
  await assertHeld(leader, sample.ids);
  assert.equal(await tab.evaluate(() => globalThis.db.leading), true);
});

test('the browser freezes the leading tab (page lifecycle), and a job of another ends all the same', async (test) => {
  const { sample, relay, leader, tabs: [tab], context } = await staged(test, 1);
  const session = await context.newCDPSession(leader);
  await disturbed(tab, relay, () => session.send('Page.setWebLifecycleState', { state: 'frozen' }));
  await assertExact(tab, sample);
  await session.send('Page.setWebLifecycleState', { state: 'active' });
  await assertHeld(leader, sample.ids);
});

test('three tabs, each with a job, are closed one after the other', async (test) => {
  const { sample, relay, leader, tabs } = await staged(test, 2);
  for (const tab of [leader, tabs[0]]) await tab.evaluate((options) => globalThis.follow(options), { relays: [relay.url] });
  await disturbed(tabs[1], relay, async () => {
    await leader.close();
    await Promise.any(tabs.map(leads));
    await tabs[0].close();
    await leads(tabs[1]);
  });
  await assertExact(tabs[1], sample);
});

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended with the browser.
    if (error.code !== 'ESRCH') throw error;
  }
}
