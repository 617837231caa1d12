#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil show, top and doctor with --at.
. "$(dirname "$0")/common.sh"
cluster 3
machine east
machine west
mkfifo hold
expect 0 on east "$vigil" show --at "$at/job"
contains "$out" 'job: free, 0 waiting'
begin east holder "$vigil" lock --at "$at/job" --ttl 60s -- sh -c 'echo running; read -r line <hold'
holder=$begun
until_true lines holder.out 1
begin west waiter "$vigil" lock --at "$at/job" --ttl 60s -- echo ran
waiter=$begun
until_true waits job
expect 0 on west "$vigil" show --at "$at/job"
contains "$out" 'job: held, 1 waiting' 'holds' 'east' 'sh -c echo running' 'west' 'echo ran'
expect 0 on west "$vigil" show --at "$at/job" --json
python3 - "$out" <<'P' || fail "show --json: $out"
import json, sys
seen = json.loads(sys.argv[1])
assert seen["holder_count"] == 1 and seen["waiter_count"] == 1 and not seen["owner_died"], seen
assert seen["holders"][0]["host"] == "east" and seen["waiters"][0]["host"] == "west", seen
P
begin west top "$vigil" top --at "$at/job"
until_true lines top.out 8 # twice
kill $begun
wait $begun 2>/dev/null
contains "$(cat top.out)" 'job: held, 1 waiting'

expect 0 on west "$vigil" doctor --at "$at/job" --ttl 600s
contains "$out" 'the cluster replies' 'has a leader' '1 hold it, 1 wait' 'no alarm'
expect 0 on west "$vigil" doctor --at "$at" --ttl 600s
expect 0 on west "$vigil" doctor --at "$at/job" --ttl 600s --json
contains "$out" '"has_leader":true' '"faults":0'

# A lease must live for 20 round trips. Here one takes 200 ms.
relay 7000 --delay 0.1
expect 1 on west "$vigil" doctor --at "etcd://$hub:7000/job" --ttl 2s
contains "$out" 'fault a round trip takes' 'and a lease lives for 2.0 s: too short, use a longer --ttl'
expect 1 on west "$vigil" doctor --at "etcd://$hub:7000" --ttl 2s --json
contains "$out" '"faults":1'
expect 0 on west "$vigil" doctor --at "etcd://$hub:7000/job" --ttl 600s
contains "$out" 'good  a round trip takes'

# What a server says is not for the terminal to obey.
relay 7100 --replace 3.4. $'3.4\x1b'
expect 0 on west "$vigil" doctor --at "etcd://$hub:7100/job" --ttl 600s
contains "$out" 'the cluster replies: etcd 3.4\x1b'

# A holder dies: the next is told, and while nothing holds the lock, doctor and show say that it has died.
fail_machine west
wait $waiter 2>/dev/null
who=$(etcd get "$(etcd keys 'job!held/')")
fail_machine east
wait $holder 2>/dev/null
for lease in $(etcd leases); do etcd revoke "$lease"; done # it would end by itself
until_true key_count 'job!held/' 0
expect 1 on west "$vigil" doctor --at "$at/job" --ttl 600s
contains "$out" 'fault job: its last holder died'
expect 0 on west "$vigil" show --at "$at/job"
contains "$out" 'died or lost it while holding it: pid' 'on east: sh -c echo running'
contains "$(etcd get 'job!mark')" "$who"

# Without a quorum, they say so.
node kill 0
node kill 1
finds_no_leader() { # not at once: the node must notice first
    on west timeout 60 "$vigil" doctor --at "$at/job" --ttl 600s >doctor.out
    [ $? = 1 ] && has doctor.out 'fault it has no leader: more than half of its members are missing'
}
until_true finds_no_leader
expect 1 on west timeout 60 "$vigil" doctor --at "$at/job" --json
contains "$out" '"has_leader":false' '"faults":1'
expect 3 on west timeout 60 "$vigil" show --at "$at/job"
node restart 0
until_true on west "$vigil" show --at "$at/job"
verdict
