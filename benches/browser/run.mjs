// relaysync in Chromium beside what a developer would use without it, in one run: each syncs all events of a relay on
// this machine into IndexedDB, and is then reloaded.
//
//     node run.mjs [--events 20000,100000] [--limits liberal,usual] [--only NAME,…] [--limit-minutes 10] [--json FILE]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { sample } from '../../tests/page/support/events.mjs';
import { unpacked } from '../../tests/page/support/package.mjs';
import { bundle, gzippedBytes } from './build.mjs';
import { measure } from './measure.mjs';
import { signatureLimit } from './signatures.mjs';
import { summary, table } from './table.mjs';

const OURS = 'relaysync';
const CONTENDERS = [OURS, 'ndk', 'applesauce', 'nostr-tools', 'nostr-tools-wasm'];
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
let limit;
try {
  for (const name of options.only.split(',')) {
    const page = join(folder, name);
    const bytes = await bundle(name, page);
    const folders = { '/': page, ...(name === OURS && { '/relaysync/': join(unpacked(), 'bindings/dist') }) };
    for (const limits of options.limits.split(',')) {
      for (const events of options.events.split(',').map(Number)) {
        console.error(`${name}: ${events} events of a relay with ${limits} limits`);
        const taken = await sample({ events, burst: BURST_EVENTS });
        const timeoutMs = Number(options['limit-minutes']) * 60_000;
        if (name === OURS) limit ??= await signatureLimit({ folders, sample: taken });
        const result = await measure({ folders, sample: taken, limits, timeoutMs });
        results.push({ name, events, limits, gzippedBytes: bytes + packageBytes(folders, result.requests ?? []), ...result });
      }
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

console.log(table(results));
if (limit) console.log(`\nsignatures alone, ${limit.workers} worker(s): ${Math.round(limit.perSecond)} a second`);
console.log(summary(results, OURS, limit));
if (options.json) writeFileSync(options.json, `${JSON.stringify({ limit, results }, undefined, 2)}\n`);

/** What the page has loaded of the package's files. */
function packageBytes(folders, requests) {
  const prefix = '/relaysync/';
  const files = requests.filter((path) => path.startsWith(prefix)).map((path) => join(folders[prefix], path.slice(prefix.length)));
  return gzippedBytes(files);
}
