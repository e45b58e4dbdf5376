/** A core that fulfils the contract, over events in memory that outlive it, and relays that are lists. */
import type { Core, CoreHost, CoreOpener, Request, Taken } from "../../src/core.js";
import type { Filter, NostrEvent } from "../../src/events.js";
import type { JobReport } from "../../src/reports.js";
import { deferred, type Deferred } from "../../src/time.js";
import type { Tab } from "./browser.js";

/** An event that looks genuine. */
export function event(at: number, kind = 1): NostrEvent {
  const id = at.toString(16).padStart(64, "0");
  return { id, pubkey: "a".repeat(64), created_at: at, kind, tags: [], content: `event ${at}`, sig: "b".repeat(128) };
}

interface Held {
  readonly event: NostrEvent;
  readonly relay: string | null;
  readonly live: boolean;
}

/** What stays when a core ends: IndexedDB, and the relays. */
export class Disk {
  readonly held: Held[] = [];
  readonly relays = new Map<string, NostrEvent[]>();
  readonly calls: Request[] = [];
  epoch = 0;

  opener(tab?: Tab): CoreOpener {
    return (host) => Promise.resolve(new FakeCore(this, host, tab));
  }

  count(method: Request["method"]): number {
    return this.calls.filter((call) => call.method === method).length;
  }
}

class Job {
  readonly moments: Record<"caughtUp" | "done", Deferred<JobReport>> = { caughtUp: deferred(), done: deferred() };
  over = false;

  constructor(
    readonly filters: readonly Filter[],
    readonly relays: readonly string[],
    readonly live: boolean,
    public cursor: number,
  ) {}
}

/** Events fetched at a time, so that a fetch takes a while. */
const step = 7;

export class FakeCore implements Core {
  readonly #epoch: number;
  readonly #jobs = new Map<string, Job>();
  readonly #bells = new Set<() => void>();
  #closed = false;

  constructor(
    readonly disk: Disk,
    readonly host: CoreHost,
    readonly tab: Tab | undefined,
  ) {
    this.#epoch = ++disk.epoch;
  }

