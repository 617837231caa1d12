#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 200 waiters on 4 machines, of 5 processes each. On each machine they get the lock in the order in which they came, and
# tokens grow. While other machines wait, a machine hands the lock over on its own at most 16 times: also if it has a
# command in line at any time.
. "$(dirname "$0")/common.sh"
cluster 1
lock=("$vigil" lock --at "$at/job")
mkfifo go
machine z
for m in a b c d; do machine $m; done
begin z holder "${lock[@]}" -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
pids=()
for process in 0 1 2 3 4; do
    for m in a b c d; do # a machine's process is in line with its requests before its next one starts
        begin $m crowd$m$process "${MEMBER:?}" crowd "$at" job 10 "$m $process"
        pids+=("$begun")
        until_true has crowd$m$process.out queued
        [ $process != 0 ] || until_true waits job $((${#pids[@]}))
    done
done
waits job 4 || fail "in line: $(etcd keys 'job!')" # each machine once
echo >go
ends 0 $holder holder
for pid in "${pids[@]}"; do ends 0 "$pid" crowd; done
cat crowd*.out | grep -v queued | sort -n -k 4 >all
python3 - all <<'P' || fail "$(cat all)"
import sys
turns = [line.split() for line in open(sys.argv[1])]
assert len(turns) == 200, len(turns)
tokens = [int(turn[3]) for turn in turns]
assert len(set(tokens)) == 200
for machine in "abcd":
    own = [(int(process), int(number)) for m, process, number, _ in turns if m == machine]
    assert own == sorted(own), (machine, own)
# Runs of one machine: the first grant is the cluster's, and up to 16 hand-overs follow.
runs, left = [], {m: 50 for m in "abcd"}
for machine, *_ in turns:
    if runs and runs[-1][0] == machine:
        runs[-1][1] += 1
    else:
        runs.append([machine, 1])
print(runs)
for machine, length in runs:
    others = any(left[m] for m in "abcd" if m != machine)
    left[machine] -= length
    assert length <= 17 or not others, runs
assert [machine for machine, _ in runs[:4]] == list("abcd"), runs # they came in this order
P
until_true no_keys job
until_true no_leases

# On one machine three loops run a command under the lock, again and again: two are in line always. Another machine gets
# its turn.
loops=()
for loop in 1 2 3; do
    begin a loop$loop sh -c 'while [ ! -e enough ]; do "$@" || exit 1; done' loop \
        "$vigil" lock --at "$at/turn" -- sh -c 'echo a >>turns; sleep 0.02'
    loops+=("$begun")
done
until_true lines turns 20
begin b other "$vigil" lock --at "$at/turn" --timeout 60s -- sh -c 'echo b >>turns'; other=$begun
in_line_or_done() { waits turn || has turns b; }
until_true in_line_or_done
before=$(wc -l <turns) # it is in line by now: those that follow are bounded
ends 0 $other other
touch enough
for pid in "${loops[@]}"; do ends 0 "$pid" loop; done
passed=$(($(sed -n '/b/=' turns) - 1 - before))
[ $passed -le 17 ] || fail "another machine waits, and $passed commands of this one run"
until_true no_keys turn
until_true no_leases
verdict
