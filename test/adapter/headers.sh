#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# headers.sh SOURCE_DIR NAME FLAG... - adapter/vigil_NAME.h compiles by itself, twice in a row, as C11 and as C++17; so
# does a program that uses it from C++.
set -eu
source_dir=$1 name=$2
shift 2
loop=("${@/#-I/-isystem}") # no warnings from the loop's own headers
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror"
flags="-I$source_dir/include -I$source_dir/adapter $warnings"
printf '#include <vigil_%s.h>\n#include <vigil_%s.h>\nint unit_is_not_empty;\n' "$name" "$name" >"$scratch/unit.c"
printf '#include <vigil_%s.h>\nauto attach = vigil_%s_attach;\n' "$name" "$name" >"$scratch/unit.cpp"
# libuv's header needs POSIX.
# shellcheck disable=SC2086
"${CC:-cc}" -std=c11 -D_POSIX_C_SOURCE=200809L -Wstrict-prototypes $flags "${loop[@]}" -fsyntax-only "$scratch/unit.c"
# shellcheck disable=SC2086
"${CXX:-g++}" -std=c++17 $flags "${loop[@]}" -fsyntax-only -x c++ "$scratch/unit.c" "$scratch/unit.cpp"
