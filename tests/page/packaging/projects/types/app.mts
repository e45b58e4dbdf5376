// An app in TypeScript, as a user writes it: all of the API, typed, without a cast.

import { RelaySyncError, open, type JobReport, type NostrEvent, type RelaySync, type Signer } from 'relaysync';
import { open as openInline } from 'relaysync/inline';
import { open as openSlim } from 'relaysync/slim';

const signer: Signer = {
  getPublicKey: async () => '00',
  signEvent: async (event) => ({ ...event, id: '', pubkey: '', sig: '' }),
};

export async function follow(relays: readonly string[], signal: AbortSignal): Promise<JobReport> {
  await using db: RelaySync = await open({ name: 'app', relays, signer, signal });
  const job = db.sync([{ kinds: [1], '#t': ['nostr'] }], { live: true, signal });
  for await (const { event, relay, phase } of job) {
    const words: string = `${event.content} ${relay ?? 'ours'} ${phase}`;
    if (words === '') break;
  }
  const report = await job.caughtUp;
  for (const { url, gaps } of report.relays) {
    for (const { kind, message, since } of gaps) console.log(url, kind, message, since ?? 'the beginning');
  }
  return report;
}

export async function look(db: RelaySync): Promise<NostrEvent | undefined> {
  const newest: NostrEvent[] = await db.query({ kinds: [1], limit: 10 });
  const { events, quotaBytes } = await db.storageInfo();
  console.log(newest.length, events, quotaBytes);
  try {
    return await db.event('00');
  } catch (error) {
    if (error instanceof RelaySyncError && error.retryable) console.log(error.code, error.relay);
    throw error;
  }
}

export const inline: Promise<RelaySync> = openInline();

export const slim: Promise<RelaySync> = openSlim({
  wasm: fetch('/core.wasm'),
  createWorker: () => new Worker('/worker.js', { type: 'module' }),
});
