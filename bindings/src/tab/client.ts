/** A tab's side of the talk with whoever serves it. It outlives any server. */
import type { CoreStatus, Request } from "../core.js";
import { RelaySyncError, fromWire, toWire, type WireError } from "../errors.js";
import type { FromStation, Outcome, Port, Question, ToStation } from "../messages.js";
import { unlessAborted } from "../time.js";
import { Run } from "./run.js";

/** A call that waits for its answer, from whichever server is there. */
interface Call {
  /** Made when it is sent: a job has another id at each server. */
  readonly request: () => Request;
  /** What it is about; it waits until that has begun. */
  readonly run: Run | undefined;
  /** Handles the answer at once, before anything else can arrive. */
  readonly settle: (outcome: Outcome) => void;
}

/** What a tab does with what it hears. */
export interface ClientEvents {
  leader(leading: boolean): void;
  status(status: CoreStatus): void;
  failed(error: RelaySyncError): void;
  question(question: Question): Promise<string>;
}

/**
 * Sends calls, and sends them again when another tab takes the lead: every call of the core may be repeated. What runs
 * (jobs and watches) is begun anew then, behind the last event that was read.
 */
export class Client {
  readonly #name: string;
  readonly #port: Port<FromStation, ToStation>;
  readonly #events: ClientEvents;
  readonly #calls = new Set<Call>();
  readonly #sent = new Map<number, Call>();
  readonly #runs = new Set<Run>();
  readonly #callsMax: number;
  #term: string | undefined;
  /** The present connection to a server: what runs belongs to it, and not to the server's term. */
  #line: string | undefined;
  #count = 0;
  #ended: RelaySyncError | undefined;
  #left: (() => void) | undefined;

  /** `name` is one that no other tab has. */
  constructor(name: string, port: Port<FromStation, ToStation>, callsMax: number, events: ClientEvents) {
    this.#name = name;
    this.#port = port;
    this.#events = events;
    this.#callsMax = callsMax;
    port.receive = (message) => this.#receive(message);
  }

  /** Calls the core. An abort rejects at once; the call itself may still take effect. */
  call<T>(request: Request, signal?: AbortSignal): Promise<T> {
    return this.#call<T>(
      () => request,
      undefined,
      (result) => result as T,
      signal,
    );
  }

  /** Calls the core about a job or watch. `read` handles the answer before anything else can arrive. */
  callRun<T>(run: Run, method: (id: string) => Request, read: (result: unknown) => T): Promise<T> {
    this.#ensure(run);
    return this.#call<T>(() => method(run.id), run, read, undefined);
  }

  /** Begins a job or watch, here and at every server to come, until it is ended. */
  begin(method: (id: string, after: number | undefined) => Request): Run {
    const run = new Run(method);
    if (this.#ended === undefined) {
      this.#runs.add(run);
      this.#ensure(run);
    }
    return run;
  }

  /** No server to come will hear of it, unless it is called again. */
  forget(run: Run): void {
    this.#runs.delete(run);
  }

  /** To the station only: see {@link ToStation}. */
  notify(type: "pause" | "resume"): void {
    this.#port.send({ type });
  }

  /** Goes. Whoever waits for an answer gets `error`. */
  leave(error: RelaySyncError): Promise<void> {
    return new Promise((resolve) => {
      this.#left = resolve;
      this.#end(error);
      this.#port.send({ type: "leave" });
    });
  }

  #call<T>(
    request: () => Request,
    run: Run | undefined,
    read: (result: unknown) => T,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#calls.size >= this.#callsMax) {
      return Promise.reject(new RelaySyncError("too-many", "too many calls wait for an answer", { retryable: true }));
    }
    let call!: Call;
    const answer = new Promise<T>((resolve, reject) => {
      const settle = (outcome: Outcome): void => {
        if ("error" in outcome) reject(fromWire(outcome.error));
        else resolve(read(outcome.result));
      };
      call = { request, run, settle };
    });
    this.#calls.add(call);
    this.#send(call);
    return unlessAborted(answer, signal).finally(() => this.#calls.delete(call));
  }

  #send(call: Call): void {
    if (this.#term === undefined || (call.run !== undefined && call.run.begunAt !== this.#line)) return;
    if (call.run?.failure !== undefined) {
      call.settle({ error: call.run.failure });
      return;
    }
    const id = ++this.#count;
    this.#sent.set(id, call);
    this.#port.send({ type: "call", term: this.#term, id, request: call.request() });
  }

  /** It has begun at this server, or will have before it is called. */
  #ensure(run: Run): void {
    const [term, line] = [this.#term, this.#line];
    if (term === undefined || line === undefined || run.askedAt === line || this.#ended !== undefined) return;
    run.askedAt = line;
    const request = run.request(`${this.#name}.${++this.#count}`);
    const settle = (outcome: Outcome): void => {
      run.begun(line, outcome);
      for (const call of this.#calls) if (call.run === run) this.#send(call);
      // It was to end where it ran before, and is to end here.
      if (run.stopping && run.failure === undefined) this.#stop(run);
    };
    const id = ++this.#count;
    this.#sent.set(id, { request: () => request, run: undefined, settle });
    this.#port.send({ type: "call", term, id, request });
  }

  #stop(run: Run): void {
    this.#call(() => ({ method: "stop", id: run.id }), run, () => undefined, undefined).catch(() => undefined);
  }

  #receive(message: FromStation): void {
    switch (message.type) {
      case "leader":
        return this.#follow(message.term, message.line, message.leading);
      case "result":
        return this.#answered(message);
      case "status":
        return this.#events.status(message.status);
      case "ask":
        return void this.#answer(message.id, message.question);
      case "failed":
        return this.#fail(fromWire(message.error));
      case "left":
        this.#port.close();
        return this.#left?.();
    }
  }

  /** A new server: what is on the way from the old one counts for nothing. */
  #follow(term: string, line: number, leading: boolean): void {
    if (this.#ended !== undefined) return;
    this.#term = term;
    this.#line = `${term}/${line}`;
    this.#sent.clear();
    for (const run of this.#runs) this.#ensure(run);
    for (const call of this.#calls) {
      if (call.run !== undefined) this.#ensure(call.run);
      this.#send(call);
    }
    this.#events.leader(leading);
  }

  #answered(message: Extract<FromStation, { type: "result" }>): void {
    if (message.term !== this.#term) return;
    const call = this.#sent.get(message.id);
    this.#sent.delete(message.id);
    if (call === undefined) return;
    this.#calls.delete(call);
    call.settle(message);
  }

  async #answer(id: number, question: Question): Promise<void> {
    let outcome: Outcome;
    try {
      outcome = { result: await this.#events.question(question) };
    } catch (thrown) {
      outcome = { error: toWire(thrown) };
    }
    this.#port.send({ type: "answer", id, ...outcome });
  }

  #fail(error: RelaySyncError): void {
    this.#end(error);
    this.#events.failed(error);
  }

  #end(error: RelaySyncError): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    const wire: WireError = toWire(error);
    for (const call of this.#calls) call.settle({ error: wire });
    this.#calls.clear();
    this.#sent.clear();
    this.#runs.clear();
  }
}
