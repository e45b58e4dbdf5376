import type { Filter } from "./events.js";

/** How histories are fetched: by set reconciliation (NIP-77), or page by page (`REQ`, NIP-01). */
export type Method = "negentropy" | "req";

/** Which way events go: from relays into the database, from the database to relays, or both. */
export type Direction = "down" | "up" | "both";

/** How far a job is: fetching, done with what there was when it began, or over. */
export type JobState = "syncing" | "caughtUp" | "done";

/** What was counted: events, if nothing else is said. Further counters may be added. */
export interface Counts {
  /** Sent by relays, and asked for. */
  readonly received: number;
  /** Of these, new and held now. */
  readonly stored: number;
  /** Of these, held already. */
  readonly duplicate: number;
  /** Of these, superseded, deleted, vanished, expired or ephemeral. */
  readonly unwanted: number;
  /** Of these, with a wrong id or signature. */
  readonly invalid: number;
  /** Taken by relays from us. */
  readonly published: number;
  /** Refused by relays. */
  readonly refused: number;
  /** Connections made. */
  readonly connections: number;
  /** Bytes received. */
  readonly bytesIn: number;
  /** Bytes sent. */
  readonly bytesOut: number;
}

/** Something that could not be proven complete. */
export interface Gap {
  /** The filter of the job; `null` where discovery has made it. */
  readonly filter: Filter | null;
  /** The first second that it is about, since 1970; `null` for no beginning. */
  readonly since: number | null;
  /** The last second; `null` for no end. */
  readonly until: number | null;
  /** Why, in a stable word, such as `unreachable`, `timeout`, `refused`, `full-second`, `store`. */
  readonly kind: string;
  /** Why, in words. */
  readonly message: string;
}

/** How a job stands at one relay. */
export interface RelayStanding {
  /** The relay. */
  readonly url: string;
  /** Is each filter fetched, or has gaps on record? */
  readonly settled: boolean;
  /** Is each filter fetched, without a gap? */
  readonly complete: boolean;
  /** What the relay is at, for whatever job. */
  readonly phase: string;
  /** How the link is. */
  readonly health: string;
  /** How histories were fetched. */
  readonly methods: readonly Method[];
  /** What could not be proven complete. */
  readonly gaps: readonly Gap[];
  /** Gaps beyond the number that is kept. */
  readonly gapsDropped: number;
  /** Of what kind the failure of the link is that lasts, or `null`. */
  readonly failure: string | null;
  /** The last failure of the link, in words, or `null`. */
  readonly message?: string | null;
  /** What was counted on connections to the relay that jobs of this direction share. */
  readonly counts: Counts;
}

/** How a job stands. */
export interface JobReport {
  /** How far it is. */
  readonly state: JobState;
  /**
   * Is everything that was asked for proven to be held, from every relay (and, where events are published, taken by
   * it)?
   */
  readonly complete: boolean;
  /** How histories were fetched. */
  readonly methods: readonly Method[];
  /** What was counted at all relays. */
  readonly counts: Counts;
  /** Relay by relay, with gaps and their reasons. */
  readonly relays: readonly RelayStanding[];
  /** What keeps the job from going on at the moment: a store that fails, in words. */
  readonly error?: string | null;
}

/** What became of an event that was added. `invalid` has a wrong id or signature. */
export type AddOutcome =
  "stored" | "duplicate" | "superseded" | "deleted" | "vanished" | "expired" | "ephemeral" | "invalid"
  | "pruned";

/** A relay's answer (NIP-01 `OK`) to an event that was published. */
export interface RelayAnswer {
  /** The relay. */
  readonly relay: string;
  /** Has the relay taken it? */
  readonly accepted: boolean;
  /** It had it already. */
  readonly duplicate: boolean;
  /** The relay's own words, or why there was no answer; `null` if there are none. */
  readonly reason: string | null;
  /** Why not, in a stable word; `null` if it was accepted. */
  readonly code: string | null;
}

/** What became of an event that was published. */
export interface PublishReport {
  /** What became of it here. */
  readonly outcome: AddOutcome;
  /** One answer for each relay. */
  readonly relays: readonly RelayAnswer[];
}

/** A span of time of which all events of a filter that a relay has are proven to be held. */
export interface ProvenWindow {
  /** Its first second since 1970; `null` for no beginning. */
  readonly since: number | null;
  /** Its last second; `null` for no end. */
  readonly until: number | null;
  /** How it was proven. */
  readonly method: Method;
  /** When the relay was asked, in seconds since 1970. */
  readonly askedAt: number;
  /** Until when what is dated newer was followed without a break, in seconds since 1970. */
  readonly followedUntil: number;
}

/** What is proven of a filter at one relay. */
export interface RelayCoverage {
  /** The relay. */
  readonly relay: string;
  /** Is it proven for all time? */
  readonly complete: boolean;
  /** What is proven. */
  readonly windows: readonly ProvenWindow[];
  /** What is not. */
  readonly gaps: readonly { readonly since: number | null; readonly until: number | null }[];
}

/** How a relay is. */
export interface RelayReport {
  /** The relay. */
  readonly url: string;
  /** How the link is: `healthy`, `disconnected`, `degraded`, `dead`, `rateLimited`. */
  readonly health: string;
  /** What it is at. */
  readonly phase: string;
  /** Is there a connection at this moment? */
  readonly connected: boolean;
  /** Of what kind the failure of the link is that lasts, or `null`. */
  readonly failure?: string | null;
  /** The last failure, in words. */
  readonly reason?: string | null;
  /** Seconds until it is tried again, or `null`. */
  readonly nextTrySecs?: number | null;
}

/** What is stored, and what there is room for. */
export interface StorageInfo {
  /** Events held. */
  readonly events: number;
  /** What they and their index take, in bytes. */
  readonly bytes: number;
  /** The cap, in bytes; `null` for none. */
  readonly bytesMax: number | null;
  /** What is dated no later than this was removed to stay below the cap; in seconds since 1970, `null` if nothing was. */
  readonly floorSecs: number | null;
  /** How writing goes. `full`: fetching pauses until there is room. */
  readonly state: StorageState;
  /** The failure, in words; `null` if there is none. */
  readonly message: string | null;
  /**
   * Bytes that the browser counts for the whole origin, as `navigator.storage.estimate` says; `null` if it does not.
   */
  readonly usageBytes: number | null;
  /** Bytes that it allows; `null` if it does not say. */
  readonly quotaBytes: number | null;
  /** Has the browser promised not to evict the data by itself? `null` if it does not say. */
  readonly persisted: boolean | null;
}

/** How writing goes: well, no room, opened elsewhere, or failed. */
export type StorageState = "ok" | "full" | "deposed" | "failed";

/** What became of the lines of an import. */
export interface ImportReport {
  /** Lines that were not empty. */
  readonly lines: number;
  /** New, and held now. */
  readonly stored: number;
  /** Held already. */
  readonly duplicate: number;
  /** Superseded, deleted, vanished, expired or ephemeral. */
  readonly unwanted: number;
  /** With a wrong id or signature. */
  readonly invalid: number;
  /** Lines that are no event. */
  readonly malformed: number;
  /** The first line that was not taken, in words; `null` if there is none. */
  readonly firstError: string | null;
}
