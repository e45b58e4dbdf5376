// How many signatures the package's own verification checks in a second, with nothing else to do: the most that a sync
// could do on this machine, with as many workers as it uses.

import { browser } from '../../tests/page/support/browser.mjs';
import { readEvents } from '../../tests/page/support/events.mjs';
import { site } from '../../tests/page/support/site.mjs';

const BATCH_EVENTS = 500;
const EVENTS = 10_000;

/**
 * @param {{ folders: Record<string, string>, sample: { path: string } }} options `folders`: as the contender's site has it
 * @returns {Promise<{ workers: number, perSecond: number }>}
 */
export async function signatureLimit({ folders, sample }) {
  const pages = await site({ folders });
  const chromium = await browser();
  try {
    const tab = await chromium.tab(pages.url);
    const events = readEvents(sample.path).slice(0, EVENTS);
    const batch = Buffer.concat(events.map(({ id, pubkey, sig }) => Buffer.from(id + pubkey + sig, 'hex')));
    return await tab.evaluate(checkInPage, { base64: batch.toString('base64'), batchEvents: BATCH_EVENTS });
  } finally {
    await chromium.stop();
    await pages.stop();
  }
}

async function checkInPage({ base64, batchEvents }) {
  const bytes = await (await fetch(`data:application/octet-stream;base64,${base64}`)).arrayBuffer();
  const compiled = await WebAssembly.compileStreaming(fetch('/relaysync/core.wasm'));
  // As many as `open` uses by default.
  const workers = Math.max(1, Math.min(4, navigator.hardwareConcurrency - 1));
  const batches = [];
  for (let begin = 0; begin < bytes.byteLength; begin += batchEvents * 128) batches.push(bytes.slice(begin, begin + batchEvents * 128));
  const pool = await Promise.all(Array.from({ length: workers }, () => started(compiled)));
  // Once to warm up: compilers of WebAssembly have two stages.
  await Promise.all(pool.map((worker) => checked(worker, batches[0])));
  const begun = performance.now();
  const left = [...batches];
  const counts = await Promise.all(pool.map(async (worker) => {
    let genuine = 0;
    for (let batch = left.pop(); batch; batch = left.pop()) {
      genuine += (await checked(worker, batch)).filter((verdict) => verdict === 1).length;
    }
    return genuine;
  }));
  const seconds = (performance.now() - begun) / 1_000;
  const genuine = counts.reduce((sum, count) => sum + count, 0);
  if (genuine !== bytes.byteLength / 128) throw new Error(`${genuine} signatures are genuine`);
  return { workers, perSecond: genuine / seconds };

  async function started(compiled) {
    const worker = new Worker('/relaysync/worker.js', { type: 'module' });
    await answer(worker);
    worker.postMessage({ type: 'verifier', compiled });
    return worker;
  }

  async function checked(worker, batch) {
    const verdicts = answer(worker);
    worker.postMessage({ type: 'verify', batch: new Uint8Array(batch) });
    return (await verdicts).verdicts;
  }

  function answer(worker) {
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error.message)) : resolve(data));
      worker.onerror = (event) => reject(new Error(event.message));
    });
  }
}
