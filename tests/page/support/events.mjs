// Generated events with genuine signatures. The same numbers always give the same ids.

import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { initNostrWasm } from 'nostr-wasm/gzipped';

import { cached } from './cache.mjs';

const YEAR_BEGIN_SECS = 1_704_067_200;
const YEAR_SECS = 366 * 86_400;
const AUTHORS = 50;
/** Raise it when events are made in another way: files in the cache are named after it. */
const VERSION = 2;
const WORDS = 'relay event note key sign zap thread reply list follow git patch issue fork merge tag late early gap'.split(' ');

/** The second that has `burst` of the events of {@link sample}. */
export const BURST_SECS = YEAR_BEGIN_SECS + 200 * 86_400;

/**
 * Events of regular kinds (notes, reactions, comments), so that a store keeps all of them, spread over a year, with
 * `burst` of them in one second.
 *
 * @param {{ events: number, burst?: number, seed?: number }} options
 * @returns {Promise<{ path: string, events: number }>} a file of one event a line as JSON
 */
export async function sample({ events, burst = 0, seed = 1 }) {
  const name = `page-events-${VERSION}-${events}-${burst}-${seed}.jsonl`;
  const path = await cached(name, async (unfinished) => {
    const signer = await initNostrWasm();
    const dice = diceOf(seed);
    const authors = Array.from({ length: AUTHORS }, (_, index) => secretKey(`${seed}:${index}`));
    const file = openSync(unfinished, 'w');
    let before = '0'.repeat(64);
    for (let index = 0; index < events; index += 1) {
      const event = draft(dice, index, index < burst, before);
      signer.finalizeEvent(event, authors[dice(AUTHORS)], new Uint8Array(32));
      before = event.id;
      writeSync(file, `${JSON.stringify(event)}\n`);
    }
    closeSync(file);
  });
  return { path, events };
}

/** The events of a file. */
export function readEvents(path) {
  return readFileSync(path, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

/** A signer of single events: `sign({ kind, created_at, tags, content })` gives the event, whole and genuine. */
export async function newSigner(name) {
  const signer = await initNostrWasm();
  const key = secretKey(name);
  return (fields) => {
    const event = { pubkey: '', id: '', sig: '', tags: [], content: '', ...fields };
    signer.finalizeEvent(event, key, new Uint8Array(32));
    return event;
  };
}

function draft(dice, index, inBurst, before) {
  const kind = [1, 1, 1, 1, 1, 7, 7, 1111][dice(8)];
  const created_at = inBurst ? BURST_SECS : YEAR_BEGIN_SECS + dice(YEAR_SECS);
  const words = Array.from({ length: kind === 7 ? 1 : 6 + dice(60) }, () => WORDS[dice(WORDS.length)]);
  const tags = kind === 1 && dice(2) === 0 ? [] : [['e', before], ['p', before]];
  if (dice(4) === 0) tags.push(['t', WORDS[dice(WORDS.length)]]);
  return { kind, created_at, tags, content: `${words.join(' ')} ${index}`, pubkey: '', id: '', sig: '' };
}

function secretKey(name) {
  return new Uint8Array(createHash('sha256').update(`page tests ${name}`).digest());
}

// Mulberry32: small, and good enough to spread events.
function diceOf(seed) {
  let state = seed >>> 0;
  return (sides) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) % sides);
  };
}
