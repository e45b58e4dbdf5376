/** Databases over the core for tests, in this thread or in tabs of a simulated browser. */
import { defaults, type Config } from "../../src/config.js";
import { Log } from "../../src/log.js";
import { portPair, type FromStation, type ToStation } from "../../src/messages.js";
import { settingsOf, type OpenOptions } from "../../src/options.js";
import { Station } from "../../src/serve/station.js";
import { Client } from "../../src/tab/client.js";
import { RelaySync } from "../../src/tab/relaysync.js";
import { answer } from "../../src/tab/signing.js";
import { deferred, machine } from "../../src/time.js";
import type { Tab } from "./browser.js";
import type { Disk } from "./core.js";

export interface Opened {
  readonly db: RelaySync;
  readonly client: Client;
  readonly ready: Promise<void>;
}

/** Opens a database in a tab, or in no tab at all. It is ready when there is a leader. */
export function openDatabase(disk: Disk, options: OpenOptions & { tab?: Tab; config?: Partial<Config> } = {}): Opened {
  const { tab, ...rest } = options;
  const settings = settingsOf(
    { log: "off", ...rest },
    { indexedDB: tab !== undefined, workers: false, tabs: tab !== undefined },
  );
  const [here, there] = portPair<FromStation, ToStation>();
  const name = tab?.name ?? machine.name();
  const ready = deferred<void>();
  ready.promise.catch(() => undefined);
  const station = new Station({
    database: settings.name,
    tab: name,
    opener: disk.opener(tab),
    port: there,
    multiTab: settings.multiTab,
    tabs: tab?.means,
    machine: tab?.machine ?? machine,
    config: { ...defaults, ...options.config },
    log: new Log("off"),
    serving: { signs: true },
    ended: () => undefined,
  });
  const client = new Client(name, here, settings.config.callsMax, {
    leader: (leading) => {
      db.lead(leading);
      ready.resolve();
    },
    status: (status) => db.tell(status),
    failed: (error) => {
      ready.reject(error);
      db.fail(error);
    },
    question: (question) => answer(question, settings.signer),
  });
  const db = new RelaySync(client, settings, "thread", () => undefined);
  void station.start();
  return { db, client, ready: ready.promise };
}

/** A database that is ready. */
export async function openReady(disk: Disk, options: OpenOptions & { tab?: Tab } = {}): Promise<RelaySync> {
  const { db, ready } = openDatabase(disk, options);
  await ready;
  return db;
}
