/** What a tab and whoever serves it say to each other, over whatever lies between. */
import type { CoreStatus, Request } from "./core.js";
import type { WireError } from "./errors.js";

/** To the server. A `term` is one tab's time as leader: what was meant for another is not for this one. */
export type ToServer =
  | { readonly type: "call"; readonly term: string; readonly id: number; readonly request: Request }
  | ({ readonly type: "answer"; readonly id: number } & Outcome);

/** To the tab. */
export type ToClient =
  | ({ readonly type: "result"; readonly term: string; readonly id: number } & Outcome)
  | { readonly type: "ask"; readonly id: number; readonly question: Question }
  | { readonly type: "status"; readonly status: CoreStatus };

/** How a call ended. */
export type Outcome = { readonly result: unknown } | { readonly error: WireError };

/** What only a tab can do, since only a page has `window.nostr`. */
export type Question =
  { readonly what: "sign"; readonly event: string; readonly relay: string } | { readonly what: "publicKey" };

/** From a tab to its own station only. */
export type ToStation =
  | ToServer
  /** Goes out of the way: the page is frozen or put aside, and another tab can lead meanwhile. */
  | { readonly type: "pause" }
  | { readonly type: "resume" }
  | { readonly type: "leave" };

/** From a station to its own tab only. */
export type FromStation =
  | ToClient
  /**
   * There is a server: calls can be sent. Everything that ran has to be begun anew, at the same server, too, if the `line`
   * is another: with each end of a line the server ends what its tab had begun.
   */
  | { readonly type: "leader"; readonly term: string; readonly line: number; readonly leading: boolean }
  /** There will be none. */
  | { readonly type: "failed"; readonly error: WireError }
  /** All is stored and closed. */
  | { readonly type: "left" };

/** Two ends that speak to each other. Messages are handled in order, and none while another is. */
export interface Port<In, Out> {
  /** Handles what arrives. Set once, before anything can arrive. */
  receive: (message: In) => void;
  send(message: Out): void;
  close(): void;
}

/** Two ends in the same thread. */
export function portPair<A, B>(): [Port<A, B>, Port<B, A>] {
  let open = true;
  const end = <In, Out>(): Port<In, Out> => ({
    receive: () => undefined,
    send: () => undefined,
    close: () => void (open = false),
  });
  const [left, right] = [end<A, B>(), end<B, A>()];
  left.send = (message) => queueMicrotask(() => open && right.receive(message));
  right.send = (message) => queueMicrotask(() => open && left.receive(message));
  return [left, right];
}

/** An end whose other end is in another thread. */
export function portOver<In, Out>(target: MessagePort | Worker | DedicatedWorkerGlobalScopeLike): Port<In, Out> {
  const port: Port<In, Out> = {
    receive: () => undefined,
    send: (message) => target.postMessage(message),
    close: () => {
      target.onmessage = null;
      if ("close" in target && "start" in target) target.close();
    },
  };
  target.onmessage = (event: MessageEvent) => port.receive(event.data as In);
  return port;
}

/** What is used of a worker's global scope. */
export interface DedicatedWorkerGlobalScopeLike {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: unknown): void;
}
