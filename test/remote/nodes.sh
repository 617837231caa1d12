#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nodes of the cluster fail: the leader while hand-overs are under way, one node, a quorum, all. etcd#13294, #9395,
# #15247 (leases at a change of the leader); etcd#8980, #17611, kubernetes#89488 (a watch that says nothing any more).
. "$(dirname "$0")/common.sh"
cluster 3
machine east
machine west
lock=("$vigil" lock --at "$at/job")

# Two machines hand the lock to each other again and again; two leaders are killed meanwhile. No token goes back, none
# is given twice, and nothing is lost.
turns() {
    on "$1" sh -c 'for i in 1 2 3 4 5 6 7 8; do "$@" || echo "failed $?"; done' sh "${lock[@]}" -- \
        sh -c "echo \$VIGIL_TOKEN >>tokens" >"$1.log" 2>&1
}
turns east & east=$!
turns west & west=$!
until_true lines tokens 3
first=$(leader); node kill "$first"
until_true lines tokens 8
node restart "$first"
until_true leader
second=$(leader); node kill "$second"
wait $east; wait $west
grep -h failed east.log west.log && fail "a turn" # that a release was not confirmed may be said, and is no failure
[ "$(wc -l <tokens)" = 16 ] || fail "turns: $(wc -l <tokens) of 16"
sort -nu tokens | cmp -s - tokens || fail "tokens out of order: $(tr '\n' ' ' <tokens)"

# The leader is killed while a lock is held: the next leader knows the lease, and renews it.
seconds_left() {
    etcd call kv/lease/timetolive "{\"ID\": \"$(etcd lease-of "$key")\"}" | grep -o '"TTL": "[0-9]*' | grep -o '[0-9]*$'
}
renewed() {
    local left
    left=$(seconds_left) || return
    [ "$left" -le "$seen" ] || return 0
    seen=$left
    return 1
}
mkfifo go
node restart "$second"
until_true leader
begin east holder "${lock[@]}" --ttl 20s -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
begin west waiter "${lock[@]}" --ttl 60s -- echo ran; waiter=$begun
until_true waits job
key=$(etcd keys 'job!held/')
third=$(leader); node kill "$third"
until_true leader
[ "$(leader)" != "$third" ] || fail "the leader is the node that was killed"
until_true etcd put more yes
[ "$(etcd keys 'job!held/')" = "$key" ] || fail "the key changed: $(etcd keys 'job!')"
seen=100
until_true renewed
[ -z "$(cat waiter.out)" ] || fail "the waiter ran beside the holder"
node restart "$third"
echo >go
ends 0 $holder holder
ends 0 $waiter waiter

# The quorum is lost: the holder's command is ended before its lease could be granted to another, with status 75.
begin east holder "${lock[@]}" --ttl 20s -- sh -c 'trap "echo told; exit 0" TERM; echo up; while :; do sleep 0.05; done'
holder=$begun
until_true lines holder.out 1
begin west waiter "${lock[@]}" -- sh -c 'echo "${VIGIL_OWNER_DIED-}"'; waiter=$begun
until_true waits job
node kill 0
node kill 1
ends 75 $holder holder
contains "$(cat holder.out)" told
contains "$(cat holder.err)" 'could not be renewed' 'the command was ended'
[ ! -s waiter.out ] || fail "the waiter ran without a quorum"
node restart 0
node restart 1
ends 0 $waiter waiter # it has waited through all that
[ "$(cat waiter.out)" = 1 ] || fail "the waiter was not told of the loss"

# It returns in time: the holder goes on.
begin east holder "${lock[@]}" --ttl 60s -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
node kill 1
node kill 2
expect 124 on west "${lock[@]}" --timeout 1s -- true # a node replies, but cannot grant
contains "$err" 'gave up'
expect 125 on west timeout 100 "${lock[@]}" --try -- echo ran # it ends, and does not say that the lock is not free
[ -z "$out" ] && [ -n "$err" ] || fail "--try without a quorum: $out$err"
expect 125 on west timeout 100 "$vigil" sem --at "$at/pool" --slots 2 --try -- echo ran
node restart 1
node restart 2
begin west waiter "${lock[@]}" -- echo ran; waiter=$begun
until_true waits job
echo >go
ends 0 $holder holder
ends 0 $waiter waiter

# The lock is released when there is no quorum: that ends soon, with the command's status and a warning, and the next
# is granted when there is a quorum and the lease has ended. Then the same with a process of the machine that keeps the
# lock, and renews the lease: the next, of the same machine, must not wait for that. The leader is among the nodes that
# are killed: it would carry the release out when they are back.
for keeps in no yes; do
    until_true leader
    first=$(leader) second=$(((first + 1) % 3))
    begin east keeper sh -c 'exec sleep 1000'
    [ $keeps = no ] || begin east keeper "${MEMBER:?}" keep "$at" job 20 east
    keeper=$begun
    [ $keeps = no ] || until_true has keeper.out kept
    begin east holder "${lock[@]}" --ttl 20s -- sh -c 'echo up; read -r line <go; exit 3'; holder=$begun
    until_true lines holder.out 1
    node kill "$first"
    node kill $second
    echo >go
    ends 3 $holder holder
    contains "$(cat holder.err)" 'the release was not confirmed: others get the lock when its lease has ended'
    node restart "$first"
    node restart $second
    next=west; [ $keeps = no ] || next=east
    begin $next next "${lock[@]}" -- echo ran; next=$begun
    ends 0 $next next
    [ "$(cat next.out)" = ran ] || fail "the next did not run"
    kill -KILL $keeper
done

# All nodes are killed and started again: leases, keys and the line are as before.
begin east holder "${lock[@]}" --ttl 60s -- sh -c 'echo up; read -r line <go; echo $VIGIL_TOKEN'; holder=$begun
until_true lines holder.out 1
begin west waiter "${lock[@]}" --ttl 60s -- sh -c 'echo $VIGIL_TOKEN'; waiter=$begun
until_true waits job
before=$(etcd keys 'job!')
for i in 0 1 2; do node kill $i; done
for i in 0 1 2; do node restart $i; done
until_true etcd put again yes
[ "$(etcd keys 'job!')" = "$before" ] || fail "before: $before, after: $(etcd keys 'job!')"
echo >go
ends 0 $holder holder
ends 0 $waiter waiter
[ "$(tail -n 1 holder.out)" -lt "$(cat waiter.out)" ] || fail "tokens: $(cat holder.out waiter.out)"
until_true no_keys job
until_true no_leases
verdict