  async call(request: Request): Promise<unknown> {
    this.disk.calls.push(request);
    if (this.#closed) throw { code: "closed", message: "closed", retryable: false };
    switch (request.method) {
      case "add":
        return { outcomes: (JSON.parse(request.events) as NostrEvent[]).map((each) => this.store(each, null, false)) };
      case "query":
        return JSON.stringify(this.#matching(request.filters).reverse().slice(0, request.limit));
      case "count":
        return this.#matching(request.filters).length;
      case "event":
        return this.#text(this.disk.held.find(({ event: { id } }) => id === request.id)?.event);
      case "replaceable":
        return null;
      case "job":
        return this.#begin(
          request.id,
          new Job(request.filters, request.relays, request.live, request.after ?? this.#last()),
        );
      case "repos":
        return this.#begin(
          request.id,
          new Job([{}], request.bootstrapRelays, request.live, request.after ?? this.#last()),
        );
      case "watch":
        return this.#begin(request.id, new Job(request.filters, [], true, request.after ?? this.#last()));
      case "take":
        return this.#take(this.#job(request.id), request.eventsMax);
      case "progress":
        return this.#report(this.#job(request.id));
      case "settled":
        return this.#job(request.id).moments[request.moment].promise;
      case "stop":
      case "unwatch":
        return this.#end(this.#job(request.id));
      case "publish":
        return {
          outcome: "stored",
          relays: request.relays.map((relay) => ({
            relay,
            accepted: true,
            duplicate: false,
            reason: null,
            code: null,
          })),
        };
      case "export":
        return this.#export(request.after ?? 0);
      case "import":
        return this.#import(request.text);
      case "storage":
        return { events: this.disk.held.length, bytes: 0, bytesMax: null, floorSecs: null, state: "ok", message: null };
      case "close":
        return this.#close();
      default:
        return [];
    }
  }

  free(): void {
    this.#closed = true;
  }

  /** Stores an event, unless another core has opened the disk since. */
  store(each: NostrEvent, relay: string | null, live: boolean): string {
    if (this.#epoch !== this.disk.epoch) {
      this.host.status({ type: "storage", state: "deposed" });
      throw { code: "deposed", message: "overtaken", retryable: false };
    }
    if (this.disk.held.some(({ event: { id } }) => id === each.id)) return "duplicate";
    this.disk.held.push({ event: each, relay, live });
    this.#ring();
    return "stored";
  }

  #ring(): void {
    for (const bell of [...this.#bells]) bell();
    this.#bells.clear();
  }

  #begin(id: string, job: Job): { cursor: number } {
    if (this.#jobs.has(id)) throw { code: "id_in_use", message: id, retryable: false };
    const { cursor } = job;
    this.#jobs.set(id, job);
    if (job.relays.length > 0) this.#fetch(job, 0);
    return { cursor };
  }

  #fetch(job: Job, from: number): void {
    setImmediate(() =>
      this.#run(() => {
        if (this.#closed || job.over) return;
        const wanted = job.relays.flatMap((relay) =>
          (this.disk.relays.get(relay) ?? []).map((each) => ({ relay, each })),
        );
        try {
          for (const { relay, each } of wanted.slice(from, from + step)) this.store(each, relay, false);
        } catch {
          // Told by status.
          return;
        }
        if (from + step < wanted.length) return this.#fetch(job, from + step);
        job.moments.caughtUp.resolve(this.#report(job));
        if (!job.live) this.#end(job);
      }),
    );
  }

  #run(what: () => void): void {
    if (this.tab === undefined) what();
    else this.tab.run(what);
  }

  #end(job: Job): object {
    job.over = true;
    job.moments.caughtUp.resolve(this.#report(job));
    job.moments.done.resolve(this.#report(job));
    this.#ring();
    return {};
  }

  async #take(job: Job, eventsMax: number): Promise<Taken | null> {
    for (;;) {
      const fresh = this.disk.held
        .map((held, at) => ({ held, number: at + 1 }))
        .filter(({ held, number }) => number > job.cursor && job.filters.some((filter) => matches(filter, held.event)))
        .slice(0, eventsMax);
      const last = fresh.at(-1);
      if (last !== undefined) {
        job.cursor = last.number;
        return {
          events: JSON.stringify(fresh.map(({ held }) => held.event)),
          from: fresh.map(({ held }) => held.relay),
          live: fresh.map(({ held }) => held.live),
          cursor: last.number,
        };
      }
      if (job.over) return null;
      if (this.#closed) throw { code: "closed", message: "closed", retryable: false };
      await new Promise<void>((resolve) => this.#bells.add(resolve));
    }
  }

  #report(job: Job): JobReport {
    const none = {
      received: 0,
      stored: 0,
      duplicate: 0,
      unwanted: 0,
      invalid: 0,
      published: 0,
      refused: 0,
      connections: 0,
      bytesIn: 0,
      bytesOut: 0,
    };
    return { state: job.over ? "done" : "syncing", complete: true, methods: ["negentropy"], counts: none, relays: [] };
  }

  #job(id: string): Job {
    const job = this.#jobs.get(id);
    if (job === undefined) throw { code: "unknown_job", message: `there is no job ${id}`, retryable: false };
    return job;
  }

  #matching(filters: readonly Filter[]): NostrEvent[] {
    return this.disk.held.map((held) => held.event).filter((each) => filters.some((filter) => matches(filter, each)));
  }

  #export(after: number): object {
    const next = this.disk.held.slice(after, after + 3);
    const end = after + next.length >= this.disk.held.length;
    return {
      text: next.map(({ event: each }) => `${JSON.stringify(each)}\n`).join(""),
      next: end ? null : after + next.length,
    };
  }

  #import(text: string): object {
    const report = { stored: 0, duplicate: 0, malformed: 0, firstError: null as string | null };
    for (const [at, line] of text.split("\n").entries()) {
      if (line === "") continue;
      try {
        report[this.store(JSON.parse(line) as NostrEvent, null, false) as "stored" | "duplicate"] += 1;
      } catch (thrown) {
        if (!(thrown instanceof SyntaxError)) throw thrown;
        report.malformed += 1;
        report.firstError ??= `line ${at + 1}: no JSON`;
      }
    }
    return report;
  }

  #close(): object {
    this.#closed = true;
    this.#ring();
    return {};
  }

  #last(): number {
    return this.disk.held.length;
  }

  #text(each: NostrEvent | undefined): string | null {
    return each === undefined ? null : JSON.stringify(each);
  }
}

function matches(filter: Filter, each: NostrEvent): boolean {
  return filter.kinds === undefined || filter.kinds.includes(each.kind);
}
