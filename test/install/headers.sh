#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each header compiles by itself, twice in a row, as C11 and as C++17, and leaves the caller's macros alone.
. "$(dirname "$0")/common.sh"
for header in "$stage"/include/vigil/*.h; do
    name=vigil/$(basename "$header")
    printf '#define X 1\n#include <%s>\n#include <%s>\nint unit_is_not_empty = X;\n' "$name" "$name" >"$scratch/unit.c"
    for checked in "" -DVIGIL_CHECK; do
        "$CC" -std=c11 $warnings $checked -I"$stage/include" -fsyntax-only "$scratch/unit.c"
        "$CXX" -std=c++17 $warnings $checked -I"$stage/include" -fsyntax-only -x c++ "$scratch/unit.c"
    done
    echo "$name"
done
