#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# vigil trace: a line with waits and holds that began before the recording, a death, a waiter that gives up; what is
# written of it is well-formed, and true.
. "$(dirname "$0")/common.sh"
pid_first='' pid_second='' pid_third='' pid_fourth='' # set by hold
trace=$scratch/trace.json picture=$scratch/trace.svg

# hold NAME: a process that wants the lock; it has it when $scratch/NAME is there, until $scratch/NAME-ends is.
hold() {
    local holder=$1
    "$vigil" lock "$name" --fair -- sh -c \
        "touch '$scratch/$holder'; until [ -e '$scratch/$holder-ends' ]; do sleep 0.01; done" 2>"$scratch/$holder-err" &
    eval "pid_$holder=$!"
}
in_line() { [ "$("$vigil" show "$name" --json | grep -o '"called":' | wc -l)" = "$1" ]; }
is_recording() { grep -q recording "$1"; }

# --- a segment that is not there, files that cannot be written, and nonsense.
expect 3 "$vigil" trace "$name-none" -o "$trace"
contains "$err" "$name-none"
[ ! -e "$trace" ] || fail "a file of a segment that is not there"
hold first
until_true test -e "$scratch/first"
expect 3 "$vigil" trace "$name" -o "$scratch/no/such/folder.json"
contains "$err" "no/such/folder.json" "No such file"
[[ $err != *recording* ]] || fail "it recorded before it said that it cannot write"
expect 3 "$vigil" trace "$name" -o "$scratch" --json
contains "$out" '"status":"system"' "Is a directory"
echo "of before" >"$scratch/keep.json" # what is there stays until there is something else
expect 3 "$vigil" trace "$name" -o "$scratch/keep.json" --svg "$scratch/no/such/folder.svg"
[ "$(cat "$scratch/keep.json")" = "of before" ] || fail "a file was emptied, and nothing written"
head -c 9999 /dev/zero >"$scratch/keep.json"
expect 0 "$vigil" trace "$name" -o "$scratch/keep.json" --for 0
contains "$(tail -c 3 "$scratch/keep.json")" "]}"
expect 64 "$vigil" trace "$name"
contains "$err" "-o FILE"
expect 64 "$vigil" trace -o "$trace"
expect 64 "$vigil" trace "$name" -o - --svg -
expect 64 "$vigil" trace "$name" -o - --json
expect 64 "$vigil" trace "$name" -o "$trace" --for soon
expect 3 "$vigil" trace "$name" -o /dev/full --for 0
contains "$err" "/dev/full"

# --- the scene: first holds; second and third stand in line before the recording, fourth comes after; fifth gives up.
hold second
until_true in_line 1
hold third
until_true in_line 2
"$vigil" trace "$name" -o "$trace" --svg "$picture" --json >"$scratch/summary" 2>"$scratch/trace-err" &
tracer=$!
until_true is_recording "$scratch/trace-err"
hold fourth
until_true in_line 3
"$vigil" lock "$name" --fair -- true &
fifth=$!
until_true in_line 4
kill $fifth
wait $fifth 2>/dev/null
touch "$scratch/first-ends"
until_true test -e "$scratch/second"
kill -KILL "$pid_second" # with the lock held
until_true test -e "$scratch/third"
contains "$(cat "$scratch/third-err")" "was killed"
touch "$scratch/third-ends"
until_true test -e "$scratch/fourth"
touch "$scratch/fourth-ends"
wait "$pid_first" "$pid_third" "$pid_fourth" || fail "fourth failed"
kill -INT $tracer
wait $tracer || fail "vigil trace, interrupted: $? $(cat "$scratch/trace-err")"
summary=$(cat "$scratch/summary")
contains "$summary" '"status":"ok"' '"lost":0' '"deaths":1' "\"file\":\"$trace\"" "\"svg\":\"$picture\""

# --- what is in the file.
contains "$(cat "$trace")" '"traceEvents":[' '"name":"holds lock"' '"name":"waits at turnstile"' '"name":"died"' \
    "\"name\":\"pid $pid_first:" '"ph":"s"' '"ph":"f"' '"ph":"C"' '"end":"gave up"' '"end":"its process died"'
cat >"$scratch/check.py" <<'END'
import json, sys
from collections import defaultdict
from slices import check_nested, ns

path, (first, killed, third, fourth) = sys.argv[1], map(int, sys.argv[2:])
events = json.load(open(path))["traceEvents"]
slices, flows, counters = defaultdict(list), defaultdict(dict), defaultdict(list)
for e in events:
    if e["ph"] == "X":
        assert e["ts"] >= 0 and e["dur"] >= 0, e
        slices[e["pid"], e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e))
    elif e["ph"] in "sf":
        assert e["ph"] not in flows[e["id"]], e
        flows[e["id"]][e["ph"]] = e
    elif e["ph"] == "C":
        counters[e["name"]].append(e["args"]["waiting"])

