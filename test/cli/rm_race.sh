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

# A name, in the book: commands use it, each at least 40 times, and go on until it has been removed three times between
# them. Commands never run at once, and all of them run.
: >"$scratch/log"
: >"$scratch/removed"
use() {
    local uses=0
    until [ $uses -ge 40 ] && [ "$(grep -c removed "$scratch/removed")" -ge 3 ]; do
        "$vigil" lock "$name" -- "$locking" alone "$scratch/inside" "$scratch/log" || echo failed >>"$scratch/log"
        echo used >>"$scratch/uses.$1"
        uses=$((uses + 1))
    done
}
until [ -e "$scratch/end" ]; do "$vigil" rm "$name" && echo removed >>"$scratch/removed"; done 2>/dev/null &
remover=$!
users=()
for user in 1 2 3; do use $user & users+=($!); done
wait "${users[@]}" # by their ids: the numbers of jobs depend on which of the earlier ones the shell has forgotten
touch "$scratch/end"
wait $remover
uses=$(cat "$scratch"/uses.* | wc -l)
[ "$(grep -c '^done' "$scratch/log")" = "$uses" ] || fail "$(grep -c '^done' "$scratch/log") of $uses commands have run"
! grep 'not alone' "$scratch/log" || fail "two at once"
! grep failed "$scratch/log" || fail "some have failed"
verdict
