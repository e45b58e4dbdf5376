/** Opens a database on a platform: what all entry points have in common. */
import { RelaySyncError, asError, invalid } from "./errors.js";
import { Log } from "./log.js";
import { portOver, portPair, type FromStation, type Port, type ToStation } from "./messages.js";
import { settingsOf, type Abilities, type OpenOptions, type Settings, type WasmSource } from "./options.js";
import type { Sendable, host } from "./serve/host.js";
import type { Begin } from "./serve/worker.js";
import { attend } from "./tab/attention.js";
import { Client } from "./tab/client.js";
import { RelaySync } from "./tab/relaysync.js";
import { answer } from "./tab/signing.js";
import { deferred, machine, unlessAborted, within } from "./time.js";

/** What differs from one entry point to the other. */
export interface Platform {
  readonly abilities: () => Abilities;
  /** Where the WebAssembly is. */
  readonly wasm?: () => WasmSource;
  readonly createWorker?: () => Worker;
  /** What serves in this thread, loaded when it is needed. */
  readonly loadHost: () => Promise<{ readonly host: typeof host }>;
}

/** What a browser has; everything is missing while a page is rendered on a server. */
export function browserAbilities(): Abilities {
  return {
    indexedDB: typeof indexedDB !== "undefined",
    workers: typeof Worker !== "undefined",
    tabs: typeof BroadcastChannel !== "undefined" && globalThis.navigator?.locks !== undefined,
  };
}

/** Opens a database. Resolves when it can be used. */
export async function openOn(platform: Platform, options: OpenOptions = {}): Promise<RelaySync> {
  const settings = settingsOf(options, platform.abilities());
  settings.signal?.throwIfAborted();
  const log = new Log(settings.log);
  const wasm = options.wasm ?? platform.wasm?.();
  if (wasm === undefined) throw invalid("wasm", "this entry point does not know where the WebAssembly is: say where");
  const tab = machine.name();
  const sendable = sendableOf(settings, tab);
  const createWorker = options.createWorker ?? platform.createWorker;
  const worker = settings.worker ? await startWorker(createWorker, settings, log) : undefined;
  if (worker === undefined) {
    return connect(await startHere(platform, sendable, wasm, settings, createWorker), settings, tab, "thread");
  }
  const begin: Begin = { type: "open", settings: sendable, wasm: await sendableWasm(wasm) };
  worker.postMessage(begin);
  return connect(portOver(worker), settings, tab, "worker");
}

/** Talks to a station until it serves. */
async function connect(
  port: Port<FromStation, ToStation>,
  settings: Settings,
  tab: string,
  mode: "worker" | "thread",
): Promise<RelaySync> {
  const opened = deferred<void>();
  const client = new Client(tab, port, settings.config.callsMax, {
    leader: (leading) => {
      database.lead(leading);
      opened.resolve();
    },
    status: (status) => database.tell(status),
    failed: (error) => {
      opened.reject(error);
      database.fail(error);
    },
    question: (question) => answer(question, settings.signer),
  });
  const stopAttending = attend(machine, settings.config, {
    wake: () => void client.call({ method: "wake" }).catch(() => undefined),
    pause: () => client.notify("pause"),
    resume: () => client.notify("resume"),
  });
  const abort = (): void => void database.close();
  const database = new RelaySync(client, settings, mode, () => {
    stopAttending();
    settings.signal?.removeEventListener("abort", abort);
  });
  settings.signal?.addEventListener("abort", abort, { once: true });
  await unlessAborted(opened.promise, settings.signal);
  return database;
}

async function startHere(
  platform: Platform,
  sendable: Sendable,
  wasm: WasmSource,
  { WebSocket, worker }: Settings,
  createWorker: (() => Worker) | undefined,
): Promise<Port<FromStation, ToStation>> {
  const { host } = await platform.loadHost().catch((cause: unknown) => {
    throw new RelaySyncError("load", `a part of this library could not be loaded: ${String(cause)}`, {
      retryable: true,
      cause,
    });
  });
  const [here, there] = portPair<FromStation, ToStation>();
  // If the tab's own worker could not be had, there are none for signatures either.
  const spawn = createWorker !== undefined && !worker && platform.abilities().workers ? { createWorker } : {};
  host(sendable, wasm, {
    port: there,
    ...(WebSocket === undefined ? {} : { WebSocket }),
    ...spawn,
    ended: () => undefined,
  });
  return here;
}

/** A worker that listens, or nothing, which is told. */
async function startWorker(
  create: (() => Worker) | undefined,
  settings: Settings,
  log: Log,
): Promise<Worker | undefined> {
  let worker: Worker | undefined;
  try {
    if (create === undefined) throw new RelaySyncError("unsupported", "this entry point has no worker");
    const made = (worker = create());
    const listens = new Promise<void>((resolve, reject) => {
      made.onmessage = () => resolve();
      made.onerror = (event) =>
        reject(new RelaySyncError("load", `the worker failed to start: ${event.message || "no reason is given"}`));
    });
    await unlessAborted(within(listens, settings.config.workerStartMs, "starting the worker"), settings.signal);
    made.onerror = (event) => log.error(`a fault in the worker: ${event.message}`);
    return made;
  } catch (thrown) {
    worker?.terminate();
    settings.signal?.throwIfAborted();
    log.warn(`no worker can be had, so everything runs in this thread: ${asError(thrown).message}`);
    return undefined;
  }
}

async function sendableWasm(wasm: WasmSource): Promise<Awaited<WasmSource>> {
  const source = await wasm;
  if (source instanceof URL) return source.href;
  if (typeof source === "string") return new URL(source, globalThis.location?.href).href;
  return source instanceof Response ? source.arrayBuffer() : source;
}

function sendableOf(
  { signal: _1, WebSocket: _2, signer, relays: _3, worker: _4, ...rest }: Settings,
  tab: string,
): Sendable {
  return { ...rest, tab, signs: signer !== undefined || rest.multiTab };
}
