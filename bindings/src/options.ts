import { checkNames, checkNumber, checkSignal, checkWord, relayOf } from "./arguments.js";
import { defaults, type Config } from "./config.js";
import { invalid } from "./errors.js";
import type { Signer } from "./events.js";
import { levels, type LogLevel } from "./log.js";

/** Where the WebAssembly comes from: compiled, as bytes, as a response, or an address of it. */
export type WasmSource =
  | WebAssembly.Module
  | ArrayBuffer
  | ArrayBufferView<ArrayBuffer>
  | Response
  | URL
  | string
  | Promise<WebAssembly.Module | ArrayBuffer | ArrayBufferView<ArrayBuffer> | Response>;

/** A WebSocket as the standard has it, with `onopen`, `onmessage`, `onerror` and `onclose`. */
export interface WebSocketLike {
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}

/** How a database is opened. */
export interface OpenOptions {
  /** What it is called: one database for each name and origin. `relaysync` by default. */
  readonly name?: string;
  /** Where events are kept: in IndexedDB (browsers; the default there), or in memory (the default in Node). */
  readonly storage?: "indexeddb" | "memory";
  /** Relays for calls that name none. */
  readonly relays?: readonly string[];
  /**
   * When a write counts as done. `relaxed` (the default): when the operating system has it; after a power failure the
   * last seconds may be missing, and are then fetched again. `strict`: when it is on the disk; much slower.
   */
  readonly durability?: "relaxed" | "strict";
  /**
   * Run in a worker (the default in browsers), or in this thread. If no worker can be had, it is this thread, and
   * `mode` says so.
   */
  readonly worker?: boolean;
  /**
   * Share the database with other tabs of this origin (the default for IndexedDB). Without it, one tab can open it at a
   * time.
   */
  readonly multiTab?: boolean;
  /** Closes the database. */
  readonly signal?: AbortSignal;
  /** A WebSocket constructor instead of the global one, such as that of the package `ws`. Implies `worker: false`. */
  readonly WebSocket?: new (url: string) => WebSocketLike;
  /** What is told on the console. `warn` by default. */
  readonly log?: LogLevel;
  /**
   * Signs for relays that ask who is there (NIP-42): an object, or `nip07` for `window.nostr` of a browser extension,
   * which is only asked when it is needed. Without one, such relays are gaps.
   */
  readonly signer?: Signer | "nip07";
  /**
   * The most bytes that events may take; the oldest are removed beyond it, and coverage is cut accordingly. No cap by
   * default.
   */
  readonly bytesMax?: number;
  /**
   * Workers that check signatures: by default one for each core but one, at most 4. `0`: none, the database's own
   * thread does it.
   */
  readonly verifyWorkers?: number;
  /** Where the WebAssembly is. `relaysync/slim` needs it; the other entry points know. */
  readonly wasm?: WasmSource;
  /**
   * Makes the worker, which runs `relaysync/worker`. `relaysync/slim` needs it unless `worker` is false; the others
   * know.
   */
  readonly createWorker?: () => Worker;
  /** Bounds and timeouts other than the {@link defaults}. */
  readonly config?: Partial<Config>;
  /** Bounds and timeouts of the core, by name; durations in milliseconds. */
  readonly coreConfig?: Readonly<Record<string, number>>;
}

const names = [
  "name",
  "storage",
  "relays",
  "durability",
  "worker",
  "multiTab",
  "signal",
  "WebSocket",
  "log",
  "signer",
  "bytesMax",
  "verifyWorkers",
  "wasm",
  "createWorker",
  "config",
  "coreConfig",
] as const satisfies readonly (keyof OpenOptions)[];

/** Options, checked, with all that was left out. */
export interface Settings {
  readonly name: string;
  readonly storage: "indexeddb" | "memory";
  readonly relays: readonly string[];
  readonly durability: "relaxed" | "strict";
  readonly worker: boolean;
  readonly multiTab: boolean;
  readonly signal: AbortSignal | undefined;
  readonly WebSocket: (new (url: string) => WebSocketLike) | undefined;
  readonly log: LogLevel;
  readonly signer: Signer | "nip07" | undefined;
  readonly bytesMax: number | undefined;
  readonly verifyWorkers: number | undefined;
  readonly config: Config;
  readonly coreConfig: Readonly<Record<string, number>> | undefined;
}

/** What a platform has. */
export interface Abilities {
  readonly indexedDB: boolean;
  readonly workers: boolean;
  /** Web Locks and BroadcastChannel. */
  readonly tabs: boolean;
}

/** Checks options and fills in what is left out. */
export function settingsOf(options: OpenOptions, able: Abilities): Settings {
  checkNames("options", options, names);
  check(options);
  const storage = options.storage ?? (able.indexedDB ? "indexeddb" : "memory");
  return {
    name: options.name ?? "relaysync",
    storage,
    relays: (options.relays ?? []).map((relay, at) => relayOf(relay, `relays[${at}]`)),
    durability: options.durability ?? "relaxed",
    worker: options.worker ?? (able.workers && options.WebSocket === undefined),
    multiTab: options.multiTab ?? (storage === "indexeddb" && able.tabs),
    signal: options.signal,
    WebSocket: options.WebSocket,
    log: options.log ?? "warn",
    signer: options.signer,
    bytesMax: options.bytesMax,
    verifyWorkers: options.verifyWorkers,
    config: { ...defaults, ...options.config },
    coreConfig: options.coreConfig,
  };
}

function check(options: OpenOptions): void {
  const { name, WebSocket: constructor, signer } = options;
  if (name !== undefined && (typeof name !== "string" || name === ""))
    throw invalid("name", "a name that is not empty is needed");
  checkWord("storage", options.storage, ["indexeddb", "memory"]);
  checkWord("durability", options.durability, ["relaxed", "strict"]);
  checkWord("log", options.log, levels);
  checkNumber("bytesMax", options.bytesMax, 1);
  checkNumber("verifyWorkers", options.verifyWorkers);
  checkSignal("signal", options.signal);
  if (options.relays !== undefined && !Array.isArray(options.relays))
    throw invalid("relays", "an array of URLs is needed");
  checkNames("config", options.config, Object.keys(defaults));
  for (const [field, value] of Object.entries(options.config ?? {})) checkNumber(`config.${field}`, value);
  if (constructor !== undefined && typeof constructor !== "function")
    throw invalid("WebSocket", "a constructor is needed");
  if (constructor !== undefined && options.worker === true) {
    throw invalid(
      "WebSocket",
      "a constructor of your own cannot be sent to a worker: leave out `worker`, or set it to false",
    );
  }
  if (options.storage === "memory" && options.multiTab === true) {
    throw invalid("multiTab", "a database in memory cannot be shared with other tabs");
  }
  if (signer !== undefined && signer !== "nip07" && typeof signer?.signEvent !== "function") {
    throw invalid("signer", 'an object with `getPublicKey` and `signEvent`, or "nip07", is needed');
  }
}
