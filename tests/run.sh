#!/usr/bin/env bash
# Runs everything that can be run against this tree, and counts.
#
#     bash tests/run.sh [PART…]    parts: fmt clippy native sim wasm docs deny peers browser bench-smoke page (all, without arguments)
#     bash tests/run.sh soak       the daemon for an hour beside relays that come and go; only if it is named
#     bash tests/run.sh bench-browser    the npm package in Chromium beside other libraries; only if it is named
#
# Needs Rust (rustup) and Node; installs what else is missing: the wasm32 target by rustup, clang and a C++ compiler by
# apt-get where it may (Chromium, too), cargo-deny and npm packages into the cache folder. The last line is `N passed, N failed`; the exit status is 1 if
# anything failed. What cannot run because a tool cannot be had is skipped and said so, but with CI=true it fails.
#
#     RELAYSYNC_CACHE    folder for tools and test peers; .cache by default
#     CARGO_TARGET_DIR   folder for build results, shared by all parts; target by default
#     MINUTES            how long the part soak takes, instead of an hour
#     SEED               the part sim replays this seed of the simulation, with its trace, and plays no other
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
export RELAYSYNC_CACHE=${RELAYSYNC_CACHE:-$root/.cache}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
mkdir -p "$RELAYSYNC_CACHE"
# shellcheck source=bindings/tools.sh
source bindings/tools.sh

cargo_deny_version=0.20.2
all_parts=(fmt clippy native sim wasm docs deny peers browser bench-smoke page)
other_parts=(soak bench-browser)
passed=0
failed=0
faults=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

heading() {
  printf '\n== %s (%s s)\n' "$1" "$SECONDS"
}

fail() { # NAME
  failed=$((failed + 1))
  faults+=("$1")
  echo "FAILED: $1"
}

# Runs a command that either passes or fails as a whole.
check() { # NAME COMMAND…
  local name=$1
  shift
  echo "-- $name"
  if "$@"; then passed=$((passed + 1)); else fail "$name"; fi
}

# Without one failed test, a failure is that of the build.
add_up() { # NAME STATUS PASSED FAILED
  passed=$((passed + $3))
  failed=$((failed + $4))
  if [ "$4" -gt 0 ]; then
    faults+=("$1: $4 tests")
  elif [ "$2" -ne 0 ]; then
    fail "$1"
  fi
}

# Runs `cargo test` and adds up the tests that it tells of.
count() { # NAME CARGO_TEST_ARGUMENTS…
  local name=$1 status=0 ok bad
  shift
  echo "-- $name"
  cargo test --locked --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?
  read -r ok bad < <(awk '/^test result:/ { ok += $4; bad += $6 } END { print ok + 0, bad + 0 }' "$log")
  add_up "$name" "$status" "$ok" "$bad"
}

# Runs what ends in Node's test runner, and adds up the tests that it tells of. A cancelled test is a failed one.
count_node() { # NAME COMMAND…
  local name=$1 status=0 ok bad
  shift
  echo "-- $name"
  "$@" 2>&1 | tee "$log" || status=$?
  read -r ok bad < <(awk '/^[#ℹ]+ pass / { ok += $3 } /^[#ℹ]+ (fail|cancelled) / { bad += $3 } END { print ok + 0, bad + 0 }' "$log")
  add_up "$name" "$status" "$ok" "$bad"
}

# For what a part cannot do without.
skip() { # NAME REASON
  if [ "${CI:-}" = true ]; then
    fail "$1: $2"
  else
    echo "SKIPPED: $1: $2"
  fi
}

# Names of the integration tests: those that need other people's relays, or all others but the simulation.
test_targets() { # peers | others
  local file name
  for file in tests/*.rs tests/*/main.rs; do
    [ -f "$file" ] || continue
    name=$(basename "${file%/main.rs}" .rs)
    case "$1 $name" in
      "peers peers"*) echo "$name" ;;
      "others peers"* | "others sim" | "peers "*) ;;
      *) echo "$name" ;;
    esac
  done
}

as_options() { # OPTION, names on standard input
  sed "s/^/$1 /" | tr '\n' ' '
}

# Rust's minimal profile lacks rustfmt and clippy.
need_component() { # CARGO_COMMAND COMPONENT
  cargo "$1" --version > /dev/null 2>&1 || rustup component add "$2"
}

part_fmt() {
  need_component fmt rustfmt || { skip "cargo fmt" "rustfmt cannot be had"; return; }
  check "cargo fmt" cargo fmt --check
  check "cargo fmt of the test peers" cargo fmt --check --manifest-path tests/peers/Cargo.toml -- --config-path rustfmt.toml
  check "cargo fmt of the simulation for wasm" \
    cargo fmt --check --manifest-path tests/wasm_sim/Cargo.toml -- --config-path rustfmt.toml
  check "cargo fmt of the tests in browsers" \
    cargo fmt --check --manifest-path tests/browser/Cargo.toml -- --config-path rustfmt.toml
  check "cargo fmt of the tests of the store in browsers" \
    cargo fmt --check --manifest-path tests/browser_store/Cargo.toml -- --config-path rustfmt.toml
}

