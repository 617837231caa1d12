#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The network between the nodes is cut, both ways and one way, while clients reach all of them: each node is a machine
# of its own here. etcd#8980, #17611, kubernetes#89488: a node that is cut off must not keep a watch, or a holder.
. "$(dirname "$0")/common.sh"
ip rule add from 192.0.2.1 to 192.0.2.2 blackhole 2>/dev/null || skip "no rules of routing"
echo 1 >/proc/sys/net/ipv4/ip_forward || skip "no forwarding"
machine n1
machine n2
machine n3
machine east
machine west
node_at() { echo "10.77.$1.2:2379"; }
at=etcd://$(node_at 1),$(node_at 2),$(node_at 3)
loopback=${at#etcd://}
all=n1=http://10.77.1.2:2380,n2=http://10.77.2.2:2380,n3=http://10.77.3.2:2380
nodes=()

start_nodes() {
    local i
    for i in 1 2 3; do
        begin n$i log$i env ETCD_UNSUPPORTED_ARCH=arm64 "${VIGIL_ETCD:-etcd}" --name=n$i --data-dir="$scratch/data$i" \
            --listen-client-urls=http://0.0.0.0:2379 --advertise-client-urls="http://$(node_at $i)" \
            --listen-peer-urls="http://10.77.$i.2:2380" --initial-advertise-peer-urls="http://10.77.$i.2:2380" \
            --initial-cluster=$all --logger=zap --log-level=warn
        nodes[i]=$begun
    done
}

# A new etcd 3.4 may fail to elect a leader for ever, see cluster.c: then begin again, with more patience.
for patience in 15 30 60 120; do
    start_nodes
    end=$((SECONDS + patience))
    until etcd put ready yes 2>/dev/null || [ $SECONDS -gt $end ]; do sleep 0.05; done
    etcd put ready yes && break
    kill -KILL "${nodes[@]}"
    wait "${nodes[@]}" 2>/dev/null
    rm -rf data{1,2,3}
done

# The node that leads, and one that does not.
find_leader() {
    leader=$(etcd leader) && leader=$((leader + 1)) && other=$((leader % 3 + 1))
}

# isolate NODE [sends|hears]: nothing that it sends to other nodes arrives, or nothing of what they send, or neither.
isolate() {
    local i
    for i in 1 2 3; do
        [ $i != "$1" ] || continue
        [ "${2:-sends}" != sends ] || ip rule add from "10.77.$1.2" to "10.77.$i.2" blackhole
        [ "${2:-hears}" != hears ] || ip rule add from "10.77.$i.2" to "10.77.$1.2" blackhole
    done
}
join_again() {
    while ip rule del from "10.77.$1.2" blackhole || ip rule del to "10.77.$1.2" blackhole; do :; done 2>/dev/null
}

# The leader is cut off. One machine holds the lock, another waits: neither loses its key. Then they hand it to each
# other again and again: no turn fails, no token goes back.
mkfifo go
turns() {
    on "$1" sh -c 'for i in 1 2 3 4; do "$@" || echo "failed $?"; done' sh "$vigil" lock --at "$at/job" --ttl 60s -- \
        sh -c "echo \$VIGIL_TOKEN >>tokens" >"$1.log" 2>&1
}
for way in "" sends hears; do
    until_true find_leader
    rm -f tokens
    begin east holder "$vigil" lock --at "etcd://$(node_at "$leader"),${at#etcd://}/job" --ttl 60s -- \
        sh -c 'echo $VIGIL_TOKEN; read -r line <go'
    holder=$begun
    until_true lines holder.out 1
    begin west waiter "$vigil" lock --at "etcd://$(node_at "$leader"),${at#etcd://}/job" --ttl 60s -- \
        sh -c 'echo $VIGIL_TOKEN'
    waiter=$begun
    until_true waits job
    keys=$(etcd keys 'job!')
    isolate "$leader" $way
    loopback=$(node_at "$other")
    until_true etcd put after cut # there is another leader
    [ "$(etcd keys 'job!')" = "$keys" ] || fail "$way: keys: before $keys, after $(etcd keys 'job!')"
    echo >go
    ends 0 $holder holder
    ends 0 $waiter waiter
    [ "$(cat waiter.out)" -gt "$(cat holder.out)" ] || fail "$way: tokens: $(cat holder.out waiter.out)"
    turns east & east=$!
    turns west & west=$!
    wait $east; wait $west
    grep -h failed east.log west.log && fail "$way: a turn: $(cat east.log west.log)"
    [ "$(wc -l <tokens)" = 8 ] || fail "$way: turns: $(wc -l <tokens) of 8"
    sort -nu tokens | cmp -s - tokens || fail "$way: tokens out of order: $(tr '\n' ' ' <tokens)"
    join_again "$leader"
    loopback=${at#etcd://}
done

# The holder reaches only the node that is cut off. Its command has ended before another machine gets the lock.
for case in "leader" "leader sends" "other hears"; do
    read -r which way <<<"$case"
    until_true find_leader
    cut_off=${!which}
    [ "$which" = leader ] && reached=$other || reached=$leader
    begin east holder "$vigil" lock --at "etcd://$(node_at "$cut_off")/job" --ttl 4s -- \
        sh -c 'echo "$$ $VIGIL_TOKEN"; exec sleep 1000'
    holder=$begun
    until_true lines holder.out 1
    read -r command token <holder.out
    begin west heir "$vigil" lock --at "$at/job" --ttl 4s -- \
        sh -c '[ ! -e /proc/$0 ] || echo overlap; echo "$VIGIL_TOKEN ${VIGIL_OWNER_DIED-}"' "$command"
    heir=$begun
    until_true waits job
    isolate "$cut_off" $way
    loopback=$(node_at "$reached")
    ends 75 $holder holder
    ends 0 $heir heir
    [ "$(wc -l <heir.out)" = 1 ] || fail "$case: two held it: $(cat heir.out)"
    read -r next died <heir.out
    [ "${next:-0}" -gt "$token" ] && [ "${died:-0}" = 1 ] || fail "$case: heir: $(cat holder.out heir.out)"
    join_again "$cut_off"
    loopback=${at#etcd://}
done
expect 0 on east "$vigil" lock --at "$at/job" -- true
until_true no_keys job
until_true no_leases
verdict
