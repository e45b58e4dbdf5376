import { open, RelaySyncError } from "relaysync";
import WebSocket from "ws";
const url = process.argv[2];
const db = await open({ relays: [url], WebSocket, log: "debug" });
console.log(db.mode, db.leading);
const job = db.sync({}, { live: false });
let n = 0; const t = Date.now();
for await (const batch of job.batches()) { n += batch.length; }
const r = await job.done;
console.log(n, Date.now() - t, "ms", r.complete, JSON.stringify(r).slice(0, 900));
console.log(await db.count({}), (await db.query({}, { limit: 1 })).length);
console.log(JSON.stringify(await db.coverage({})), JSON.stringify(await db.relays()), JSON.stringify(await db.storageInfo()));
const text = await new Response(db.export()).text();
console.log(text.split("\n").length, await db.import(text));
await db.close();
console.log("closed");
