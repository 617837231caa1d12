#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench.sh - measure the package for Node, if Node is there; its figures are added to build/figures.md.
set -eu
cd "$(dirname "$0")/../.."
command -v node >/dev/null && command -v npm >/dev/null || {
    echo "skipped: there is no node, or no npm; on Debian, install nodejs and npm" >&2
    exit 0
}
. bench/load.sh
node/build.sh >&2
load_before
node bench/node/bench.js --json build/bench-node.json --markdown build/figures-node.md
load_append build/figures-node.md
