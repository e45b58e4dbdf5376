/// <reference lib="esnext.disposable" preserve="true" />
/** What every entry point offers beside its `open`. */
export { defaults, type Config } from "../config.js";
export { RelaySyncError, type ErrorCode } from "../errors.js";
export type { Filter, NostrEvent, Signer, UnsignedEvent } from "../events.js";
export type { LogLevel } from "../log.js";
export type { OpenOptions, WasmSource, WebSocketLike } from "../options.js";
export type * from "../reports.js";
export type { ImportSource } from "../tab/archive.js";
export type { SyncJob } from "../tab/job.js";
export type { Delivery } from "../tab/reader.js";
export type { PublishOptions, RelaySync, RelaySyncEvents, ReposOptions, SyncOptions } from "../tab/relaysync.js";
