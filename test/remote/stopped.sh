#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Processes that are stopped past their TTL and continued. A holder never runs on as one: its command is ended, its exit
# status is 75, and what it writes with its token is refused. A waiter never runs its command out of turn.
# etcd#11456, #9921, #10111; etcd#10811, curator#727, #1121, RedLock.net#92; node-redlock#283, redlock-rb#36.
. "$(dirname "$0")/common.sh"
cluster 1
machine east
machine west
lock=("$vigil" lock --at "$at/job" --ttl 5s)    # of those that are stopped for longer
steady=("$vigil" lock --at "$at/job" --ttl 60s) # of those that are not
resource

# The holder and its command are stopped, another machine gets the lock and writes; then they go on.
begin east holder "${lock[@]}" -- sh -c '
    trap "" TERM # it does not want to end
    sh write resource $VIGIL_TOKEN east; echo "$VIGIL_TOKEN $$"
    until [ -e continued ]; do sleep 0.05; done
    sh write resource $VIGIL_TOKEN east-again; echo wrote
    while :; do sleep 0.05; done'
holder=$begun
until_true lines holder.out 1
read -r token command <holder.out
begin west heir "${steady[@]}" -- sh -c 'sh write resource $VIGIL_TOKEN west; echo "$VIGIL_TOKEN ${VIGIL_OWNER_DIED-}"'
heir=$begun
until_true waits job
kill -STOP $holder "$command"
ends 0 $heir heir
read -r next died <heir.out
[ "$next" -gt "$token" ] || fail "tokens: $token, $next"
[ "$died" = 1 ] || fail "the heir was not told that the holder lost it"
contains "$(cat heir.err)" "on east"
touch continued
kill -CONT "$command" # first the command, so that it can try
until_true has holder.out wrote
contains "$(cat holder.out)" "refused $token east-again"
kill -CONT $holder
ends 75 $holder holder
contains "$(cat holder.err)" 'the lock was lost' 'others may have held'
until_true is_gone "$command"
[ "$(cat resource)" = "$token east
$next west" ] || fail "the resource: $(cat resource)"

# A waiter is stopped until its lease has ended, and the lock is free for long. It goes on: at the end of the line.
mkfifo go1 go2
begin west holder "${steady[@]}" -- sh -c 'echo up; read -r line <go1'; holder=$begun
until_true lines holder.out 1
begin east waiter "${lock[@]}" -- sh -c 'echo waiter >>turns; key=$VIGIL_KEY
    python3 '"$here"'/etcd.py '"${at#etcd://}"' keys "$key" | grep -q . && echo holds'
waiter=$begun
until_true waits job
kill -STOP $waiter
until_true waits job 0
echo >go1; ends 0 $holder holder
begin west second "${steady[@]}" -- sh -c 'echo up; read -r line <go2; echo second >>turns'; second=$begun
until_true lines second.out 1
kill -CONT $waiter
until_true waits job 1
[ ! -e turns ] || fail "the waiter ran out of turn"
echo >go2; ends 0 $second second
ends 0 $waiter waiter
[ "$(tr '\n' ' ' <turns)" = "second waiter " ] || fail "turns: $(cat turns)"
[ "$(cat waiter.out)" = holds ] || fail "the waiter ran without its key"

# A waiter is stopped when it is granted its turn, that is while its key is in line, and its lease ends then.
begin west holder "${steady[@]}" -- sh -c 'echo up; read -r line <go1'; holder=$begun
until_true lines holder.out 1
begin east waiter "${lock[@]}" -- sh -c 'echo ran >>late'; waiter=$begun
until_true waits job
kill -STOP $waiter
echo >go1; ends 0 $holder holder
expect 0 on west "${steady[@]}" -- true # after the lease of the stopped one
[ ! -e late ] || fail "a stopped waiter ran"
kill -CONT $waiter
ends 0 $waiter waiter
until_true no_keys job
until_true no_leases
verdict
