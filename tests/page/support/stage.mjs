// What most tests begin with: a browser, a site that has the package, and events.

import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { browser, until } from './browser.mjs';
import { readEvents, sample } from './events.mjs';
import { unpacked } from './package.mjs';
import { site } from './site.mjs';

const pages = join(dirname(fileURLToPath(import.meta.url)), '../pages');

/** The test's own heartbeat and patience between tabs, shorter than by default, in milliseconds. */
export const HASTY = { heartbeatMs: 300, leaderSilenceMs: 1_500, pingAnswerMs: 700 };

/**
 * A browser and a site; both end with the test.
 *
 * @param {import('node:test').TestContext} test
 * @param {{ headers?: Record<string, string>, plain?: boolean }} options `plain`: see {@link browser}
 */
export async function stage(test, { headers, plain } = {}) {
  const served = await site({ folders: { '/': pages, '/relaysync/': join(unpacked(), 'bindings/dist') }, headers });
  test.after(() => served.stop());
  const chromium = await browser({ plain });
  test.after(() => chromium.stop());
  return {
    ...chromium,
    url: served.url,
    requests: served.requests,
    /** A new tab in which the database is open. */
    open: async (options) => {
      const tab = await chromium.tab(`${served.url}/index.html`);
      await begin(tab, options);
      return tab;
    },
  };
}

/** Opens the database in a tab whose page has just been loaded. */
export async function begin(tab, options) {
  await tab.waitForFunction(() => globalThis.ready, undefined, { timeout: 15_000 }).catch((error) => {
    throw new Error(`the page did not load the package: ${tab.words.join('\n')}`, { cause: error });
  });
  return tab.evaluate((options) => globalThis.begin(options), options);
}

/** Generated events. @returns {Promise<{ path: string, events: object[], ids: string[] }>} `ids` are sorted */
export async function generated(options) {
  const { path } = await sample(options);
  const events = readEvents(path);
  return { path, events, ids: events.map(({ id }) => id).sort() };
}

/** Runs a job to its end, as a page does that reads all of it. */
export async function synced(tab, options) {
  await tab.evaluate((options) => globalThis.follow(options), options);
  return finished(tab);
}

/** Waits for the end of a job that was started. */
export async function finished(tab) {
  const { report } = await tab.evaluate(() => globalThis.followed());
  await until('all is read', () => tab.evaluate(() => globalThis.heard.ended || globalThis.heard.error), 60_000);
  const heard = await tab.evaluate(() => globalThis.heard);
  assert.equal(heard.error, undefined);
  return { report, heard };
}

/** That exactly these events are held, and, if the job was read, that it gave each once. */
export async function assertHeld(tab, ids, heard) {
  assertSame(await tab.evaluate(() => globalThis.heldIds()), ids, 'held');
  if (heard) assertSame(heard.ids, ids, 'given out by the job');
}

/** That ids in any order are those that they should be, each once. Says how many are not, rather than to print them all. */
export function assertSame(found, wanted, what) {
  const once = new Set(found);
  const expected = new Set(wanted);
  const missing = wanted.filter((id) => !once.has(id)).length;
  const foreign = [...once].filter((id) => !expected.has(id)).length;
  assert.deepEqual({ missing, foreign, twice: found.length - once.size }, { missing: 0, foreign: 0, twice: 0 }, what);
}
