#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Looking at a program ends no sleep or wait of it, as long as a thread can be asked that waits.
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

# Where no thread waits none is asked: the program, which sleeps, is not interrupted.
dies_with_us "$vigil" run -- "$OBSERVED" sleep >"$scratch/out" 2>&1 &
pid=$!
is_ready() { grep -q ready "$scratch/out"; }
until_true is_ready
for _ in 1 2 3 4 5; do
    expect 0 "$vigil" show $pid
    [ "$out" = "vigil: process $pid (pthread_observe): no thread waits" ] || fail "it says: $out"
    expect 0 "$vigil" show $pid --json
    contains "$out" '"status":"ok"' "\"pid\":$pid" '"waiting":0' '"locks":[]' '"deadlocks":[]'
done
{ kill -KILL $pid; wait $pid; } 2>/dev/null
[ "$(cat "$scratch/out")" = ready ] || fail "looking at it disturbs it: $(sort "$scratch/out" | uniq -c)"

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
[ ! -e "$scratch/wrong" ] || fail "reports are mixed up: $(sort "$scratch/wrong" | uniq -c)"
[ ! -s "$scratch/out" ] || fail "looking at it disturbs it: $(cat "$scratch/out")"
verdict
