/**
 * Every `code` that a {@link RelaySyncError} can have.
 *
 * | code | meaning | retryable |
 * |---|---|---|
 * | `invalid-argument` | an argument is wrong; the message names it | no |
 * | `closed` | the database, or the job, was closed before the answer came | no |
 * | `busy` | the job is iterated over already | no |
 * | `unknown-job` | the job ended so long ago that it was forgotten | no |
 * | `too-many` | more jobs, relays, filters or calls at a time than are taken | as the case is |
 * | `unsupported` | this platform lacks what was asked for | no |
 * | `load` | the WebAssembly file or the worker could not be loaded | yes |
 * | `in-use` | another tab has opened the database without `multiTab` | yes |
 * | `deposed` | the database was opened elsewhere, without `multiTab`; nothing is written here any more | no |
 * | `no-leader` | no tab that has the database open has answered | yes |
 * | `storage` | the database failed: damaged, blocked, gone | as the case is |
 * | `storage-full` | the browser gives no more room | yes |
 * | `no-signer` | a signature is needed, and no tab has a signer | no |
 * | `signer` | the signer refused or failed | yes |
 * | `relay` | a relay could not be reached, or refused; `relay` names it | as the case is |
 * | `timeout` | no answer in the time given | yes |
 * | `internal` | a fault in this library; the database has to be opened again | no |
 */
export type ErrorCode =
  | "invalid-argument"
  | "closed"
  | "busy"
  | "unknown-job"
  | "too-many"
  | "unsupported"
  | "load"
  | "in-use"
  | "deposed"
  | "no-leader"
  | "storage"
  | "storage-full"
  | "no-signer"
  | "signer"
  | "relay"
  | "timeout"
  | "internal";

/** The one class of errors that this library throws, beside the `reason` of a caller's own `AbortSignal`. */
export class RelaySyncError extends Error {
  override readonly name = "RelaySyncError";
  /** What went wrong, in a stable word. */
  readonly code: ErrorCode;
  /** The relay that it is about, if it is about one. */
  readonly relay: string | undefined;
  /** May the same call succeed later? */
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, more: { relay?: string; retryable?: boolean; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.relay = more.relay;
    this.retryable = more.retryable ?? false;
  }
}

/** An error as it crosses from one thread or tab to another. */
export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly relay?: string;
  readonly retryable: boolean;
}

const codes: ReadonlySet<string> = new Set<ErrorCode>([
  "invalid-argument",
  "closed",
  "busy",
  "unknown-job",
  "too-many",
  "unsupported",
  "load",
  "in-use",
  "deposed",
  "no-leader",
  "storage",
  "storage-full",
  "no-signer",
  "signer",
  "relay",
  "timeout",
  "internal",
]);

/** What the core calls a thing that this library has a wider word for. */
const synonyms: Readonly<Record<string, ErrorCode>> = {
  "no-relays": "invalid-argument",
  "no-filters": "invalid-argument",
  "invalid-filter": "invalid-argument",
  invalid: "invalid-argument",
  "id-in-use": "internal",
  store: "storage",
  quota: "storage-full",
};

function known(code: string): ErrorCode {
  const word = code.replaceAll("_", "-");
  return codes.has(word) ? (word as ErrorCode) : (synonyms[word] ?? "internal");
}

/** Whatever was thrown, as an object that can be sent. */
export function toWire(thrown: unknown): WireError {
  if (typeof thrown !== "object" || thrown === null) {
    return { code: "internal", message: String(thrown), retryable: false };
  }
  const { code, message, relay, retryable } = thrown as Partial<Record<keyof WireError, unknown>>;
  return {
    code: typeof code === "string" ? known(code) : "internal",
    message: typeof message === "string" ? message : String(thrown),
    ...(typeof relay === "string" ? { relay } : {}),
    retryable: retryable === true,
  };
}

/** What was sent, as an error again. */
export function fromWire({ code, message, relay, retryable }: WireError): RelaySyncError {
  return new RelaySyncError(known(code), message, { retryable, ...(relay === undefined ? {} : { relay }) });
}

/** Whatever was thrown, as an error of ours. */
export function asError(thrown: unknown): RelaySyncError {
  return thrown instanceof RelaySyncError ? thrown : fromWire(toWire(thrown));
}

/** An argument that cannot be used. */
export function invalid(parameter: string, what: string): RelaySyncError {
  return new RelaySyncError("invalid-argument", `${parameter}: ${what}`);
}
