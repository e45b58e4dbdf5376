/** What runs in a worker: a station for its tab, or a checker of signatures. */
import { toWire } from "../errors.js";
import { portOver, type DedicatedWorkerGlobalScopeLike, type FromStation, type ToStation } from "../messages.js";
import type { WasmSource } from "../options.js";
import { host, type Sendable } from "./host.js";
import { load } from "./load.js";

/** The first message to a worker. */
export type Begin =
  | { readonly type: "open"; readonly settings: Sendable; readonly wasm: Awaited<WasmSource> }
  | { readonly type: "verifier"; readonly compiled: WebAssembly.Module };

/** What a worker says when it has begun to listen. */
export const ready = "ready";

interface Scope extends DedicatedWorkerGlobalScopeLike {
  close(): void;
  readonly location: { readonly href: string };
}

let serving = false;

/** Serves whoever has made this worker. In any other thread, and the second time, it does nothing. */
export function serve(): void {
  const scope = globalThis as unknown as Scope;
  const inWorker =
    typeof (globalThis as { WorkerGlobalScope?: unknown }).WorkerGlobalScope === "function" &&
    !("document" in globalThis);
  if (serving || !inWorker || typeof scope.postMessage !== "function") return;
  serving = true;
  scope.onmessage = ({ data }: MessageEvent) => begin(scope, data as Begin);
  scope.postMessage({ type: ready });
}

function begin(scope: Scope, message: Begin): void {
  if (message.type === "verifier") return check(scope, message.compiled);
  const port = portOver<ToStation, FromStation>(scope);
  host(message.settings, message.wasm, {
    port,
    ...(typeof Worker === "undefined"
      ? {}
      : { createWorker: () => new Worker(scope.location.href, { type: "module" }) }),
    ended: () => scope.close(),
  });
}

function check(scope: Scope, compiled: WebAssembly.Module): void {
  const loaded = load(compiled);
  scope.onmessage = ({ data }: MessageEvent) => {
    loaded.then(
      ({ core }) => scope.postMessage({ verdicts: core.verify((data as { readonly batch: Uint8Array }).batch) }),
      (thrown: unknown) => scope.postMessage({ error: toWire(thrown) }),
    );
  };
}
