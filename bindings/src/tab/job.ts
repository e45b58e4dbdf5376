import type { Config } from "../config.js";
import type { Request } from "../core.js";
import type { RelaySyncError } from "../errors.js";
import type { JobReport } from "../reports.js";
import { quiet, unlessAborted } from "../time.js";
import type { Client } from "./client.js";
import { Reader, type Delivery } from "./reader.js";
import type { Run } from "./run.js";

/**
 * A sync that runs.
 *
 * Iterating over it yields **everything newly stored that its filters select**, by whatever way it came, each event
 * once, in the order in which it was stored. Nothing waits in memory: events are read from the database as fast as the
 * loop takes them. There is one stream: a loop that is left goes on where it was left when another begins, and two at a
 * time are refused with code `busy`. Leaving a loop does not stop the job. Nobody has to iterate: the job runs all the
 * same.
 *
 * The iteration of a job that is not live ends when the job is done and everything was read; that of a live job ends
 * with {@link SyncJob.stop}. If the `signal` of the job is aborted, loops throw its reason, and so do promises that
 * wait.
 */
export class SyncJob implements AsyncIterable<Delivery>, AsyncDisposable {
  readonly #client: Client;
  readonly #run: Run;
  readonly #reader: Reader;
  readonly #config: Config;
  readonly #signal: AbortSignal | undefined;
  /** As `done`, whatever becomes of the signal. */
  readonly #finished: Promise<JobReport>;
  #over = false;
  #stopped: Promise<JobReport> | undefined;

  /**
   * Resolves as soon as each filter is fetched from each relay, or has gaps on record; a relay that cannot be reached
   * is such a gap after a few tries. `complete` of the report is the answer. Rejects with {@link RelaySyncError}, or
   * with the reason of the signal. It may be left alone: a rejection that nobody awaits is not reported as unhandled.
   */
  readonly caughtUp: Promise<JobReport>;

  /** Resolves when the job is over: by itself, or, if it is live, by {@link SyncJob.stop}. Otherwise as `caughtUp`. */
  readonly done: Promise<JobReport>;

  /** @internal */
  constructor(
    client: Client,
    config: Config,
    begin: (id: string, after: number | undefined) => Request,
    signal: AbortSignal | undefined,
  ) {
    this.#client = client;
    this.#config = config;
    this.#signal = signal;
    this.#run = client.begin(begin);
    this.#reader = new Reader(client, this.#run, config, () => client.forget(this.#run));
    this.caughtUp = quiet(unlessAborted(this.#settled("caughtUp"), signal));
    this.#finished = quiet(this.#settled("done"));
    this.done = quiet(unlessAborted(this.#finished, signal));
    const abort = (): void => void quiet(this.stop());
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
    const over = (): void => {
      this.#over = true;
      // Another leader need not hear of it, unless what it has stored is still being read.
      client.forget(this.#run);
      signal?.removeEventListener("abort", abort);
    };
    this.#finished.then(over, over);
  }

  /** Event by event. See the class. */
  [Symbol.asyncIterator](): AsyncGenerator<Delivery, void, undefined> {
    return this.#reader.events(this.#signal);
  }

  /** The same stream in batches of at least one event: faster, for those that can use many at a time. */
  batches(): AsyncGenerator<Delivery[], void, undefined> {
    return this.#reader.batches(this.#signal);
  }

  /** How the job stands at this moment. */
  report(): Promise<JobReport> {
    // Asked for anywhere else, it would begin anew there.
    if (this.#over) return this.#finished;
    return this.#client.callRun(
      this.#run,
      (id) => ({ method: "progress", id }),
      (result) => result as JobReport,
    );
  }

  /**
   * How the job stands, again and again whenever it has changed, at intervals of `progressMs` (250 by default). Ends
   * with the report at the end of the job. Any number of loops may run.
   */
  async *progress(): AsyncGenerator<JobReport, void, undefined> {
    let over = false;
    let wake: () => void = () => undefined;
    const end = (): void => {
      over = true;
      wake();
    };
    this.done.then(end, end);
    for (let last = ""; ;) {
      const isLast = over;
      const report = isLast ? await this.done : await unlessAborted(this.report(), this.#signal);
      const text = JSON.stringify(report);
      if (text !== last) yield report;
      if (isLast) return;
      last = text;
      if (over) continue;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.#config.progressMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Ends the job, and loops over it. What is stored stays. Resolves to the last report; may be called again. */
  stop(): Promise<JobReport> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** As {@link SyncJob.stop}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(): Promise<JobReport> {
    this.#reader.end();
    this.#run.stopping = true;
    try {
      if (!this.#over)
        await this.#client.callRun(
          this.#run,
          (id) => ({ method: "stop", id }),
          () => undefined,
        );
      return await this.#finished;
    } finally {
      this.#client.forget(this.#run);
    }
  }

  #settled(moment: "caughtUp" | "done"): Promise<JobReport> {
    return this.#client.callRun(
      this.#run,
      (id) => ({ method: "settled", id, moment }),
      (result) => result as JobReport,
    );
  }
}
