#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil lock and signals: passed on to the command; while it waits they end it, and it leaves no trace in the line.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

has_ended() { grep -q '^exit\|^signal' "$1"; }

# start_ended LOG COMMAND...: in the background, with its end in LOG. Its pid is pid_in LOG.
start_ended() {
    "$locking" end "$@" &
    until_true has_begun "$1"
}

# Each signal that is sent to vigil gets to the command, once.
start_ended "$scratch/end" "$vigil" lock "$name" -- "$locking" signals "$scratch/got"
until_true has_begun "$scratch/got"
for signal in HUP INT QUIT TERM USR1 USR2 ALRM WINCH CONT; do
    kill -$signal "$(pid_in "$scratch/end")"
    until_true has_line "$scratch/got" "$(kill -l $signal) process"
done
[ "$(grep -c process "$scratch/got")" = 9 ] || fail "not once each: $(cat "$scratch/got")"
kill -KILL "$(pid_in "$scratch/got")"
until_true has_line "$scratch/end" "exit 137"
until_true is_free "$name"

# A command that handles a signal and exits with a status; one that is ended by it.
start_ended "$scratch/trap" "$vigil" lock "$name" -- \
    sh -c 'trap "exit 9" TERM; echo >"$0"; while :; do sleep 0.01; done' "$scratch/trapped"
until_true [ -e "$scratch/trapped" ]
kill -TERM "$(pid_in "$scratch/trap")"
until_true has_line "$scratch/trap" "exit 9"
start_ended "$scratch/term" "$vigil" lock "$name" -- "$hold" "$scratch/never"
until_true [ -e "$scratch/never.begun" ]
kill -TERM "$(pid_in "$scratch/term")"
until_true has_line "$scratch/term" "exit 143"
# A shell's loop ends only if it sees that the process it ran was interrupted: so vigil ends by the signal, too.
start_ended "$scratch/int" "$vigil" lock "$name" -- sh -c 'kill -INT $$'
until_true has_line "$scratch/int" "signal 2"
until_true is_free "$name"

# While it waits: it dies of the signal, its place in the line is gone, and the others have not noticed.
"$vigil" lock "$name" -- "$hold" "$scratch/go" &
until_true [ -e "$scratch/go.begun" ]
interrupt() { # SIGNAL WAITERS_BEFORE COMMAND...: that waits
    local log=$scratch/waited-$1-$RANDOM signal=$1 before=$2
    shift 2
    start_ended "$log" "$@"
    until_true in_line $((before + 1)) "$name"
    kill "-$signal" "$(pid_in "$log")"
    until_true has_ended "$log"
    has_line "$log" "signal $(kill -l "$signal")" || fail "after $signal: $(cat "$log")"
    in_line "$before" "$name" || fail "$signal has left a trace in the line"
    has_members $((before + 1)) "$name" || fail "$signal has left a member"
}
for signal in HUP INT QUIT TERM; do
    interrupt $signal 0 "$vigil" lock "$name" -- touch "$scratch/wrong"
    interrupt $signal 0 "$vigil" lock "$name" --shared -- touch "$scratch/wrong"
    interrupt $signal 0 "$vigil" lock "$name" --fair --wait-status -- touch "$scratch/wrong" 2>/dev/null
done
"$vigil" lock "$name" --fair -- touch "$scratch/right" & # first in line; the others wait behind
until_true in_line 1 "$name"
interrupt INT 1 "$vigil" lock "$name" --fair -- touch "$scratch/wrong"
# Signals that it inherits as ignored it ignores, and so does the command.
(trap '' HUP && exec "$vigil" lock "$name" --fair -- sh -c 'kill -HUP $$; echo >"$0"' "$scratch/ignored") &
until_true in_line 2 "$name"
kill -HUP $!
touch "$scratch/go"
wait
[ ! -e "$scratch/wrong" ] || fail "a command has run that should not have"
[ -e "$scratch/right" ] || fail "the process that was not interrupted has not run"
[ -e "$scratch/ignored" ] || fail "a signal that should be ignored was not"
until_true is_free "$name"

# Interrupted at any moment, it neither keeps the lock nor seems to have died with it. How it ends depends on when.
for delay in 0 0.0002 0.0004 0.0006 0.0008 0.001 0.0012 0.0014 0.0016 0.002 0.003; do
    for signal in INT TERM; do
        start_ended "$scratch/any-$signal-$delay" "$vigil" lock "$name" --on-owner-died fail -- true
        sleep $delay
        kill -$signal "$(pid_in "$scratch/any-$signal-$delay")" 2>/dev/null
        until_true has_ended "$scratch/any-$signal-$delay"
        expect 0 "$vigil" lock "$name" --on-owner-died fail -- true
    done
done
until_true is_free "$name"

# On a terminal, whose keys send signals to all that run there. What we type goes through a fifo.
build terminal
mkfifo "$scratch/keys"
on_terminal() { # LOG COMMAND...
    local log=$1
    shift
    "$locking" end "$log" "$terminal" "$log.screen" "$@" <"$scratch/keys" &
    exec 8>"$scratch/keys"
}

# The command has had it from the terminal: vigil does not pass it on. (It does while it starts the command: it cannot
# know then. When it passes WINCH on it is done with that.) When the command has had the USR1 that came later, vigil has
# had both.
on_terminal "$scratch/terminal" "$vigil" lock "$name" -- "$locking" signals "$scratch/typed"
until_true has_begun "$scratch/typed"
holder=$(ps -o ppid= -p "$(pid_in "$scratch/typed")")
kill -WINCH "$holder"
until_true has_line "$scratch/typed" "28 process"
printf '\003' >&8
until_true has_line "$scratch/typed" "2 terminal"
kill -USR1 "$holder"
until_true has_line "$scratch/typed" "10 process"
[ "$(grep -c '^2 ' "$scratch/typed")" = 1 ] || fail "interrupted more than once: $(cat "$scratch/typed")"
kill -KILL "$(pid_in "$scratch/typed")"
exec 8>&-
until_true has_line "$scratch/terminal" "exit 137"

# While it waits it shows its place; interrupted, it ends.
"$vigil" lock "$name" -- "$hold" "$scratch/long" &
until_true [ -e "$scratch/long.begun" ]
on_terminal "$scratch/interrupted" env TERM=xterm "$vigil" lock "$name" -- touch "$scratch/wrong"
until_true grep -q "vigil lock $name: 1st in line of 1, .*; held for " "$scratch/interrupted.screen"
printf '\003' >&8
until_true has_line "$scratch/interrupted" "exit 130"
exec 8>&-
until_true in_line 0 "$name"
# So it does until it is its turn, and then there is nothing to be seen of that.
on_terminal "$scratch/granted" env TERM=xterm "$vigil" lock "$name" -- echo granted
until_true grep -q "1st in line of 1" "$scratch/granted.screen"
touch "$scratch/long"
until_true has_line "$scratch/granted" "exit 0"
exec 8>&-
tr -d '\r' <"$scratch/granted.screen" | grep -q $'\033\\[Kgranted$' ||
    fail "the place is still there: $(cat -v "$scratch/granted.screen")"
[ ! -e "$scratch/wrong" ] || fail "a command has run that should not have"
wait
until_true is_free "$name"
verdict
