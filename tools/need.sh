#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# need.sh build|test|bench|deb|node|web - see to it that the programs and libraries for this are there.
#
# What is missing is named and installed through apt-get, as root or by sudo; etcd is only unpacked, into build/etcd.
# When nothing is missing, nothing is done and no privilege is needed. When it cannot be installed: what is required
# ends the command with the list of packages; what is optional is left out, and the test that would use it reports that
# it was skipped.
set -u
cd "$(dirname "$0")/.." || exit 1
target=$1

has() { command -v "$1" >/dev/null; }
has_header() { echo "#include <$1>" | gcc -E - >/dev/null 2>&1; }
has_clang_runtime() { echo 'int main(void){return 0;}' | clang -fsanitize=address -x c - -o /dev/null 2>/dev/null; }
has_chromium() { has chromium || has google-chrome || has chromium-browser; }
has_firefox() { has firefox-esr || has firefox; }
has_library() { ldconfig -p | grep -q "$1"; }
has_wasm_headers() { [ -f /usr/include/wasm32-wasi/stdio.h ]; }
has_etcd() { has etcd || [ -x build/etcd/usr/bin/etcd ]; }
has_etcdctl() { has etcdctl || [ -x build/etcd/usr/bin/etcdctl ]; }
has_arm_libc() { echo '#include <stdio.h>' | aarch64-linux-gnu-gcc -E - >/dev/null 2>&1; }

# need KIND PACKAGE REASON CHECK...: remember the package if the check fails.
need() {
    local kind=$1 package=$2 reason=$3
    shift 3
    "$@" 2>/dev/null && return
    missing[$kind]+=" $package"
    reasons+="  $(printf '%-24s' "$package") $reason"$'\n'
}

need_etcd_library() {
    need optional libnghttp2-dev "libvigil-etcd: HTTP/2" has_header nghttp2/nghttp2.h
    need optional libssl-dev "libvigil-etcd: TLS" has_header openssl/ssl.h
    need optional libprotobuf-c-dev "libvigil-etcd: messages" has_header protobuf-c/protobuf-c.h
    need optional protobuf-c-compiler "libvigil-etcd: messages" has protoc-c
    need optional libc-ares-dev "libvigil-etcd: names of servers" has_header ares.h
    need optional pkg-config "finds these" has pkg-config
}

# Unpacked, not installed: the package would start a server.
need_etcd() {
    need unpacked etcd-server "a cluster for the tests of libvigil-etcd" has_etcd
    need unpacked etcd-client "sets up users there" has_etcdctl
}

