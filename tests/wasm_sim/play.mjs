// Plays the simulation in WebAssembly, with the output of `relaysync sim --hashes` or `relaysync sim --trace`.
//
//     node play.mjs MODULE.wasm COUNT           a line `SEED HASH` for each seed from 0 up to COUNT
//     node play.mjs MODULE.wasm --trace SEED    all that happens in one seed, then that line
import { readFileSync, writeSync } from "node:fs";

const [path, ...what] = process.argv.slice(2);
const traced = what[0] === "--trace";
if (path === undefined || !/^[0-9]+$/.test((traced ? what[1] : what[0]) ?? "")) {
  console.error("usage: node play.mjs MODULE.wasm COUNT | --trace SEED");
  process.exit(2);
}
const module = await WebAssembly.compile(readFileSync(path));

/** A module of its own for each seed: what a panic leaves behind is of no use to the next. */
async function play(seed) {
  const { play, text, memory } = (await WebAssembly.instantiate(module, {})).exports;
  const said = () => {
    const place = BigInt.asUintN(64, text());
    return new TextDecoder().decode(new Uint8Array(memory.buffer, Number(place >> 32n), Number(place & 0xffff_ffffn)));
  };
  try {
    return { passed: play(seed, traced ? 1 : 0) === 1, text: said() };
  } catch (trap) {
    return { passed: false, text: `${said()}seed ${seed} failed: ${trap}\n` };
  }
}

/** All of it, before the process may end. */
function print(fd, text) {
  let bytes = new TextEncoder().encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(writeSync(fd, bytes));
}

const [first, end] = traced ? [BigInt(what[1]), BigInt(what[1]) + 1n] : [0n, BigInt(what[0])];
for (let seed = first; seed < end; seed += 1n) {
  const { passed, text } = await play(seed);
  print(passed || traced ? 1 : 2, text);
  if (!passed) process.exitCode = 1;
}
