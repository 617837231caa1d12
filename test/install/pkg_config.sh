#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program finds the installed library through pkg-config: shared and static, as C11 and as C++17.
. "$(dirname "$0")/common.sh"
export PKG_CONFIG_PATH=$libdir/pkgconfig
version=$(pkg-config --modversion vigil)

check() {
    local said
    said=$("$scratch/consumer")
    [ "$said" = "vigil $version" ] || fail "$1: said '$said', not 'vigil $version'"
    echo "$1: $said"
}

# build TITLE COMPILER OPTION...
build() {
    local title=$1 compiler=$2
    shift 2
    "$compiler" "$@" $warnings $(pkg-config --cflags vigil) -c "$here/consumer/main.c" -o "$scratch/consumer.o"

    "$compiler" "$scratch/consumer.o" -o "$scratch/consumer" $(pkg-config --libs vigil) -Wl,-rpath,"$libdir"
    readelf -d "$scratch/consumer" | grep -q 'NEEDED.*libvigil\.so\.0\.1' ||
        fail "$title: not linked to libvigil.so.0.1"
    check "$title, shared"

    "$compiler" "$scratch/consumer.o" -o "$scratch/consumer" -static $(pkg-config --static --libs vigil)
    check "$title, static"
}
build C11 "$CC" -std=c11
build C++17 "$CXX" -std=c++17 -x c++
