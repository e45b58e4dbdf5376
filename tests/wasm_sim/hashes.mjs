// Prints `SEED HASH` for each seed from 0 up to COUNT, as `relaysync sim --hashes --seeds COUNT` does.
//
//     node hashes.mjs MODULE.wasm COUNT
import { readFile } from "node:fs/promises";

const [path, count] = process.argv.slice(2);
if (path === undefined || !/^[0-9]+$/.test(count ?? "")) {
  console.error("usage: node hashes.mjs MODULE.wasm COUNT");
  process.exit(2);
}
const module = await WebAssembly.compile(await readFile(path));

/** A module of its own for each seed: what a panic leaves behind is of no use to the next. */
async function play(seed) {
  const { play, text, memory } = (await WebAssembly.instantiate(module, {})).exports;
  const said = () => {
    const place = BigInt.asUintN(64, text());
    return new TextDecoder().decode(new Uint8Array(memory.buffer, Number(place >> 32n), Number(place & 0xffff_ffffn)));
  };
  try {
    return { passed: play(seed) === 1, text: said() };
  } catch (trap) {
    return { passed: false, text: `seed ${seed}: ${trap}: ${said()}` };
  }
}

for (let seed = 0n; seed < BigInt(count); seed += 1n) {
  const { passed, text } = await play(seed);
  if (passed) {
    console.log(text);
  } else {
    console.error(text);
    process.exitCode = 1;
  }
}
