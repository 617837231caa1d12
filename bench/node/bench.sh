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
node/build.sh >&2
node bench/node/bench.js --json build/bench-node.json --markdown build/figures-node.md
printf '\n' | cat - build/figures-node.md >>build/figures.md
