/** What the core's build puts beside the WebAssembly, under the name `relaysync-core`. */
import type { Core as OpenCore, CoreHost, CoreOptions } from "../core.js";

declare const init: (input: { module_or_path: WebAssembly.Module }) => Promise<unknown>;
export default init;
export declare const Core: { open(options: CoreOptions, host: CoreHost): Promise<OpenCore> };
export declare function verify(batch: Uint8Array): Uint8Array;
export declare function version(): string;
