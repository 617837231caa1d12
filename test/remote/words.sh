#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil load, store, cas, wait and notify with --at.
. "$(dirname "$0")/common.sh"
cluster 1
machine east
machine west
word=$at/word
waiting() { key_count 'word!wait/' "$1"; }

expect 0 on east "$vigil" load --at "$word"
[ "$out" = 0 ] || fail "a key that does not exist is $out"
expect 0 on east "$vigil" store --at "$word" 5
expect 0 on west "$vigil" load --at "$word"
[ "$out" = 5 ] || fail "load: $out"
[ "$(etcd get word)" = 5 ] || fail "the key is $(etcd get word)"
expect 1 on west "$vigil" cas --at "$word" 4 6
[ "$out" = 5 ] || fail "cas printed $out"
expect 0 on west "$vigil" cas --at "$word" 5 6
expect 0 on west "$vigil" cas --at "$word" 6 -7 --json
contains "$out" '"status":"ok"' '"old":6'
expect 1 on east "$vigil" wait --at "$word" 6
[ "$out" = not-equal ] || fail "wait: $out"
expect 2 on east "$vigil" wait --at "$word" -7 --timeout 200ms
[ "$out" = timed-out ] || fail "wait: $out"
expect 0 on east "$vigil" notify --at "$word"
[ "$out" = 0 ] || fail "notify woke $out"
until_true waiting 0

# First come, first served: five waiters, each seen in line before the next comes. Two are woken, then the rest.
pids=()
for i in 1 2 3 4 5; do
    [ $((i % 2)) = 0 ] && host=east || host=west
    begin $host wait$i sh -c "'$vigil' wait --at '$word' -7 && echo $i >>order"
    pids+=("$begun")
    until_true waiting $i
done
expect 0 on east "$vigil" notify --at "$word" 2
[ "$out" = 2 ] || fail "notify 2 woke $out"
until_true lines order 2
[ "$(sort order | tr '\n' ' ')" = "1 2 " ] || fail "woken: $(cat order)"
waiting 3 || fail "in line: $(etcd keys 'word!')"
expect 0 on west "$vigil" store --at "$word" 1 --notify --json
contains "$out" '"notified":3'
for pid in "${pids[@]}"; do ends 0 "$pid" wait; done
[ "$(sort order | tr '\n' ' ')" = "1 2 3 4 5 " ] || fail "woken: $(cat order)"

# A waiter that is killed leaves the line with its lease, and takes no notification then. A signal ends one at once.
begin east killed "$vigil" wait --at "$word" 1 --ttl 1s
until_true waiting 1
kill -KILL $begun
until_true waiting 0
expect 0 on east "$vigil" notify --at "$word"
[ "$out" = 0 ] || fail "notify woke $out"
begin east ended "$vigil" wait --at "$word" 1
until_true waiting 1
kill -TERM $begun
ends 143 $begun ended
until_true waiting 0

# --until, over several values.
begin west until "$vigil" wait --at "$word" --until 3
until_true waiting 1
expect 0 on east "$vigil" store --at "$word" 2 --notify
until_true waiting 1
expect 0 on east "$vigil" store --at "$word" 3 --notify
ends 0 $begun until

# What is not a number.
etcd put text hello
expect 3 on east "$vigil" load --at "$at/text"
contains "$err" 'something else than a decimal number'
expect 0 on east "$vigil" store --at "$at/text" 5 --notify --json # it is one now
contains "$out" '"notified":0'
expect 0 on west "$vigil" load --at "$at/text"
[ "$out" = 5 ] || fail "a store over a text: $out"
expect 64 on east "$vigil" store --at "$word" five
expect 3 on east "$vigil" wait --at "$word" 1 --ttl 10ms
contains "$err" '--ttl: at least 1s'
until_true no_leases
verdict
