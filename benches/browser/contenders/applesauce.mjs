// applesauce: its sync loader (NIP-77) into its event store in memory, which checks signatures; what is new there is
// written to nostr-idb (IndexedDB). Where its reconciliation stands still, its own timeout of 30 s makes it page instead.

import { EventStore } from 'applesauce-core';
import { createSyncLoader } from 'applesauce-loaders/loaders';
import { RelayPool } from 'applesauce-relay';
import { NostrIDB, openDB } from 'nostr-idb';
import { lastValueFrom } from 'rxjs';

import { filter, recordCount } from './filter.mjs';

const DATABASE = 'bench-applesauce';

/** Opens the library with its database. */
export async function open() {
  // It prunes to 10,000 events by default.
  const idb = new NostrIDB(await openDB(DATABASE), { maxEvents: Number.MAX_SAFE_INTEGER });
  return {
    sync: async (relay) => {
      const eventStore = new EventStore();
      eventStore.insert$.subscribe((event) => void idb.add(event));
      const load = createSyncLoader({ eventStore, pool: new RelayPool() });
      const { status$ } = load({ relays: [relay], filter });
      const status = await lastValueFrom(status$);
      for (const { error, method } of Object.values(status.relays)) {
        console.info(`applesauce: by ${method}`);
        if (error) throw error;
      }
    },
    newest: async (limit) => (await idb.query([{ ...filter, limit }])).map((event) => event.id),
    stored: () => recordCount(DATABASE, 'events'),
  };
}
