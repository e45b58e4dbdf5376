/** Every bound and timeout of this side, with its unit. Defaults in {@link defaults}. */
export interface Config {
  /** The leading tab says so often that it lives, in milliseconds. */
  readonly heartbeatMs: number;
  /** A leader that was not heard for so long, in milliseconds of wall time, is asked whether it lives. */
  readonly leaderSilenceMs: number;
  /** If it does not answer that for so long, in milliseconds, its lock is taken from it. */
  readonly pingAnswerMs: number;
  /** `open` fails with `no-leader` if no tab has answered for so long, in milliseconds. */
  readonly leaderWaitMs: number;
  /**
   * Without `multiTab`, `open` waits so long for a tab that has the database open, in milliseconds: a page that is
   * reloaded.
   */
  readonly lockWaitMs: number;
  /** A worker that has not started within so many milliseconds is done without. */
  readonly workerStartMs: number;
  /** `close` waits so long for what has arrived to be stored, in milliseconds. */
  readonly closeMs: number;
  /** A signer, and the person behind it, has so long for one signature, in milliseconds. */
  readonly signMs: number;
  /** How often is looked whether the machine has slept, in milliseconds. */
  readonly sleepCheckMs: number;
  /** A timer that comes late by more than this, in milliseconds, means that it has: connections are probed. */
  readonly sleepGapMs: number;
  /** `progress` yields no more often than this, in milliseconds. */
  readonly progressMs: number;
  /** How long `publish` waits for relays, in milliseconds, if the call does not say. */
  readonly publishMs: number;
  /** Events of a job that are in memory at a time, of those that wait to be read. */
  readonly takeEventsMax: number;
  /** Their JSON, in bytes. */
  readonly takeBytesMax: number;
  /** A chunk of `export`, in bytes. */
  readonly exportBytesMax: number;
  /** A chunk of `import`, in characters. */
  readonly importCharsMax: number;
  /** A line of `import` that is longer, in characters, is refused. */
  readonly importLineCharsMax: number;
  /** Calls of one tab that wait for an answer; further ones fail with `too-many`. */
  readonly callsMax: number;
  /** Workers that check signatures, at most; never more than the machine's cores less one. */
  readonly verifyWorkersMax: number;
  /** Workers that check signatures end after so many milliseconds without work. */
  readonly verifyIdleMs: number;
  /** So many signatures at least are worth a message to a worker. */
  readonly verifyEventsMin: number;
}

/** What holds if nothing else is said. */
export const defaults: Config = {
  heartbeatMs: 2_000,
  leaderSilenceMs: 8_000,
  pingAnswerMs: 2_000,
  leaderWaitMs: 30_000,
  lockWaitMs: 5_000,
  workerStartMs: 10_000,
  closeMs: 10_000,
  signMs: 120_000,
  sleepCheckMs: 5_000,
  sleepGapMs: 15_000,
  progressMs: 250,
  publishMs: 10_000,
  takeEventsMax: 500,
  takeBytesMax: 1 << 20,
  exportBytesMax: 1 << 20,
  importCharsMax: 1 << 20,
  importLineCharsMax: 1 << 22,
  callsMax: 4_096,
  verifyWorkersMax: 4,
  verifyIdleMs: 30_000,
  verifyEventsMin: 32,
};
