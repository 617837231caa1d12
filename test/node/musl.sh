#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# musl.sh - run the unit tests of the package with a Node that is linked with musl, and the binary for musl. MUSL_NODE
# is that Node. Debian has none; those of Alpine and of Node's unofficial builds run here if their libraries are found:
#
#     LD_LIBRARY_PATH=/path/to/alpine/usr/lib MUSL_NODE=/path/to/alpine/usr/bin/node test/node/run.sh musl
set -eu
cd "$(dirname "$0")/../.."
if [ -z "${MUSL_NODE-}" ]; then
    echo "skipped: set MUSL_NODE to a node that is linked with musl"
    exit 77
fi
LC_ALL=C grep -qa /lib/ld-musl- "$MUSL_NODE" || { echo "$MUSL_NODE is not linked with musl"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r node/lib node/package.json "$scratch"
arch=$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
LD_LIBRARY_PATH='' node/build.sh --into "$scratch/prebuilds" "linux-$arch-musl"
VIGIL_NODE=$scratch "$MUSL_NODE" --test test/node/*.test.js
