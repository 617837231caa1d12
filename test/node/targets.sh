#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# targets.sh [FOLDER] - build the binaries of @vigil/node for all targets, or take those in FOLDER, and check that they
# can be loaded, each with its C library and processor; that those for glibc ask for version 2.28 at most, which is what
# Node 18 itself asks for; and that musl refuses one for glibc, as lib/native.js expects.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
binaries=${1:-$scratch/prebuilds}
failed=0
fail() {
    echo "$*"
    failed=1
}

# Functions of Node are missing here: RTLD_LAZY, as Node itself uses it.
cat >"$scratch/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *object = dlopen(argv[argc - 1], RTLD_LAZY);
    if (!object || !dlsym(object, "napi_register_module_v1")) return printf("%s\n", dlerror()), 1;
    return puts("loaded"), 0;
}
END

# compile_musl MACHINE COMPILER ROOT: a program for musl, as musl-gcc does it. ROOT: see musl_root of build.sh.
compile_musl() {
    local library=$3/usr/lib/$1-linux-musl
    ln -s "$3/lib/ld-musl-$1.so.1" "$scratch/libc.so"
    "$2" -fPIE -pie -nostdinc -isystem "$3/usr/include/$1-linux-musl" -nostdlib "$library/Scrt1.o" "$library/crti.o" \
        "$scratch/load.c" -L"$scratch" -lc "$library/crtn.o" -Wl,-dynamic-linker,"/lib/ld-musl-$1.so.1" \
        -o "$scratch/load-$1-musl"
    rm "$scratch/libc.so"
}

# load MACHINE LIBC BINARY: what the program says, run by that C library.
load() {
    local compiler=gcc run=() base=""
    if [ "$1" != "$(uname -m)" ]; then
        compiler=$1-linux-gnu-gcc run=("qemu-$1" -L "/usr/$1-linux-gnu")
        command -v "qemu-$1" >/dev/null || { echo "not tried: there is no qemu-$1"; return; }
    fi
    if [ "$2" = glibc ]; then
        [ -x "$scratch/load-$1-glibc" ] || "$compiler" "$scratch/load.c" -o "$scratch/load-$1-glibc" -ldl
    else
        [ -d "/usr/include/$1-linux-musl" ] || base=$root/build/musl/$1
        [ -x "$scratch/load-$1-musl" ] || compile_musl "$1" "$compiler" "$base"
        run+=("$base/lib/ld-musl-$1.so.1")
    fi
    timeout 60 "${run[@]}" "$scratch/load-$1-$2" "$3" 2>&1 || true
}

# newest_glibc BINARY: the highest version of glibc that it asks for.
newest_glibc() { objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1; }

# missing_in_musl MACHINE BINARY: functions that neither musl nor Node has. They would be missed when they are called.
missing_in_musl() {
    local base=""
    [ -d "/usr/include/$1-linux-musl" ] || base=$root/build/musl/$1
    nm -D --undefined-only "$2" | awk '$1 == "U" && $2 !~ /^(napi|uv)_/ { print $2 }' | sort >"$scratch/needed"
    nm -D --defined-only "$base/lib/ld-musl-$1.so.1" | awk '{ print $3 }' | sort >"$scratch/defined"
    comm -23 "$scratch/needed" "$scratch/defined"
}

[ $# != 0 ] || "$root/node/build.sh" --into "$binaries" --all
for binary in "$binaries"/*.node; do
    target=$(basename "$binary" .node)
    case $target in *-x64-*) machine=x86_64 ;; *) machine=aarch64 ;; esac
    libc=${target##*-}
    result=$(load $machine "$libc" "$binary")
    echo "$target: $result"
    case $result in loaded | "not tried"*) ;; *) fail "$target cannot be loaded" ;; esac
    if [ "$libc" = glibc ]; then
        version=$(newest_glibc "$binary")
        echo "$target: needs glibc $version"
        [ "$(printf '%s\n' 2.28 "$version" | sort -V | tail -n 1)" = 2.28 ] || fail "$target needs glibc $version"
    else
        missing=$(missing_in_musl $machine "$binary")
        [ -z "$missing" ] || fail "$target needs what musl lacks:" "$missing"
        [ -e "${binary/musl/glibc}" ] || continue
        result=$(load $machine musl "${binary/musl/glibc}")
        [ "$result" != loaded ] || fail "musl loads the binary for glibc"
    fi
done
exit $failed
