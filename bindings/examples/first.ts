import { open } from "relaysync";

const db = await open({ relays: ["wss://relay.damus.io", "wss://nos.lol"] });
const job = db.sync({ kinds: [1], authors: ["82341f882b6eabcd2ba7f1ef90aad961cf074af15b9ef44a09f9d2a8fbfbe6a2"] });
for await (const { event, relay } of job) console.log(relay, event.content);
const { complete, relays } = await job.done;
console.log(complete ? "all of it" : relays.flatMap(({ url, gaps }) => gaps.map(({ message }) => `${url}: ${message}`)));
