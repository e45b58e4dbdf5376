// A page with a strict content security policy, and one without workers.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ownRelay } from './support/relays.mjs';
import { assertHeld, generated, stage, synced } from './support/stage.mjs';

const STRICT = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "connect-src 'self' ws://127.0.0.1:* http://127.0.0.1:*",
  "base-uri 'none'",
  "object-src 'none'",
].join('; ');

for (const [name, options] of [['in a worker', {}], ['in the page', { worker: false }]]) {
  test(`a strict policy is kept ${name}`, async (test) => {
    const sample = await generated({ events: 300 });
    const relay = await ownRelay({ load: sample.path });
    test.after(() => relay.stop());
    const { open } = await stage(test, { headers: { 'content-security-policy': STRICT } });
    const tab = await open(options);
    assert.equal(await tab.evaluate(() => globalThis.db.mode), options.worker === false ? 'thread' : 'worker');
    const { report, heard } = await synced(tab, { relays: [relay.url] });
    assert.equal(report.complete, true, JSON.stringify(report));
    await assertHeld(tab, sample.ids, heard);
    assert.deepEqual(tab.words.filter((word) => /Content Security Policy|Trusted/.test(word)), []);
  });
}

test('a page that may have no workers does without', async (test) => {
  const sample = await generated({ events: 300 });
  const relay = await ownRelay({ load: sample.path });
  test.after(() => relay.stop());
  const policy = STRICT.replace("worker-src 'self'", "worker-src 'none'");
  const { open } = await stage(test, { headers: { 'content-security-policy': policy } });
  const tab = await open();
  assert.equal(await tab.evaluate(() => globalThis.db.mode), 'thread');
  const { report, heard } = await synced(tab, { relays: [relay.url] });
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, sample.ids, heard);
});
