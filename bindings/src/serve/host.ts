/** Puts a station together, in whichever thread this is. */
import type { CoreOpener, CoreOptions } from "../core.js";
import { Log } from "../log.js";
import type { FromStation, Port, ToStation } from "../messages.js";
import type { Settings, WasmSource, WebSocketLike } from "../options.js";
import { machine } from "../time.js";
import type { Tabs } from "./election.js";
import { load } from "./load.js";
import { Station } from "./station.js";
import { VerifyPool, type VerifyWorker } from "./verify.js";

/** Settings that can be sent to a worker. */
export type Sendable = Omit<Settings, "signal" | "WebSocket" | "signer" | "relays" | "worker"> & {
  /** A name for this tab that no other has. */
  readonly tab: string;
  /** Has this tab, or may another one have, a signer? */
  readonly signs: boolean;
};

/** What only the thread itself has. */
export interface Means {
  readonly port: Port<ToStation, FromStation>;
  readonly WebSocket?: new (url: string) => WebSocketLike;
  /** Makes a worker that runs the worker script; missing where none can be had. */
  readonly createWorker?: () => VerifyWorker;
  readonly ended: () => void;
}

/** Begins to serve a tab. */
export function host(settings: Sendable, wasm: WasmSource, means: Means): void {
  const log = new Log(settings.log);
  let pool: VerifyPool | undefined;
  const verify = async (batch: Uint8Array): Promise<Uint8Array> => {
    const { core, compiled } = await load(wasm);
    const workers = settings.verifyWorkers ?? spareCores(settings.config.verifyWorkersMax);
    if (means.createWorker === undefined || workers === 0) return core.verify(batch);
    pool ??= new VerifyPool(spawner(means.createWorker, compiled), core.verify, workers, settings.config, log);
    return pool.verify(batch);
  };
  const ended = (): void => {
    pool?.close();
    means.ended();
  };
  const alone = means.createWorker === undefined || settings.verifyWorkers === 0;
  const station = new Station({
    database: settings.name,
    tab: settings.tab,
    opener: opener(settings, wasm),
    port: means.port,
    multiTab: settings.multiTab,
    tabs: settings.storage === "indexeddb" ? browserTabs() : undefined,
    machine,
    config: settings.config,
    log,
    serving: {
      signs: settings.signs,
      ...(alone ? {} : { verify }),
      ...(means.WebSocket === undefined ? {} : { WebSocket: means.WebSocket }),
    },
    ended,
  });
  void station.start();
}

function opener(settings: Sendable, wasm: WasmSource): CoreOpener {
  const options: CoreOptions = {
    name: settings.name,
    storage: settings.storage,
    ...(settings.durability === "strict" ? { durability: settings.durability } : {}),
    ...(settings.bytesMax === undefined ? {} : { bytesMax: settings.bytesMax }),
    ...(settings.log === "off" ? {} : { log: settings.log }),
    ...(settings.coreConfig === undefined ? {} : { config: settings.coreConfig }),
  };
  return async (coreHost) => (await load(wasm)).core.Core.open(options, coreHost);
}

function spawner(createWorker: () => VerifyWorker, compiled: WebAssembly.Module): () => VerifyWorker {
  return () => {
    const worker = createWorker();
    worker.postMessage({ type: "verifier", compiled });
    return worker;
  };
}

function spareCores(max: number): number {
  return Math.max(0, Math.min(max, (globalThis.navigator?.hardwareConcurrency ?? 1) - 1));
}

/** Locks and channels of the browser, where it has both. */
function browserTabs(): Tabs | undefined {
  const locks = globalThis.navigator?.locks;
  if (locks === undefined || typeof BroadcastChannel === "undefined") return undefined;
  return { locks, channel: (name) => new BroadcastChannel(name) };
}
