#!/usr/bin/env bash
# Builds the WebAssembly core: core.js (an ES module, instantiated by whoever imports it), core.d.ts, core_bg.wasm.
#
#     bash bindings/build-core.sh [FOLDER]    into FOLDER; bindings/dist/core by default
#
# Needs Rust (rustup) and Node, and installs what else is missing: the wasm32 target by rustup, clang by apt-get where it may,
# wasm-bindgen and wasm-opt into the cache folder.
#
#     RELAYSYNC_CACHE     folder for tools; .cache by default
#     CARGO_TARGET_DIR    folder for build results; target by default
#     WASM_FEATURES       features of the crate besides `browser`, separated by commas
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
  "") folder=$root/bindings/dist/core ;;
  /*) folder=$1 ;;
  *) folder=$PWD/$1 ;;
esac
cd "$root"
# shellcheck source=bindings/tools.sh
source bindings/tools.sh

need_wasm_target
need_wasm_bindgen
need_wasm_opt
results=${CARGO_TARGET_DIR:-target}/wasm32-unknown-unknown/wasm

cargo rustc --locked --lib --crate-type cdylib --no-default-features --features "browser${WASM_FEATURES:+,$WASM_FEATURES}" \
  --target wasm32-unknown-unknown --profile wasm
mkdir -p "$folder"
wasm-bindgen "$results/relaysync.wasm" --target web --out-dir "$folder" --out-name core
# What all browsers of the last years have, and rustc counts on.
wasm-opt -O2 --enable-bulk-memory --enable-multivalue --enable-mutable-globals --enable-nontrapping-float-to-int \
  --enable-reference-types --enable-sign-ext "$folder/core_bg.wasm" -o "$folder/core_bg.wasm.new"
mv "$folder/core_bg.wasm.new" "$folder/core_bg.wasm"

for file in core.js core_bg.wasm; do
  printf '%s: %s bytes, %s gzipped\n' "$file" "$(wc -c < "$folder/$file")" "$(gzip -9 -c "$folder/$file" | wc -c)"
done
