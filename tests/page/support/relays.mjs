// Relays as processes of their own. Each is stopped by its process id.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';

import { cached, root } from './cache.mjs';

const READY_TIMEOUT_MS = 180_000;

/** Our program: built by the tests' caller. */
export function program() {
  return process.env.RELAYSYNC_PROGRAM ?? join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'debug/relaysync');
}

/**
 * Our relay service on a free port.
 *
 * @param {{ load?: string, arguments?: string[], port?: number }} options `load`: a file of events to begin with
 */
export async function ownRelay({ load, arguments: extra = [], port = 0 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'relaysync-page-'));
  const store = join(folder, 'events.db');
  if (load) copyFileSync(await storeOf(load), store);
  const command = [program(), 'serve', '--listen', `127.0.0.1:${port}`, '--store', store, ...extra];
  const relay = await start(command, /listening on (ws:\S+)/, folder);
  // Under the same URL and with the same store, once it was stopped.
  relay.again = () => restart(relay, command);
  relay.import = (events) => importInto(store, events);
  return relay;
}

/** A relay of another make: of the npm packages `@nostr-relay/*` (no NIP-77), or of rust-nostr (NIP-77). */
export async function otherRelay(make, { load, pageCap } = {}) {
  const built = spawnSync(join(root, 'tests/peers/build.sh'), [make], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  if (built.status !== 0) throw new Error(`the ${make} peers cannot be built`);
  const folder = built.stdout.trim();
  const command = make === 'npm' ? ['node', join(folder, 'relay.mjs')] : [join(folder, 'rust-nostr-relay')];
  command.push('--port', '0');
  if (load) command.push('--load', load);
  if (pageCap) command.push('--page-cap', String(pageCap));
  return start(command, /^(ws:\S+)/);
}

async function start(command, ready, folder) {
  const child = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'pipe'] });
  const words = [];
  const url = await readyUrl(child, ready, words);
  const relay = { url: url.replace(/\/$/, ''), child, words, folder };
  relay.pause = () => relay.child.kill('SIGSTOP');
  relay.resume = () => relay.child.kill('SIGCONT');
  relay.halt = () => end(relay.child);
  relay.stop = async () => {
    await end(relay.child);
    if (folder) rmSync(folder, { recursive: true, force: true });
  };
  return relay;
}

async function restart(relay, command) {
  const again = [...command];
  again[again.indexOf('--listen') + 1] = new URL(relay.url).host;
  relay.child = spawn(again[0], again.slice(1), { stdio: ['pipe', 'pipe', 'pipe'] });
  await readyUrl(relay.child, /listening on (ws:\S+)/, relay.words);
}

function readyUrl(child, ready, words) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`a relay was not ready in time: ${words.join('\n')}`)), READY_TIMEOUT_MS);
    const read = (line) => {
      words.push(line);
      // What a test needs of a long log is its end.
      if (words.length > 200) words.shift();
      const found = ready.exec(line);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[1]);
    };
    createInterface({ input: child.stdout }).on('line', read);
    createInterface({ input: child.stderr }).on('line', read);
    child.once('exit', (status) => reject(new Error(`a relay ended with ${status}: ${words.join('\n')}`)));
    child.once('error', reject);
  });
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  // A stopped process takes no other signal.
  child.kill('SIGCONT');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await ended;
  clearTimeout(timer);
}

/** A store that has the events of a file, kept in the cache. */
async function storeOf(events) {
  return cached(`${basename(events, '.jsonl')}.db`, async (unfinished) => importFile(unfinished, events));
}

function importFile(store, events) {
  const done = spawnSync('sh', ['-c', 'exec "$0" import --no-verify --store "$1" < "$2"', program(), store, events], { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`events cannot be imported: ${done.stderr ?? done.error}`);
}

/** Adds events to the store of a relay that was halted. */
function importInto(store, events) {
  const file = `${store}.jsonl`;
  writeFileSync(file, events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  importFile(store, file);
}
