#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Durations, counts and integers of all shapes.
. "$(dirname "$0")/common.sh"

expect 0 "$vigil" create "$name"

# The word is 0, so a wait that expects 1 exits with 1 at once, however long its timeout, if the value is understood.
for good in 0 7ns 20us 250ms 30s 5m 1.5h 2d 5 0.001 0.123456789h 1.000000001s 100000d 0h; do
    expect 1 "$vigil" wait "$name" 1 --timeout "$good"
done
for bad in "" - -1 -5s 1x 1S 1MS 1ms2 1m30s s ms . 1. .5 1..5 1.5.5s 1e3 0x10 +1 " 1" "1 " 1,5s inf nan forever \
    0.0000000001s 99999999999999999999999x --1; do
    expect 64 "$vigil" wait "$name" 1 --timeout "$bad"
    contains "$err" "--timeout: invalid duration '$bad'" "30s"
done
for long in 9223372037s 9223372036854775807ns 18446744073709551616 99999999999999999999999 300000000d 106752d \
    106751.999d 99999999999999999999999ns; do
    expect 64 "$vigil" wait "$name" 1 --timeout "$long"
    contains "$err" "--timeout $long is too long: the maximum is 106751d"
done
expect 1 "$vigil" wait "$name" 1 --timeout 106751d

# They are never shorter than they say.
for timeout in 30ms 0.03 30000us 0.0005m 29.9999999ms; do
    expect 2 "$vigil" wait "$name" 0 --timeout "$timeout" --json
    [[ $out =~ \"waited_ns\":([0-9]+) && ${BASH_REMATCH[1]} -ge 30000000 ]] || fail "$timeout was too short: $out"
done
expect 2 "$vigil" wait "$name" 0 --timeout 0

# bytes TEXT: what that becomes as a length.
bytes() {
    expect 0 "$vigil" create "$name-size" --length "$1"
    "$vigil" ls "$name-size" --json | sed -E 's/.*"bytes":([0-9]+).*/\1/'
    "$vigil" rm "$name-size"
}
while read -r text value; do
    got=$(bytes "$text")
    [ "$got" = "$value" ] || fail "--length $text became $got"
done <<'END'
1 1
64 64
0x40 64
0X1f 31
4k 4096
4K 4096
1M 1048576
0x2k 2048
007 7
END
for bad in "" - -1 k 4kk 4q 1.5k 0x 0xg 99999999999999999999 16777216T " 4" "4 " 4k0 +4 1e3; do
    expect 64 "$vigil" create "$name-size" --length "$bad"
    contains "$err" "--length: invalid number '$bad'"
done
for bad in 0 -1 99999999999999999999 70k 4294967297; do expect 64 "$vigil" create "$name-size" --members "$bad"; done
for bad in 0 -1 99999999999999999999 2M 4294967297; do expect 64 "$vigil" create "$name-size" --waiters "$bad"; done
for bad in "" 0 0000 8 rw 0400 0200 0777 1600 06600 -1 660x; do
    expect 64 "$vigil" create "$name-size" --mode "$bad"
done
expect 64 "$vigil" create "$name-size" --length 8k --max-length 4k
expect 3 "$vigil" load "$name-size" # none of them has made one

# What is stored is loaded again: the bit pattern, read as signed.
while read -r type text value; do
    expect 0 "$vigil" store "$name" "$text" --type "$type"
    expect 0 "$vigil" load "$name" --type "$type"
    [ "$out" = "$value" ] || fail "$text as $type became $out"
done <<'END'
i32 0 0
i32 -0 0
i32 -1 -1
i32 2147483647 2147483647
i32 -2147483648 -2147483648
i32 4294967295 -1
i32 0xffffffff -1
i32 0x80000000 -2147483648
i32 -0x10 -16
i64 9223372036854775807 9223372036854775807
i64 -9223372036854775808 -9223372036854775808
i64 18446744073709551615 -1
i64 0xFFFFFFFFFFFFFFFE -2
i64 4294967296 4294967296
END
expect 0 "$vigil" store "$name" 4294967295 --json
contains "$out" '"value":-1}'
for bad in 4294967296 -2147483649 0x100000000; do
    expect 64 "$vigil" store "$name" "$bad"
    contains "$err" "$bad" "--type i64"
    expect 64 "$vigil" wait "$name" "$bad"
    expect 64 "$vigil" add "$name" "$bad"
    expect 64 "$vigil" cas "$name" 0 "$bad"
done
for bad in "" - x 1x 1.0 0x " 1" "1 " +1 1e3 4k; do
    expect 64 "$vigil" store "$name" -- "$bad"
    contains "$err" "invalid integer"
done
for bad in 18446744073709551616 -9223372036854775809 99999999999999999999999999; do
    expect 64 "$vigil" store "$name" "$bad" --type i64
done
for bad in "" i16 I32 int u32 i32i32 32; do
    expect 64 "$vigil" load "$name" --type "$bad"
    contains "$err" "i32 or i64"
done

verdict
