#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The network of a machine is cut: both ways, only its requests, only the answers. The holder's command ends before the
# lease does, status 75, also if it ignores SIGTERM; the other machine goes on; a waiter that is cut off comes back when
# the network does. kubernetes#89488, etcd#8980, #17611: a connection that is silent is noticed. consul#2022: what the
# command has started ends too. striker#33: deadlines hold.
. "$(dirname "$0")/common.sh"
cluster 1
machine east
machine west
lock=("$vigil" lock --at "$at/job")

for way in both requests answers; do
    [ $way = both ] && ways="" || ways=$way
    # With 20 s, there are 3 between the end of the command and of the lease, also for a machine that is slow.
    [ $way = both ] && ttl=20s || ttl=4s
    rm -f order
    begin east holder "${lock[@]}" --ttl $ttl -- sh -c '
        trap "echo east ended >>order; exit 0" TERM; echo $VIGIL_TOKEN; while :; do sleep 0.05; done'
    holder=$begun
    until_true lines holder.out 1
    begin west heir "${lock[@]}" --ttl 60s -- sh -c 'echo west began >>order; echo "$VIGIL_TOKEN ${VIGIL_OWNER_DIED-}"'
    heir=$begun
    until_true waits job
    cut east $ways
    ends 75 $holder holder
    contains "$(cat holder.err)" 'job: the lease could not be renewed'
    ends 0 $heir heir
    [ $ttl != 20s ] || [ "$(tr '\n' ',' <order)" = "east ended,west began," ] || fail "order: $(cat order)"
    read -r token died <heir.out
    [ "$token" -gt "$(head -n 1 holder.out)" ] && [ "$died" = 1 ] || fail "$way: heir: $(cat heir.out)"
    # While it is cut off: a limit of time, a try, and a word end in time.
    expect 124 on east "${lock[@]}" --timeout 500ms -- echo ran
    [ -z "$out" ] || fail "$way: ran without the cluster"
    expect 125 on east timeout 100 "${lock[@]}" --try -- echo ran
    [ -z "$out" ] && [ -n "$err" ] || fail "$way: --try without the cluster: $out$err"
    expect 2 on east "$vigil" wait --at "$at/word" 0 --timeout 500ms
    mend east
    expect 0 on east "${lock[@]}" --timeout 100s -- true

    # A waiter is cut off, and its lease ends; it comes back and has its turn.
    mkfifo go
    begin west holder "${lock[@]}" --ttl 60s -- sh -c 'echo up; read -r line <go'; holder=$begun
    until_true lines holder.out 1
    begin east waiter "${lock[@]}" --ttl 5s -- sh -c 'echo ran'; waiter=$begun
    until_true waits job
    cut east $ways
    until_true waits job 0
    mend east
    until_true waits job
    echo >go
    rm go
    ends 0 $holder holder
    ends 0 $waiter waiter
    [ "$(cat waiter.out)" = ran ] || fail "$way: the waiter did not run"
done

# The holder's command ignores SIGTERM, and has started a process in a session of its own that does too: both get
# SIGKILL before the lease ends on the server.
stays='trap "echo told >>order" TERM; echo $$; while :; do sleep 0.05; done'
begin east holder "${lock[@]}" --ttl 20s -- sh -c "setsid sh -c '$stays' & $stays"; holder=$begun
until_true lines holder.out 2
mapfile -t stubborn <holder.out
begin west heir "${lock[@]}" --ttl 60s -- sh -c '
    for pid; do grep "^State:[^ZX]*$" "/proc/$pid/status"; done 2>/dev/null; echo "${VIGIL_OWNER_DIED-}"' \
    heir "${stubborn[@]}"
heir=$begun
until_true waits job
rm -f order
cut east
ends 75 $holder holder
for pid in "${stubborn[@]}"; do is_gone "$pid" || fail "process $pid runs on"; done
mend east
ends 0 $heir heir
[ "$(cat heir.out)" = 1 ] || fail "the heir begins beside: $(cat heir.out)"
lines order 2 || fail "they did not get SIGTERM before"

# A short cut changes nothing: the holder goes on.
mkfifo go
begin east holder "${lock[@]}" --ttl 60s -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
key=$(etcd keys 'job!held/')
cut east
expect 124 on west "${lock[@]}" --timeout 300ms -- true
mend east
echo >go
ends 0 $holder holder
contains "$key" "job!held/"
until_true no_keys job
until_true no_leases
verdict
