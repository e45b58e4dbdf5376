/** A browser with tabs, their locks and channels, and a clock that goes on when it is told to. */
import type { Channel, Locks, Tabs } from "../../src/serve/election.js";
import type { Machine } from "../../src/time.js";

interface Timer {
  readonly tab: Tab;
  readonly ms: number;
  readonly run: () => void;
  next: number;
}

interface Wait {
  readonly tab: Tab;
  readonly name: string;
  readonly callback: (lock: Lock | null) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** Lets everything happen that can happen now. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export class Browser {
  /** Milliseconds. */
  time = 1_000_000;
  readonly tabs: Tab[] = [];
  readonly timers = new Set<Timer>();
  readonly channels = new Set<SimulatedChannel>();
  readonly #held = new Map<string, Wait>();
  readonly #waits: Wait[] = [];

  open(): Tab {
    const tab = new Tab(this, `tab${this.tabs.length + 1}`);
    this.tabs.push(tab);
    return tab;
  }

  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    while (this.time < end) {
      this.time += 500;
      for (const timer of this.timers) {
        if (timer.next > this.time) continue;
        timer.next = this.time + timer.ms;
        // A frozen tab has one tick waiting, and not all that it missed.
        if (!timer.tab.frozen) timer.tab.run(timer.run);
      }
      await settle();
    }
  }

  request(tab: Tab, name: string, options: LockOptions, callback: (lock: Lock | null) => unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const wait: Wait = { tab, name, callback, resolve, reject };
      const { signal } = options;
      if (signal?.aborted) return reject(signal.reason);
      if (options.steal) return this.#steal(wait);
      if (!this.#held.has(name)) return this.#grant(wait);
      if (options.ifAvailable) return void Promise.resolve(callback(null)).then(resolve, reject);
      this.#waits.push(wait);
      signal?.addEventListener("abort", () => {
        const at = this.#waits.indexOf(wait);
        if (at < 0) return;
        this.#waits.splice(at, 1);
        reject(signal.reason);
      });
    });
  }

  bury(tab: Tab): void {
    for (const timer of [...this.timers]) if (timer.tab === tab) this.timers.delete(timer);
    for (const channel of [...this.channels]) if (channel.tab === tab) this.channels.delete(channel);
    for (const wait of this.#waits.splice(0)) if (wait.tab !== tab) this.#waits.push(wait);
    for (const wait of [...this.#held.values()]) if (wait.tab === tab) this.#free(wait);
  }

  #steal(wait: Wait): void {
    const old = this.#held.get(wait.name);
    this.#grant(wait);
    old?.tab.run(() => old.reject(new DOMException("stolen", "AbortError")));
  }

  #grant(wait: Wait): void {
    this.#held.set(wait.name, wait);
    wait.tab.run(() => {
      const done = new Promise((resolve) => resolve(wait.callback({ name: wait.name, mode: "exclusive" })));
      done.then(wait.resolve, wait.reject).finally(() => this.#free(wait));
    });
  }

  #free(wait: Wait): void {
    if (this.#held.get(wait.name) !== wait) return;
    this.#held.delete(wait.name);
    const next = this.#waits.findIndex(({ name }) => name === wait.name);
    const [heir] = next < 0 ? [] : this.#waits.splice(next, 1);
    if (heir !== undefined) this.#grant(heir);
  }
}

/** One tab. What reaches it while it is frozen waits; nothing reaches it when it is dead. */
export class Tab {
  frozen = false;
  dead = false;
  readonly machine: Machine;
  readonly means: Tabs;
  readonly #browser: Browser;
  readonly #missed: (() => void)[] = [];
  #names = 0;

  constructor(
    browser: Browser,
    readonly name: string,
  ) {
    this.#browser = browser;
    this.machine = {
      now: () => browser.time,
      every: (ms, run) => {
        const timer: Timer = { tab: this, ms, run, next: browser.time + ms };
        browser.timers.add(timer);
        return () => void browser.timers.delete(timer);
      },
      name: () => `${name}.${++this.#names}`,
    };
    const request = (lock: string, ...rest: unknown[]): Promise<unknown> => {
      const callback = rest.pop() as (lock: Lock | null) => unknown;
      return browser.request(this, lock, (rest[0] ?? {}) as LockOptions, callback);
    };
    const query = (): Promise<LockManagerSnapshot> =>
      new Promise((resolve) => setImmediate(() => this.run(() => resolve({}))));
    this.means = {
      locks: { request, query } as unknown as Locks,
      channel: (channel) => new SimulatedChannel(browser, this, channel),
    };
  }

  run(what: () => void): void {
    if (this.dead) return;
    if (this.frozen) this.#missed.push(what);
    else what();
  }

  freeze(): void {
    this.frozen = true;
  }

  thaw(): void {
    this.frozen = false;
    for (const what of this.#missed.splice(0)) this.run(what);
  }

  kill(): void {
    this.dead = true;
    this.#browser.bury(this);
  }
}

class SimulatedChannel implements Channel {
  onmessage: ((event: MessageEvent) => void) | null = null;

  constructor(
    readonly browser: Browser,
    readonly tab: Tab,
    readonly name: string,
  ) {
    browser.channels.add(this);
  }

  postMessage(message: unknown): void {
    const data: unknown = structuredClone(message);
    this.tab.run(() => {
      for (const other of this.browser.channels) {
        if (other === this || other.name !== this.name) continue;
        setImmediate(() => other.tab.run(() => other.onmessage?.({ data } as MessageEvent)));
      }
    });
  }

  close(): void {
    this.browser.channels.delete(this);
  }
}
