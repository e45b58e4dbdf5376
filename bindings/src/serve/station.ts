/**
 * What stands behind one tab: it serves the database itself, alone or while its tab leads, or passes on what the tab
 * says to the tab that leads. It lives in the tab's worker, or in the tab itself.
 */
import type { Config } from "../config.js";
import type { CoreOpener } from "../core.js";
import { RelaySyncError, toWire } from "../errors.js";
import type { Log } from "../log.js";
import type { FromStation, Port, ToClient, ToServer, ToStation } from "../messages.js";
import type { Machine } from "../time.js";
import { Election, version, type Channel, type Tabs } from "./election.js";
import { Server, type ServerParts } from "./server.js";
import { soleLock } from "./sole.js";

/** What a station is made of. */
export interface StationParts {
  readonly database: string;
  /** A name for this tab that no other has. */
  readonly tab: string;
  readonly opener: CoreOpener;
  readonly port: Port<ToStation, FromStation>;
  /** Share the database with other tabs. */
  readonly multiTab: boolean;
  /** Missing where there are no tabs. */
  readonly tabs: Tabs | undefined;
  readonly machine: Machine;
  readonly config: Config;
  readonly log: Log;
  readonly serving: Pick<ServerParts, "verify" | "WebSocket" | "signs">;
  /** All is let go of. */
  readonly ended: () => void;
}

/** What the leader and one other tab say to each other, on a channel of that tab's own. */
type Private = {
  readonly relaysync: number;
  readonly to: "leader" | "tab";
  readonly term: string;
  /** Counts the times that the tab was connected. */
  readonly line: number;
} & (
  { readonly kind: "attached" | "detach" } | { readonly kind: "carry"; readonly message: ToServer | ToClient }
);

/** What tabs that want to be served say to all. */
interface Knock {
  readonly relaysync: number;
  readonly kind: "knock";
  readonly from: string;
  readonly term: string;
  readonly line: number;
}

/** Leaders left behind for another that are remembered, so that a late sign of life of theirs is not followed. */
const pastMax = 8;

/** One other tab, as the leader has it. */
interface Follower {
  readonly channel: Channel;
  readonly watch: AbortController;
  readonly line: number;
}

/** Stands behind one tab. */
export class Station {
  readonly #parts: StationParts;
  readonly #election: Election | undefined;
  /** Tabs knock here. */
  readonly #door: Channel | undefined;
  /** As leader: the other tabs. */
  readonly #followers = new Map<string, Follower>();
  /** As follower: the line to the leader. */
  #line: { readonly channel: Channel; readonly term: string; readonly number: number; attached: boolean } | undefined;
  #lines = 0;
  #past: string[] = [];
  #server: Server | undefined;
  #releaseAlive: (() => void) | undefined;
  #releaseSole: (() => void) | undefined;
  #waiting: ReturnType<typeof setTimeout> | undefined;
  #left = false;
  #paused = false;

