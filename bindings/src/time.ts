import { RelaySyncError } from "./errors.js";

/** The result of `promise`, or an error with code `timeout` if it does not come within `ms` milliseconds. */
export async function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new RelaySyncError("timeout", `${what}: no answer within ${ms} ms`, { retryable: true })),
      ms,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The result of `promise`, or the reason of `signal` if that is aborted before. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) {
      quiet(promise);
      return abort();
    }
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Marks a promise that nobody may be waiting for, so that its rejection is not reported as unhandled. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** A promise and what settles it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/** A promise to be settled by whoever comes to know. */
export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** What the machine does with time and chance; tests have another one. */
export interface Machine {
  /** Wall time in milliseconds: unlike a monotonic clock, it goes on while a machine sleeps. */
  now(): number;
  /** Calls `run` about every `ms` milliseconds until what it returns is called. */
  every(ms: number, run: () => void): () => void;
  /** A name that nobody else has. */
  name(): string;
}

/** The real one. */
export const machine: Machine = {
  now: () => Date.now(),
  every: (ms, run) => {
    const timer = setInterval(run, ms);
    // In Node, looking whether the machine has slept is no reason to stay.
    if (typeof timer === "object") (timer as { unref?(): void }).unref?.();
    return () => clearInterval(timer);
  },
  name: () => {
    const bytes = crypto.getRandomValues(new Uint8Array(12));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  },
};