part_clippy() {
  need_component clippy clippy || { skip "clippy" "it cannot be had"; return; }
  check "clippy" cargo clippy --locked --all-targets --all-features -- -D warnings
}

part_native() {
  # shellcheck disable=SC2046 # one word an option is what is wanted
  count "native tests" --lib --bins $(test_targets others | as_options --test)
}

# Fixed seeds, those that once failed, and one that is new with each commit.
part_sim() {
  local commit
  # An archive of the sources has no commit; the test says so.
  if commit=$(git rev-parse --verify --quiet HEAD); then
    export COMMIT_SEED=${commit:0:16}
    printf -- "-- the commit's seed is %u\n" "0x$COMMIT_SEED"
  fi
  count "simulation" --test sim
}

# What the core may not touch where it has to run in a browser too: it gets time, sockets and files from a runtime.
core_is_pure() {
  ! grep -rnE 'std::(fs|net|thread|process|env)\b|tokio::' src --include='*.rs' \
    --exclude-dir=native --exclude-dir=browser --exclude=main.rs --exclude=many.rs --exclude=tests.rs
}

part_wasm() {
  check "the core imports no system" core_is_pure
  if ! need_wasm_target; then
    skip "wasm" "no wasm32 target, clang or llvm-ar"
    return
  fi
  check "wasm32 build of the core" cargo build --locked --no-default-features --lib --target wasm32-unknown-unknown
  check "wasm32 build with testing" \
    cargo build --locked --no-default-features --features testing --lib --target wasm32-unknown-unknown
  if command -v node > /dev/null; then
    check "64 seeds of the simulation go the same way natively and in wasm" same_seeds_in_wasm 64
  else
    skip "the simulation in wasm" "no node"
  fi
}

# The same seed has the same trace hash wherever it is played. Tells of the first that has not, and where it goes apart.
same_seeds_in_wasm() { # COUNT
  local results=${CARGO_TARGET_DIR:-target} folder seed status=0
  local native=("$results/debug/relaysync" sim)
  local wasm=(node tests/wasm_sim/play.mjs "$results/wasm32-unknown-unknown/debug/relaysync_wasm_sim.wasm")
  cargo build --locked --features testing --bin relaysync \
    && cargo build --locked --manifest-path tests/wasm_sim/Cargo.toml --target-dir "$results" --target wasm32-unknown-unknown \
    || return 1
  folder=$(mktemp -d)
  "${native[@]}" --hashes --seeds "$1" > "$folder/native" || status=1
  "${wasm[@]}" "$1" > "$folder/wasm" || status=1
  if ! cmp --silent "$folder/native" "$folder/wasm"; then
    status=1
    seed=$(diff "$folder/native" "$folder/wasm" | awk '/^[<>]/ { print $2; exit }')
    echo "seed $seed goes two ways, first here, natively (<) and in wasm (>):" >&2
    "${native[@]}" --seeds 1 --from "$seed" --trace > "$folder/native"
    "${wasm[@]}" --trace "$seed" > "$folder/wasm"
    diff "$folder/native" "$folder/wasm" | head -n 4 | cut -c 1-400 >&2
  fi
  rm -rf "$folder"
  return "$status"
}

part_docs() {
  check "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --all-features
  count "documentation tests" --doc
}

part_deny() {
  local folder=$RELAYSYNC_CACHE/cargo-deny-$cargo_deny_version
  if [ ! -x "$folder/bin/cargo-deny" ]; then
    # Unoptimised: it is compiled once and runs for a second.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
      CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 CARGO_TARGET_DIR=$folder/target \
      cargo install --quiet --locked --no-default-features --root "$folder" "cargo-deny@$cargo_deny_version"
    rm -rf "$folder/target"
  fi
  if [ ! -x "$folder/bin/cargo-deny" ]; then
    skip "cargo-deny" "it cannot be installed"
    return
  fi
  # Advisories change without the tree: they are for a schedule, not for every run.
  check "cargo-deny" "$folder/bin/cargo-deny" --all-features --locked check --hide-inclusion-graph bans licenses sources
}

part_peers() {
  local kind ready=true
  # npm compiles SQLite where its ready-made binary cannot be downloaded.
  if ! command -v node > /dev/null || ! command -v npm > /dev/null \
    || ! need python3 python3 || ! need make make || ! need g++ g++; then
    skip "peers" "no node, npm, python3, make or g++"
    return
  fi
  for kind in rust npm; do
    echo "-- building the $kind peers, unless the cache has them"
    tests/peers/build.sh "$kind" || { ready=false; fail "building the $kind peers"; }
  done
  # shellcheck disable=SC2046
  if [ "$ready" = true ]; then
    count "tests with peers" $(test_targets peers | as_options --test)
  fi
}

