#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A project finds the installed library through find_package, also after the tree has been moved.
. "$(dirname "$0")/common.sh"
cp -a "$stage" "$scratch/moved"
cmake -S "$here/consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/moved" >"$scratch/log" 2>&1 &&
    cmake --build "$scratch/build" >>"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
for program in shared static; do
    echo "$program: $("$scratch/build/$program")"
done
