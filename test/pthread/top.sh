#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil top shows the threads of a process under vigil run: as text, as JSON and live, beside others.
. "$(dirname "$0")/common.sh"
[ -x "${vigil%/*}/vigil-top" ] || { echo "needs ncurses to build vigil-top"; exit 77; }

dies_with_us "$vigil" run -- "$OBSERVED" hold >"$scratch/out" &
pid=$!
tells() { "$vigil" top --json $pid | grep -q "$1"; }
until_true tells '"thread_name":"waiter"'
until_true tells '"thread_name":"holder"'

# The process is asked for the holders, and may be too slow to reply in time.
knows_holder() { out=$("$@") && grep -qE '1 holder|"holders_known":true' <<<"$out"; }
until_true knows_holder "$vigil" top --once $pid
contains "$out" "1 process, 1 holder, 2 waiters" "$pid wanted" "1/1" "mutex" "want+0x" "sem" "wait_at+0x"
holder=$(sed -n 's/.* \([0-9]*\) sem  *wait_at+0x.*/\1/p' <<<"$out")
grep -q "$pid wanted .* $holder holder" <<<"$out" || fail "the holder is not named: $out"
expect 0 "$vigil" top --once
contains "$out" "$pid wanted"
expect 0 "$vigil" top --once pthread_observe # by the name of the program
contains "$out" "$pid wanted"
expect 0 "$vigil" top --once "$name"
[[ $out != *"$pid wanted"* ]] || fail "it is not asked for: $out"

until_true knows_holder "$vigil" top $pid --json
if command -v python3 >/dev/null; then
    python3 - "$pid" "$out" <<'PYTHON' || fail "that JSON is not as it should be: $out"
import json, sys
report = json.loads(sys.argv[2])
[process] = report["processes"]
assert report["segments"] == [] and process["pid"] == int(sys.argv[1]) and process["program"] == "pthread_observe"
assert process["holders_known"] and process["waiting"] == 2
[wanted] = [lock for lock in process["locks"] if lock["kind"] == "mutex"]
[go] = [lock for lock in process["locks"] if lock["kind"] == "semaphore"]
[waiter], [holder] = wanted["waiters"], go["waiters"]
assert wanted["name"] == "wanted (pthread_observed)" and wanted["holder_name"] == "holder"
assert wanted["holder"] == holder["thread"] and wanted["locked_at"].startswith("hold+0x")
assert waiter["thread_name"] == "waiter" and waiter["at"].startswith("want+0x") and waiter["for_ns"] > 0
assert holder["thread_name"] == "holder" and holder["at"].startswith("wait_at+0x")
PYTHON
fi

# On a terminal.
if command -v tmux >/dev/null; then
    terminal() { tmux -L "$name" -f /dev/null "$@"; }
    trap 'terminal kill-server 2>/dev/null; finish' EXIT
    shows() { terminal capture-pane -p | grep -q "$1"; }
    terminal new-session -d -x 100 -y 24 "'$vigil' top --interval 50ms $pid"
    until_true shows "$pid wanted .*mutex .*want+0x"
    terminal send-keys /mutex Enter Enter
    until_true shows "^process $pid (pthread_observe): 2 threads in 2 lines"
    until_true shows "held by thread $holder (holder), at hold+0x"
    kill -KILL $pid
    until_true shows "^Process $pid has ended"
    terminal send-keys q
    until_true shows "0 segments, 0 members, 0 holders, 0 waiters"
    terminal kill-server
fi
{ kill -KILL $pid; wait $pid; } 2>/dev/null
[ ! -s "$scratch/out" ] || fail "top disturbs the program: $(cat "$scratch/out")"

# One that is stopped is shown as it is, and one that has the signal for itself: without holders.
dies_with_us "$vigil" run --signal none -- "$OBSERVED" hold &
pid=$!
until_true tells '"thread_name":"waiter"'
expect 0 "$vigil" top $pid --json
contains "$out" '"holders_known":false' '"holder":null' '"name":"wanted (pthread_observed)"'
dies_with_us "$vigil" run -- "$OBSERVED" hold &
pid=$!
until_true tells '"thread_name":"waiter"'
kill -STOP $pid
is_stopped() { grep -q '^State:.T' /proc/$pid/status; }
until_true is_stopped
expect 0 "$vigil" top $pid --json
contains "$out" '"holders_known":false' '"thread_name":"waiter"'
kill -CONT $pid

# A process that is none of ours.
dies_with_us sleep 600 &
expect 3 "$vigil" top --once $!
contains "$err" "does not use Vigil's locks"
verdict
