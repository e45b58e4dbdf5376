/** For Node: events in memory, in the caller's thread. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openOn, type Platform } from "../open.js";
import type { OpenOptions } from "../options.js";
import * as here from "../serve/host.js";
import type { RelaySync } from "../tab/relaysync.js";

export * from "./api.js";

const platform: Platform = {
  abilities: () => ({ indexedDB: false, workers: false, tabs: false }),
  wasm: () => readFile(wasmPath()).then((bytes) => Uint8Array.from(bytes)),
  loadHost: () => Promise.resolve(here),
};

/**
 * Opens a database in memory. Node before 22 has no WebSocket of its own: give one, such as that of the package `ws`.
 *
 * @throws {RelaySyncError} `invalid-argument`, `load`; or the reason of the signal.
 */
export function open(options: OpenOptions = {}): Promise<RelaySync> {
  return openOn(platform, options);
}

/** Beside this file. Not by `new URL`: bundlers for servers replace that by an address that only browsers can use. */
function wasmPath(): string {
  return join(dirname(fileURLToPath(import.meta.url)), "core.wasm");
}
