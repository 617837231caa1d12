# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# cluster.sh - a real etcd for tests of the command, as cluster.h for those in C. To be sourced by bash:
#
#     . cluster.sh
#     cluster_start 3              on free ports of the loopback, in a temporary folder; without etcd it exits with 77
#     vigil lock --at "$cluster_at/NAME" -- command
#     cluster_kill 0; cluster_freeze 1; cluster_thaw 1; cluster_restart 0
#     cluster_ctl put a b          etcdctl with the endpoints
#
# ${cluster_ports[i]} and ${cluster_pids[i]} are those of node i, $cluster_at has all of them. The nodes end with the
# shell that has started them, also if it is killed. The folder is removed when it exits; a shell that sets a trap for
# that of its own calls cluster_stop there.

cluster_pids=() cluster_ports=() cluster_peers=() cluster_folder="" cluster_at=""
PATH=$PATH:$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/etcd/usr/bin # by tools/need.sh

# Ports of which none was in use just now.
cluster_free_ports() {
    python3 - "$1" <<'PYTHON'
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for each in sockets: each.bind(("127.0.0.1", 0))
print(*[each.getsockname()[1] for each in sockets])
PYTHON
}

cluster_spawn() {
    local node=$1 all="" i
    for i in "${!cluster_ports[@]}"; do all+=${all:+,}n$i=http://127.0.0.1:${cluster_peers[i]}; done
    local client=http://127.0.0.1:${cluster_ports[node]} peer=http://127.0.0.1:${cluster_peers[node]}
    setsid setpriv --pdeathsig KILL etcd --name="n$node" --data-dir="$cluster_folder/n$node" \
        --listen-client-urls="$client" --advertise-client-urls="$client" --listen-peer-urls="$peer" \
        --initial-advertise-peer-urls="$peer" --initial-cluster="$all" --logger=zap --log-level=warn \
        >>"$cluster_folder/n$node.log" 2>&1 &
    cluster_pids[node]=$!
    disown "$!"
}

# Until the node accepts connections. Fails if it has ended.
cluster_await() {
    until (exec 3<>"/dev/tcp/127.0.0.1/${cluster_ports[$1]}") 2>/dev/null; do
        kill -0 "${cluster_pids[$1]}" 2>/dev/null || { cat "$cluster_folder/n$1.log" >&2; return 1; }
        sleep 0.01
    done
}

# Fails if a node has ended, as when another program has taken its port meanwhile, or if no leader is elected.
cluster_try() {
    local free i end=$((SECONDS + 30))
    read -ra free <<<"$(cluster_free_ports $((2 * $1)))"
    for ((i = 0; i < $1; i++)); do cluster_ports[i]=${free[2 * i]} cluster_peers[i]=${free[2 * i + 1]}; done
    cluster_at=etcd://$(IFS=, && echo "${cluster_ports[*]/#/127.0.0.1:}")
    for ((i = 0; i < $1; i++)); do cluster_spawn "$i"; done
    for ((i = 0; i < $1; i++)); do cluster_await "$i" || return 1; done
    until cluster_ctl put vigil-cluster ready >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; done
}

cluster_start() {
    command -v etcd >/dev/null && command -v setpriv >/dev/null || { echo "skipped: no etcd"; exit 77; }
    cluster_folder=$(mktemp -d "${TMPDIR:-/tmp}/vigil-etcd-XXXXXX")
    trap cluster_stop EXIT
    local i tries=0
    until cluster_try "$1"; do
        [ $((++tries)) -lt 5 ] || return 1
        for i in "${!cluster_pids[@]}"; do cluster_kill "$i"; done
        rm -rf "${cluster_folder:?}"/n*
    done
}

cluster_kill() {
    kill -KILL "${cluster_pids[$1]}" 2>/dev/null
    while kill -0 "${cluster_pids[$1]}" 2>/dev/null; do sleep 0.01; done
}
cluster_freeze() { kill -STOP "${cluster_pids[$1]}"; }
cluster_thaw() { kill -CONT "${cluster_pids[$1]}"; }
cluster_restart() {
    cluster_kill "$1"
    cluster_spawn "$1"
    cluster_await "$1"
}
cluster_ctl() { ETCDCTL_API=3 etcdctl --endpoints="${cluster_at#etcd://}" "$@"; }

cluster_stop() {
    local i
    for i in "${!cluster_pids[@]}"; do cluster_kill "$i"; done
    [ -z "$cluster_folder" ] || rm -rf "$cluster_folder"
    cluster_pids=() cluster_folder=""
}
