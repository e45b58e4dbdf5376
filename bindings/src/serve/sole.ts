import { RelaySyncError } from "../errors.js";
import { deferred } from "../time.js";
import type { Locks } from "./election.js";

/**
 * Holds the lock of a database that is not shared, until what this resolves to is called.
 *
 * @throws {RelaySyncError} `in-use` if another tab holds it for `waitMs` milliseconds on: that of a page that is just
 * being loaded anew lets go of it within that time.
 */
export async function soleLock(locks: Locks, database: string, waitMs: number): Promise<() => void> {
  const got = deferred<() => void>();
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), waitMs);
  const hold = (): Promise<void> => {
    clearTimeout(timer);
    return new Promise((release) => got.resolve(release));
  };
  locks.request(`relaysync:${database}`, { signal: patience.signal }, hold).catch((thrown: unknown) => {
    const message = "another tab has this database open; close it there, or open it with multiTab in both";
    got.reject(patience.signal.aborted ? new RelaySyncError("in-use", message, { retryable: true }) : thrown);
  });
  return got.promise;
}
