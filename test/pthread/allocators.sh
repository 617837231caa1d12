#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Allocators whose locks are ours: they lock before our constructor has run, inside of malloc, and around fork.
. "$(dirname "$0")/common.sh"
library() { ldconfig -p 2>/dev/null | sed -n "s/.*[[:space:]]$1.* => //p" | head -n 1; }
found=""

for name in libjemalloc.so libtcmalloc_minimal.so libtcmalloc.so; do
    path=$(library "$name")
    [ -n "$path" ] || continue
    found=yes
    for options in "" --check --profile="$scratch/profile"; do
        # shellcheck disable=SC2086 # none, or one
        LD_PRELOAD=$path expect 0 timeout 100 "$vigil" run $options -- "$SEMANTICS"
        contains "$out" "all is as documented"
    done
    if command -v python3 >/dev/null; then
        LD_PRELOAD=$path PYTHONMALLOC=malloc expect 0 timeout 100 "$vigil" run -- python3 "$here/threads.py"
        [ "$out" = well ] || fail "python on $name: $out $err"
    fi
done
[ -n "$found" ] || { echo "neither jemalloc nor tcmalloc"; exit 77; }
verdict
