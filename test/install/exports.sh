#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each shared library has its soname, exports every function that its headers declare, and nothing else. remote.h is of
# libvigil-etcd, the others are of libvigil, which needs the C library alone.
. "$(dirname "$0")/common.sh"

# check LIBRARY HEADER...
check() {
    local library=$1
    shift
    objdump -p "$libdir/$library.so" | grep -q "SONAME *$library\.so\.0\.1\$" ||
        fail "the soname is not $library.so.0.1"
    nm -D --defined-only "$libdir/$library.so" | awk '$2 != "A" { sub("@.*", "", $3); print $3 }' |
        sort >"$scratch/exported"
    # What follows VIGIL_API up to the parenthesis, or a variable's semicolon, ends in the name.
    cat "$@" | tr '\n' ' ' | grep -oE 'VIGIL_API [^(;]*[(;]' | grep -oE 'vigil_[a-z0-9_]*[(;]$' |
        tr -d '(;' | sort >"$scratch/declared"
    diff "$scratch/declared" "$scratch/exported" || fail "$library: declared (<) and exported (>) differ"
}

headers=()
for header in "$stage"/include/vigil/*.h; do
    [ "${header##*/}" = remote.h ] || headers+=("$header")
done
check libvigil "${headers[@]}"
[ -s "$scratch/declared" ] || fail "no declarations found"
[ ! -e "$libdir/libvigil-etcd.so" ] || check libvigil-etcd "$stage/include/vigil/remote.h"

# A sanitizer's runtime is its own matter.
needs=$(objdump -p "$libdir/libvigil.so" | awk '$1 == "NEEDED" && $2 !~ /^(libc\.|ld-|lib(a|t|ub)san\.)/ { print $2 }')
objdump -p "$libdir/libvigil.so" | grep -q 'NEEDED *libc\.' || fail "objdump does not tell what libvigil needs"
[ -z "$needs" ] || fail "libvigil needs $needs"
