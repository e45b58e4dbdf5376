/** Answers what only a tab can: signatures. */
import { RelaySyncError } from "../errors.js";
import type { Signer, UnsignedEvent } from "../events.js";
import type { Question } from "../messages.js";

/** The answer of the tab's signer. */
export async function answer(question: Question, choice: Signer | "nip07" | undefined): Promise<string> {
  const signer = choice === "nip07" ? (globalThis as { readonly nostr?: Signer }).nostr : choice;
  if (signer === undefined) throw new RelaySyncError("no-signer", "this tab has no signer");
  try {
    if (question.what === "publicKey") return await signer.getPublicKey();
    return JSON.stringify(await signer.signEvent(JSON.parse(question.event) as UnsignedEvent));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const relay = question.what === "sign" ? { relay: question.relay } : {};
    throw new RelaySyncError("signer", `the signer refused: ${why}`, { ...relay, retryable: true, cause });
  }
}
