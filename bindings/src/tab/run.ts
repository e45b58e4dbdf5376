/** A job or watch, which is begun anew wherever the database is served from. */
import type { Request } from "../core.js";
import type { WireError } from "../errors.js";
import type { Outcome } from "../messages.js";

/** What runs. */
export class Run {
  readonly #method: (id: string, after: number | undefined) => Request;
  /** What it is called at the present server. */
  id = "";
  /** The number of the last event that was read, or of the last one before it began; `undefined` until it has begun. */
  cursor: number | undefined;
  /** It is to end, wherever it runs. */
  stopping = false;
  /** The connection on which it was last asked to begin. */
  askedAt: string | undefined;
  /** The connection on which it has begun. */
  begunAt: string | undefined;
  /** Why it could not be begun. */
  failure: WireError | undefined;

  constructor(method: (id: string, after: number | undefined) => Request) {
    this.#method = method;
  }

  /** The call that begins it under this id. */
  request(id: string): Request {
    this.id = id;
    return this.#method(id, this.cursor);
  }

  /** It has begun, or has failed to. */
  begun(line: string, outcome: Outcome): void {
    this.begunAt = line;
    if ("error" in outcome) {
      this.failure = outcome.error;
      return;
    }
    const { cursor } = (outcome.result ?? {}) as { readonly cursor?: unknown };
    if (this.cursor === undefined && typeof cursor === "number") this.cursor = cursor;
  }
}
