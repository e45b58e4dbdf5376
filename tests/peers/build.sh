#!/usr/bin/env bash
# Builds the test peers, unless they are built already, and prints the folder that has them.
#
#     tests/peers/build.sh rust [--release]   rust-nostr-relay and rust-nostr-pool
#     tests/peers/build.sh npm                relay.mjs and its node_modules
#
# The folder is named after what it was built from, so a change of the sources makes a new one. Dependencies of the Rust
# peers are compiled into one folder beside it that all versions share.
set -euo pipefail

sources=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${RELAYSYNC_CACHE:-$(cd "$sources/../.." && pwd)/.cache}

hash_of() { # FILES… relative to the sources; versions of tools on standard input
  { cat && cd "$sources" && cat -- "$@"; } | sha256sum | cut -c 1-16
}

build_rust() { # dev | release
  local profile=$1 folder binaries
  cd "$sources"
  folder=$cache/peers-$(rustc --version | hash_of Cargo.toml Cargo.lock $(find src -name '*.rs' | LC_ALL=C sort))-$profile
  if [ ! -d "$folder" ]; then
    CARGO_TARGET_DIR=$cache/peers-target cargo build --locked --quiet --bins --profile "$profile" >&2
    binaries=$cache/peers-target/$([ "$profile" = dev ] && echo debug || echo "$profile")
    rm -rf "$folder.part"
    mkdir "$folder.part"
    cp "$binaries/rust-nostr-relay" "$binaries/rust-nostr-pool" "$folder.part"
    mv "$folder.part" "$folder"
  fi
  echo "$folder"
}

build_npm() {
  local folder headers
  folder=$cache/peers-npm-$(node --version | hash_of npm/package.json npm/package-lock.json npm/relay.mjs)
  if [ ! -d "$folder" ]; then
    # better-sqlite3 is compiled where its ready-made binary cannot be downloaded: with the headers that came with
    # Node, if they did, so that these need no download either.
    headers=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
    if [ -z "${npm_config_nodedir:-}" ] && [ -f "$headers/include/node/node.h" ]; then
      export npm_config_nodedir=$headers
    fi
    rm -rf "$folder.part"
    mkdir "$folder.part"
    cp "$sources/npm/package.json" "$sources/npm/package-lock.json" "$sources/npm/relay.mjs" "$folder.part"
    (cd "$folder.part" && npm ci --no-audit --no-fund --loglevel error >&2)
    mv "$folder.part" "$folder"
  fi
  echo "$folder"
}

mkdir -p "$cache"
# Several tests may ask at once; the first builds, the others find it done.
exec 9> "$cache/peers.lock"
flock 9

case "${1:-} ${2:-}" in
  "rust ") build_rust dev ;;
  "rust --release") build_rust release ;;
  "npm ") build_npm ;;
  *) echo "usage: $0 rust [--release] | npm" >&2; exit 2 ;;
esac
