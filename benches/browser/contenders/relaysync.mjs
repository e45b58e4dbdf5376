// This package, as it comes, in its worker.

import { open as openDatabase } from '/relaysync/index.js';

import { filter } from './filter.mjs';

/** Opens the library with its database. */
export async function open() {
  const db = await openDatabase({ name: 'bench-relaysync' });
  return {
    sync: async (relay) => {
      const { complete, relays } = await db.sync(filter, { relays: [relay] }).done;
      console.info(`relaysync: ${complete ? 'complete' : JSON.stringify(relays)}`);
    },
    newest: async (limit) => (await db.query(filter, { limit })).map((event) => event.id),
    stored: () => db.count(filter),
  };
}
