/**
 * Who of the tabs that use a database has it open: whoever holds a lock of the browser's (Web Locks), which a tab loses
 * with its death. A leader that lives but is frozen does not say so any more; another one then takes the lock from it.
 */
import type { Config } from "../config.js";
import type { Log } from "../log.js";
import type { Machine } from "../time.js";

/** What is used of `navigator.locks`. */
export type Locks = Pick<LockManager, "request" | "query">;

/** What is used of `BroadcastChannel`. */
export interface Channel {
  postMessage(message: unknown): void;
  close(): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

/** The browser's means of tabs to deal with each other. */
export interface Tabs {
  readonly locks: Locks;
  channel(name: string): Channel;
}

/**
 * Of what other tabs say, only what has this version is understood. To be raised when messages, or calls of the core,
 * change.
 */
export const version = 1;

/** What tabs say to all. */
type Call =
  /** I lead, and live. */
  | { readonly kind: "beat"; readonly term: string }
  /** Who leads? */
  | { readonly kind: "who" };

type Broadcast = Call & { readonly relaysync: number; readonly from: string };

/** What the outcome of the election changes. */
export interface Roles {
  /** This tab leads, from now on, until `depose`. Resolves when it can serve. */
  lead(term: string): Promise<void>;
  /** Not any more. Resolves when it has let go of everything. */
  depose(): Promise<void>;
  /** Another tab leads. Said with each of its signs of life. */
  follow(term: string): void;
  /** The machine has slept. */
  slept(): void;
  /** This tab was to lead, and cannot. */
  failed(thrown: unknown): void;
}

/** One request for the lock. */
interface Grip {
  lost: boolean;
  /** Aborts the wait for it. */
  readonly signal: AbortSignal | undefined;
}

/** One tab's part in it. */
export class Election {
  readonly #lock: string;
  readonly #tabs: Tabs;
  readonly #tab: string;
  readonly #machine: Machine;
  readonly #config: Config;
  readonly #log: Log;
  readonly #roles: Roles;
  readonly #channel: Channel;
  #stopTicking: (() => void) | undefined;
  /** Ends the wait for the lock. */
  #queue: AbortController | undefined;
  /** Ends this tab's time as leader. */
  #release: (() => void) | undefined;
  #term: string | undefined;
  #heardAt = 0;
  #tickedAt = 0;
  #running = false;

  constructor(database: string, tab: string, tabs: Tabs, machine: Machine, config: Config, log: Log, roles: Roles) {
    this.#lock = `relaysync:${database}`;
    this.#tab = tab;
    this.#tabs = tabs;
    this.#machine = machine;
    this.#config = config;
    this.#log = log;
    this.#roles = roles;
    this.#channel = tabs.channel(this.#lock);
    this.#channel.onmessage = ({ data }) => this.#hear(data as Partial<Broadcast> | null);
  }

  /** Stands for election, or stands again. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#heardAt = this.#tickedAt = this.#machine.now();
    this.#stopTicking = this.#machine.every(this.#config.heartbeatMs, () => this.#tick());
    this.#say({ kind: "who" });
    this.#enqueue();
  }

  /** Stands no more. If this tab leads, `depose` has been called when this resolves, and another tab can lead. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#stopTicking?.();
    this.#queue?.abort();
    await this.#resign();
  }

  /** Stands no more, for good. */
  async close(): Promise<void> {
    await this.stop();
    this.#channel.onmessage = null;
    this.#channel.close();
  }

  /** Does this tab lead, in this term? */
  leadsIn(term: string): boolean {
    return this.#term === term;
  }

  /** The database was opened elsewhere, whatever the lock says: this tab waits for its turn again. */
  async overtaken(): Promise<void> {
    await this.#resign();
    if (this.#running) this.#enqueue();
  }

  async #resign(): Promise<void> {
    const release = this.#release;
    this.#release = undefined;
    if (this.#term !== undefined) {
      this.#term = undefined;
      await this.#roles.depose();
    }
    release?.();
  }

  #enqueue(): void {
    this.#queue?.abort();
    this.#queue = new AbortController();
    this.#request({ signal: this.#queue.signal });
  }

