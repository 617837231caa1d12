#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil run --check reports an order of locks that can deadlock, and a thread that waits for itself.
. "$(dirname "$0")/common.sh"

expect 0 "$vigil" run -- "$INVERSION"
[ -z "$err" ] || fail "it says something without --check: $err"
expect 0 "$vigil" run --check -- "$INVERSION"
contains "$err" "vigil: lock order" "locked at other_way+0x" "one_way+0x" "(pthread_inversion)"
expect 0 "$vigil" run --check -- "$INVERSION" self
contains "$err" "vigil: self-deadlock" "locked at main+0x"
[ "$out" = 35 ] || fail "the second lock does not return EDEADLK: $out"
verdict
