/**
 * What the WebAssembly module offers, and what it asks of its host. Events cross as JSON text, parsed only in the tab
 * that reads them.
 */
import type { Filter } from "./events.js";
import type { WebSocketLike } from "./options.js";
import type { Direction, StorageState } from "./reports.js";

/** A call of the core. Results are those of {@link Answers}. */
export type Request =
  | { readonly method: "add"; readonly events: string }
  | { readonly method: "query"; readonly filters: readonly Filter[]; readonly limit?: number }
  | { readonly method: "count"; readonly filters: readonly Filter[] }
  | { readonly method: "event"; readonly id: string }
  | { readonly method: "replaceable"; readonly kind: number; readonly author: string; readonly identifier?: string }
  | { readonly method: "watch"; readonly id: string; readonly filters: readonly Filter[]; readonly after?: number }
  | { readonly method: "unwatch"; readonly id: string }
  | ({ readonly method: "job"; readonly id: string; readonly after?: number } & JobTerms)
  | ({ readonly method: "repos"; readonly id: string; readonly after?: number } & RepoTerms)
  | { readonly method: "take"; readonly id: string; readonly eventsMax: number; readonly bytesMax: number }
  | { readonly method: "progress"; readonly id: string }
  | { readonly method: "settled"; readonly id: string; readonly moment: "caughtUp" | "done" }
  | { readonly method: "stop"; readonly id: string }
  | {
      readonly method: "publish";
      readonly event: string;
      readonly relays: readonly string[];
      readonly timeoutMs: number;
    }
  | { readonly method: "coverage"; readonly filter: Filter }
  | { readonly method: "relays" }
  | { readonly method: "storage" }
  | { readonly method: "export"; readonly after?: number; readonly bytesMax: number }
  | { readonly method: "import"; readonly text: string }
  | { readonly method: "wake" }
  | { readonly method: "close" };

/** What a job is to do. */
export interface JobTerms {
  readonly filters: readonly Filter[];
  readonly relays: readonly string[];
  readonly live: boolean;
  readonly direction: Direction;
  readonly negentropy?: "auto" | "only" | "never";
  readonly timeoutMs?: number;
}

/** What a job that follows repositories is to do. */
export interface RepoTerms {
  readonly addresses?: readonly string[];
  readonly authors?: readonly string[];
  readonly bootstrapRelays: readonly string[];
  readonly live: boolean;
}

/**
 * What `take` gives: a batch of events as the text of a JSON array, and for each who brought it and whether it was
 * live.
 */
export interface Taken {
  readonly events: string;
  readonly from: readonly (string | null)[];
  readonly live: readonly boolean[];
  readonly cursor: number;
}

/** What `host.status` is told. */
export type CoreStatus =
  | { readonly type: "storage"; readonly state: StorageState; readonly message?: string | null }
  | { readonly type: "relay"; readonly url: string; readonly [more: string]: unknown }
  | { readonly type: "panic"; readonly message: string };

/** How the core is opened. */
export interface CoreOptions {
  readonly name: string;
  readonly storage: "indexeddb" | "memory";
  /** `relaxed` if it is left out. */
  readonly durability?: "relaxed" | "strict";
  readonly bytesMax?: number;
  readonly log?: "error" | "warn" | "info" | "debug" | "trace";
  readonly config?: Readonly<Record<string, number>>;
}

/** What the core asks of whoever runs it. */
export interface CoreHost {
  readonly webSocket?: (url: string) => WebSocketLike;
  readonly verify?: (batch: Uint8Array) => Promise<Uint8Array>;
  readonly sign?: (unsignedJson: string, relay: string) => Promise<string>;
  readonly publicKey?: () => Promise<string>;
  readonly status: (status: CoreStatus) => void;
}

/** An open database. */
export interface Core {
  call(request: Request): Promise<unknown>;
  free(): void;
}

/** The module, loaded. */
export interface CoreModule {
  readonly Core: { open(options: CoreOptions, host: CoreHost): Promise<Core> };
  /** Checks signatures: 128 bytes an event (id, public key, signature) in, one byte an event out, 1 for genuine. */
  verify(batch: Uint8Array): Uint8Array;
  version(): string;
}

/** Opens the core with this host: everything else about it is decided already. */
export type CoreOpener = (host: CoreHost) => Promise<Core>;