look() {
    declare -gA missing=([required]="" [optional]="" [unpacked]="")
    reasons=""
    need required gcc "the compiler" has gcc
    need required libc6-dev "the C library's headers" has_header stdio.h
    need required cmake "the build" has cmake
    need optional libncurses-dev "vigil top" has_header curses.h
    case $target in
    build | test | bench | deb) need_etcd_library ;;
    esac
    case $target in
    test)
        need_etcd
        need optional openssl "certificates for the tests of libvigil-etcd" has openssl
        need required g++ "checks that the headers are C++ as well" has g++
        need required pkg-config "checks that an installed Vigil is found by it" has pkg-config
        need required libcmocka-dev "the unit tests" has_header cmocka.h
        need optional clang "the second compiler, and the fuzzer" has clang
        need optional libclang-rt-14-dev "clang's sanitizers and fuzzer" has_clang_runtime
        need optional gcc-aarch64-linux-gnu "the tests on aarch64" has aarch64-linux-gnu-gcc
        need optional libc6-dev-arm64-cross "the tests on aarch64" has_arm_libc
        need optional qemu-user "runs the tests on aarch64" has qemu-aarch64
        need optional spin "checks the model" has spin
        need optional libuv1-dev "the libuv adapter's tests" has_header uv.h
        need optional libglib2.0-dev "the GLib adapter's tests" pkg-config --exists glib-2.0
        need optional libevent-dev "the libevent adapter's tests" has_header event2/event.h
        need optional systemtap-sdt-dev "the tracing probes and their test" has_header sys/sdt.h
        need optional musl-tools "the tests with musl" has musl-gcc
        need optional nodejs "the tests of the package for Node, and of WebAssembly" has node
        need optional clang-19 "the compiler for WebAssembly" has clang-19
        need optional lld-19 "its linker" has wasm-ld-19
        need optional wasi-libc "its headers" has_wasm_headers
        need optional npm "makes that package" has npm
        need optional chromium "the tests of the package for the browser" has_chromium
        need optional firefox-esr "the same in another browser" has_firefox
        need optional dpkg-dev "the test of the Debian packages" has dpkg-gencontrol
        need optional tmux "a terminal for the tests of vigil top and vigil demo" has tmux
        need optional mandoc "checks the manual pages" has mandoc
        need optional busybox "its shell, for the test of scripts that lock" has busybox
        need optional zsh "the test of its completions" has zsh
        need optional fish "the test of its completions" has fish
        need required python3 "a program for vigil run" has python3
        need required redis-tools "a program for vigil run" has redis-check-rdb
        need required xz-utils "a program for vigil run" has xz
        need optional sysbench "a program for vigil run" has sysbench
        need optional stress-ng "a program for vigil run" has stress-ng
        need optional libjemalloc2 "an allocator for vigil run" has_library libjemalloc.so
        need optional libtcmalloc-minimal4 "an allocator for vigil run" has_library libtcmalloc_minimal.so
        ;;
    node)
        need required nodejs "the package is for it" has node
        need required npm "makes the package" has npm
        need required libuv1-dev "libuv's headers; the library itself is in Node" has_header uv.h
        need optional musl-tools "the binary for musl" has musl-gcc
        need optional gcc-aarch64-linux-gnu "the binaries for arm64" has aarch64-linux-gnu-gcc
        need optional libc6-dev-arm64-cross "the binaries for arm64" has_arm_libc
        ;;
    web)
        need required nodejs "builds the package, and serves its pages" has node
        need required npm "brings esbuild and wasm-opt" has npm
        need required clang-19 "compiles the library to WebAssembly" has clang-19
        need required lld-19 "links it" has wasm-ld-19
        need required wasi-libc "headers of a C library for WebAssembly" test -e /usr/include/wasm32-wasi/stdlib.h
        ;;
    deb)
        need required dpkg-dev "makes the packages' descriptions" has dpkg-gencontrol
        ;;
    bench)
        need_etcd
        need optional g++ "a peer: C++20 atomic wait" has g++
        need optional libuv1-dev "a peer: libuv" has_header uv.h
        need optional libnsync-dev "a peer: nsync" has_header nsync.h
        need optional libabsl-dev "a peer: Abseil" has_header absl/base/config.h
        need optional libboost-dev "a peer: Boost.Interprocess" has_header boost/version.hpp
        need optional nodejs "a peer: V8; the packages for Node and the browser" has node
        need optional npm "makes these packages" has npm
        need optional clang-19 "the package for the browser" has clang-19
        need optional lld-19 "the same" has wasm-ld-19
        need optional wasi-libc "the same" has_wasm_headers
        need optional chromium "runs it" has_chromium
        ;;
    esac
}

sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo

apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" \
        >>"$log" 2>&1 </dev/null
}

# unpack PACKAGE: into build/etcd.
unpack() {
    mkdir -p build/etcd
    (cd build/etcd && apt-get -q download "$1" && dpkg -x "$1"_*.deb . && rm -f "$1"_*.deb) >>"$log" 2>&1 </dev/null
}

look
packages="${missing[required]}${missing[optional]}"
[ -n "$packages${missing[unpacked]}" ] || exit 0

echo "Vigil: missing for this:"
printf '%s' "$reasons"
if has apt-get && has ${sudo:-true} && $sudo true; then
    mkdir -p build
    log=build/apt.log
    echo "Installing through ${sudo:+$sudo }apt-get (details in $log) ..."
    apt update
    # One unknown package would spoil the rest: if all together fail, each on its own.
    # shellcheck disable=SC2086
    [ -z "$packages" ] || apt install $packages || for package in $packages; do apt install "$package"; done
    for package in ${missing[unpacked]}; do unpack "$package"; done
    look
else
    echo "Cannot install it: no apt-get, or neither root nor sudo."
fi

if [ -n "${missing[required]}" ]; then
    [ -z "${log:-}" ] || tail -n 5 "$log"
    echo "Cannot go on. Please install:${missing[required]}"
    exit 1
fi
without=${missing[optional]}${missing[unpacked]}
[ -z "$without" ] || echo "Going on without:$without"
