#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each header compiles by itself, twice in a row, as every version of C and C++ since C11 and C++11, by gcc and clang,
# and leaves the caller's macros alone.
. "$(dirname "$0")/common.sh"

# check COMPILER OPTION...: if that compiler is available.
check() {
    command -v "$1" >/dev/null || return 0
    # shellcheck disable=SC2086
    "$@" $warnings -I"$stage/include" -fsyntax-only "$scratch/unit.c"
}

for header in "$stage"/include/vigil/*.h; do
    name=vigil/$(basename "$header")
    printf '#define X 1\n#include <%s>\n#include <%s>\nint unit_is_not_empty = X;\n' "$name" "$name" >"$scratch/unit.c"
    for standard in c11 c17; do
        check "$CC" -std=$standard
        check clang -std=$standard
    done
    for standard in c++11 c++17 c++20; do
        check "$CXX" -x c++ -std=$standard
        check clang++ -x c++ -std=$standard
    done
    for changed in -DVIGIL_CHECK -DVIGIL_NO_INLINE; do
        check "$CC" -std=c11 $changed
        check "$CXX" -x c++ -std=c++17 $changed
    done
    echo "$name"
done
