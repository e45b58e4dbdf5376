#!/usr/bin/env bash
# Builds the WebAssembly core: core.js (an ES module, instantiated by whoever imports it), core.d.ts, core_bg.wasm.
#
#     bash bindings/build-core.sh [FOLDER]    into FOLDER; bindings/core by default
#
# Needs Rust (rustup) and Node, and installs what else is missing: the wasm32 target by rustup, wasm-bindgen and
# wasm-opt into the cache folder.
#
#     RELAYSYNC_CACHE     folder for tools; .cache by default
#     CARGO_TARGET_DIR    folder for build results; target by default
#     WASM_FEATURES       features of the crate besides `browser`, separated by commas
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
  "") folder=$root/bindings/core ;;
  /*) folder=$1 ;;
  *) folder=$PWD/$1 ;;
esac
cd "$root"
# shellcheck source=bindings/tools.sh
source bindings/tools.sh

rustup target add wasm32-unknown-unknown
need_wasm_bindgen
need_wasm_opt
# libsecp256k1 is C: without it, no compiler for C is needed. Nothing calls it, as k256 checks signatures.
cargo rustc --locked --lib --crate-type cdylib --no-default-features --features "browser${WASM_FEATURES:+,$WASM_FEATURES}" \
  --target wasm32-unknown-unknown --profile wasm \
  --config 'target.wasm32-unknown-unknown.rustsecp256k1_v0_10_0.rustc-cfg=["without_c"]'

built=${CARGO_TARGET_DIR:-target}/wasm32-unknown-unknown/wasm/relaysync.wasm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What all browsers of the last years have, and rustc counts on.
features=(--enable-bulk-memory --enable-multivalue --enable-mutable-globals --enable-nontrapping-float-to-int
  --enable-reference-types --enable-sign-ext)

# Its bindings export what needs the C, and nobody here calls: without those exports nothing needs it.
node --input-type=module - "$built" > "$work/graph.json" << 'JS'
import { readFileSync } from "node:fs";
const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const kept = WebAssembly.Module.exports(module).map(({ name }) => name).filter((name) => !name.startsWith("rustsecp256k1_"));
console.log(JSON.stringify([{ name: "outside", root: true, reaches: kept }, ...kept.map((name) => ({ name, export: name }))]));
JS
wasm-metadce "${features[@]}" --graph-file "$work/graph.json" --debuginfo "$built" -o "$work/relaysync.wasm" > /dev/null

mkdir -p "$folder"
wasm-bindgen "$work/relaysync.wasm" --target web --omit-default-module-path --out-dir "$folder" --out-name core
if grep -q '"env"' "$folder/core.js"; then
  echo "the core calls functions of libsecp256k1" >&2
  exit 1
fi
cp "$folder/core_bg.wasm" "$work/core_bg.wasm"
wasm-opt "${features[@]}" -Oz --converge --strip-debug --strip-producers "$work/core_bg.wasm" -o "$folder/core_bg.wasm"

for file in core.js core_bg.wasm; do
  printf '%s: %s bytes, %s gzipped\n' "$file" "$(wc -c < "$folder/$file")" "$(gzip -9 -c "$folder/$file" | wc -c)"
done
