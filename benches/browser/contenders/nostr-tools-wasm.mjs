// nostr-tools' pool with its faster way of checking signatures: libsecp256k1 in wasm.

import { AbstractSimplePool } from 'nostr-tools/abstract-pool';
import { setNostrWasm, verifyEvent } from 'nostr-tools/wasm';
import { initNostrWasm } from 'nostr-wasm/gzipped';

import { openPool } from './pool.mjs';

/** Opens the library with its database. */
export async function open() {
  setNostrWasm(await initNostrWasm());
  return openPool({ pool: new AbstractSimplePool({ verifyEvent }), database: 'bench-nostr-tools-wasm' });
}
