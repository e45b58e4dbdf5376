/** A signed event (NIP-01). */
export interface NostrEvent {
  /** SHA-256 of the event, 64 lower-case hex digits. */
  readonly id: string;
  /** The author's public key, 64 lower-case hex digits. */
  readonly pubkey: string;
  /** When it was made, in seconds since 1970, as the author says. */
  readonly created_at: number;
  /** Its kind, 0 to 65535. */
  readonly kind: number;
  /** Its tags: name, value, and more. */
  readonly tags: readonly (readonly string[])[];
  /** Its content. */
  readonly content: string;
  /** The author's Schnorr signature of the id, 128 lower-case hex digits. */
  readonly sig: string;
}

/** An event to be signed. */
export type UnsignedEvent = Pick<NostrEvent, "created_at" | "kind" | "tags" | "content"> & {
  readonly pubkey?: string;
};

/** A filter (NIP-01): an event matches if it matches each field that is there. */
export interface Filter {
  /** Ids, whole. */
  readonly ids?: readonly string[];
  /** Public keys of authors, whole. */
  readonly authors?: readonly string[];
  /** Kinds. */
  readonly kinds?: readonly number[];
  /** Not older than this, in seconds since 1970. */
  readonly since?: number;
  /** Not newer than this, in seconds since 1970. */
  readonly until?: number;
  /** At most so many, the newest first. For `query` only: a sync takes all, and refuses a filter with a limit. */
  readonly limit?: number;
  /** A tag of one letter has one of these values: `"#e": [id]`. */
  readonly [tag: `#${string}`]: readonly string[];
}

/** Signs events: an object of your own, or `window.nostr` of a browser extension (NIP-07). */
export interface Signer {
  /** The public key that it signs for, 64 hex digits. */
  getPublicKey(): Promise<string>;
  /** The event with `id`, `pubkey` and `sig`. */
  signEvent(event: UnsignedEvent): Promise<NostrEvent>;
}
