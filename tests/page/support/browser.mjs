// Debian's Chromium with a profile of its own on disk: what is stored outlives a page, a tab and the browser.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Starts Chromium.
 *
 * @param {{ arguments?: string[], profile?: string }} options `profile`: a folder that outlives this browser
 */
export async function browser({ arguments: extra = [], profile } = {}) {
  const folder = profile ?? mkdtempSync(join(tmpdir(), 'relaysync-profile-'));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: [...ARGUMENTS, ...extra],
  });
  const system = await context.browser()?.newBrowserCDPSession();
  return {
    context,
    /** A new tab at an address, with what it said so far as `tab.words`. */
    tab: async (url) => watched(await context.newPage(), url),
    /** The process ids of all renderers. */
    renderers: async () => {
      const { processInfo } = await system.send('SystemInfo.getProcessInfo');
      return processInfo.filter((process) => process.type === 'renderer').map((process) => process.id);
    },
    stop: async () => {
      await context.close();
      if (!profile) rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function watched(page, url) {
  page.words = [];
  page.on('console', (message) => page.words.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => page.words.push(`uncaught: ${error.stack ?? error.message}`));
  if (url) await page.goto(url);
  return page;
}

/** The process that shows a page, told from the others by the work that the page makes it do. */
export async function rendererOf(page, all) {
  const pids = await all();
  const before = new Map(pids.map((pid) => [pid, processorTicks(pid)]));
  await page.evaluate(() => {
    const end = performance.now() + 300;
    while (performance.now() < end) Math.sqrt(end);
  });
  const worked = (pid) => processorTicks(pid) - before.get(pid);
  return pids.reduce((one, other) => (worked(other) > worked(one) ? other : one));
}

/** Memory of a process in bytes: now, and the most that it ever was. */
export function memoryOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const bytes = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024;
  return { residentBytes: bytes('VmRSS'), residentPeakBytes: bytes('VmHWM') };
}

function processorTicks(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** Waits until `condition` gives something truthy, and gives that; fails after `timeoutMs`. */
export async function until(what, condition, timeoutMs = 30_000, everyMs = 50) {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (performance.now() > end) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
