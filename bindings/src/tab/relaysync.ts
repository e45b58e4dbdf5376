import {
  checkEvent,
  checkHex,
  checkKind,
  checkNames,
  checkNumber,
  checkSignal,
  checkWord,
  eventText,
  filtersOf,
  relaysOf,
} from "../arguments.js";
import type { CoreStatus, Request } from "../core.js";
import { RelaySyncError, invalid } from "../errors.js";
import type { Filter, NostrEvent } from "../events.js";
import type { Settings } from "../options.js";
import type {
  AddOutcome,
  Direction,
  ImportReport,
  PublishReport,
  RelayCoverage,
  RelayReport,
  StorageInfo,
  StorageState,
} from "../reports.js";
import { quiet, within } from "../time.js";
import { exportStream, importText, type ImportSource } from "./archive.js";
import type { Client } from "./client.js";
import { SyncJob } from "./job.js";
import { Reader } from "./reader.js";
import { storageInfo } from "./storage.js";

/** What {@link RelaySync.sync} takes beside filters. */
export interface SyncOptions {
  /** Of which relays. Those given to `open` by default. */
  readonly relays?: readonly string[];
  /** Stay connected and follow what is new, until the job is stopped. */
  readonly live?: boolean;
  /** `down` (the default): from relays into the database; `up`: the other way; `both`. */
  readonly direction?: Direction;
  /** Whether to reconcile (NIP-77): where it pays (`auto`, the default), `only` by it, or `never`. */
  readonly negentropy?: "auto" | "only" | "never";
  /**
   * A job that is not live is stopped after so many milliseconds; a live one counts as caught up by then, with what is
   * not fetched as gaps, and goes on. No bound by default.
   */
  readonly timeoutMs?: number;
  /** Stops the job. */
  readonly signal?: AbortSignal;
}

/** What {@link RelaySync.repos} takes. At least one of `addresses` and `authors` is needed. */
export interface ReposOptions {
  /** Repositories (NIP-34), as `30617:<public key>:<identifier>`. */
  readonly addresses?: readonly string[];
  /** Public keys: all their repositories. */
  readonly authors?: readonly string[];
  /**
   * Relays where looking begins; further ones are found through the announcements. Those given to `open` by default.
   */
  readonly bootstrapRelays?: readonly string[];
  /** Stay, and follow. True by default. */
  readonly live?: boolean;
  /** Stops the job. */
  readonly signal?: AbortSignal;
}

/** What {@link RelaySync.publish} takes beside the event. */
export interface PublishOptions {
  /** To which relays. Those given to `open` by default. */
  readonly relays?: readonly string[];
  /** How long to wait for answers, in milliseconds; 10 s by default. Relays that are late count as not accepting. */
  readonly timeoutMs?: number;
  /** Gives up waiting; the event may be sent all the same. */
  readonly signal?: AbortSignal;
}

/** Events of a {@link RelaySync}, each a `CustomEvent` with this `detail`. */
export interface RelaySyncEvents {
  /** A relay's connection or health has changed. */
  relay: CustomEvent<RelayReport>;
  /** Writing has stopped, or goes on. */
  storage: CustomEvent<{ readonly state: StorageState; readonly message: string | null }>;
  /** This or another tab leads now: it has the connections and the database. */
  leader: CustomEvent<{ readonly leading: boolean }>;
  /** Nothing works any more: every call that waits has failed with the same error. */
  error: CustomEvent<RelaySyncError>;
}

/** An open database, and the relays that it is kept in step with. Made by `open`. */
export class RelaySync extends EventTarget implements AsyncDisposable {
  readonly #client: Client;
  readonly #settings: Settings;
  readonly #closing: () => void;
  #closed: Promise<void> | undefined;
  #leading = false;

  /** What the database is called. */
  readonly name: string;
  /** Where it runs: in a worker, or in this thread. */
  readonly mode: "worker" | "thread";

  /** @internal */
  constructor(client: Client, settings: Settings, mode: "worker" | "thread", closing: () => void) {
    super();
    this.#client = client;
    this.#settings = settings;
    this.#closing = closing;
    this.name = settings.name;
    this.mode = mode;
  }

  /** Does this tab lead? True if there are no others. */
  get leading(): boolean {
    return this.#leading;
  }

