/**
 * Notices when connections may be dead without a word: the machine has slept, the network is back, somebody looks
 * again.
 */
import type { Config } from "../config.js";
import type { Machine } from "../time.js";

/** What is done about it. */
export interface Reactions {
  /** Connections are to be probed. */
  wake(): void;
  /** The page is put aside, and nothing in it will run: another tab may lead meanwhile. */
  pause(): void;
  /** It runs again. */
  resume(): void;
}

/** Watches until what this returns is called. Does nothing where there is no page. */
export function attend(machine: Machine, config: Config, { wake, pause, resume }: Reactions): () => void {
  const stopTicking = watchClock(machine, config, wake);
  const page = globalThis.document as Document | undefined;
  if (page === undefined || typeof globalThis.addEventListener !== "function") return stopTicking;
  const off = new AbortController();
  const { signal } = off;
  page.addEventListener("visibilitychange", () => page.visibilityState === "visible" && wake(), { signal });
  page.addEventListener("freeze", pause, { signal });
  page.addEventListener("resume", resume, { signal });
  globalThis.addEventListener("online", wake, { signal });
  globalThis.addEventListener("pagehide", (event) => event.persisted && pause(), { signal });
  globalThis.addEventListener("pageshow", (event) => event.persisted && resume(), { signal });
  return () => {
    stopTicking();
    off.abort();
  };
}

function watchClock(machine: Machine, config: Config, wake: () => void): () => void {
  let last = machine.now();
  return machine.every(config.sleepCheckMs, () => {
    const now = machine.now();
    const late = now - last - config.sleepCheckMs;
    last = now;
    if (late > config.sleepGapMs) wake();
  });
}
