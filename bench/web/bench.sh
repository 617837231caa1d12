#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench.sh - measure the package for the browser, if Chromium, Node and the compiler are there; its figures are added to
# build/figures.md.
set -eu
cd "$(dirname "$0")/../.."
for program in node npm clang-19 wasm-ld-19 chromium; do
    command -v "$program" >/dev/null || {
        echo "skipped: there is no $program; install nodejs, npm, clang-19, lld-19, wasi-libc and chromium" >&2
        exit 0
    }
done
. bench/load.sh
web/build.sh >&2
load_before
node bench/web/bench.js --chromium "$(command -v chromium)" --json build/bench-web.json --markdown build/figures-web.md
# The browser does not wait for all of its own processes.
load_append build/figures-web.md "What they used meanwhile is not known: nor is what the browser used."
