#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that hangs is asked why, from outside and by a signal.
. "$(dirname "$0")/common.sh"

dies_with_us "$vigil" run -- "$DEADLOCK" 2>"$scratch/report" &
pid=$!
shows() { "$vigil" show $pid | grep -q "$1"; }
until_true shows "^vigil: process $pid (pthread_deadloc): 4 threads in 3 lines"

expect 0 "$vigil" show $pid
contains "$out" "accounts (pthread_deadlock): held by thread" "locked at book+0x" \
    "ledger (pthread_deadlock): held by thread" "locked at audit+0x" "condition 0x" "never (pthread_deadlock)" \
    "at look+0x" "at main+0x" \
    "deadlock: these wait for each other" "waits for mutex"
[ "$(grep -c ' waits for mutex' <<<"$out")" = 2 ] || fail "the circle has not two threads: $out"
[ "$(grep -c '^deadlock' <<<"$out")" = 1 ] || fail "there is not one circle: $out"
text=$(sed 's/for [0-9.]* s/for a while/' <<<"$out")

expect 0 "$vigil" show $pid --json
if command -v python3 >/dev/null; then
    python3 - "$pid" "$out" <<'PYTHON' || fail "that JSON is not as it should be: $out"
import json, sys
report = json.loads(sys.argv[2])
assert report["pid"] == int(sys.argv[1]) and report["waiting"] == 4 and len(report["locks"]) == 3
[deadlock] = report["deadlocks"]
circle = deadlock["circle"]
assert deadlock["certain"]
assert {step["thread"] for step in circle} == {step["held_by"] for step in circle} and len(circle) == 2
accounts = next(lock for lock in report["locks"] if lock["name"].startswith("accounts"))
assert len(accounts["waiters"]) == 2 and accounts["holder"] in {step["thread"] for step in circle}
PYTHON
fi

# The same on its standard error.
[ ! -s "$scratch/report" ] || fail "vigil show makes the program print: $(cat "$scratch/report")"
kill -USR2 $pid
is_reported() { [ "$(grep -c ' waits for mutex' "$scratch/report")" = 2 ]; }
until_true is_reported
report=$(sed 's/for [0-9.]* s/for a while/' "$scratch/report")
[ "$report" = "$text" ] || fail "the signal's report is another one: $report"
kill -KILL $pid
wait $pid 2>/dev/null

# A process that is none of ours, and one that has the signal for itself.
dies_with_us sleep 600 &
other=$!
expect 3 "$vigil" show $other
contains "$err" "does not use Vigil's locks"
kill $other
dies_with_us "$vigil" run --signal none -- sleep 600 &
other=$!
maps_it() { grep -q libvigil-pthread /proc/$other/maps; }
until_true maps_it
says() { "$vigil" show $other 2>&1 | grep -q "uses the signal itself"; }
until_true says
kill $other

# One that waits for the end of a thread, which waits for it.
dies_with_us "$vigil" run -- "$DEADLOCK" join &
pid=$!
until_true shows "^deadlock: "
expect 0 "$vigil" show $pid
contains "$out" "waits for end of thread" "at wait_for_joiner+0x" "waits for mutex"
expect 0 "$vigil" show $pid --json
contains "$out" '"kind":"end of thread"' '"deadlocks":[{"certain":true'

# One that waits for readers.
dies_with_us "$vigil" run -- "$DEADLOCK" read &
pid=$!
until_true shows "1 thread in 1 line"
expect 0 "$vigil" show $pid
contains "$out" "rwlock 0x" "prices" ": held by 2 readers" "to write, at "

# Another signal.
dies_with_us "$vigil" run --signal USR1 -- "$DEADLOCK" 2>"$scratch/report" &
pid=$!
until_true shows "4 threads in 3 lines"
expect 0 "$vigil" show $pid
contains "$out" "deadlock: "
verdict
