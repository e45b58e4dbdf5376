# Tools that the WebAssembly core is built with; to be sourced, from the top folder of the repository.
# shellcheck shell=bash

export RELAYSYNC_CACHE=${RELAYSYNC_CACHE:-$PWD/.cache}

wasm_pack_version=0.15.1
binaryen_version=132.0.0

# Installs a Debian package unless the command that it brings is there.
need() { # COMMAND PACKAGE…
  local command=$1
  shift
  command -v "$command" > /dev/null && return 0
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get > /dev/null; then
    echo "$command is missing, and apt-get cannot be used; install: $*" >&2
    return 1
  fi
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } > /dev/null \
    && command -v "$command" > /dev/null
}

# The target, and clang for libsecp256k1, which is C. It is compiled, but nothing of it gets into the result.
need_wasm_target() {
  rustup target add wasm32-unknown-unknown && need clang clang && need llvm-ar llvm || return 1
  export CC_wasm32_unknown_unknown=clang AR_wasm32_unknown_unknown=llvm-ar
}

# wasm-bindgen of the very version that Cargo.lock has, on PATH.
need_wasm_bindgen() {
  local version
  version=$(awk '/^name = "wasm-bindgen"$/ { getline; gsub(/"/, "", $3); print $3 }' Cargo.lock)
  need_crate wasm-bindgen-cli wasm-bindgen "$version"
}

# wasm-pack, on PATH.
need_wasm_pack() {
  need_crate wasm-pack wasm-pack "$wasm_pack_version"
}

# wasm-opt, on PATH. That of Debian 12 breaks tables of references.
need_wasm_opt() {
  local folder=$RELAYSYNC_CACHE/binaryen-$binaryen_version
  if [ ! -x "$folder/node_modules/.bin/wasm-opt" ]; then
    npm install --silent --no-fund --no-audit --prefix "$folder" "binaryen@$binaryen_version" || return 1
  fi
  export PATH=$folder/node_modules/.bin:$PATH
}

# Installs a program into the cache, keyed by its version.
need_crate() { # CRATE PROGRAM VERSION
  local folder=$RELAYSYNC_CACHE/$2-$3
  if [ ! -x "$folder/bin/$2" ]; then
    # The lock file of some versions names crates that were withdrawn.
    CARGO_TARGET_DIR=$folder/target cargo install --quiet --locked --root "$folder" "$1@$3" \
      || CARGO_TARGET_DIR=$folder/target cargo install --quiet --root "$folder" "$1@$3"
    rm -rf "$folder/target"
  fi
  export PATH=$folder/bin:$PATH
  [ -x "$folder/bin/$2" ]
}
