#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# pack.sh FOLDER - write the package into FOLDER, as vigil-node-VERSION.tgz, with the binaries that build.sh has built.
set -eu
[ $# = 1 ] || { echo "usage: pack.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# From a copy, with the project's licence in it.
mkdir "$scratch/node"
cp -r node/lib node/prebuilds node/README.md node/package.json LICENSE "$scratch/node"
chmod -R u=rwX,go=rX "$scratch/node"
(cd "$scratch/node" && npm pack --ignore-scripts --silent --pack-destination "$scratch" >/dev/null)
package=$(basename "$scratch"/vigil-node-*.tgz)
mv "$scratch/$package" "$folder"
echo "Wrote $1/$package ($(($(stat -c %s "$folder/$package") / 1024)) KiB)"
