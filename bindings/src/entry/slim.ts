/**
 * For those who say themselves where the WebAssembly (`relaysync/core.wasm`) and the worker (`relaysync/worker`) are.
 */
import { browserAbilities, openOn, type Platform } from "../open.js";
import type { OpenOptions, WasmSource } from "../options.js";
import type { RelaySync } from "../tab/relaysync.js";

export * from "./api.js";

const platform: Platform = {
  abilities: browserAbilities,
  loadHost: () => import("../serve/host.js"),
};

/**
 * Opens a database with the WebAssembly, and the worker, that are given. Without `createWorker` it runs in this thread.
 *
 * @throws {RelaySyncError} `invalid-argument`, `load`, `in-use`, `no-leader`, `storage`; or the reason of the signal.
 */
export function open(options: OpenOptions & { readonly wasm: WasmSource }): Promise<RelaySync> {
  return openOn(platform, { ...(options.createWorker === undefined ? { worker: false } : {}), ...options });
}