check_nested(slices.values())

assert flows
for flow in flows.values():
    assert flow["s"]["ts"] <= flow["f"]["ts"], flow
    for e in flow.values():
        assert any(b <= ns(e["ts"]) <= end for b, end, _ in slices[e["pid"], e["tid"]]), e

everything = [s for lane in slices.values() for s in lane]
holds = sorted((s for s in everything if s[2]["name"] == "holds lock"), key=lambda s: s[:2])
for (_, end, _), (begin, _, _) in zip(holds, holds[1:]):
    assert end <= begin, holds
assert not [s for s in everything if s[2]["name"] == "holds turnstile"], everything
holders = [h[2]["pid"] for h in holds]
assert list(dict.fromkeys(holders)) == [first, killed, third, fourth], holds
assert [h[2]["args"]["end"] for h in holds if h[2]["pid"] == killed] == ["its process died"], holds
assert (holds[0][0], holds[0][2]["pid"]) == (0, first), holds[0]
waits = {s[2]["pid"]: s for s in sorted(everything, key=lambda s: -s[0]) if s[2].get("cat") == "wait"}
assert len(waits) == 4 and waits[third][0] == 0 and waits[killed][0] == 0, waits

deaths = [e["pid"] for e in events if e["ph"] == "i" and e["name"] == "died"]
assert deaths == [killed], deaths
line = counters["line at turnstile"]
assert min(line) == 0 and max(line) == 4 and line[-1] == 0, line
END
if command -v python3 >/dev/null; then
    PYTHONPATH=$here python3 -B "$scratch/check.py" "$trace" \
        "$pid_first" "$pid_second" "$pid_third" "$pid_fourth" >&2 || fail "$(cat "$trace")"
fi

# --- the picture: rows, a cross, arrows; well-formed.
svg=$(cat "$picture")
contains "$svg" "$pid_first</tspan>" "$pid_second</tspan>" "$pid_fourth</tspan>" 'class="mark"' 'class="over"' \
    "holds lock" "died" "prefers-color-scheme:dark"
if command -v xmllint >/dev/null; then
    xmllint --noout "$picture" || fail "the picture is not well-formed"
elif command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$picture" ||
        fail "the picture is not well-formed"
fi

# --- for a while, to the standard output, of a segment in which nothing happens; names that are not harmless.
expect 0 "$vigil" trace "$name" -o - --for 10ms
contains "$out" '"events":0' '"traceEvents":['
expect 0 "$vigil" trace "$name" --svg - --for 0
contains "$out" "There were no waits." "</svg>"
cp "$(command -v sleep)" "$scratch/<&\">"
"$vigil" lock "$name" -- "$scratch/<&\">" 600 &
odd=$!
holds_it() { "$vigil" show "$name" | grep -q " holds "; }
until_true holds_it
expect 0 "$vigil" trace "$name" --svg - -o "$trace" --for 0s
contains "$out" "&lt;&amp;"
if command -v xmllint >/dev/null; then
    xmllint --noout - <<<"$out" || fail "a strange name makes the picture malformed"
fi
kill $odd
wait $odd 2>/dev/null

# --- what vigil lock runs, and not what follows another "--".
"$vigil" lock "$name" sh -c "exec sleep 600" -- decoy &
odd=$!
until_true holds_it
expect 0 "$vigil" trace "$name" --svg - --for 0s
contains "$out" "</tspan> sh -c exec sleep 600"
kill $odd
wait $odd 2>/dev/null

# --- on a terminal it shows how far it is; not on one that cannot draw over what it shows.
build terminal
for term in xterm dumb; do
    "$terminal" "$scratch/$term" env TERM=$term "$vigil" trace "$name" -o "$trace" --for 300ms </dev/null ||
        fail "on a terminal, $term: $(cat "$scratch/$term")"
done
contains "$(cat "$scratch/xterm")" $'\033[K'"$name: 0 events"
contains "$(cat "$scratch/dumb")" "recording $name"
[[ $(cat "$scratch/dumb") != *$'\033'* ]] || fail "a dumb terminal: $(cat -v "$scratch/dumb")"
"$terminal" "$scratch/json" env TERM=xterm "$vigil" trace "$name" -o "$trace" --json --for 300ms </dev/null
contains "$(cat "$scratch/json")" '{"status":"ok"'
[[ $(cat "$scratch/json") != *$'\033'* ]] || fail "progress, with --json: $(cat -v "$scratch/json")"

# --- a signal of another kind.
"$vigil" trace "$name" -o "$trace" 2>"$scratch/again-err" >"$scratch/again" &
tracer=$!
until_true is_recording "$scratch/again-err"
kill -TERM $tracer
wait $tracer || fail "vigil trace, terminated: $?"
contains "$(cat "$scratch/again")" "$trace" "perfetto"
contains "$(tail -c 3 "$trace")" "]}"
verdict
