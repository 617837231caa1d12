#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Endpoints with IPv6 addresses, alone and beside others: locks, words, encrypted connections, and what happens if one
# kind of address cannot be reached any more, or a node with one of them fails.
. "$(dirname "$0")/common.sh"
[ -n "$hub6" ] || skip "no IPv6"
cluster --ipv6 3
machine east
machine west
read -r p0 p1 p2 <<<"$ports"
six=etcd://[$hub6]:$p0,[$hub6]:$p1,[$hub6]:$p2
mkfifo go

# IPv6 alone, on one machine; the other uses IPv4. It is the same lock, and a lock of the machine has one name.
expect 0 on east "$vigil" lock --at "$six/job" -- sh -c 'echo $VIGIL_TOKEN'
first=$out
expect 0 on east "$vigil" lock --at "$at/job" -- sh -c 'echo $VIGIL_TOKEN'
[ "$out" -gt "$first" ] || fail "tokens: $first, $out"
begin east holder "$vigil" lock --at "$six/job" --ttl 60s -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
expect 124 on east "$vigil" lock --at "$at/job" --try -- echo ran
expect 124 on west "$vigil" lock --at "$at/job" --try -- echo ran
begin west waiter "$vigil" lock --at "$at/job" --ttl 60s -- echo ran; waiter=$begun
until_true waits job
echo >go
ends 0 $holder holder
ends 0 $waiter waiter
expect 0 on east "$vigil" store --at "$six/word" 5
expect 0 on west "$vigil" load --at "etcd://[$hub6]:$p1/word"
[ "$out" = 5 ] || fail "load: $out"
expect 0 on west "$vigil" doctor --at "$six" --ttl 600s
expect 125 on east "$vigil" lock --at "etcd://[$hub6]:1,[::1]:$p0/job" -- echo ran
contains "$err" '[::1]:' refused
[ -z "$out" ] || fail "it ran"

# The node that the holder speaks to, by IPv6, is killed: it goes on by IPv4. That is cut: it goes on by IPv6; and back.
# Neither the holder nor the waiter loses its key.
speaks_to() { on east ss -Htnp state established | grep "pid=$holder," | grep -qF "$1 "; }
begin east holder "$vigil" lock --at "etcd://[$hub6]:$p0,$hub:$p1,[$hub6]:$p2/job" --ttl 60s -- \
    sh -c 'echo up; read -r line <go'
holder=$begun
until_true lines holder.out 1
speaks_to "[$hub6]:$p0" || fail "connections: $(on east ss -Htnp)"
begin west waiter "$vigil" lock --at "etcd://$hub:$p0,[$hub6]:$p1/job" --ttl 60s -- echo ran; waiter=$begun
until_true waits job
keys=$(etcd keys 'job!')
node kill 0
until_true speaks_to "$hub:$p1"
cut east # what it cuts is IPv4
until_true speaks_to "[$hub6]:$p2"
mend east
ip route add blackhole "fd77:${numbers[east]}::2/128"
until_true speaks_to "$hub:$p1"
ip route del blackhole "fd77:${numbers[east]}::2/128"
node restart 0
until_true etcd put back yes
[ "$(etcd keys 'job!')" = "$keys" ] || fail "keys: before $keys, after $(etcd keys 'job!')"
echo >go
ends 0 $holder holder
ends 0 $waiter waiter

# Machines that have one kind of addresses find the endpoint that they can reach.
on east ip -4 addr flush dev wire
on west ip -6 addr flush dev wire
for m in east west; do
    expect 0 on $m "$vigil" lock --at "etcd://$hub:$p0,[$hub6]:$p0/job" -- echo ran
    expect 0 on $m "$vigil" lock --at "etcd://[$hub6]:$p0,$hub:$p0/job" -- echo ran
done
expect 125 on east "$vigil" lock --at "etcd://$hub:$p0/job" -- echo ran
contains "$err" "$hub:$p0: Network is unreachable"
expect 125 on west "$vigil" lock --at "etcd://[$hub6]:$p0/job" -- echo ran
contains "$err" "[$hub6]:$p0: "
until_true no_keys job
until_true no_leases
verdict
