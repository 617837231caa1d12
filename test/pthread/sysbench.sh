#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that do nothing but lock: sysbench and stress-ng, as far as they are here.
. "$(dirname "$0")/common.sh"
found=""

if command -v sysbench >/dev/null; then
    found=yes
    expect 0 timeout 100 "$vigil" run -- sysbench --threads=4 --time=0 --events=1000 \
        --thread-yields=10 --thread-locks=2 threads run
    contains "$out" "total number of events:              1000"
    expect 0 timeout 100 "$vigil" run -- sysbench --threads=4 --time=0 \
        --mutex-num=2 --mutex-locks=2000 --mutex-loops=100 mutex run
    contains "$out" "total number of events:"
fi
if command -v stress-ng >/dev/null; then
    found=yes
    cd "$scratch" || exit 1
    for stressor in mutex sem; do
        expect 0 timeout 100 "$vigil" run -- stress-ng --no-rand-seed --temp-path "$scratch" --$stressor 2 --timeout 1s
    done
fi
[ -n "$found" ] || { echo "neither sysbench nor stress-ng"; exit 77; }
verdict
