/** Loads the core, once in each thread. */
import init, { Core, verify, version } from "relaysync-core";
import type { CoreModule } from "../core.js";
import { RelaySyncError } from "../errors.js";
import type { WasmSource } from "../options.js";

let loading: Promise<Loaded> | undefined;

/** The module and what verify workers are made of. */
export interface Loaded {
  readonly core: CoreModule;
  readonly compiled: WebAssembly.Module;
}

/**
 * Loads it, the first time.
 *
 * @throws {RelaySyncError} `load`, with the address and what to do.
 */
export function load(source: WasmSource): Promise<Loaded> {
  // A failure is not remembered: the network may be back.
  loading ??= instantiate(source).catch((thrown: unknown) => {
    loading = undefined;
    throw thrown;
  });
  return loading;
}

async function instantiate(source: WasmSource): Promise<Loaded> {
  try {
    const compiled = await compile(await source);
    await init({ module_or_path: compiled });
    return { core: { Core, verify, version }, compiled };
  } catch (thrown) {
    throw thrown instanceof RelaySyncError ? thrown : failure(source, thrown);
  }
}

async function compile(source: Awaited<WasmSource>): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const response = source instanceof Response ? source : await fetch(source);
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  // Servers that do not know the type are common enough.
  if (response.headers.get("content-type")?.startsWith("application/wasm"))
    return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

function failure(source: WasmSource, cause: unknown): RelaySyncError {
  const where = typeof source === "string" || source instanceof URL ? ` from ${String(source)}` : "";
  const advice =
    "Is the file served there, and does the Content-Security-Policy allow 'wasm-unsafe-eval'? " +
    "In Vite's development server, add relaysync to optimizeDeps.exclude; or import from relaysync/inline.";
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `the WebAssembly could not be loaded${where}: ${reason}. ${advice}`;
  return new RelaySyncError("load", message, { retryable: true, cause });
}
