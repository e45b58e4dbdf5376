/** One open database and the tabs that use it. */
import type { Core, CoreHost, CoreOpener, CoreStatus } from "../core.js";
import type { Config } from "../config.js";
import { RelaySyncError, asError, fromWire, toWire } from "../errors.js";
import type { Log } from "../log.js";
import type { Outcome, Question, ToClient, ToServer } from "../messages.js";
import type { WebSocketLike } from "../options.js";
import { within } from "../time.js";

/** What the server needs beside the core. */
export interface ServerParts {
  /** This time as leader. */
  readonly term: string;
  readonly config: Config;
  readonly log: Log;
  /** Checks signatures elsewhere, if there is an elsewhere. */
  readonly verify?: (batch: Uint8Array) => Promise<Uint8Array>;
  /** A constructor other than the global one. */
  readonly WebSocket?: new (url: string) => WebSocketLike;
  /** Can tabs sign at all? */
  readonly signs: boolean;
  /** The database was opened elsewhere. Said once. */
  readonly deposed: () => void;
}

/** A tab that uses the database. */
interface Session {
  readonly send: (message: ToClient) => void;
  /** Its jobs and watches, and how each is ended. */
  readonly begun: Map<string, "stop" | "unwatch">;
  calls: number;
  /** The tab is gone: nothing can be sent to it. */
  gone: boolean;
}

/** Serves calls of any number of tabs. */
export class Server {
  readonly #parts: ServerParts;
  readonly #sessions = new Map<string, Session>();
  readonly #questions = new Map<number, (outcome: Outcome) => void>();
  #core: Core | undefined;
  #questionCount = 0;
  #ended = false;

  private constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** Opens the database. */
  static async open(opener: CoreOpener, parts: ServerParts): Promise<Server> {
    const server = new Server(parts);
    server.#core = await opener(server.#host());
    return server;
  }

  /** This time as leader. */
  get term(): string {
    return this.#parts.term;
  }

  /** From now on this tab is served, by way of `send`. */
  attach(tab: string, send: (message: ToClient) => void): void {
    if (!this.#sessions.has(tab)) this.#sessions.set(tab, { send, begun: new Map(), calls: 0, gone: false });
  }

  /** The tab is gone: its jobs end. */
  detach(tab: string): void {
    const session = this.#sessions.get(tab);
    if (session === undefined) return;
    this.#sessions.delete(tab);
    session.gone = true;
    for (const [id, method] of session.begun) {
      this.#core?.call({ method, id }).catch((thrown: unknown) => {
        if (asError(thrown).code !== "unknown-job")
          this.#parts.log.warn(`a job of a tab that is gone did not end`, thrown);
      });
    }
  }

  /** What a tab has sent. */
  receive(tab: string, message: ToServer): void {
    if (message.type === "answer") {
      this.#questions.get(message.id)?.(message);
      return;
    }
    const session = this.#sessions.get(tab);
    if (session !== undefined && message.term === this.term) void this.#serve(session, message);
  }

  /** The machine has slept, or somebody looks: connections are probed. */
  wake(): void {
    this.#core
      ?.call({ method: "wake" })
      .catch((thrown: unknown) => this.#parts.log.warn("connections were not probed", thrown));
  }

  /** Stores what has arrived, and ends. Whoever waits for an answer gets none: another server will give it. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#sessions.clear();
    const core = this.#core;
    if (core === undefined) return;
    try {
      await within(core.call({ method: "close" }), this.#parts.config.closeMs, "closing the database");
      core.free();
    } catch (thrown) {
      this.#parts.log.warn("the database did not close cleanly; what was stored is safe", thrown);
    }
  }

  async #serve(session: Session, { id, request }: Extract<ToServer, { type: "call" }>): Promise<void> {
    const outcome = await this.#outcome(session, request);
    if (!this.#ended && !session.gone && outcome !== undefined) session.send({ type: "result", term: this.term, id, ...outcome });
  }

  /** What a call comes to; nothing if this server is overtaken, since another one will answer. */
  async #outcome(session: Session, request: Parameters<Core["call"]>[0]): Promise<Outcome | undefined> {
    if (this.#core === undefined || session.calls >= this.#parts.config.callsMax) {
      return {
        error: toWire(new RelaySyncError("too-many", "too many calls wait for an answer", { retryable: true })),
      };
    }
    session.calls += 1;
    note(session.begun, request);
    try {
      const result = await this.#core.call(request);
      if (request.method === "settled" && request.moment === "done") session.begun.delete(request.id);
      return { result };
    } catch (thrown) {
      const error = toWire(thrown);
      if (error.code !== "deposed") return { error };
      this.#overtaken();
      return undefined;
    } finally {
      session.calls -= 1;
    }
  }

  #overtaken(): void {
    if (!this.#ended) this.#parts.deposed();
  }

  #host(): CoreHost {
    const { verify, WebSocket: Constructor, signs } = this.#parts;
    return {
      ...(verify === undefined ? {} : { verify }),
      ...(Constructor === undefined ? {} : { webSocket: (url: string) => new Constructor(url) }),
      ...(signs ? this.#signing() : {}),
      status: (status) => this.#tell(status),
    };
  }

  #signing(): Required<Pick<CoreHost, "sign" | "publicKey">> {
    return {
      sign: (event, relay) => this.#ask({ what: "sign", event, relay }),
      publicKey: () => this.#ask({ what: "publicKey" }),
    };
  }

  #tell(status: CoreStatus): void {
    if (status.type === "storage" && status.state === "deposed") {
      this.#overtaken();
      return;
    }
    for (const { send } of this.#sessions.values()) send({ type: "status", status });
  }

  /** Asks tab after tab, that of this very server first, until one has a signer. */
  async #ask(question: Question): Promise<string> {
    for (const session of [...this.#sessions.values()]) {
      const outcome = await this.#put(session, question);
      if ("result" in outcome) return String(outcome.result);
      if (outcome.error.code !== "no-signer") throw fromWire(outcome.error);
    }
    throw new RelaySyncError("no-signer", "a relay asks for a signature, and no open tab has a signer");
  }

  async #put(session: Session, question: Question): Promise<Outcome> {
    const id = ++this.#questionCount;
    try {
      const answer = new Promise<Outcome>((resolve) => this.#questions.set(id, resolve));
      session.send({ type: "ask", id, question });
      return await within(answer, this.#parts.config.signMs, "the signer");
    } catch (thrown) {
      return { error: toWire(thrown) };
    } finally {
      this.#questions.delete(id);
    }
  }
}

/** Remembers what a tab has begun, until it has ended it. */
function note(begun: Session["begun"], request: Parameters<Core["call"]>[0]): void {
  if (request.method === "job" || request.method === "repos") begun.set(request.id, "stop");
  else if (request.method === "watch") begun.set(request.id, "unwatch");
  else if (request.method === "stop" || request.method === "unwatch") begun.delete(request.id);
}
