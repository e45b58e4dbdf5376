// Pages backwards through a relay as one does with nostr-tools' pool, which does not speak NIP-77: each page ends where
// the last one began, that second included. Where that brings nothing new, it goes on a second earlier, as nothing else
// can be done by pages; it ends at an empty page.

import { NostrIDB, openDB } from 'nostr-idb';

import { filter, recordCount } from './filter.mjs';

const PAGE_EVENTS = 500;

/** Opens a pool of nostr-tools with a database of nostr-idb (IndexedDB). */
export async function openPool({ pool, database }) {
  // It prunes to 10,000 events by default.
  const idb = new NostrIDB(await openDB(database), { maxEvents: Number.MAX_SAFE_INTEGER });
  return {
    sync: async (relay) => {
      const seen = new Set();
      let until;
      for (;;) {
        const events = await pool.querySync([relay], { ...filter, limit: PAGE_EVENTS, ...(until && { until }) }, { maxWait: 60_000 });
        if (events.length === 0) return;
        const fresh = events.filter((event) => !seen.has(event.id));
        for (const event of fresh) {
          seen.add(event.id);
          void idb.add(event);
        }
        const oldest = events.reduce((oldest, event) => Math.min(oldest, event.created_at), Infinity);
        until = fresh.length === 0 ? oldest - 1 : oldest;
      }
    },
    newest: async (limit) => (await idb.query([{ ...filter, limit }])).map((event) => event.id),
    stored: () => recordCount(database, 'events'),
  };
}
