import { open, type NostrEvent } from "relaysync";

/** Everything else, once. */
export async function tour(signed: NostrEvent): Promise<void> {
  await using db = await open({ name: "tour", relays: ["wss://relay.ngit.dev"], bytesMax: 200_000_000 });

  db.addEventListener("relay", ({ detail }) => console.log(detail.url, detail.health));
  db.addEventListener("storage", ({ detail }) => console.log("storage:", detail.state, detail.message));
  db.addEventListener("error", ({ detail }) => console.error(detail.code, detail.message));

  const { relays } = await db.publish(signed, { timeoutMs: 5_000 });
  for (const { relay, accepted, reason } of relays) console.log(relay, accepted, reason);

  const repos = db.repos({ authors: [signed.pubkey] });
  for await (const report of repos.progress()) {
    console.log(report.counts.stored, report.relays.length);
    if (report.state === "caughtUp") break;
  }
  await repos.stop();

  const [covered] = await db.coverage({ kinds: [30617] });
  console.log(covered?.complete, covered?.gaps);
  const { usageBytes, quotaBytes, persisted } = await db.storageInfo();
  if (persisted === false) await db.persist();
  console.log(usageBytes, quotaBytes);

  const backup = await new Response(db.export()).blob();
  console.log((await db.import(backup)).duplicate);
}
