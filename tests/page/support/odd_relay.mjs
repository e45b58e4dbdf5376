// A relay that misbehaves as relays do, in this process. It checks nothing that it is told.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

/** How a relay refuses set reconciliation (NIP-77): its answer to `NEG-OPEN`, or none at all. */
export const REFUSALS = {
  silence: () => undefined,
  notice: () => ['NOTICE', 'ERROR: bad msg: unknown cmd'],
  closed: (id) => ['CLOSED', id, 'unsupported: no negentropy here'],
  blocked: (id) => ['NEG-ERR', id, 'blocked: this query is too big'],
};

/**
 * @param {object} options
 * @param {object[]} options.events what it has
 * @param {number} [options.pageEventsMax] events of a page, at most
 * @param {keyof REFUSALS} [options.refusal] how it refuses NIP-77
 * @param {boolean} [options.claims77] its information document (NIP-11) says that it speaks NIP-77
 * @param {number} [options.dropEvery] it cuts the connection after so many events…
 * @param {number} [options.drops] …so many times
 * @param {number} [options.answerMs] it answers so late
 * @param {number} [options.subscriptionsMax] subscriptions open at once; further ones are refused
 */
export async function oddRelay(options) {
  const newestFirst = [...options.events].sort((one, other) => other.created_at - one.created_at || (one.id < other.id ? -1 : 1));
  const relay = { options, newestFirst, requests: [], eventsSent: 0, dropsLeft: options.drops ?? 0, sockets: new Set() };
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/nostr+json', 'access-control-allow-origin': '*' });
    response.end(JSON.stringify(information(options)));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => serve(relay, socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  relay.url = `ws://127.0.0.1:${server.address().port}`;
  relay.add = (event) => add(relay, event);
  relay.stop = async () => {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
    server.close();
    await once(server, 'close');
  };
  return relay;
}

function information({ claims77 = false, pageEventsMax, subscriptionsMax }) {
  const limitation = { ...(pageEventsMax && { max_limit: pageEventsMax }), ...(subscriptionsMax && { max_subscriptions: subscriptionsMax }) };
  return { name: 'odd', supported_nips: claims77 ? [1, 11, 77] : [1, 11], limitation };
}

function serve(relay, socket) {
  const subscriptions = new Map();
  socket.on('message', (data) => {
    const message = JSON.parse(data);
    relay.requests.push(message);
    const { answerMs = 0 } = relay.options;
    if (answerMs === 0) answer(relay, socket, subscriptions, message);
    else setTimeout(() => answer(relay, socket, subscriptions, message), answerMs);
  });
  relay.sockets.add(subscriptions);
  subscriptions.socket = socket;
  socket.on('close', () => relay.sockets.delete(subscriptions));
  socket.on('error', () => socket.terminate());
}

function answer(relay, socket, subscriptions, [type, id, ...rest]) {
  const { refusal = 'notice', subscriptionsMax = Infinity } = relay.options;
  switch (type) {
    case 'REQ':
      if (subscriptions.size >= subscriptionsMax && !subscriptions.has(id)) return say(socket, ['CLOSED', id, 'error: too many subscriptions']);
      subscriptions.set(id, rest);
      return page(relay, socket, id, rest);
    case 'CLOSE':
      return void subscriptions.delete(id);
    case 'EVENT':
      add(relay, id);
      return say(socket, ['OK', id.id, true, '']);
    case 'NEG-OPEN': {
      const words = REFUSALS[refusal](id);
      return words && say(socket, words);
    }
    case 'NEG-CLOSE':
      return undefined;
    default:
      return say(socket, ['NOTICE', `unknown message ${type}`]);
  }
}

function page(relay, socket, id, filters) {
  const { pageEventsMax = Infinity, dropEvery = Infinity } = relay.options;
  const sent = new Set();
  for (const filter of filters) {
    let left = Math.min(filter.limit ?? Infinity, pageEventsMax);
    for (const event of relay.newestFirst) {
      if (left === 0) break;
      if (!matches(filter, event)) continue;
      left -= 1;
      if (sent.has(event.id)) continue;
      if (relay.dropsLeft > 0 && sent.size >= dropEvery) {
        relay.dropsLeft -= 1;
        return socket.terminate();
      }
      sent.add(event.id);
      relay.eventsSent += 1;
      say(socket, ['EVENT', id, event]);
    }
  }
  return say(socket, ['EOSE', id]);
}

/** A new event, which those hear of who asked for such. */
function add(relay, event) {
  relay.newestFirst.unshift(event);
  relay.newestFirst.sort((one, other) => other.created_at - one.created_at || (one.id < other.id ? -1 : 1));
  for (const subscriptions of relay.sockets) {
    for (const [id, filters] of subscriptions) {
      if (filters.some((filter) => matches(filter, event))) say(subscriptions.socket, ['EVENT', id, event]);
    }
  }
}

function matches(filter, event) {
  if (filter.ids && !filter.ids.includes(event.id)) return false;
  if (filter.authors && !filter.authors.includes(event.pubkey)) return false;
  if (filter.kinds && !filter.kinds.includes(event.kind)) return false;
  if (filter.since !== undefined && event.created_at < filter.since) return false;
  if (filter.until !== undefined && event.created_at > filter.until) return false;
  return Object.entries(filter).every(([name, values]) => {
    if (!name.startsWith('#')) return true;
    return event.tags.some(([tag, value]) => tag === name.slice(1) && values.includes(value));
  });
}

function say(socket, message) {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
}
