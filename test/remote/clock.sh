#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Clocks that differ, and that jump. The lease is counted on CLOCK_BOOTTIME, which goes on while the machine sleeps.
#
# No time of a machine is compared with that of another, or with the cluster's: a machine whose clock is years ahead (a
# time namespace) takes part with others. The wall clock is only shown to people: a jump, forward or back, changes
# nothing. A machine that has slept past the TTL has not noticed that time has passed, but its CLOCK_BOOTTIME has: its
# holder ends. That a process stands still while time goes on is tested by stopped.sh.
. "$(dirname "$0")/common.sh"
ahead=(unshare --time --boottime 500000000 --monotonic 400000000 --fork --kill-child)
"${ahead[@]}" true 2>/dev/null || skip "no time namespaces"
cluster 1
machine east
machine west
lock=("$vigil" lock --at "$at/job" --ttl 5s)
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
    expect 124 on west "$vigil" lock --at "$at/job" --timeout 7s -- true
    [ ! -s waiter.out ] || fail "the lease ended early"
    echo >go
    ends 0 $holder holder
    ends 0 $waiter waiter
    read -r token died <waiter.out
    [ "$token" -gt "$(tail -n 1 holder.out)" ] && [ "${died:-0}" = 0 ] || fail "$turn: $(cat holder.out waiter.out)"
done

# The wall clock of two running holders and a waiter jumps by a day: of one forward, of the other back.
jump_by() { # FILE WALL_S BOOT_S
    python3 -c 'import struct, sys
open(sys.argv[1], "r+b").write(struct.pack("=qq", int(sys.argv[2]), int(sys.argv[3])))' "$@"
}
jumps() { echo env LD_PRELOAD="${JUMP:?}" JUMP_FILE="$scratch/$1"; }
for file in ahead back slept; do head -c 16 /dev/zero >$file; done
mkfifo go1 go2
long=(--ttl 10s --at)
begin east holder1 $(jumps ahead) "$vigil" lock "${long[@]}" "$at/ahead" -- sh -c 'echo up; read -r line <go1'
one=$begun
begin east holder2 $(jumps back) "$vigil" lock "${long[@]}" "$at/back" -- sh -c 'echo up; read -r line <go2'
two=$begun
until_true lines holder1.out 1
until_true lines holder2.out 1
begin west waiter $(jumps ahead) "$vigil" lock "${long[@]}" "$at/back" -- sh -c 'echo ${VIGIL_OWNER_DIED-0}'
waiter=$begun
until_true waits back
jump_by ahead 86400 0
jump_by back -86400 0
expect 124 on west "$vigil" lock --at "$at/ahead" --timeout 12s -- true # longer than the lease lives without renewal
echo >go1
ends 0 $one holder1
echo >go2
ends 0 $two holder2
ends 0 $waiter waiter
[ "$(cat waiter.out)" != 1 ] || fail "the waiter was told of a death"

# A machine sleeps for an hour, and wakes up: its holder does not run on, although CLOCK_MONOTONIC shows no gap.
begin east holder $(jumps slept) "$vigil" lock "${long[@]}" "$at/job" -- sh -c 'echo up; exec sleep 1000'
holder=$begun
until_true lines holder.out 1
jump_by slept 3600 3600
ends 75 $holder holder
contains "$(cat holder.err)" 'the lock was lost' 'others may have held'
expect 0 on west "$vigil" lock --at "$at/job" -- sh -c 'echo ${VIGIL_OWNER_DIED-0}'
[ "$out" = 1 ] || fail "the loss was not told: $out"
until_true no_keys job
until_true no_leases
verdict
