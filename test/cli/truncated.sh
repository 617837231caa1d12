#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A path's file is truncated while vigil uses it: vigil says so and exits, and so does the command that it runs.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

# An expectation about a process in the background. ends STATUS PID FILE: its messages are in FILE.
ends() {
    wait "$2"
    local got=$?
    [ $got = "$1" ] || fail "exit status $got instead of $1: $(cat "$3")"
    contains "$(cat "$3")" "vigil" "truncated"
}

# truncated BYTES SUBCOMMAND...: of a holder and a waiter, while they are at it. The waiter is an event loop, whose
# process touches the file when it patrols, after a second. It must not give up before the file has been truncated.
truncated() {
    local bytes=$1 file=$scratch/lock-$1-$2 holder waiter
    shift
    "$vigil" "$1" "$file" "${@:2}" -- "$hold" "$file.go" 2>"$file.held" &
    holder=$!
    until_true [ -e "$file.go.begun" ]
    "$vigil" "$1" "$file" "${@:2}" --timeout 1m -- touch "$file.wrong" 2>"$file.waited" &
    waiter=$!
    until_true in_line 1 "$file"
    truncate -s "$bytes" "$file"
    ends 125 $waiter "$file.waited"
    touch "$file.go"
    ends 125 $holder "$file.held"
    until_true gone "$(cat "$file.go.begun")"
    [ ! -e "$file.wrong" ] || fail "the waiter has run its command"
}
gone() { ! kill -0 "$1" 2>/dev/null; }
truncated 0 lock
truncated 4096 lock --fair
truncated 0 sem --slots 1

# A signal that a process sends is nothing of the kind.
"$vigil" lock "$scratch/other" -- "$hold" "$scratch/other.go" 2>"$scratch/other.err" &
until_true [ -e "$scratch/other.go.begun" ]
kill -BUS $!
wait $! 2>/dev/null
[ $? = 135 ] || fail "SIGBUS from another process has not ended vigil"
[ ! -s "$scratch/other.err" ] || fail "something was said: $(cat "$scratch/other.err")"

# The subcommands that only look.
expect 0 "$vigil" lock "$scratch/seen" -- true
truncate -s 4096 "$scratch/seen"
for subcommand in show doctor; do
    timeout 10 "$vigil" "$subcommand" "$scratch/seen" >/dev/null 2>"$scratch/err"
    got=$?
    [ $got -lt 124 ] || fail "$subcommand: exit status $got"
done
verdict
