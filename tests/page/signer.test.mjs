// Relays that ask who is there (NIP-42), and a signer in the page (NIP-07).

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { newSigner } from './support/events.mjs';
import { ownRelay } from './support/relays.mjs';
import { HASTY, assertHeld, begin, generated, stage, synced } from './support/stage.mjs';

async function staged(test) {
  const sample = await generated({ events: 300 });
  const relay = await ownRelay({ load: sample.path, arguments: ['--auth-required'] });
  test.after(() => relay.stop());
  return { sample, relay, ...(await stage(test)) };
}

/** A page with an extension's `window.nostr`. */
async function withExtension({ tab: newTab, url, context }) {
  const sign = await newSigner('extension');
  const asked = [];
  await context.exposeFunction('signInExtension', (event) => {
    asked.push(event);
    return sign(event);
  });
  const { pubkey } = sign({ kind: 1, created_at: 0 });
  await context.addInitScript((pubkey) => {
    globalThis.nostr = {
      getPublicKey: async () => pubkey,
      signEvent: (event) => globalThis.signInExtension(event),
    };
  }, pubkey);
  return { tab: await newTab(`${url}/index.html`), asked };
}

test('a relay that wants to know who is there is answered by window.nostr', async (test) => {
  const staging = await staged(test);
  const { tab, asked } = await withExtension(staging);
  await begin(tab, { signer: 'nip07' });
  const { report, heard } = await synced(tab, { relays: [staging.relay.url] });
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, staging.sample.ids, heard);
  assert.equal(asked.length, 1, 'once a connection');
  assert.equal(asked[0].kind, 22242);
});

test('a tab that does not lead signs for its own job', async (test) => {
  const staging = await staged(test);
  const { tab: leader } = await withExtension(staging);
  await begin(leader, { config: HASTY, signer: 'nip07' });
  const tab = await staging.tab(`${staging.url}/index.html`);
  await begin(tab, { config: HASTY, signer: 'nip07' });
  const { report } = await synced(tab, { relays: [staging.relay.url] });
  assert.equal(report.complete, true, JSON.stringify(report));
  await assertHeld(tab, staging.sample.ids);
});

test('without a signer such a relay is a gap with its reason', async (test) => {
  const { open, relay } = await staged(test);
  const tab = await open();
  const { report } = await tab.evaluate(async (relays) => {
    globalThis.follow({ relays, timeoutMs: 5_000 });
    return globalThis.followed();
  }, [relay.url]);
  assert.equal(report.complete, false);
  assert.ok(report.relays[0].gaps.length > 0, JSON.stringify(report));
  await assertHeld(tab, []);
});
