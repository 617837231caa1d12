#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Other languages find every function in the shared library, also those that are inline in C; a program that knows
# nothing but the names uses them.
. "$(dirname "$0")/common.sh"

# An inline function is exported as well, or is only a part of another inline function.
cat "$stage"/include/vigil/*.h >"$scratch/headers"
sed -n 's/^static inline .*\(vigil_[a-z0-9_]*\)(.*/\1/p' "$scratch/headers" | sort -u >"$scratch/inline"
[ -s "$scratch/inline" ] || fail "no inline functions found"
nm -D --defined-only "$libdir/libvigil.so" | awk '{ sub("@.*", "", $3); print $3 }' | sort -u >"$scratch/exported"
comm -23 "$scratch/inline" "$scratch/exported" >"$scratch/parts"
while read -r part; do
    grep -q "^    .*\b$part(" "$scratch/headers" || fail "$part is inline, and the library does not export it"
done <"$scratch/parts"

# With VIGIL_NO_INLINE there are no inline functions.
echo '#include <vigil/vigil.h>' | "$CC" -E -P -DVIGIL_NO_INLINE -I"$stage/include" - >"$scratch/no_inline"
! grep -E 'static inline .*vigil_' "$scratch/no_inline" || fail "inline in spite of VIGIL_NO_INLINE"
comm -12 "$scratch/inline" "$scratch/exported" | while read -r function; do
    grep -q "\b$function(" "$scratch/no_inline" || fail "with VIGIL_NO_INLINE $function is not declared"
done
echo "$(comm -12 "$scratch/inline" "$scratch/exported" | wc -l) inline functions are exported"

"$CC" -std=c11 -D_GNU_SOURCE $warnings -UNDEBUG "$here/consumer/foreign.c" -o "$scratch/foreign" -pthread -ldl
"$scratch/foreign" "$libdir/libvigil.so"
