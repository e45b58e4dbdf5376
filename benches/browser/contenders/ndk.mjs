// NDK with its sync package (NIP-77) and its IndexedDB cache by Dexie, as their manuals tell. By default NDK checks the
// signatures of a sample of a relay's events only, fewer the longer it knows the relay.
//
// Its sync package opens a reconciliation with a list of filters where NIP-77 has one filter. Some relays take that, ours
// does not; the list is opened here, so that it is measured all the same.

import NDK, { NDKSubscriptionCacheUsage } from '@nostr-dev-kit/ndk';
import NDKCacheAdapterDexie from '@nostr-dev-kit/cache-dexie';
import { NDKSync } from '@nostr-dev-kit/sync';

import { filter, recordCount } from './filter.mjs';

const DATABASE = 'bench-ndk';

const send = WebSocket.prototype.send;
WebSocket.prototype.send = function sendOneFilter(frame) {
  if (!String(frame).startsWith('["NEG-OPEN"')) return send.call(this, frame);
  const [type, id, filters, ...rest] = JSON.parse(frame);
  return send.call(this, JSON.stringify([type, id, ...(Array.isArray(filters) ? filters : [filters]), ...rest]));
};

/** Opens the library with its database. */
export async function open({ timeoutMs }) {
  // By default it drops what is more than some thousands of events, and all signatures.
  const cacheAdapter = new NDKCacheAdapterDexie({
    dbName: DATABASE,
    saveSig: true,
    eventCacheSize: 1_000_000,
    eventTagsCacheSize: 1_000_000,
  });
  const ndk = new NDK({ cacheAdapter, enableOutboxModel: false });
  return {
    sync: async (relay) => {
      ndk.addExplicitRelay(relay, undefined, false);
      await ndk.connect(5_000);
      const { need, events } = await new NDKSync(ndk).sync(filter, {
        relayUrls: [relay],
        timeout: timeoutMs,
        onRelayError: (_, error) => console.error(`NDK: ${error.message}`),
      });
      // It gives up on events that did not come within ten seconds, and resolves as if they had.
      console.info(`NDK: ${events.length} of ${need.size}`);
      // Else it writes every ten seconds.
      await Promise.all([cacheAdapter.events.dump(), cacheAdapter.eventTags.dump()]);
    },
    newest: async (limit) => {
      const cacheUsage = NDKSubscriptionCacheUsage.ONLY_CACHE;
      const events = await ndk.fetchEvents({ ...filter, limit }, { cacheUsage });
      return [...events].map((event) => event.id);
    },
    stored: () => recordCount(DATABASE, 'events'),
  };
}
