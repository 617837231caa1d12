#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil lock --at, in good weather: what the command gets, exit statuses, limits of waiting, messages.
. "$(dirname "$0")/common.sh"
cluster 1
machine east
machine west
lock=("$vigil" lock --at "$at/job")

# The command's status, its token, and its key, which exists while it runs and is gone afterwards.
expect 7 on east "${lock[@]}" -- sh -c 'echo "$VIGIL_TOKEN $VIGIL_KEY ${VIGIL_OWNER_DIED-}"; exit 7'
read -r first key died <<<"$out"
contains "$key" 'job!held/x.'
[ "${died:-0}" = 0 ] || fail "a holder died: $died"
expect 0 on west "${lock[@]}" -- sh -c 'echo "$VIGIL_TOKEN"'
[ "$out" -gt "$first" ] || fail "the token went from $first to $out"
expect 0 on east "${lock[@]}" -- python3 "$here/etcd.py" "${at#etcd://}" keys 'job!'
contains "$out" 'job!held/x.' 'job!mark'
until_true no_keys job
until_true no_leases
expect 127 on east "${lock[@]}" -- no-such-command
expect 126 on east "${lock[@]}" -- /
expect 137 on east "${lock[@]}" -- sh -c 'kill -KILL $$'
until_true no_keys job

# The name as an operand, and the cluster from the environment.
VIGIL_AT=$at expect 0 on east "$vigil" lock job -- true
VIGIL_AT=$at/job expect 0 on east "$vigil" lock -- true
ETCDCTL_ENDPOINTS=${at#etcd://} VIGIL_AT=etcd:///job expect 0 on east "$vigil" lock -- true

expect 5 on east "${lock[@]}" --fair -- sh -c 'exit 5' # changes nothing

# Held by another machine, and by the same.
mkfifo hold
begin east holder "${lock[@]}" -- sh -c 'echo running; read -r line <hold'
holder=$begun
until_true lines holder.out 1
for other in east west; do
    expect 124 on $other "${lock[@]}" --try -- echo ran
    [ -z "$out$err" ] || fail "--try on $other printed: $out$err"
    expect 9 on $other "${lock[@]}" --try -E 9 -- echo ran
    expect 124 on $other "${lock[@]}" --timeout 300ms -- echo ran
    [ -z "$out" ] || fail "it ran"
    contains "$err" 'waited' 'for job; gave up'
    expect 124 on $other "${lock[@]}" --json --timeout 300ms -- echo ran
    contains "$err" '"error"'
done
until_true waits job 0 # nothing is left in line of those that gave up

# A waiter is told its place and who holds it; in JSON as well. A signal ends it, and it leaves the line.
begin west waiter "${lock[@]}" --wait-status -- echo ran
waiter=$begun
until_true has waiter.err 'this machine is 1st in line of 1'
contains "$(cat waiter.err)" 'held by pid' 'on east: sh -c echo running'
begin west json "${lock[@]}" --json -- echo ran
json=$begun
until_true has json.err '"event":"waiting"'
contains "$(cat json.err)" '"holder_host":"east"' '"name":"job"'
kill -TERM $waiter
ends 143 $waiter waiter
kill -HUP $json
ends 129 $json json
until_true waits job 0
echo >hold
ends 0 $holder holder

# Granted and done, in JSON.
expect 3 on west "${lock[@]}" --json -- sh -c 'exit 3'
contains "$err" '"event":"granted"' '"token":' '"key":"job!held/x.' '"owner_died":false' '"event":"done"' \
    '"exit_status":3'

# A lock in itself is refused, and does not hang.
expect 125 on east "${lock[@]}" -- "${lock[@]}" -- true
contains "$err" 'would wait for itself'

# Names that look alike to the named locks of the machine: a slash is an underscore there, with a hash of the name.
fnv() { python3 -c 'h = 2166136261
for c in b"a/b": h = (h ^ c) * 16777619 & 0xffffffff
print("%08x" % h)'; }
for name in a_b "a_b-$(fnv)"; do
    expect 0 on east "$vigil" lock --at "$at/a/b" -- "$vigil" lock --at "$at/$name" --try -- true
done
expect 125 on east "$vigil" lock --at "$at/a/b" -- "$vigil" lock --at "$at/a/b" --try -- true

# A signal to the command's parent is passed on, and the lock released.
begin east signalled "${lock[@]}" -- sh -c 'trap "echo told; exit 5" USR1; echo up; while :; do sleep 0.05; done'
until_true lines signalled.out 1
kill -USR1 $begun
ends 5 $begun signalled
contains "$(cat signalled.out)" told
until_true no_keys job
until_true no_leases
verdict
