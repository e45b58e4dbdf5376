// nostr-tools' SimplePool as it comes: signatures are checked in JavaScript.

import { SimplePool } from 'nostr-tools/pool';

import { openPool } from './pool.mjs';

/** Opens the library with its database. */
export async function open() {
  return openPool({ pool: new SimplePool(), database: 'bench-nostr-tools' });
}
