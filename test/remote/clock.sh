#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Clocks that differ. The lease is counted on CLOCK_BOOTTIME. That clock cannot jump in a process that runs: so here a
# machine has a clock that is years ahead (a time namespace), and takes part with others. No time of a machine is
# compared with that of another, or with the cluster's. A clock that goes on while a process stands still is tested by
# stopped.sh: for the process, that is the same as a jump.
. "$(dirname "$0")/common.sh"
ahead=(unshare --time --boottime 500000000 --monotonic 400000000 --fork --kill-child)
"${ahead[@]}" true 2>/dev/null || skip "no time namespaces"
cluster 1
machine east
machine west
lock=("$vigil" lock --at "$at/job" --ttl 2s)
mkfifo go
expect 0 on east "${ahead[@]}" sh -c 'cut -d. -f1 /proc/uptime'
[ "$out" -gt 500000000 ] || skip "the clock stays: $out"

# It holds for longer than the TTL, and another waits; then the other way round.
for turn in "east west" "west east"; do
    read -r first second <<<"$turn"
    begin "$first" holder $([ "$first" = east ] && echo "${ahead[@]}") "${lock[@]}" -- \
        sh -c 'echo up; read -r line <go; echo $VIGIL_TOKEN'
    holder=$begun
    until_true lines holder.out 1
    begin "$second" waiter $([ "$second" = east ] && echo "${ahead[@]}") "${lock[@]}" -- \
        sh -c 'echo $VIGIL_TOKEN ${VIGIL_OWNER_DIED-0}'
    waiter=$begun
    until_true waits job
    expect 124 on west "$vigil" lock --at "$at/job" --timeout 4s -- true
    [ ! -s waiter.out ] || fail "the lease ended early"
    echo >go
    ends 0 $holder holder
    ends 0 $waiter waiter
    read -r token died <waiter.out
    [ "$token" -gt "$(tail -n 1 holder.out)" ] && [ "${died:-0}" = 0 ] || fail "$turn: $(cat holder.out waiter.out)"
done
until_true no_keys job
until_true no_leases
verdict
