// relaysync in Chromium beside what a developer would use without it, in one run: each syncs all events of a relay on
// this machine into IndexedDB, and is then reloaded.
//
//     node run.mjs [--events 20000,100000] [--limits liberal,usual] [--only NAME,…] [--limit-minutes 10] [--json FILE]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { sample } from '../../tests/page/support/events.mjs';
import { bundle } from './build.mjs';
import { measure } from './measure.mjs';
import { table } from './table.mjs';

const CONTENDERS = ['ndk', 'applesauce', 'nostr-tools', 'nostr-tools-wasm'];
/** Of the events of a relay, so many are of one second: more than a page has. */
const BURST_EVENTS = 1_500;

const { values: options } = parseArgs({
  options: {
    events: { type: 'string', default: '20000,100000' },
    limits: { type: 'string', default: 'liberal' },
    only: { type: 'string', default: CONTENDERS.join(',') },
    'limit-minutes': { type: 'string', default: '10' },
    json: { type: 'string' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'relaysync-benchmark-'));
const results = [];
try {
  for (const name of options.only.split(',')) {
    const page = join(folder, name);
    const gzippedBytes = await bundle(name, page);
    for (const limits of options.limits.split(',')) {
      for (const events of options.events.split(',').map(Number)) {
        console.error(`${name}: ${events} events of a relay with ${limits} limits`);
        const taken = await sample({ events, burst: BURST_EVENTS });
        const timeoutMs = Number(options['limit-minutes']) * 60_000;
        const result = await measure({ folders: { '/': page }, sample: taken, limits, timeoutMs });
        results.push({ name, events, limits, gzippedBytes, ...result });
      }
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

console.log(table(results));
if (options.json) writeFileSync(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
