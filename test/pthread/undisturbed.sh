#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whoever looks at a program does not end a sleep or wait of it, where there is a thread to be asked that waits.
. "$(dirname "$0")/common.sh"

# look_at MODE WAITING: many times, and by all means.
look_at() {
    dies_with_us "$vigil" run -- "$OBSERVED" "$1" >"$scratch/out" 2>&1 &
    pid=$!
    waits() { "$vigil" show $pid --json | grep -q "\"waiting\":$1,"; }
    until_true waits "$2"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        expect 0 "$vigil" show $pid
        expect 0 "$vigil" show $pid --json
        [ ! -x "${vigil%/*}/vigil-top" ] || expect 0 "$vigil" top --once $pid
        expect 0 "$vigil" trace $pid -o "$scratch/trace" --for 0
    done
    { kill -KILL $pid; wait $pid; } 2>/dev/null
    [ ! -s "$scratch/out" ] || fail "looking at it disturbs it: $(sort "$scratch/out" | uniq -c)"
}
look_at hold 2
look_at take 1

# Where no thread waits none is asked: the program, which sleeps, is not woken.
dies_with_us "$vigil" run -- bash -c 'echo ready; exec sleep 600' >"$scratch/out" 2>&1 &
pid=$!
is_sleep() { [ "$(cat /proc/$pid/comm)" = sleep ] && "$vigil" show $pid; }
until_true is_sleep
before=$(sed -n 's/^voluntary_ctxt_switches:\t//p' /proc/$pid/status)
expect 0 "$vigil" show $pid
[ "$out" = "vigil: process $pid (sleep): no thread waits" ] || fail "it says: $out"
expect 0 "$vigil" show $pid --json
contains "$out" '"status":"ok"' "\"pid\":$pid" '"waiting":0' '"locks":[]' '"deadlocks":[]'
[ "$(sed -n 's/^voluntary_ctxt_switches:\t//p' /proc/$pid/status)" = "$before" ] || fail "it has been woken"

# Two at once each get their own.
dies_with_us "$vigil" run -- "$OBSERVED" hold >"$scratch/out" 2>&1 &
pid=$!
until_true waits 2
ask() {
    local i
    for ((i = 0; i < 20; i++)); do "$vigil" show $pid $1 | grep -q "$2" || echo "no $2" >>"$scratch/wrong"; done
}
ask --json '^{"status":"ok".*}$' &
first=$!
ask "" "^vigil: process $pid (pthread_observe): 2 threads in 2 lines"
wait $first
[ ! -e "$scratch/wrong" ] || fail "answers are mixed up: $(sort "$scratch/wrong" | uniq -c)"
[ ! -s "$scratch/out" ] || fail "looking at it disturbs it: $(cat "$scratch/out")"
verdict
