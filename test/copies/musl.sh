#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# musl.sh AMALGAMATION - with musl, a shared object that contains the library can be loaded by dlopen.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
amalgamation=$1
skip() { echo "skipped: $1"; exit 77; }

command -v musl-gcc >/dev/null || skip "there is no musl-gcc"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/kernel" # musl-gcc does not find the kernel's headers: see cmake/musl.cmake
ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$scratch/kernel"
compile() { musl-gcc -std=c11 -O1 -g -isystem "$scratch/kernel" -I"$root/include" -Wall -Wextra -Werror "$@"; }

echo 'int main(void) { return 0; }' >"$scratch/empty.c"
compile "$scratch/empty.c" -o "$scratch/empty"
"$scratch/empty" 2>/dev/null || skip "musl's loader is not installed"

compile "$here/unload.c" -o "$scratch/unload"
compile -fPIC -c "$amalgamation/vigil.c" -o "$scratch/vigil.o"
compile -shared "$scratch/vigil.o" -o "$scratch/amalgamation.so"
# As the build links libvigil.so.
compile -shared "$scratch/vigil.o" -o "$scratch/libvigil.so" -Wl,--version-script="$root/src/vigil.map" -Wl,-z,nodelete
timeout 60 "$scratch/unload" "$scratch/amalgamation.so" "$scratch/libvigil.so"
