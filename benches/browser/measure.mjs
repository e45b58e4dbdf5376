// One contender in a browser of its own, with a relay of its own.

import { browser, memoryOf, rendererOf, until } from '../../tests/page/support/browser.mjs';
import { ownRelay } from '../../tests/page/support/relays.mjs';
import { site } from '../../tests/page/support/site.mjs';

/** The database has all when it grew no more for so long. */
const SETTLE_MS = 3_000;
const WARM_STARTS = 3;

/** How our relay is started: as it is by default, or so that it grants whatever is asked, as hardly any relay does. */
const RELAYS = {
  usual: [],
  liberal: ['--page-events-max', '1000000', '--page-events-default', '1000000', '--frame-bytes-max', '33554432'],
};

// `performance.measureUserAgentSpecificMemory` needs both, and so sees workers and wasm.
const ISOLATION = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };
const BROWSER_ARGUMENTS = ['--enable-blink-features=ForceEagerMeasureMemory', '--js-flags=--expose-gc'];

/**
 * Syncs all events of a relay in a page, and looks at what is left after a reload.
 *
 * @param {{ folders: Record<string, string>, sample: { path: string, events: number },
 *   limits: 'usual' | 'liberal', timeoutMs: number }} options
 *   `folders`: what the site serves; its `/` has the contender's page
 */
export async function measure({ folders, sample, limits, timeoutMs }) {
  const relay = await ownRelay({ load: sample.path, arguments: RELAYS[limits] });
  const pages = await site({ folders, headers: ISOLATION });
  const chromium = await browser({ arguments: BROWSER_ARGUMENTS });
  try {
    const tab = await chromium.tab(pages.url);
    const pid = await rendererOf(tab, chromium.renderers);
    const before = memoryOf(pid);
    const synced = await sync(tab, relay.url, timeoutMs);
    const memory = { ...memoryOf(pid), beforeBytes: before.residentBytes, ...(await heapOf(chromium, tab, synced)) };
    if (synced.error) return { ...synced, eventsStored: await storedSeenFrom(chromium, pages.url), memory, words: tab.words };
    const warm = await warmStarts(tab);
    const requests = [...new Set(pages.requests)];
    return { ...synced, ...warm, memory, databaseBytes: await databaseBytes(tab), requests, words: tab.words };
  } finally {
    await chromium.stop();
    await pages.stop();
    await relay.stop();
  }
}

/** The time until everything that will be stored is committed. */
async function sync(tab, relay, timeoutMs) {
  await ready(tab);
  const run = tab.evaluate(syncInPage, { relay, timeoutMs, settleMs: SETTLE_MS });
  run.catch(() => undefined);
  const begun = performance.now();
  try {
    return await within(run, timeoutMs + SETTLE_MS);
  } catch (error) {
    return { error: error.message.split('\n')[0], wallMs: performance.now() - begun };
  }
}

async function syncInPage({ relay, timeoutMs, settleMs }) {
  const begun = performance.now();
  const db = await globalThis.contender.open({ timeoutMs });
  globalThis.db = db;
  let error;
  try {
    await db.sync(relay);
  } catch (caught) {
    error = String(caught);
  }
  const syncMs = performance.now() - begun;
  let eventsStored = await db.stored();
  let wallMs = performance.now() - begun;
  let changed = performance.now();
  while (performance.now() - changed < settleMs) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const stored = await db.stored();
    if (stored === eventsStored) continue;
    eventsStored = stored;
    changed = performance.now();
    wallMs = changed - begun;
  }
  return { syncMs, wallMs, eventsStored, ...(error && { error }) };
}

/** From `open` to the first event, and to the newest 50: the median of several, each in a page that was reloaded. */
async function warmStarts(tab) {
  const runs = { first: [], newest: [], navigation: [] };
  for (let run = 0; run < WARM_STARTS; run += 1) {
    for (const [name, limit] of [['first', 1], ['newest', 50]]) {
      await tab.reload();
      await ready(tab);
      const found = await within(tab.evaluate(queryInPage, limit), 120_000);
      runs[name].push(found.fromOpenMs);
      if (name === 'first') runs.navigation.push(found.fromNavigationMs);
      if (found.events !== limit) return { error: `${found.events} of ${limit} events after a reload` };
    }
  }
  const eventsAfterReload = await tab.evaluate(() => globalThis.db.stored());
  return {
    eventsAfterReload,
    warmFirstMs: median(runs.first),
    warmNewest50Ms: median(runs.newest),
    warmFromNavigationMs: median(runs.navigation),
  };
}

async function queryInPage(limit) {
  const begun = performance.now();
  globalThis.db = await globalThis.contender.open({ timeoutMs: 60_000 });
  const events = await globalThis.db.newest(limit);
  const end = performance.now();
  return { events: events.length, fromOpenMs: end - begun, fromNavigationMs: end };
}

async function ready(tab) {
  await tab.waitForFunction(() => globalThis.contender !== undefined, undefined, { timeout: 30_000 });
}

// What the browser knows of JavaScript's memory; a page that hangs cannot be asked.
async function heapOf(chromium, tab, synced) {
  if (synced.error) return {};
  const session = await chromium.context.newCDPSession(tab);
  await session.send('Performance.enable');
  const { metrics } = await session.send('Performance.getMetrics');
  const measured = tab.evaluate(async () => {
    globalThis.gc?.();
    return (await performance.measureUserAgentSpecificMemory()).bytes;
  });
  measured.catch(() => undefined);
  return {
    heapBytes: metrics.find(({ name }) => name === 'JSHeapUsedSize').value,
    pageBytes: await within(measured, 60_000).catch(() => undefined),
  };
}

async function storedSeenFrom(chromium, url) {
  const tab = await chromium.tab();
  const count = async () => {
    await tab.goto(url);
    await ready(tab);
    return tab.evaluate(async () => (await globalThis.contender.open({ timeoutMs: 10_000 })).stored());
  };
  return within(count(), 60_000).catch(() => undefined);
}

async function databaseBytes(tab) {
  const usage = async () => {
    const { usage, usageDetails } = await tab.evaluate(() => navigator.storage.estimate());
    return usageDetails?.indexedDB ?? usage;
  };
  let before = await usage();
  // Chromium counts with a delay.
  await until('the size of the database stands still', async () => {
    const now = await usage();
    const same = now === before;
    before = now;
    return same;
  }, 20_000, 1_000);
  return before;
}

function within(promise, timeoutMs) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${Math.round(timeoutMs / 1_000)} s`)), timeoutMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}
