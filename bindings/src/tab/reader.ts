/** Reads what a job or watch gives out, batch by batch, as fast as it is read and no faster. */
import type { Taken } from "../core.js";
import type { Config } from "../config.js";
import { RelaySyncError } from "../errors.js";
import type { NostrEvent } from "../events.js";
import { quiet, unlessAborted } from "../time.js";
import type { Client } from "./client.js";
import type { Run } from "./run.js";

/** An event that a job gives out. */
export interface Delivery {
  /** The event, verified and stored. */
  readonly event: NostrEvent;
  /** The relay that brought it; `null` if it came another way, or if it is not known any more. */
  readonly relay: string | null;
  /** Was it among what a relay had stored, or has the relay sent it as news? */
  readonly phase: "stored" | "live";
}

/** One reader of one run. Each event is given out once, whoever asks. */
export class Reader {
  readonly #client: Client;
  readonly #run: Run;
  readonly #config: Config;
  readonly #drained: () => void;
  /** Ends a loop that waits. */
  #endWait: () => void = () => undefined;
  #waiting: Delivery[] = [];
  #taking: Promise<Delivery[] | undefined> | undefined;
  #busy = false;
  #ended = false;

  /** `drained` is called when nothing more can come. */
  constructor(client: Client, run: Run, config: Config, drained: () => void) {
    this.#client = client;
    this.#run = run;
    this.#config = config;
    this.#drained = drained;
  }

  /** Iterations end at once. */
  end(): void {
    this.#ended = true;
    this.#waiting = [];
    this.#endWait();
  }

  /** One event at a time. What is left when the caller breaks off is there for the next iteration. */
  async *events(signal: AbortSignal | undefined): AsyncGenerator<Delivery, void, undefined> {
    this.#claim();
    try {
      while (await this.#fill(signal)) {
        for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
          yield next;
          signal?.throwIfAborted();
        }
      }
    } finally {
      this.#busy = false;
    }
  }

  /** All that is there at a time, at least one. */
  async *batches(signal: AbortSignal | undefined): AsyncGenerator<Delivery[], void, undefined> {
    this.#claim();
    try {
      while (await this.#fill(signal)) yield this.#waiting.splice(0);
    } finally {
      this.#busy = false;
    }
  }

  #claim(): void {
    if (this.#busy) throw new RelaySyncError("busy", "this job is iterated over already: an event is given out once");
    this.#busy = true;
  }

  /** Waits until there is something; false at the end. */
  async #fill(signal: AbortSignal | undefined): Promise<boolean> {
    signal?.throwIfAborted();
    while (this.#waiting.length === 0) {
      if (this.#ended) return false;
      // A batch that was asked for is kept even if this iteration does not live to see it.
      this.#taking ??= quiet(this.#take());
      const batch = await unlessAborted(this.#unlessEnded(this.#taking), signal);
      if (batch === undefined) return false;
    }
    return true;
  }

  /** Not `Promise.race`, by which a promise that lives as long as the job would remember every wait. */
  #unlessEnded(taking: Promise<Delivery[] | undefined>): Promise<Delivery[] | undefined> {
    return new Promise((resolve, reject) => {
      this.#endWait = () => resolve(undefined);
      taking.then(resolve, reject);
    });
  }

  async #take(): Promise<Delivery[] | undefined> {
    const { takeEventsMax: eventsMax, takeBytesMax: bytesMax } = this.#config;
    try {
      const taken = await this.#client.callRun(
        this.#run,
        (id) => ({ method: "take", id, eventsMax, bytesMax }),
        (result) => this.#advance(result as Taken | null),
      );
      this.#taking = undefined;
      if (taken === null) {
        this.#drained();
        this.end();
        return undefined;
      }
      const batch = unpack(taken);
      if (!this.#ended) this.#waiting = batch;
      return batch;
    } catch (thrown) {
      this.#taking = undefined;
      // Whoever has closed the database wants no more, and no error either.
      if (!(thrown instanceof RelaySyncError && thrown.code === "closed")) throw thrown;
      this.end();
      return undefined;
    }
  }

  /** What is read is read: should another server take over, it goes on behind it. */
  #advance(taken: Taken | null): Taken | null {
    if (taken !== null) this.#run.cursor = taken.cursor;
    return taken;
  }
}

function unpack({ events, from, live }: Taken): Delivery[] {
  const parsed = JSON.parse(events) as NostrEvent[];
  return parsed.map((event, at) => ({ event, relay: from[at] ?? null, phase: live[at] === true ? "live" : "stored" }));
}
