#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil lock on a terminal that hangs up, or that its command does not belong to; and in the background of a terminal
# that stops background processes when they write.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
build terminal

# hang_up LOG COMMAND...: it runs a `locking signals LOG` on a terminal, which then is gone.
hang_up() {
    local log=$1
    shift
    "$terminal" "$scratch/screen" "$@" </dev/null 2>/dev/null &
    until_true has_begun "$log"
    kill -KILL $!
    { wait $!; } 2>/dev/null
}

# Only the session leader gets SIGHUP. If that is vigil it passes it on, with the SIGCONT that is for stopped processes.
hang_up "$scratch/leader" "$vigil" lock "$name" -- "$locking" signals "$scratch/leader"
until_true has_line "$scratch/leader" "1 process"
until_true has_line "$scratch/leader" "18 process"
kill -KILL "$(pid_in "$scratch/leader")"
until_true is_free "$name"

# If it is a shell, then its end is the end of all: then the command has had it. When it has had the USR1 that came
# later, vigil has had both.
hang_up "$scratch/led" sh -c '"$@"; exit' sh "$vigil" lock "$name" -- "$locking" signals "$scratch/led"
until_true has_line "$scratch/led" "1 terminal"
kill -USR1 "$(ps -o ppid= -p "$(pid_in "$scratch/led")")"
until_true has_line "$scratch/led" "10 process"
[ "$(grep -c '^1 ' "$scratch/led")" = 1 ] || fail "hung up more than once: $(cat "$scratch/led")"
kill -KILL "$(pid_in "$scratch/led")"
until_true is_free "$name"

# What is typed goes to the terminal's foreground. A command that has left it has not had it from there.
mkfifo "$scratch/keys"
"$locking" end "$scratch/end" "$terminal" "$scratch/screen" \
    "$vigil" lock "$name" -- setsid "$locking" signals "$scratch/away" <"$scratch/keys" &
exec 8>"$scratch/keys"
until_true has_begun "$scratch/away"
printf '\003' >&8
until_true has_line "$scratch/away" "2 process"
kill -KILL "$(pid_in "$scratch/away")"
exec 8>&-
wait
until_true is_free "$name"

# Stopped and sent to the background while it shows its place. When the lock is its own it has something to erase, and
# something to say: neither stops it. Nor does it erase what is not its own by now.
"$vigil" lock "$name" -- "$hold" "$scratch/held" 2>/dev/null &
holder=$!
until_true [ -e "$scratch/held.begun" ]
"$terminal" "$scratch/screen" env TERM=xterm bash -c \
    'set -m; stty tostop; "$0" lock "$1" -- touch "$2"; bg; echo resumed; wait' "$vigil" "$name" "$scratch/ran" \
    <"$scratch/keys" &
exec 8>"$scratch/keys"
until_true grep -q "1st in line of 1" "$scratch/screen"
printf '\032' >&8
until_true grep -q resumed "$scratch/screen"
kill -KILL $holder
{ wait $holder; } 2>/dev/null
until_true [ -e "$scratch/ran" ]
exec 8>&-
wait
after=$(sed -n '/resumed/,$p' "$scratch/screen")
contains "$after" "its last holder, pid " "($hold $scratch/held)" "was killed while holding it"
[[ $after != *$'\033'* ]] || fail "drawn in the background: $(cat -v "$scratch/screen")"
until_true is_free "$name"
verdict
