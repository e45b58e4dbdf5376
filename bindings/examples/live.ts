import { open, RelaySyncError, type NostrEvent } from "relaysync";

/** Shows a timeline that is there at once, offline too, and stays up to date for as long as the signal allows. */
export async function follow(author: string, show: (events: NostrEvent[]) => void, signal: AbortSignal): Promise<void> {
  const db = await open({ relays: ["wss://relay.damus.io"], signer: "nip07", signal });
  const filter = { kinds: [1], authors: [author] };
  show(await db.query({ ...filter, limit: 50 }));
  const job = db.sync(filter, { live: true, signal });
  try {
    for await (const batch of job.batches()) show(batch.map(({ event }) => event));
  } catch (error) {
    if (error instanceof RelaySyncError && error.retryable) return follow(author, show, signal);
    throw error;
  }
}
