#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil sem: never more than there are slots, slots of killed processes come back, and bad input.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

# Exit statuses, as of vigil lock.
expect 0 "$vigil" sem "$name" --slots 3 -- true
expect 7 "$vigil" sem "$name" --slots 3 -- sh -c 'exit 7'
expect 138 "$vigil" sem "$name" --slots=3 sh -c 'kill -USR1 $$'
expect 127 "$vigil" sem "$name" --slots 3 -- ./no-such-command
expect 126 "$vigil" sem "$name" --slots 3 -- "$scratch"
expect 125 "$vigil" sem "$name" --slots 3
expect 125 "$vigil" sem --slots 3
expect 125 "$vigil" sem a/b --slots 3 -- true
for slots in 0 16777216 99999999999999999999 many 0% % + - +-1 -50% 1.5; do
    expect 125 "$vigil" sem "$name" --slots $slots -- true
done

# How many there are is decided once.
expect 0 "$vigil" sem "$name" -- true
expect 125 "$vigil" sem "$name" --slots 4 -- true
contains "$err" "$name has 3 slots, not 4" "vigil sem $name --set-slots 4"
expect 125 "$vigil" sem "$name-none" -- true
contains "$err" "there is no semaphore $name-none: create it with --slots N"
expect 125 "$vigil" sem "$name-none" --json -- true
contains "$err" '"status":"not-found"'
expect 0 "$vigil" rm "$name"
expect 0 "$vigil" sem "$name" --slots 16777215 -- true
expect 0 "$vigil" rm "$name"
expect 0 "$vigil" lock "$name-lock" -- true
expect 125 "$vigil" sem "$name-lock" --slots 2 -- true
contains "$err" "$name-lock is a lock, not a semaphore" "vigil rm $name-lock"
expect 0 "$vigil" create "$name-words"
expect 125 "$vigil" sem "$name-words" -- true
contains "$err" "words"

# Two slots, and a third process that waits.
start_hold() { # FILE: holds a slot until FILE exists; its pid is in $!
    "$vigil" sem "$name" --slots 2 -- "$hold" "$1" 2>/dev/null &
    until_true [ -e "$1.begun" ]
}
start_hold "$scratch/one"
first=$!
start_hold "$scratch/two"
expect 124 "$vigil" sem "$name" --try -- true
expect 124 "$vigil" sem "$name" --timeout 50ms -- true
"$vigil" sem "$name" --slots 2 --wait-status -- "$hold" "$scratch/three" 2>"$scratch/status" &
until_true in_line 1 "$name"
until_true grep -q "1st in line of 1.*held by 2" "$scratch/status"
[ ! -e "$scratch/three.begun" ] || fail "three of two"

# A process that is interrupted while it waits leaves no trace.
"$locking" end "$scratch/end" "$vigil" sem "$name" -- touch "$scratch/wrong" &
until_true in_line 2 "$name"
kill -INT "$(sed -n 's/^begun //p' "$scratch/end")"
until_true has_line "$scratch/end" "signal 2"
in_line 1 "$name" || fail "there is a trace in the line"
has_members 3 "$name" || fail "there is a member left"

# A killed process gives its slot back, and its command is gone: the third begins, and there is no slot for a fourth.
kill -KILL $first
until_true [ -e "$scratch/three.begun" ]
until_true is_gone "$(cat "$scratch/one.begun")"
expect 124 "$vigil" sem "$name" --try -- true
touch "$scratch/two" "$scratch/three"
{ wait; } 2>/dev/null
[ ! -e "$scratch/wrong" ] || fail "a command has run that should not have"
until_true is_free "$name"
expect 0 "$vigil" sem "$name" -- "$vigil" sem "$name" -- true # both are there again
expect 124 "$vigil" sem "$name" -- "$vigil" sem "$name" -- "$vigil" sem "$name" --try -- true

# As JSON.
expect 4 "$vigil" sem "$name" --json -- sh -c 'exit 4'
contains "$err" '{"event":"granted",' '"waited_ns":0' '{"event":"done","exit_status":4,'

# A crowd.
: >"$scratch/log"
mkdir "$scratch/slots"
crowd() {
    local i
    for ((i = 0; i < 25; i++)); do
        "$vigil" sem "$name-crowd" --slots 3 -- "$locking" among 3 "$scratch/slots" "$scratch/log" ||
            echo "failed" >>"$scratch/log"
    done
}
for i in {1..8}; do
    crowd &
done
wait
[ "$(grep -c '^done' "$scratch/log")" = 200 ] || fail "only $(grep -c '^done' "$scratch/log") of 200 have run"
! grep 'too many' "$scratch/log" || fail "more than three at once"
! grep 'failed' "$scratch/log" || fail "some of the crowd have failed"
until_true is_free "$name-crowd"
verdict
