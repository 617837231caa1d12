#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh [--into FOLDER] [--all] [TARGET...] - build the native part of @vigil/node, for each target, into
# node/prebuilds or another folder:
#
#     linux-x64-glibc  linux-x64-musl  linux-arm64-glibc  linux-arm64-musl
#
# Default: that of this machine. --all: each target whose compiler and C library are there; the others are named. The
# binaries contain the library as tools/amalgamate.sh writes it. EXTRA: more flags for the compiler. Exit status 75: the
# headers of Node-API cannot be had from npm.
set -eu
cd "$(dirname "$0")/.."

targets=(linux-x64-glibc linux-x64-musl linux-arm64-glibc linux-arm64-musl)
host=$(uname -m)
work=build/node/work

# For glibc, native/napi/glibc.h asks for the versions of symbols that old systems have. The exported names are those
# that Node looks up. nodelete: threads that end and children of fork() call the library.
# shellcheck disable=SC2054
flags=(-std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror -pthread -DNDEBUG -DNAPI_VERSION=8
    -Iinclude -isystem node/node_modules/node-api-headers/include -isystem "$work/include"
    -s -Wl,-z,nodelete -Wl,--version-script=node/native/napi/exports.map)

sources=(node/native/*.c node/native/napi/*.c build/amalgamation/vigil.c)

machine_of() { case $1 in *-x64-*) echo x86_64 ;; *-arm64-*) echo aarch64 ;; esac; }

# compiler_for MACHINE: the one of this system, or a cross compiler.
compiler_for() { if [ "$1" = "$host" ]; then echo gcc; else echo "$1-linux-gnu-gcc"; fi; }

# libuv_headers: a folder with libuv's headers alone. They are the same for all targets, those of the C library are not.
libuv_headers() {
    [ -e /usr/include/uv.h ] || { echo "build.sh: there is no uv.h; on Debian, install libuv1-dev" >&2; exit 1; }
    mkdir -p "$work/include"
    ln -sfn /usr/include/uv.h "$work/include/uv.h"
    ln -sfn /usr/include/uv "$work/include/uv"
}

# musl_root MACHINE: below which musl's headers and libc.so are: / if musl-dev is installed, otherwise a folder into
# which the Debian packages are unpacked. Nothing is installed, and apt's own lists stay as they are.
musl_root() {
    local machine=$1 root=$PWD/build/musl/$1
    if [ -d "/usr/include/$machine-linux-musl" ]; then echo ""; return; fi
    if [ ! -d "$root/usr/include/$machine-linux-musl" ]; then
        musl_fetch "$root" "$(echo "$machine" | sed 's/x86_64/amd64/; s/aarch64/arm64/')" >&2 || return 1
    fi
    echo "$root"
}

musl_fetch() {
    local root=$1 apt
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    apt=(apt-get -qq -o "APT::Architecture=$2" -o "APT::Architectures=$2" -o "Dir::State::lists=$root/apt/lists"
        -o "Dir::Cache=$root/apt/cache" -o APT::Sandbox::User=root)
    mkdir -p "$root/apt/lists/partial" "$root/apt/cache/archives/partial"
    (cd "$root/apt" && "${apt[@]}" update && "${apt[@]}" download musl musl-dev) || return 1
    for package in "$root"/apt/musl*.deb; do dpkg -x "$package" "$root" || return 1; done
    rm -rf "$root/apt"
}

# kernel_headers MACHINE: a folder with the kernel's headers alone, which are not among musl's.
kernel_headers() {
    local folder=$work/kernel-$1 from=/usr/include name
    [ "$1" = "$host" ] || from=/usr/$1-linux-gnu/include
    mkdir -p "$folder"
    for name in linux asm-generic; do ln -sfn "$from/$name" "$folder/$name"; done
    if [ "$1" = "$host" ]; then ln -sfn "$from/$1-linux-gnu/asm" "$folder/asm"
    else ln -sfn "$from/asm" "$folder/asm"; fi
    echo "$folder"
}

# build_musl TARGET: gcc with musl's headers and library in place of its own, as musl-gcc does it.
build_musl() {
    local machine cc root begin end include
    machine=$(machine_of "$1")
    cc=$(compiler_for "$machine")
    command -v "$cc" >/dev/null || { echo "there is no $cc"; return 1; }
    root=$(musl_root "$machine") || { echo "musl-dev for it could not be fetched through apt-get"; return 1; }
    mkdir -p "$work/musl-$machine"
    ln -sfn "$root/lib/ld-musl-$machine.so.1" "$work/musl-$machine/libc.so"
    include=$("$cc" -print-file-name=include)
    begin=$("$cc" -print-file-name=crtbeginS.o) end=$("$cc" -print-file-name=crtendS.o)
    # shellcheck disable=SC2086
    "$cc" "${flags[@]}" -nostdinc -isystem "$root/usr/include/$machine-linux-musl" -isystem "$include" \
        -isystem "$(kernel_headers "$machine")" -nostdlib "${sources[@]}" \
        -o "$into/$1.node" "$begin" -L"$work/musl-$machine" -lc -lgcc "$end" ${EXTRA:-} >&2
}

build_glibc() {
    local cc
    cc=$(compiler_for "$(machine_of "$1")")
    if ! echo '#include <stdio.h>' | "$cc" -E - >/dev/null 2>&1; then
        echo "there is no $cc, or no C library for it"
        return 1
    fi
    # shellcheck disable=SC2086
    "$cc" "${flags[@]}" -include node/native/napi/glibc.h "${sources[@]}" -o "$into/$1.node" ${EXTRA:-} >&2
}

build() {
    local reason
    if reason=$("build_${1##*-}" "$1"); then
        echo "Built $into/$1.node ($(($(stat -c %s "$into/$1.node") / 1024)) KiB)"
    elif [ $all = 1 ] && [ -n "$reason" ]; then
        rm -f "$into/$1.node"
        echo "Left out $1: $reason"
    else
        echo "build.sh: $1: ${reason:-the compiler failed}" >&2
        exit 1
    fi
}

into=node/prebuilds
all=0
if [ "${1-}" = --into ]; then
    mkdir -p "$2"
    into=$2
    shift 2
fi
[ "${1-}" != --all ] || { all=1; shift; set -- "${targets[@]}"; }
[ $# != 0 ] || set -- "linux-$(echo "$host" | sed 's/x86_64/x64/; s/aarch64/arm64/')-glibc"
for target; do
    [[ " ${targets[*]} " == *" $target "* ]] || { echo "build.sh: unknown target $target" >&2; exit 2; }
done

libuv_headers
tools/amalgamate.sh build/amalgamation
if [ ! -d node/node_modules/node-api-headers ]; then
    npm ci --prefix node --ignore-scripts --no-audit --no-fund --loglevel=error || exit 75
fi
mkdir -p "$into"
for target; do build "$target"; done
