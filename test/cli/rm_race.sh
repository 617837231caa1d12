#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil rm, while another process is about to use the lock: that process comes first and it is not removed, or it is
# removed and the process creates it again. No process ever uses a lock that others do not find.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
gate=$scratch/gate
"${CC:-cc}" -shared -fPIC -o "$scratch/gate_unlink.so" "$here/gate_unlink.c" || exit 1

path=$scratch/lock
expect 0 "$vigil" lock "$path" -- true
file=$(stat -c %i "$path")
# It has seen that the segment is not in use, and is just about to remove it; then another process opens it.
ASAN_OPTIONS=verify_asan_link_order=0 GATE=$gate LD_PRELOAD=$scratch/gate_unlink.so "$VIGIL_DYNAMIC" rm "$path" &
removing=$!
until_true [ -e "$gate.begun" ]
"$vigil" lock "$path" -- "$hold" "$scratch/first" &
first=$!
has_it_open() { stat -L -c %i /proc/"$first"/fd/* | grep -qx "$file"; }
until_true has_it_open
touch "$gate"
wait $removing || fail "it was not removed"
until_true [ -e "$scratch/first.begun" ]
expect 124 "$vigil" lock "$path" --try -- true # two at once
expect 3 "$vigil" rm "$path"
touch "$scratch/first"
wait
until_true is_free "$path"
expect 0 "$vigil" rm "$path"

# A name, in the book: it is removed all the time, and commands never run at once.
: >"$scratch/log"
use() {
    for _ in {1..40}; do
        "$vigil" lock "$name" -- "$locking" alone "$scratch/inside" "$scratch/log" || echo failed >>"$scratch/log"
    done
}
until [ -e "$scratch/end" ]; do "$vigil" rm "$name" && echo removed >>"$scratch/removed"; done 2>/dev/null &
remover=$!
users=()
for _ in 1 2 3; do use & users+=($!); done
wait "${users[@]}" # by their ids: the numbers of jobs depend on which of the earlier ones the shell has forgotten
touch "$scratch/end"
wait $remover
[ "$(grep -c '^done' "$scratch/log")" = 120 ] || fail "$(grep -c '^done' "$scratch/log") of 120 commands have run"
! grep 'not alone' "$scratch/log" || fail "two at once"
! grep failed "$scratch/log" || fail "some have failed"
[ -s "$scratch/removed" ] || fail "it was never removed"
verdict