  constructor(parts: StationParts) {
    this.#parts = parts;
    const { tabs, database, tab, machine, config, log } = parts;
    parts.port.receive = (message) => this.#receive(message);
    if (!parts.multiTab || tabs === undefined) return;
    this.#door = tabs.channel(`relaysync:${database}:door`);
    this.#door.onmessage = ({ data }) => this.#admit(data as Partial<Knock> | null);
    this.#election = new Election(database, tab, tabs, machine, config, log, {
      lead: (term) => this.#lead(term),
      depose: () => this.#depose(),
      follow: (term) => this.#follow(term),
      slept: () => this.#server?.wake(),
      failed: (thrown) => this.#fail(thrown),
    });
  }

  /** Begins. What comes of it is told to the tab. */
  async start(): Promise<void> {
    if (this.#election === undefined) return this.#startAlone();
    await this.#live();
    const { config } = this.#parts;
    this.#waiting = setTimeout(() => {
      const message = "no tab that has the database open answers; is one of another version of this page still there?";
      this.#fail(new RelaySyncError("no-leader", message, { retryable: true }));
    }, config.leaderWaitMs);
    this.#election.start();
  }

  async #startAlone(): Promise<void> {
    const { database, tabs, config, machine } = this.#parts;
    try {
      if (tabs !== undefined) this.#releaseSole = await soleLock(tabs.locks, database, config.lockWaitMs);
      await this.#lead(machine.name());
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** Holds a lock for as long as this tab lives, so that a leader notices its end. Resolves when it is held. */
  #live(): Promise<void> {
    const { tabs, tab, log } = this.#parts;
    return new Promise((resolve) => {
      const hold = (): Promise<void> => {
        resolve();
        return new Promise((release) => (this.#releaseAlive = release));
      };
      tabs?.locks.request(this.#aliveLock(tab), hold).catch((thrown: unknown) => {
        log.error("a lock of this tab failed", thrown);
        this.#fail(thrown);
      });
    });
  }

  #aliveLock(tab: string): string {
    return `relaysync:${this.#parts.database}:tab:${tab}`;
  }

  async #lead(term: string): Promise<void> {
    this.#hangUp();
    const { opener, config, log, serving, tab, port } = this.#parts;
    const server = await Server.open(opener, { term, config, log, ...serving, deposed: () => this.#overtaken(term) });
    // Meanwhile the tab may have been put aside, and another may lead.
    if (this.#left || (this.#election !== undefined && !this.#election.leadsIn(term))) return server.close();
    this.#server = server;
    server.attach(tab, (message) => port.send(message));
    this.#serve(term, true);
  }

  /** Somebody else has opened the database. */
  #overtaken(term: string): void {
    if (this.#server !== undefined && this.#server.term !== term) return;
    if (this.#election !== undefined) {
      this.#parts.log.info("the database was opened by another tab: this one follows");
      void this.#election.overtaken();
      return;
    }
    this.#fail(new RelaySyncError("deposed", "the database was opened elsewhere: nothing is written here any more"));
  }

  async #depose(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const tab of [...this.#followers.keys()]) this.#dismiss(tab);
    await server?.close();
  }

  #serve(term: string, leading: boolean): void {
    clearTimeout(this.#waiting);
    this.#parts.port.send({ type: "leader", term, line: ++this.#lines, leading });
  }

  // As leader.

  #admit(knock: Partial<Knock> | null): void {
    if (knock?.relaysync !== version || knock.kind !== "knock" || typeof knock.from !== "string" || typeof knock.line !== "number") return;
    const { tabs } = this.#parts;
    const server = this.#server;
    if (tabs === undefined || server === undefined || knock.term !== server.term) return;
    const { from: tab, line } = knock;
    let follower = this.#followers.get(tab);
    if (follower !== undefined && follower.line !== line) {
      this.#dismiss(tab);
      follower = undefined;
    }
    if (follower === undefined) {
      follower = { channel: tabs.channel(this.#aliveLock(tab)), watch: new AbortController(), line };
      this.#followers.set(tab, follower);
      const { channel } = follower;
      channel.onmessage = ({ data }) => this.#heard(tab, data as Private);
      server.attach(tab, (message) =>
        channel.postMessage(this.#private("tab", server.term, line, { kind: "carry", message })),
      );
      this.#watch(tab, follower.watch.signal);
    }
    follower.channel.postMessage(this.#private("tab", server.term, line, { kind: "attached" }));
  }

  /** The lock that a tab lives by becomes free with its end. */
  #watch(tab: string, signal: AbortSignal): void {
    this.#parts.tabs?.locks
      .request(this.#aliveLock(tab), { signal }, () => this.#dismiss(tab))
      .catch((thrown: unknown) => {
        if (!signal.aborted) this.#parts.log.error("a tab cannot be watched", thrown);
      });
  }

  #heard(tab: string, message: Private): void {
    if (message?.relaysync !== version || message.to !== "leader" || message.term !== this.#server?.term) return;
    if (message.line !== this.#followers.get(tab)?.line) return;
    if (message.kind === "detach") this.#dismiss(tab);
    else if (message.kind === "carry") this.#server.receive(tab, message.message as ToServer);
  }

  #dismiss(tab: string): void {
    const follower = this.#followers.get(tab);
    if (follower === undefined) return;
    this.#followers.delete(tab);
    follower.watch.abort();
    follower.channel.onmessage = null;
    follower.channel.close();
    this.#server?.detach(tab);
  }

  // As follower.

  #follow(term: string): void {
    const { tabs, tab } = this.#parts;
    if (tabs === undefined || this.#left) return;
    if (this.#past.includes(term)) return;
    if (this.#line?.term !== term) {
      if (this.#line !== undefined) this.#past = [...this.#past, this.#line.term].slice(-pastMax);
      this.#hangUp();
      const channel = tabs.channel(this.#aliveLock(tab));
      this.#line = { channel, term, number: ++this.#lines, attached: false };
      channel.onmessage = ({ data }) => this.#told(term, data as Private);
    }
    // With each sign of life, until the leader has answered.
    if (!this.#line.attached)
      this.#door?.postMessage({ relaysync: version, kind: "knock", from: tab, term, line: this.#line.number } satisfies Knock);
  }

  #told(term: string, message: Private): void {
    const line = this.#line;
    if (message?.relaysync !== version || message.to !== "tab" || message.term !== term || line?.term !== term) return;
    if (message.line !== line.number) return;
    if (message.kind === "attached" && !line.attached) {
      line.attached = true;
      this.#serve(term, false);
    } else if (message.kind === "carry") {
      this.#parts.port.send(message.message as ToClient);
    }
  }

  #hangUp(): void {
    const line = this.#line;
    this.#line = undefined;
    if (line === undefined) return;
    line.channel.postMessage(this.#private("leader", line.term, line.number, { kind: "detach" }));
    line.channel.onmessage = null;
    line.channel.close();
  }

  // What the tab says.

  #receive(message: ToStation): void {
    switch (message.type) {
      case "pause":
        return void this.#pause();
      case "resume":
        return this.#resume();
      case "leave":
        return void this.#leave();
      default:
        return this.#pass(message);
    }
  }

  async #pause(): Promise<void> {
    this.#paused = true;
    await this.#election?.stop();
    if (this.#paused) this.#hangUp();
  }

  #resume(): void {
    this.#paused = false;
    if (this.#election === undefined) this.#server?.wake();
    else this.#election.start();
  }

  #pass(message: ToServer): void {
    if (this.#server !== undefined) return this.#server.receive(this.#parts.tab, message);
    const line = this.#line;
    // Without a server, what is said is lost: the tab says it again when there is one.
    if (line?.attached) line.channel.postMessage(this.#private("leader", line.term, line.number, { kind: "carry", message }));
  }

  async #leave(): Promise<void> {
    if (!this.#left) await this.#letGo();
    this.#parts.port.send({ type: "left" });
    this.#parts.ended();
  }

  async #letGo(): Promise<void> {
    this.#left = true;
    clearTimeout(this.#waiting);
    this.#hangUp();
    await this.#election?.close();
    await this.#depose();
    this.#releaseSole?.();
    this.#releaseAlive?.();
    if (this.#door !== undefined) this.#door.onmessage = null;
    this.#door?.close();
  }

  #fail(thrown: unknown): void {
    if (this.#left) return;
    void this.#letGo();
    this.#parts.port.send({ type: "failed", error: toWire(thrown) });
  }

  #private(
    to: Private["to"],
    term: string,
    line: number,
    rest: { kind: "attached" | "detach" } | { kind: "carry"; message: ToServer | ToClient },
  ): Private {
    return { relaysync: version, to, term, line, ...rest };
  }
}