  /**
   * Fetches what the filters select, from every relay, and with `live` goes on to follow it. What is proven already, by
   * an earlier job or an earlier visit, is not fetched again.
   *
   * @throws {RelaySyncError} `invalid-argument`, at once.
   */
  sync(filters: Filter | readonly Filter[], options: SyncOptions = {}): SyncJob {
    checkNames("options", options, ["relays", "live", "direction", "negentropy", "timeoutMs", "signal"]);
    checkWord("direction", options.direction, ["down", "up", "both"]);
    checkWord("negentropy", options.negentropy, ["auto", "only", "never"]);
    checkNumber("timeoutMs", options.timeoutMs, 1);
    const terms = {
      filters: filtersOf(filters, "filters", false),
      relays: relaysOf(options.relays, this.#settings.relays),
      live: options.live ?? false,
      direction: options.direction ?? "down",
      ...(options.negentropy === undefined ? {} : { negentropy: options.negentropy }),
      ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    };
    return this.#job((id, after) => ({ method: "job", id, ...terms, ...from(after) }), options.signal);
  }

  /**
   * Follows git repositories (NIP-34) and all that belongs to them, across the relays that their announcements name.
   *
   * @throws {RelaySyncError} `invalid-argument`, at once.
   */
  repos(options: ReposOptions): SyncJob {
    checkNames("options", options, ["addresses", "authors", "bootstrapRelays", "live", "signal"]);
    const { addresses, authors } = options;
    if (!addresses?.length && !authors?.length) throw invalid("addresses", "at least one address or author is needed");
    addresses?.forEach((address, at) => {
      if (!/^30617:[0-9a-f]{64}:./.test(address))
        throw invalid(`addresses[${at}]`, "30617:<public key>:<identifier> is needed");
    });
    authors?.forEach((author, at) => checkHex(`authors[${at}]`, author));
    const terms = {
      ...(addresses === undefined ? {} : { addresses }),
      ...(authors === undefined ? {} : { authors }),
      bootstrapRelays: relaysOf(options.bootstrapRelays, this.#settings.relays, "bootstrapRelays"),
      live: options.live ?? true,
    };
    return this.#job((id, after) => ({ method: "repos", id, ...terms, ...from(after) }), options.signal);
  }

  /**
   * Checks an event and stores it (NIP-DB). False if it was not new, or is not wanted: superseded, deleted, expired,
   * invalid.
   */
  async add(event: NostrEvent): Promise<boolean> {
    return (await this.addAll([event]))[0] === "stored";
  }

  /** Checks events and stores them: one outcome each, in order. */
  async addAll(events: readonly NostrEvent[]): Promise<AddOutcome[]> {
    events.forEach((event, at) => checkEvent(`events[${at}]`, event));
    const text = `[${events.map(eventText).join(",")}]`;
    return (await this.#client.call<{ outcomes: AddOutcome[] }>({ method: "add", events: text })).outcomes;
  }

  /** The event of this id, if it is held (NIP-DB). */
  async event(id: string): Promise<NostrEvent | undefined> {
    checkHex("id", id);
    return parsed(await this.#client.call<string | null>({ method: "event", id }));
  }

  /** The event that holds at present, of a replaceable or addressable kind (NIP-DB). */
  async replaceable(kind: number, author: string, identifier?: string): Promise<NostrEvent | undefined> {
    checkKind("kind", kind);
    checkHex("author", author);
    const request: Request = {
      method: "replaceable",
      kind,
      author,
      ...(identifier === undefined ? {} : { identifier }),
    };
    return parsed(await this.#client.call<string | null>(request));
  }

  /** What is held and matches, the newest first, each event once (NIP-DB). No relay is asked. */
  async query(
    filters: Filter | readonly Filter[],
    options: { signal?: AbortSignal; limit?: number } = {},
  ): Promise<NostrEvent[]> {
    checkNumber("limit", options.limit);
    const request: Request = {
      method: "query",
      filters: filtersOf(filters),
      ...(options.limit === undefined ? {} : { limit: options.limit }),
    };
    return JSON.parse(await this.#client.call<string>(request, options.signal)) as NostrEvent[];
  }

  /** How many events are held and match (NIP-DB). */
  async count(filters: Filter | readonly Filter[], options: { signal?: AbortSignal } = {}): Promise<number> {
    return this.#client.call<number>({ method: "count", filters: filtersOf(filters) }, options.signal);
  }

  /**
   * Events that match and are stored from now on, whoever brings them (NIP-DB). Leave the loop, or abort, to end it. No
   * relay is asked: {@link RelaySync.sync} does that.
   *
   * @throws {RelaySyncError} `invalid-argument`, at once.
   */
  subscribe(
    filters: Filter | readonly Filter[],
    options: { signal?: AbortSignal } = {},
  ): AsyncGenerator<NostrEvent, void, undefined> {
    checkSignal("signal", options.signal);
    const wanted = filtersOf(filters);
    const run = this.#client.begin((id, after) => ({ method: "watch", id, filters: wanted, ...from(after) }));
    const reader = new Reader(this.#client, run, this.#settings.config, () => this.#client.forget(run));
    const end = (): void => {
      reader.end();
      const ended = this.#client.callRun(
        run,
        (id) => ({ method: "unwatch", id }),
        () => undefined,
      );
      // Where the watch is gone, by whatever way, it need not be ended.
      void quiet(ended)
        .finally(() => this.#client.forget(run))
        .catch(() => undefined);
    };
    return watched(reader, end, options.signal);
  }

  /** What this database can do beside the rest of NIP-DB. */
  async supports(): Promise<string[]> {
    return ["subscribe"];
  }

  /**
   * Checks an event, stores it and sends it to relays. Resolves with their answers; a relay that refuses rejects
   * nothing.
   */
  async publish(event: NostrEvent, options: PublishOptions = {}): Promise<PublishReport> {
    checkNames("options", options, ["relays", "timeoutMs", "signal"]);
    checkEvent("event", event);
    checkNumber("timeoutMs", options.timeoutMs, 1);
    const relays = relaysOf(options.relays, this.#settings.relays);
    const timeoutMs = options.timeoutMs ?? this.#settings.config.publishMs;
    return this.#client.call({ method: "publish", event: eventText(event), relays, timeoutMs }, options.signal);
  }

  /** What is proven of a filter, at each relay that was ever asked for it. */
  async coverage(filter: Filter): Promise<RelayCoverage[]> {
    filtersOf(filter, "filter", false);
    return this.#client.call({ method: "coverage", filter });
  }

  /** How every relay is that something is wanted of. */
  async relays(): Promise<RelayReport[]> {
    return this.#client.call({ method: "relays" });
  }

  /** What is stored, and what there is room for. */
  async storageInfo(): Promise<StorageInfo> {
    return storageInfo(await this.#client.call<object>({ method: "storage" }));
  }

  /**
   * Asks the browser not to evict the data by itself. Resolves to whether it promises; false where there is no such
   * promise.
   */
  async persist(): Promise<boolean> {
    return (await globalThis.navigator?.storage?.persist?.()) ?? false;
  }

  /** All events held, one JSON object a line (NDJSON, UTF-8), in the order in which they were stored. */
  export(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return exportStream(this.#client, this.#settings.config);
  }

  /**
   * Checks and stores the events of NDJSON, read as fast as they are stored. Lines that are no event are counted and
   * left out.
   */
  async import(source: ImportSource, options: { signal?: AbortSignal } = {}): Promise<ImportReport> {
    return importText(this.#client, this.#settings.config, source, options.signal);
  }

  /** Stores what has arrived and lets go of everything. Loops end; whoever waits gets an error with code `closed`. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** As {@link RelaySync.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  lead(leading: boolean): void {
    if (this.#leading === leading) return;
    this.#leading = leading;
    this.dispatchEvent(new CustomEvent("leader", { detail: { leading } }));
  }

  /** @internal */
  tell(status: CoreStatus): void {
    if (status.type === "panic") return this.fail(new RelaySyncError("internal", status.message));
    const { type, ...detail } = status;
    this.dispatchEvent(
      new CustomEvent(type, { detail: status.type === "storage" ? { message: null, ...detail } : detail }),
    );
  }

  /** @internal Nothing works any more. */
  fail(error: RelaySyncError): void {
    if (this.#closed !== undefined) return;
    this.#closed = this.#client.leave(error);
    this.#closing();
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }

  #job(begin: (id: string, after: number | undefined) => Request, signal: AbortSignal | undefined): SyncJob {
    checkSignal("signal", signal);
    return new SyncJob(this.#client, this.#settings.config, begin, signal);
  }

  async #close(): Promise<void> {
    this.#closing();
    const left = this.#client.leave(new RelaySyncError("closed", "the database is closed"));
    await within(left, 2 * this.#settings.config.closeMs, "closing the database");
  }
}

/** Typed listeners, beside those of any `EventTarget`. */
export interface RelaySync {
  addEventListener<Name extends keyof RelaySyncEvents>(
    type: Name,
    listener: (event: RelaySyncEvents[Name]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  removeEventListener<Name extends keyof RelaySyncEvents>(
    type: Name,
    listener: (event: RelaySyncEvents[Name]) => void,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | EventListenerOptions,
  ): void;
}

function from(after: number | undefined): { after?: number } {
  return after === undefined ? {} : { after };
}

function parsed(text: string | null): NostrEvent | undefined {
  return text === null ? undefined : (JSON.parse(text) as NostrEvent);
}

/** Events of a watch, which ends with the loop. */
async function* watched(
  reader: Reader,
  end: () => void,
  signal: AbortSignal | undefined,
): AsyncGenerator<NostrEvent, void, undefined> {
  try {
    for await (const { event } of reader.events(signal)) yield event;
  } finally {
    end();
  }
}
