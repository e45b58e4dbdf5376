// The packed package, installed into what people build with, really syncs from a relay.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { browser } from '../support/browser.mjs';
import { sample } from '../support/events.mjs';
import { tarball } from '../support/package.mjs';
import { ownRelay } from '../support/relays.mjs';
import { site } from '../support/site.mjs';
import { workshop } from './workshop.mjs';

const EVENTS = 300;

let shop;
let relay;
let chromium;

before(async () => {
  shop = workshop();
  relay = await ownRelay({ load: (await sample({ events: EVENTS })).path });
  chromium = await browser();
});

after(async () => {
  await chromium?.stop();
  await relay?.stop();
  shop?.stop();
});

/** That the page at an address has `globalThis.run`, and that it syncs. */
async function assertSyncs(url, mode = 'worker') {
  const tab = await chromium.tab(url);
  await tab.waitForFunction(() => globalThis.run !== undefined, undefined, { timeout: 30_000 }).catch((error) => {
    throw new Error(`the page did not start: ${tab.words.join('\n')}`, { cause: error });
  });
  const synced = await tab.evaluate((relay) => globalThis.run(relay), relay.url);
  assert.deepEqual(synced, { complete: true, events: EVENTS, mode }, tab.words.join('\n'));
  await tab.close();
}

/** The same for static files of a project. */
async function assertServedSyncs(...folder) {
  const served = await site({ folders: { '/': join(shop.folder, ...folder) } });
  try {
    await assertSyncs(served.url);
  } finally {
    await served.stop();
  }
}

test('a plain page with static files', async () => {
  const served = await site({ folders: { '/': shop.folder } });
  try {
    await assertSyncs(`${served.url}/static/`);
  } finally {
    await served.stop();
  }
});

test('Vite, as a development server', async (test) => {
  const server = await shop.server('vite', 'vite', (port) => ['--port', String(port), '--strictPort']);
  test.after(() => server.stop());
  await assertSyncs(server.url);
});

test('Vite, built', async () => {
  shop.tool('vite', 'vite', ['build', '--logLevel', 'warn']);
  await assertServedSyncs('vite', 'dist');
});

test('webpack, built', async () => {
  shop.tool('webpack', 'webpack', ['--config', 'webpack.config.cjs']);
  copyFileSync(join(shop.folder, 'page.html'), join(shop.folder, 'webpack', 'dist', 'index.html'));
  await assertServedSyncs('webpack', 'dist');
});

test('esbuild with all in one file', async () => {
  shop.tool('esbuild', 'esbuild', ['main.js', '--bundle', '--format=esm', '--outdir=dist', '--log-level=warning']);
  copyFileSync(join(shop.folder, 'page.html'), join(shop.folder, 'esbuild', 'dist', 'index.html'));
  await assertServedSyncs('esbuild', 'dist');
});

test('Next.js, built: rendered by the server, and in the browser', async (test) => {
  shop.tool('next', 'next', ['build']);
  const server = await shop.server('next', 'next', (port) => ['start', '--port', String(port), '--hostname', '127.0.0.1']);
  test.after(() => server.stop());
  await assertSyncs(server.url);
  const tab = await chromium.tab(`${server.url}/?relay=${encodeURIComponent(relay.url)}`);
  const rendered = JSON.parse(await tab.locator('#server').textContent());
  assert.deepEqual(rendered, { complete: true, events: EVENTS, mode: 'thread' });
});

for (const script of ['esm.mjs', 'cjs.cjs']) {
  test(`Node, ${script}`, () => {
    const synced = JSON.parse(shop.node('node', [script, relay.url]));
    assert.deepEqual(synced, { complete: true, events: EVENTS, mode: 'thread' });
  });
}

test('TypeScript compiles what users write, strictly, as a module and as CommonJS', () => {
  shop.tool('types', 'tsc', ['--project', '.']);
});

test('publint finds nothing', () => {
  const words = shop.tool('.', 'publint', ['run', '--strict', tarball()]);
  assert.match(words, /All good!/);
});

test('attw finds nothing', () => {
  // Neither of the two is for `import` or `require`: they are addresses, of a worker and of WebAssembly.
  shop.tool('.', 'attw', [tarball(), '--no-color', '--exclude-entrypoints', './worker', './core.wasm']);
});
