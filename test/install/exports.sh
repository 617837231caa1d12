#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The shared library has its soname, exports every function the headers declare, and nothing else.
. "$(dirname "$0")/common.sh"
objdump -p "$libdir/libvigil.so" | grep -q 'SONAME *libvigil\.so\.0\.1$' || fail "the soname is not libvigil.so.0.1"

nm -D --defined-only "$libdir/libvigil.so" | awk '$2 != "A" { sub("@.*", "", $3); print $3 }' |
    sort >"$scratch/exported"
# What follows VIGIL_API up to the parenthesis, or a variable's semicolon, ends in the name.
cat "$stage"/include/vigil/*.h | tr '\n' ' ' | grep -oE 'VIGIL_API [^(;]*[(;]' | grep -oE 'vigil_[a-z0-9_]*[(;]$' |
    tr -d '(;' | sort >"$scratch/declared"
[ -s "$scratch/declared" ] || fail "no declarations found"
diff "$scratch/declared" "$scratch/exported" || fail "declared (<) and exported (>) differ"
