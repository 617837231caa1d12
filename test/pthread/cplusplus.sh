#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program in C++.
. "$(dirname "$0")/common.sh"
command -v g++ >/dev/null || { echo "no g++"; exit 77; }
g++ -std=c++17 -O1 -UNDEBUG -o "$scratch/program" "$here/cplusplus.cc" -pthread || exit 1
expect 0 timeout 60 "$scratch/program"
for options in "" --check --profile; do
    # shellcheck disable=SC2086 # none, or one
    expect 0 timeout 60 "$vigil" run $options -- "$scratch/program"
    [ "$out" = well ] || fail "it says: $out $err"
done
verdict
