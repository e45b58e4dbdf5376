// Starts relays of two makes on free ports, runs a command that finds them in its environment, and stops them again.
//
//     node tests/browser/run.mjs PROGRAM OTHER_RELAY.mjs COMMAND…
//
// PROGRAM is `relaysync`. The command's exit status is this one's.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const READY_TIMEOUT_MS = 60_000;
const [program, otherRelay, ...command] = process.argv.slice(2);
if (command.length === 0) {
  console.error("usage: node run.mjs PROGRAM OTHER_RELAY.mjs COMMAND…");
  process.exit(2);
}

/** Starts a relay; it ends with its standard input, or by its process id. Gives it and its URL. */
function start(command, ready) {
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "pipe"] });
  const said = [];
  const url = new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`${command[0]} ${why}:\n${said.slice(-20).join("\n")}`));
    const timer = setTimeout(() => fail("was not ready in time"), READY_TIMEOUT_MS);
    const read = (line) => {
      said.push(line);
      const found = ready.exec(line);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[1].replace(/\/$/, ""));
    };
    for (const output of [child.stdout, child.stderr]) createInterface({ input: output }).on("line", read);
    child.once("error", reject);
    child.once("exit", (status) => fail(`ended with ${status}`));
  });
  return { child, url };
}

const folder = mkdtempSync(join(tmpdir(), "relaysync-browser-"));
const relays = [
  start([program, "serve", "--listen", "127.0.0.1:0", "--store", join(folder, "events.db")], /listening on (ws:\S+)/),
  start(["node", otherRelay, "--port", "0"], /^(ws:\S+)/),
];
try {
  const [own, other] = await Promise.all(relays.map(({ url }) => url));
  const environment = { ...process.env, RELAYSYNC_TEST_OWN_RELAY: own, RELAYSYNC_TEST_OTHER_RELAY: other };
  process.exitCode = await new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), { stdio: "inherit", env: environment });
    child.once("error", reject);
    child.once("exit", (status) => resolve(status ?? 1));
  });
} finally {
  const alive = relays.filter(({ child }) => child.exitCode === null && child.signalCode === null);
  await Promise.all(alive.map(({ child }) => new Promise((resolve) => child.once("exit", resolve) && child.kill("SIGTERM"))));
  rmSync(folder, { recursive: true, force: true });
}
