/** For browsers and bundlers: the WebAssembly and the worker are files of their own. */
import { browserAbilities, openOn, type Platform } from "../open.js";
import type { OpenOptions } from "../options.js";
import type { RelaySync } from "../tab/relaysync.js";

export * from "./api.js";

const platform: Platform = {
  abilities: browserAbilities,
  wasm: () => new URL("./core.wasm", import.meta.url),
  // Bundlers look for these very words.
  createWorker: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" }),
  loadHost: () => import("../serve/host.js"),
};

/**
 * Opens a database, or joins the tabs of this origin that have it open. Resolves when it can be used.
 *
 * @throws {RelaySyncError} `invalid-argument`, `load`, `in-use`, `no-leader`, `storage`; or the reason of the signal.
 */
export function open(options: OpenOptions = {}): Promise<RelaySync> {
  return openOn(platform, options);
}