# The core for browsers, and the browser runtime in Chromium with relays of two makes beside it.
part_browser() {
  local peers
  if ! command -v node > /dev/null || ! command -v npm > /dev/null || ! need_wasm_target || ! need_wasm_bindgen \
    || ! need_wasm_pack || ! need chromium chromium || ! need chromedriver chromium-driver; then
    skip "browser" "no node, npm, wasm32 target, clang, wasm-bindgen, wasm-pack, chromium or chromedriver"
    return
  fi
  check "the core in WebAssembly" bash bindings/build-core.sh "$RELAYSYNC_CACHE/core"
  check "clippy of the browser runtime" \
    cargo clippy --locked --lib --no-default-features --features browser --target wasm32-unknown-unknown -- -D warnings
  check "the store over IndexedDB in Chromium" env WASM_BINDGEN_TEST_TIMEOUT=600 \
    wasm-pack test --headless --chrome tests/browser_store --locked
  if ! cargo build --locked --bin relaysync || ! peers=$(tests/peers/build.sh npm); then
    fail "building relays for the tests in Chromium"
    return
  fi
  check "tests in Chromium" env WASM_BINDGEN_TEST_TIMEOUT=600 \
    node tests/browser/run.mjs "${CARGO_TARGET_DIR:-target}/debug/relaysync" "$peers/relay.mjs" \
    wasm-pack test --headless --chrome tests/browser --locked
}

# What pages are tested with: Debian's Chromium, npm packages from the cache, and the package, packed as it is published.
page_tools() { # FOLDER… of npm packages, relative to the top
  local folder
  if ! command -v node > /dev/null || ! command -v npm > /dev/null || ! need chromium chromium; then
    skip "pages" "no node, npm or chromium"
    return 1
  fi
  for folder in . "$@"; do
    tests/page/install.sh "$folder" > /dev/null || { fail "the npm packages of $folder"; return 1; }
  done
  node bindings/build.mjs || { fail "building the npm package"; return 1; }
  rm -rf "$RELAYSYNC_CACHE/page-tarball"
  mkdir -p "$RELAYSYNC_CACHE/page-tarball"
  npm pack --silent --ignore-scripts --pack-destination "$RELAYSYNC_CACHE/page-tarball" || { fail "packing the npm package"; return 1; }
  RELAYSYNC_TARBALL=$(echo "$RELAYSYNC_CACHE"/page-tarball/*.tgz)
  export RELAYSYNC_TARBALL
}

part_page() {
  # For the relays of other makes.
  if ! need python3 python3 || ! need make make || ! need g++ g++; then
    skip "pages" "no python3, make or g++"
    return
  fi
  page_tools tests/page tests/page/packaging || return
  count_node "tests of the npm package" npm test --silent
  cargo build --locked --features testing --bin relaysync || { fail "building our relay service"; return; }
  export RELAYSYNC_PROGRAM=${CARGO_TARGET_DIR:-target}/debug/relaysync
  # One at a time: each has a browser and a relay of its own, and some of them measure patience.
  count_node "pages" node --test --test-concurrency=1 --test-timeout=420000 tests/page/*.test.mjs
  count_node "bundlers and frameworks" node --test --test-timeout=420000 tests/page/packaging/packaging.test.mjs
}

part_bench-browser() {
  page_tools tests/page benches/browser || return
  cargo build --locked --release --bin relaysync || { fail "building our relay service"; return; }
  RELAYSYNC_PROGRAM=${CARGO_TARGET_DIR:-target}/release/relaysync \
    check "benchmark in Chromium" node benches/browser/run.mjs --json "$RELAYSYNC_CACHE/bench-browser.json"
}

# Without `--bench` on its command line a benchmark does a small run of everything it measures.
part_bench-smoke() {
  local file name
  for file in benches/*.rs benches/*/main.rs; do
    [ -f "$file" ] || continue
    name=$(basename "${file%/main.rs}" .rs)
    check "benchmark $name" cargo test --locked --bench "$name"
  done
}

# What it has measured and logged stays in the folder.
part_soak() {
  check "the daemon in the long run" cargo test --locked --release --test soak -- \
    --minutes "${MINUTES:-60}" --folder "$RELAYSYNC_CACHE/soak-$(date -u +%Y%m%dT%H%M%SZ)"
}

parts=("$@")
[ "${#parts[@]}" -gt 0 ] || parts=("${all_parts[@]}")
for part in "${parts[@]}"; do
  case " ${all_parts[*]} ${other_parts[*]} " in
    *" $part "*) ;;
    *) echo "unknown part: $part; there are: ${all_parts[*]} ${other_parts[*]}" >&2; exit 2 ;;
  esac
done
for part in "${parts[@]}"; do
  heading "$part"
  "part_$part"
done

heading "done"
[ "${#faults[@]}" -eq 0 ] || printf 'failed: %s\n' "${faults[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
