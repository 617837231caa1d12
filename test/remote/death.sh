#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The holder is killed: the next on its machine has the lock at once, another machine when the lease has ended; both are
# told who died. The whole machine fails. consul#2022, #797: what the command started does not outlive the lock.
. "$(dirname "$0")/common.sh"
cluster 1
machine east
machine west
lock=("$vigil" lock --at "$at/job" --ttl 3s)

# Of two waiters the one on the same machine is first, long before the lease ends: it is not the one that waited longer.
begin east holder "${lock[@]}" --ttl 600s -- sh -c 'echo "$VIGIL_TOKEN"; sleep 1000 & echo $!; wait'
holder=$begun
until_true lines holder.out 2
{ read -r token; read -r child; } <holder.out
begin west west "${lock[@]}" -- sh -c 'echo "$VIGIL_TOKEN ${VIGIL_OWNER_DIED-}"; echo west >>order'
west=$begun
until_true waits job
begin east east "${lock[@]}" -- sh -c 'echo "$VIGIL_TOKEN ${VIGIL_OWNER_DIED-}"; echo east >>order'
east=$begun
kill -KILL $holder
wait $holder 2>/dev/null
kill -KILL "$child" 2>/dev/null # an orphan of the command keeps the lock
ends 0 $east east
ends 0 $west west
[ "$(tr '\n' ' ' <order)" = "east west " ] || fail "order: $(cat order)"
read -r second died <east.out
[ "$second" -gt "$token" ] || fail "tokens: $token, $second"
[ "$died" = 1 ] || fail "east was not told of the death"
contains "$(cat east.err)" "on east: sh -c echo" 'may have left something unfinished'
read -r third died <west.out
[ "$third" -gt "$second" ] || fail "tokens: $second, $third"
[ "${died:-0}" = 0 ] || fail "west was told of a death that was made good"

# No other on that machine: the next machine, when the lease has ended, and not before. The time since the last renewal
# is less than the TTL: so at the death at least two thirds of it were left, for a holder that was not delayed.
begin east holder "${lock[@]}" -- sh -c 'echo $PPID $$; exec sleep 1000'
until_true lines holder.out 1
read -r holder command <holder.out
begin west heir "${lock[@]}" --on-owner-died fail -- echo ran
heir=$begun
until_true waits job
kill -KILL "$holder"
wait "$holder" 2>/dev/null
until_true is_gone "$command"
ends 125 $heir heir
contains "$(cat heir.err)" 'died or lost it while holding it' "pid $holder on east: sh -c echo"
[ ! -s heir.out ] || fail "the command ran"
expect 0 on west "${lock[@]}" -- sh -c 'echo "${VIGIL_OWNER_DIED-}"' # it was not made good: told again
[ "$out" = 1 ] || fail "not told again"
expect 0 on west "${lock[@]}" -- sh -c 'echo "${VIGIL_OWNER_DIED-0}"'
[ "${out:-0}" = 0 ] || fail "told although it was made good"

# The whole machine: holder, command and waiters at once.
begin east holder "${lock[@]}" -- sh -c 'echo up; exec sleep 1000'; a=$begun
until_true lines holder.out 1
for i in 1 2 3; do begin east waiter$i "${lock[@]}" -- sh -c 'echo east >>ran'; done
begin west heir "${lock[@]}" -- sh -c 'echo "${VIGIL_OWNER_DIED-}"'
heir=$begun
until_true waits job
fail_machine east
wait $a 2>/dev/null
ends 0 $heir heir
[ "$(cat heir.out)" = 1 ] || fail "the heir was not told"
contains "$(cat heir.err)" 'on east: sh -c echo up'
[ ! -e ran ] || fail "a waiter of the machine that failed ran"
# The machine comes back: what it remembers in its memory is of a lease that has ended.
expect 0 on east "${lock[@]}" -- sh -c 'echo "${VIGIL_OWNER_DIED-0}"'
[ "${out:-0}" = 0 ] || fail "told of a death that was made good"

# A waiter that is killed is skipped: another of its machine, or another machine.
mkfifo go
begin east holder "${lock[@]}" -- sh -c 'echo up; read -r line <go'; holder=$begun
until_true lines holder.out 1
begin west first "${lock[@]}" -- echo ran; first=$begun
until_true waits job
begin west second "${lock[@]}" -- echo ran; second=$begun
kill -KILL $first
wait $first 2>/dev/null
echo >go
ends 0 $holder holder
ends 0 $second second
[ "$(cat second.out)" = ran ] && [ ! -s first.out ] || fail "ran: $(cat first.out second.out)"

# Only vigil is killed, and its command with it: what the command has started runs on, and keeps the lock on its own
# machine. When the lease has ended, another machine gets the lock beside it, and the token tells them apart.
resource
begin east holder "${lock[@]}" -- sh -c '
    { until [ -e continued ]; do sleep 0.05; done; sh write resource $VIGIL_TOKEN orphan; } >orphan.out &
    sh write resource $VIGIL_TOKEN east; echo $! $$; wait'
holder=$begun
until_true lines holder.out 1
read -r orphan command <holder.out
kill -KILL "$holder"
wait "$holder" 2>/dev/null
until_true is_gone "$command"
expect 0 on west "${lock[@]}" --ttl 60s -- sh -c 'sh write resource $VIGIL_TOKEN west; echo "$VIGIL_OWNER_DIED"'
[ "$out" = 1 ] || fail "west was not told of the death"
! is_gone "$orphan" || fail "the orphan has ended"
expect 124 on east "${lock[@]}" --timeout 300ms -- echo ran
touch continued
until_true is_gone "$orphan"
contains "$(cat orphan.out)" 'refused' 'orphan'
[ "$(sed 's,.* ,,' resource | tr '\n' ' ')" = "east west " ] || fail "the resource: $(cat resource)"

# A process of east keeps the lock, another one of east has it, and both that one and its command are killed: west need
# not wait for the end of the lease, which the first renews.
begin east keeper "${MEMBER:?}" keep "$at" job 600 east; keeper=$begun
until_true has keeper.out kept
begin east holder "${lock[@]}" -- sh -c 'echo $PPID $$; exec sleep 1000'
until_true lines holder.out 1
read -r holder command <holder.out
begin west heir "${lock[@]}" -- sh -c 'echo "${VIGIL_OWNER_DIED-}"'; heir=$begun
until_true waits job
kill -KILL "$holder"
wait "$holder" 2>/dev/null
until_true is_gone "$command"
ends 0 $heir heir
[ "$(cat heir.out)" = 1 ] || fail "the heir was not told"
kill -KILL $keeper
etcd revoke "$(etcd leases)" # the keeper's, for its next request
until_true no_keys job
until_true no_leases
verdict