  #request(options: LockOptions): void {
    const grip: Grip = { lost: false, signal: options.signal };
    const held = this.#tabs.locks.request(this.#lock, options, (lock) =>
      lock === null ? undefined : this.#hold(grip),
    );
    held.catch((thrown: unknown) => this.#lost(thrown, grip));
  }

  /** Holds the lock until it is released, or taken away. */
  async #hold(grip: Grip): Promise<void> {
    // A tab that was frozen may be given a lock that was taken from it again since; by the time of this answer it
    // knows.
    const released = new Promise<void>((resolve) => (this.#release = resolve));
    const mine = this.#release;
    await this.#tabs.locks.query();
    if (grip.lost || !this.#running || grip.signal?.aborted) return;
    await this.#serve();
    if (this.#term === undefined && this.#release === mine) return;
    await released;
  }

  async #serve(): Promise<void> {
    const term = this.#machine.name();
    this.#term = term;
    this.#say({ kind: "beat", term });
    try {
      await this.#roles.lead(term);
      if (this.#term === term) this.#say({ kind: "beat", term });
    } catch (thrown) {
      if (this.#term !== term) return;
      this.#term = undefined;
      this.#running = false;
      this.#stopTicking?.();
      this.#roles.failed(thrown);
    }
  }

  /** The lock is not held, or waited for, any more. */
  #lost(thrown: unknown, grip: Grip): void {
    grip.lost = true;
    if (grip.signal?.aborted) return;
    if ((thrown as { name?: unknown } | null)?.name !== "AbortError")
      this.#log.error("the lock of the database failed", thrown);
    this.#log.warn("another tab has taken the lead, since this one did not answer");
    void this.#resign().then(() => {
      if (!this.#running) return;
      this.#say({ kind: "who" });
      this.#enqueue();
    });
  }

  #hear(data: Partial<Broadcast> | null): void {
    if (typeof data !== "object" || data === null || typeof data.from !== "string" || data.from === this.#tab) return;
    // A leader of another version cannot be talked to, but it lives: it will be gone when its page is loaded anew.
    if (data.kind === "beat") this.#heardAt = this.#machine.now();
    if (data.relaysync !== version || !this.#running) return;
    if (data.kind === "beat" && typeof data.term === "string" && this.#term === undefined)
      this.#roles.follow(data.term);
    if (data.kind === "who" && this.#term !== undefined) this.#say({ kind: "beat", term: this.#term });
  }

  #say(call: Call): void {
    const message: Broadcast = { relaysync: version, from: this.#tab, ...call };
    this.#channel.postMessage(message);
  }

  #tick(): void {
    const now = this.#machine.now();
    const slept = now - this.#tickedAt - this.#config.heartbeatMs > this.#config.sleepGapMs;
    this.#tickedAt = now;
    if (slept) {
      // The silence may be this tab's own.
      this.#heardAt = now;
      this.#roles.slept();
    }
    if (this.#term !== undefined) return this.#say({ kind: "beat", term: this.#term });
    const silence = now - this.#heardAt;
    // Clocks can be set back.
    if (silence < 0) this.#heardAt = now;
    if (slept || silence >= this.#config.leaderSilenceMs) this.#say({ kind: "who" });
    if (silence >= this.#config.leaderSilenceMs + this.#config.pingAnswerMs) this.#takeOver();
  }

  /** Takes the lock from a leader that does not answer; one tab at a time does. */
  #takeOver(): void {
    const only = this.#tabs.locks.request(`${this.#lock}:takeover`, { ifAvailable: true }, async (lock) => {
      const now = this.#machine.now();
      if (lock === null || !this.#running || now - this.#heardAt < this.#config.leaderSilenceMs) return;
      this.#log.warn("the leading tab does not answer: this one takes over");
      this.#heardAt = now;
      this.#queue?.abort();
      this.#queue = undefined;
      this.#request({ steal: true });
      // Others, which wait for this lock in vain, have heard of the new leader by the end of this.
      await this.#tabs.locks.query();
    });
    only.catch((thrown: unknown) => this.#log.error("the lead could not be taken over", thrown));
  }
}
