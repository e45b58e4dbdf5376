// A relay without NIP-77 and with pages of 100 events, made of the npm packages @nostr-relay/*. Prints its URL when
// ready, then obeys lines on standard input, answering each with one line: `dump FILE` writes all events, `load FILE`
// adds events. It ends when standard input does.
//
//     node relay.mjs [--port N] [--page-cap EVENTS] [--load FILE]

import { once } from 'node:events';
import { closeSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { LogLevel } from '@nostr-relay/common';
import { NostrRelay } from '@nostr-relay/core';
import { EventRepositorySqlite } from '@nostr-relay/event-repository-sqlite';
import { Validator } from '@nostr-relay/validator';
import { WebSocketServer } from 'ws';

const DELETION = 5;

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    'page-cap': { type: 'string' },
    load: { type: 'string' },
  },
});

const repository = new EventRepositorySqlite(':memory:');
await repository.init();
if (options['page-cap']) {
  // The largest page is ten times the default one, unless told otherwise.
  repository.setDefaultLimit(Number(options['page-cap']));
  repository.maxLimit = Number(options['page-cap']);
}
if (options.load) {
  await load(options.load);
}

// Answers to filters are cached for a second by default: a second look would not see what came in between.
const relay = new NostrRelay(repository, { filterResultCacheTtl: 0, logLevel: LogLevel.ERROR });
const validator = new Validator();
const server = new WebSocketServer({ host: '127.0.0.1', port: Number(options.port) });
server.on('connection', serve);
await once(server, 'listening');
console.log(`ws://127.0.0.1:${server.address().port}`);

for await (const line of createInterface({ input: process.stdin })) {
  const [command, path] = [line.slice(0, 4), line.slice(5)];
  if (command === 'dump') console.log(`dumped ${dump(path)}`);
  else if (command === 'load') console.log(`loaded ${await load(path)}`);
  else throw new Error(`unknown command ${JSON.stringify(line)}`);
}
process.exit(0);

function serve(socket) {
  relay.handleConnection(socket);
  socket.on('message', async (data) => {
    try {
      await relay.handleMessage(socket, await validator.validateIncomingMessage(data));
    } catch (error) {
      socket.send(JSON.stringify(['NOTICE', error.message]));
    }
  });
  socket.on('close', () => relay.handleDisconnect(socket));
  socket.on('error', (error) => console.error(error.message));
}

// Straight into the repository, as the relay would after its checks: signatures take it 4 ms each. Like the relay, it
// carries deletions out but does not keep them.
async function load(path) {
  let taken = 0;
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '') continue;
    const event = JSON.parse(line);
    if (event.kind === DELETION) await repository.deleteByDeletionRequest(event);
    else if (!(await repository.upsert(event)).isDuplicate) taken += 1;
  }
  return taken;
}

function dump(path) {
  const unfinished = `${path}.part`;
  const file = openSync(unfinished, 'w');
  let dumped = 0;
  const columns = 'id, pubkey, created_at, kind, tags, content, sig';
  for (const row of repository.getDatabase().prepare(`SELECT ${columns} FROM events`).iterate()) {
    writeSync(file, `${JSON.stringify({ ...row, tags: JSON.parse(row.tags) })}\n`);
    dumped += 1;
  }
  closeSync(file);
  renameSync(unfinished, path);
  return dumped;
}
