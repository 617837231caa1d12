#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil trace of a process: the waits, holds and hand-overs of its threads, until the process ends.
. "$(dirname "$0")/common.sh"
trace=$scratch/trace.json picture=$scratch/trace.svg

mkfifo "$scratch/input"
dies_with_us "$vigil" run -- "$OBSERVED" contend <"$scratch/input" >"$scratch/done" &
pid=$!
exec 5>"$scratch/input"
all_wait() { "$vigil" show $pid --json | grep -q '"waiting":4,'; }
until_true all_wait
"$vigil" trace $pid -o "$trace" --svg "$picture" --json >"$scratch/summary" 2>"$scratch/trace-err" 5>&- &
tracer=$!
until_true grep -q recording "$scratch/trace-err"
echo >&5
# The program ends when the tracer has read all events: it finds names in a process that lives, and rests after a look.
all_done() { [ "$(wc -c <"$scratch/done")" = 4 ]; }
rests() { sed -n 's/^voluntary_ctxt_switches:\s*//p' /proc/$tracer/status; }
until_true all_done
at_first=$(rests)
has_read_all() { (($(rests) >= at_first + 5)); }
until_true has_read_all
exec 5>&-
wait $pid || fail "the program failed: $?"
wait $tracer || fail "vigil trace: $? $(cat "$scratch/trace-err")"
contains "$(cat "$scratch/trace-err")" "process $pid has ended"
contains "$(cat "$scratch/summary")" '"status":"ok"' "\"name\":\"$pid\"" '"lost":0' '"threads":5'
contains "$(cat "$picture")" "process $pid (pthread_observe)" "worker-0" "worker-3" "holds mutex wanted" "</svg>"

cat >"$scratch/check.py" <<'PYTHON'
import json, sys
from collections import defaultdict
from slices import check_nested, ns

pid = int(sys.argv[2])
events = json.load(open(sys.argv[1]))["traceEvents"]
slices, flows, names = defaultdict(list), defaultdict(dict), {}
for e in events:
    if e["ph"] == "X":
        assert e["ts"] >= 0 and e["dur"] >= 0 and e["pid"] == pid, e
        slices[e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e))
    elif e["ph"] in "sf":
        flows[e["id"]][e["ph"]] = e
    elif e["ph"] == "M" and e["name"] == "thread_name":
        names[e["tid"]] = e["args"]["name"]

check_nested(slices.values())

workers = {tid: name.split()[0] for tid, name in names.items() if name == f"{name.split()[0]} {tid}"}
assert {f"worker-{i}" for i in range(4)} <= set(workers.values()), names
wanted = "mutex wanted (pthread_observed)"
everything = sorted((s for lane in slices.values() for s in lane), key=lambda s: s[:2])
holds = [s for s in everything if s[2]["name"] == "holds " + wanted]
waits = [s for s in everything if s[2]["name"] == "waits at " + wanted]
assert len(waits) > 3 and len(holds) > 3, (waits, holds)
assert {workers[s[2]["tid"]] for s in waits} <= {f"worker-{i}" for i in range(4)}
assert all(s[2]["args"]["end"] == "called" and s[2]["args"]["kind"] == "mutex" for s in waits), waits
assert all(s[2]["args"]["end"] in ("released", "not seen") for s in holds), holds
for (_, end, _), (begin, _, e) in zip(holds, holds[1:]):
    assert end <= begin, e
for begin, end, e in waits:  # what it waited for it has then
    assert any(h[0] == end and h[2]["tid"] == e["tid"] for h in holds), e
at_first = [s for s in everything if s[2]["name"] == "waits at semaphore go (pthread_observed)"]
assert len(at_first) == 4 and all(s[2]["ts"] == 0 for s in at_first), at_first

between = set()
for flow in flows.values():
    assert flow["s"]["ts"] <= flow["f"]["ts"], flow
    for e in flow.values():
        assert any(b <= ns(e["ts"]) <= end for b, end, _ in slices[e["tid"]]), e
    between.add((flow["s"]["tid"], flow["f"]["tid"]))
assert any(one in workers and other in workers and one != other for one, other in between), between
assert any(names[one] == f"pthread_observe {pid} calls" and other in workers for one, other in between), between
PYTHON
if command -v python3 >/dev/null; then
    PYTHONPATH=$here/../cli python3 -B "$scratch/check.py" "$trace" "$pid" ||
        fail "that trace is not as it should be: $(cat "$trace")"
fi

# Until Ctrl-C, while the program goes on: what it holds and waits for is from before.
dies_with_us "$vigil" run -- "$OBSERVED" hold >"$scratch/out" &
pid=$!
two_wait() { "$vigil" show $pid --json | grep -q '"waiting":2,'; }
until_true two_wait
knows_holder() { # the process is asked, and may be too slow to reply in time
    "$vigil" trace $pid -o "$trace" 2>"$scratch/ctrl-c-err" >"$scratch/summary" &
    tracer=$!
    until_true grep -q recording "$scratch/ctrl-c-err"
    kill -INT $tracer
    wait $tracer || fail "vigil trace, interrupted: $?"
    grep -q "holds: 1" "$scratch/summary"
}
until_true knows_holder
contains "$(cat "$scratch/summary")" "process $pid, " "waits: 2, holds: 1, hand-overs: 0"
contains "$(cat "$trace")" '"name":"holds mutex wanted (pthread_observed)"' \
    '"name":"waits at mutex wanted (pthread_observed)"' \
    '"end":"not yet"' "\"name\":\"locks of process $pid (pthread_observe)\""

# Killed while it is traced.
"$vigil" trace $pid -o "$trace" --json 2>"$scratch/killed-err" >"$scratch/summary" &
tracer=$!
until_true grep -q recording "$scratch/killed-err"
kill -KILL $pid
wait $tracer || fail "vigil trace of one that is killed: $?"
contains "$(cat "$trace")" '"end":"its process ended"'
[ ! -s "$scratch/out" ] || fail "trace disturbs the program: $(cat "$scratch/out")"

# Processes that are none of ours, and that are not there.
dies_with_us sleep 600 &
expect 3 "$vigil" trace $! -o "$trace"
contains "$err" "does not use Vigil's locks"
expect 3 "$vigil" trace 4194999 -o "$trace"
verdict
