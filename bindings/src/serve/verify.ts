/** Workers that do nothing but check signatures, begun when there is work and ended when there is none. */
import type { Config } from "../config.js";
import type { Log } from "../log.js";

/** Bytes of an event in a batch: id, public key and signature. */
export const eventBytes = 128;

/** What is used of a worker. */
export type VerifyWorker = Pick<Worker, "postMessage" | "terminate" | "onmessage" | "onerror">;

interface Share {
  readonly batch: Uint8Array;
  readonly resolve: (verdicts: Uint8Array) => void;
}

/** Spreads batches over workers; what a worker fails to check is checked here. */
export class VerifyPool {
  readonly #spawn: () => VerifyWorker;
  readonly #here: (batch: Uint8Array) => Uint8Array;
  readonly #workersMax: number;
  readonly #config: Config;
  readonly #log: Log;
  readonly #idle: VerifyWorker[] = [];
  readonly #busy = new Map<VerifyWorker, Share>();
  readonly #queue: Share[] = [];
  #rest: ReturnType<typeof setTimeout> | undefined;
  #broken = false;

  constructor(
    spawn: () => VerifyWorker,
    here: (batch: Uint8Array) => Uint8Array,
    workersMax: number,
    config: Config,
    log: Log,
  ) {
    this.#spawn = spawn;
    this.#here = here;
    this.#workersMax = workersMax;
    this.#config = config;
    this.#log = log;
  }

  /** One byte an event, 1 for a genuine signature. */
  async verify(batch: Uint8Array): Promise<Uint8Array> {
    const events = Math.floor(batch.length / eventBytes);
    if (this.#broken || events < this.#config.verifyEventsMin) return this.#here(batch);
    const shares = Math.min(this.#workersMax, Math.ceil(events / this.#config.verifyEventsMin));
    const perShare = Math.ceil(events / shares);
    const verdicts = new Uint8Array(events);
    const parts = Array.from({ length: shares }, async (_, at) => {
      const part = batch.slice(at * perShare * eventBytes, (at + 1) * perShare * eventBytes);
      if (part.length > 0) verdicts.set(await this.#share(part), at * perShare);
    });
    await Promise.all(parts);
    return verdicts;
  }

  /** Ends the workers; what they were at is done here. */
  close(): void {
    clearTimeout(this.#rest);
    for (const worker of this.#idle.splice(0)) worker.terminate();
    for (const [worker, share] of [...this.#busy]) this.#discard(worker, share);
  }

  #share(batch: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve) => {
      this.#queue.push({ batch, resolve });
      this.#work();
    });
  }

  #work(): void {
    clearTimeout(this.#rest);
    while (this.#queue.length > 0) {
      const worker = this.#idle.pop() ?? this.#another();
      if (worker === undefined) break;
      const share = this.#queue.shift() as Share;
      this.#busy.set(worker, share);
      worker.postMessage({ type: "verify", batch: share.batch });
    }
    if (this.#broken && this.#busy.size === 0)
      for (const share of this.#queue.splice(0)) share.resolve(this.#here(share.batch));
    if (this.#busy.size === 0) this.#rest = setTimeout(() => this.close(), this.#config.verifyIdleMs);
  }

  #another(): VerifyWorker | undefined {
    if (this.#broken || this.#busy.size >= this.#workersMax) return undefined;
    try {
      const worker = this.#spawn();
      this.#log.debug("a worker for signatures begins");
      worker.onmessage = ({ data }: MessageEvent) => this.#done(worker, data as { readonly verdicts?: Uint8Array });
      worker.onerror = () => this.#failed(worker);
      return worker;
    } catch (thrown) {
      this.#broken = true;
      this.#log.warn("no workers for signatures can be had: they are checked in one thread", thrown);
      return undefined;
    }
  }

  #done(worker: VerifyWorker, { verdicts }: { readonly verdicts?: Uint8Array }): void {
    const share = this.#busy.get(worker);
    if (share === undefined) return;
    if (verdicts?.length !== share.batch.length / eventBytes) return this.#failed(worker);
    this.#busy.delete(worker);
    this.#idle.push(worker);
    share.resolve(verdicts);
    this.#work();
  }

  #failed(worker: VerifyWorker): void {
    this.#broken = true;
    this.#log.warn("a worker for signatures failed: they are checked in one thread");
    const share = this.#busy.get(worker);
    if (share !== undefined) this.#discard(worker, share);
    this.#work();
  }

  #discard(worker: VerifyWorker, share: Share): void {
    worker.terminate();
    this.#busy.delete(worker);
    share.resolve(this.#here(share.batch));
  }
}
