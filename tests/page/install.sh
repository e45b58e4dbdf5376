#!/usr/bin/env bash
# Installs the npm packages that a folder of the tree locks, unless the cache has them, and links them into it.
#
#     tests/page/install.sh FOLDER    relative to the top of the tree; prints where the packages are
#
# The place in the cache is named after the lock file, so that a change of it makes a new one.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${RELAYSYNC_CACHE:-$root/.cache}
source=$(cd "$root/$1" && pwd)
name=npm-$(basename "$source")-$({ node --version && cat "$source/package.json" "$source/package-lock.json"; } | sha256sum | cut -c 1-16)
folder=$cache/$name

mkdir -p "$cache"
# Several tests may ask at once; the first installs, the others find it done.
exec 9> "$cache/$name.lock"
flock 9

if [ ! -d "$folder" ]; then
  rm -rf "$folder.part"
  mkdir "$folder.part"
  cp "$source/package.json" "$source/package-lock.json" "$folder.part"
  # Nothing here needs a script of its own, and no browser is to be downloaded.
  (cd "$folder.part" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error >&2)
  mv "$folder.part" "$folder"
fi
rm -rf "$source/node_modules"
ln -s "$folder/node_modules" "$source/node_modules"
echo "$folder"
