// Debian's Chromium with a profile of its own on disk: what is stored outlives a page, a tab and the browser.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
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

const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium';

/**
 * Starts Chromium.
 *
 * @param {{ arguments?: string[], plain?: boolean }} options `plain`: as users have it. Otherwise all tabs believe that
 *   they are in front, and none is throttled.
 */
export async function browser({ arguments: extra = [], plain = false } = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'relaysync-profile-'));
  const started = await (plain ? startPlain : startDriven)(profile, [...ARGUMENTS, ...extra]);
  const { context } = started;
  const system = await context.browser().newBrowserCDPSession();
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
      await started.stop(system);
      // Its last processes may still write.
      await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

async function startDriven(profile, args) {
  const context = await chromium.launchPersistentContext(profile, { executablePath: EXECUTABLE, headless: true, args });
  return { context, stop: () => context.close() };
}

async function startPlain(profile, args) {
  const child = spawn(EXECUTABLE, [...args, '--headless=new', '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const lines = createInterface({ input: child.stderr });
  const endpoint = await new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const found = /DevTools listening on (ws:\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
    child.once('exit', (status) => reject(new Error(`Chromium ended with ${status}`)));
    child.once('error', reject);
  });
  const connection = await chromium.connectOverCDP(endpoint, { noDefaults: true });
  return {
    context: connection.contexts()[0],
    stop: async (system) => {
      const ended = once(child, 'exit');
      await system.send('Browser.close');
      await ended;
      await connection.close();
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
