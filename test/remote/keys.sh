#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Keys and leases that others take away, and history that is compacted under a watch. etcd#9715 (compaction leaves an
# orphan), etcd#22082 (a stale unlock deletes a newer lock), etcd#10811 (loss unnoticed), consul#2489, #9788 (the child
# is killed late), curator#1193 (ambiguous release), consul#7523 (a herd).
. "$(dirname "$0")/common.sh"
cluster 1
machine east
machine west
machine north
lock=("$vigil" lock --at "$at/job" --ttl 60s)
mkfifo go
patient='trap "echo told; exit 0" TERM; echo up; while :; do sleep 0.05; done'

# The holder's key is deleted by hand: the command ends long before the lease would, also one that ignores SIGTERM, and
# everything that it has started.
begin east holder "${lock[@]}" -- sh -c "$patient"; holder=$begun
until_true lines holder.out 1
etcd delete "$(etcd keys 'job!held/')" >deleted
ends 75 $holder holder
contains "$(cat holder.out)" told
contains "$(cat holder.err)" 'the lock was lost' 'key was deleted'
begin east holder "${lock[@]}" -- sh -c 'trap "" TERM; sh -c "setsid sleep 1000 & echo \$!"; while :; do sleep 1; done'
holder=$begun
until_true lines holder.out 1
until_true key_count 'job!held/' 1
etcd delete "$(etcd keys 'job!held/')" >deleted
ends 75 $holder holder
until_true is_gone "$(cat holder.out)"
expect 0 on west "${lock[@]}" -- sh -c 'echo "${VIGIL_OWNER_DIED-}"'
[ "$out" = 1 ] || fail "the loss was not told"

# The same if /proc cannot be read any more: the command ends, and the group that it leads.
for leads in "" setsid; do
    begin east holder "${lock[@]}" -- $leads sh -c 'trap "" TERM; sleep 1000 & echo $! $$; while :; do sleep 1; done'
    holder=$begun
    until_true lines holder.out 1
    read -r child command <holder.out
    until_true key_count 'job!held/' 1
    on east mount -t tmpfs tmpfs /proc
    etcd delete "$(etcd keys 'job!held/')" >deleted
    ends 75 $holder holder
    on east umount /proc
    until_true is_gone "$command"
    [ -n "$leads" ] || kill -KILL "$child" # it keeps the lock of its machine
    until_true is_gone "$child"
    expect 0 on west "${lock[@]}" -- true
done

# The holder's lease is revoked.
begin east holder "${lock[@]}" -- sh -c "$patient"; holder=$begun
until_true lines holder.out 1
etcd revoke "$(etcd lease-of "$(etcd keys 'job!held/')")"
ends 75 $holder holder
contains "$(cat holder.err)" 'its lease ended'

# Its release, late, takes nothing from the holder that came after it: stopped, revoked, continued.
begin east holder "${lock[@]}" -- sh -c 'trap "" TERM; echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
kill -STOP $holder
etcd revoke "$(etcd lease-of "$(etcd keys 'job!held/')")"
begin west newer "${lock[@]}" -- sh -c 'echo up; read -r line <go; echo ended'; newer=$begun
until_true lines newer.out 1
key=$(etcd keys 'job!held/')
kill -CONT $holder
ends 75 $holder holder
[ "$(etcd keys 'job!held/')" = "$key" ] || fail "held: $(etcd keys 'job!'), before: $key"
[ -n "$(etcd keys 'job!mark')" ] || fail "the mark of the newer holder is gone"

# A waiter's key is deleted: it joins anew, behind those that are in line by then. So does one whose lease is revoked.
begin east second "${lock[@]}" -- sh -c 'echo second >>turns'; second=$begun
until_true waits job 1
first_key=$(etcd keys 'job!line/')
begin north third "${lock[@]}" -- sh -c 'echo third >>turns'; third=$begun
until_true waits job 2
etcd delete "$first_key" >deleted
rejoined() { etcd keys 'job!line/' >line && [ "$(wc -l <line)" = 2 ] && ! grep -qx "$1" line; }
until_true rejoined "$first_key"
third_key=$(head -n 1 line)
etcd revoke "$(etcd lease-of "$third_key")" # north's: now east is first again
until_true rejoined "$third_key"

# All history is compacted while two wait and one holds, twice.
etcd compact
etcd put something else
etcd compact
echo >go
ends 0 $newer newer
ends 0 $second second
ends 0 $third third
[ "$(tr '\n' ' ' <turns)" = "second third " ] || fail "turns: $(cat turns)"

# A waiter is stopped. Meanwhile the lock is released, etcd restarted, and compacted: when the waiter goes on, it must
# connect anew, and the history no longer has what its watch has missed. It looks, and has its turn.
begin east holder "${lock[@]}" -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
begin west waiter "${lock[@]}" -- echo ran; waiter=$begun
until_true waits job
kill -STOP $waiter
echo >go
ends 0 $holder holder
node kill 0
node restart 0
until_true etcd put something new
etcd compact
kill -CONT $waiter
ends 0 $waiter waiter
[ "$(cat waiter.out)" = ran ] || fail "the waiter did not run"

# No herd: a release makes the next waiter act, and the one behind it look, however many wait behind those. Waiters look
# by transactions, and only waiters and holders make any here: etcd counts them.
transactions() {
    python3 - "http://127.0.0.1:${ports%% *}/metrics" <<'P'
import re, sys, urllib.request
text = urllib.request.urlopen(sys.argv[1], timeout=60).read().decode()
print(sum(int(float(count)) for count in re.findall(r'^grpc_server_started_total.*"Txn".* (\S+)$', text, re.M)))
P
}
settled() { # no more of them come
    local before
    before=$(transactions) && sleep 1 && [ "$(transactions)" = "$before" ]
}
waiting=10
begin east holder "${lock[@]}" -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
pids=()
for i in $(seq $waiting); do
    machine herd$i
    begin herd$i herd$i "${lock[@]}" -- sh -c 'echo up >>herd; read -r line <go'
    pids+=("$begun")
    until_true waits job $i
done
for i in 1 2; do
    until_true settled
    before=$(transactions)
    echo >go
    until_true lines herd $i
    until_true settled
    made=$(($(transactions) - before))
    [ $made -ge 2 ] && [ $made -le 10 ] || fail "a hand-over took $made transactions"
done
ends 0 $holder holder
for i in $(seq 2 $waiting); do
    echo >go
    until_true lines herd $((i < waiting ? i + 1 : i))
done
for pid in "${pids[@]}"; do ends 0 "$pid" herd; done
until_true no_keys job
until_true no_leases
verdict
