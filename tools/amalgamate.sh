#!/bin/sh
# SPDX-License-Identifier: MIT
#
# amalgamate.sh FOLDER - write Vigil into FOLDER as two files, vigil.h and vigil.c, which build with one command:
#
#     cc program.c vigil.c -pthread
#
# vigil.h is the public headers, vigil.c the sources that CMakeLists.txt lists and their private headers. The result is
# compiled once, with warnings as errors, before it is put there: what does not fit together is found here.
set -eu
[ $# = 1 ] || { echo "usage: amalgamate.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
target=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# cmake_list NAME: the words of set(NAME ...) in CMakeLists.txt.
cmake_list() {
    awk -v name="$1" '
        index($0, "set(" name) == 1 { inside = 1; sub(/^[^ ]* ?/, "") ; sub("set\\(" name, "") }
        inside { last = /\)/; sub(/\).*/, ""); print; if (last) exit }' CMakeLists.txt
}
# opening TITLE: and the license.
opening() {
    echo "/*"
    echo " * $1"
    sed 's/^/ * /; s/ *$//' LICENSE
    echo " */"
}
amalgamate() { LC_ALL=C awk -f tools/amalgamate.awk "$@"; }

version=$(awk '$2 ~ /^VIGIL_VERSION_(MAJOR|MINOR|PATCH)$/ { printf dot $3; dot = "." }' include/vigil/version.h)
made="made by tools/amalgamate.sh: change the files named below instead"
sources=$(for list in CORE SYSTEM LINUX; do cmake_list VIGIL_${list}_SOURCES; done | sed '/[^ ]/!d; s/^ */src\//')
folders="include src src/prim src/prim/linux"
[ -n "$sources" ] || { echo "amalgamate: found no list of sources in CMakeLists.txt" >&2; exit 1; }

{
    opening "vigil.h - Vigil $version, its public headers in one; $made."
    amalgamate -v folders="$folders" include/vigil/vigil.h
} >"$scratch/vigil.h"
{
    opening "vigil.c - Vigil $version, its sources in one; $made."
    cat <<'END'

/*
 *     cc program.c vigil.c -pthread
 *
 * What is private is static here. Assertions are on unless NDEBUG is defined.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef VIGIL_CHECK /* for programs: the library is the same with and without */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "vigil.h"
END
    # shellcheck disable=SC2086
    amalgamate -v folders="$folders" -v public=include/ $sources
} >"$scratch/vigil.c"

${CC:-cc} -Wall -Wextra -Werror -c "$scratch/vigil.c" -o "$scratch/vigil.o"
mv "$scratch/vigil.h" "$scratch/vigil.c" "$target"
