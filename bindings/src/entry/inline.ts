/** Everything in one file: the WebAssembly and the worker are text inside this module, in place of files beside it. */
import { wasmGzipBase64, workerText } from "relaysync-inlined";
import { browserAbilities, openOn, type Platform } from "../open.js";
import type { OpenOptions } from "../options.js";
import * as here from "../serve/host.js";
import type { RelaySync } from "../tab/relaysync.js";

export * from "./api.js";

let workerUrl: string | undefined;

/** The worker's own workers are made of the same address, which is therefore kept for as long as the page lives. */
function createWorker(): Worker {
  workerUrl ??= URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
  return new Worker(workerUrl, { type: "module" });
}

/** Compressed, since compressing base64 text afterwards would win little. */
function bytes(): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(wasmGzipBase64), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

const platform: Platform = {
  abilities: browserAbilities,
  wasm: bytes,
  createWorker,
  loadHost: () => Promise.resolve(here),
};

/**
 * Opens a database, or joins the tabs of this origin that have it open. Resolves when it can be used.
 *
 * @throws {RelaySyncError} `invalid-argument`, `load`, `in-use`, `no-leader`, `storage`; or the reason of the signal.
 */
export function open(options: OpenOptions = {}): Promise<RelaySync> {
  return openOn(platform, options);
}
