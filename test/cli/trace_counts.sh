#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil trace of seven commands at one lock, of which one is killed: on the terminal, in JSON, in the picture and in the
# Chrome trace there are as many holds, deaths and hand-overs as there were.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }

# hold NUMBER OPTION: a command that wants the lock; it has it when $scratch/NUMBER is there, until NUMBER-ends is.
hold() {
    # shellcheck disable=SC2086 # none, or one
    "$vigil" lock "$name" $2 -- sh -c \
        "touch '$scratch/$1'; until [ -e '$scratch/$1-ends' ]; do sleep 0.01; done" 2>"$scratch/$1-err" &
    pids[$1]=$!
}
in_line() { [ "$("$vigil" show "$name" --json | grep -o '"called":' | wc -l)" = "$1" ]; }
is_recording() { grep -q recording "$scratch/trace-err"; }
has_it() { for holder in $waiting; do [ -e "$scratch/$holder" ] && return; done; return 1; }

# run OPTIONS OUTPUT: the seven, one after the other; OPTIONS has one for each, or none. The fourth to get the lock is
# killed. The order in which they got it is in $order.
run() {
    local number=0 options option holder waiting="1 2 3 4 5 6 7"
    read -r -a options <<<"$1"
    pids=() order=()
    rm -f "$scratch"/[1-7] "$scratch"/[1-7]-ends "$scratch/trace-err"
    "$vigil" lock "$name" --fair -- true # it exists
    # shellcheck disable=SC2086
    "$vigil" trace "$name" -o "$scratch/trace.json" --svg "$scratch/trace.svg" $2 \
        >"$scratch/summary" 2>"$scratch/trace-err" &
    local tracer=$!
    until_true is_recording
    for option in "${options[@]}"; do
        hold $((++number)) "${option#none}"
        if [ $number = 1 ]; then until_true test -e "$scratch/1"; else until_true in_line $((number - 1)); fi
    done
    while [ -n "${waiting// /}" ]; do
        until_true has_it || return
        order+=("${pids[$holder]}")
        waiting=" $waiting " && waiting=${waiting/ $holder / }
        if [ ${#order[@]} = 4 ]; then kill -KILL "${pids[$holder]}"; else touch "$scratch/$holder-ends"; fi
        wait "${pids[$holder]}" 2>/dev/null
    done
    kill -INT $tracer
    wait $tracer || fail "vigil trace: $? $(cat "$scratch/trace-err")"
}

# A hold for each that had the lock, in that order; one death; an arrow from each to the next, the dead one included.
cat >"$scratch/check.py" <<'END'
import json, re, sys

chrome, picture, *order = sys.argv[1:]
order = [int(pid) for pid in order]
events = json.load(open(chrome))["traceEvents"]
holds = sorted((e for e in events if e["ph"] == "X" and e.get("cat") == "hold"), key=lambda e: e["ts"])
assert [e["pid"] for e in holds] == order, (order, holds)
assert {e["name"] for e in holds} == {"holds lock"}, holds
assert [e["args"]["end"] for e in holds] == ["released"] * 3 + ["its process died"] + ["released"] * 3, holds
assert [e["pid"] for e in events if e["ph"] == "i"] == [order[3]], events
flows = {}
for e in events:
    if e["ph"] in "sf":
        flows.setdefault(e["id"], {})[e["ph"]] = e
arrows = sorted(flows.values(), key=lambda f: f["f"]["ts"])
assert [(f["s"]["pid"], f["f"]["pid"]) for f in arrows] == list(zip(order, order[1:])), (order, arrows)

svg = open(picture).read()
names = [int(pid) for pid in re.findall(r'<tspan class="faint">(\d+)</tspan>', svg)]
assert sorted(names) == sorted(order), names
bars = re.findall(r'<path class="bar w\d[^"]*" d="([^"]*)"', svg)[1:]  # the first is that of the key
rows = [float(y) for bar in bars for y in re.findall(r"M[\d.]+ ([\d.]+)h", bar)]
assert len(rows) == 7 == len(set(rows)), bars
assert svg.count('class="mark"') == 1 + 1, svg  # with that of the key
row = {pid: y for pid, y in zip(names, sorted(rows))}
nearest = lambda y: min(row, key=lambda pid: abs(row[pid] - y))
drawn = re.findall(r'class="over" d="M[\d.]+ ([\d.]+)L[^"]*"/><path class="head" d="M([\d.]+) ([\d.]+)l', svg)
drawn = sorted((float(x), nearest(float(begin)), nearest(float(end))) for begin, x, end in drawn)
assert [d[1:] for d in drawn] == list(zip(order, order[1:])), (order, drawn)
assert re.search(r">\d+ waits, 7 holds, 6 hand-overs, 1 death in ", svg), svg
END
check() {
    python3 "$scratch/check.py" "$scratch/trace.json" "$scratch/trace.svg" "${order[@]}" >&2 ||
        fail "$1: ${order[*]}: $(cat "$scratch/summary")"
}
same_waits() { # in the picture and the summary, which has $1 before the number and $2 behind it
    local waits
    waits=$(grep -oE '>[0-9]+ waits, ' "$scratch/trace.svg" | tr -dc 0-9)
    contains "$(cat "$scratch/summary")" "$1$waits$2"
}

run "none none none none none none none" ""
check "without --fair"
contains "$(cat "$scratch/summary")" ", holds: 7, hand-overs: 6, deaths: 1"
same_waits "waits: " ","
run "--fair --fair --fair --fair --fair --fair --fair" --json
check "with --fair"
contains "$(cat "$scratch/summary")" '"processes":7,"waits":6,"holds":7,"handovers":6,"deaths":1'
[[ $(cat "$scratch/trace.json") != *"holds turnstile"* ]] || fail "the turnstile is shown as held"
# Some pass the turnstile, and then wait for the lock.
run "none --fair --fair none --fair none --fair" --json
check "some with --fair"
contains "$(cat "$scratch/summary")" '"holds":7,"handovers":6,"deaths":1'
same_waits '"waits":' ","

verdict
