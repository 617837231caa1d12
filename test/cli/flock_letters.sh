#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The letters of flock(1) and of sem of GNU parallel; the number of slots, and its change while the semaphore is in use.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

# same STATUS OPTION...: flock and vigil lock, on a lock that is held, end with that status, and run nothing.
lock=$scratch/lock file=$scratch/file
flock=$(command -v flock) # of util-linux; without it, the statuses below are what counts
same() {
    local want=$1
    shift
    expect "$want" "$vigil" lock "$@" "$lock" -- touch "$scratch/wrong"
    expect "$want" "$vigil" lock "$lock" "$@" touch "$scratch/wrong"
    [ -z "$flock" ] || expect "$want" "$flock" -E 124 "$@" "$file" touch "$scratch/wrong"
}
held() { # OPTION: hold both, until $scratch/go exists
    rm -f "$scratch"/go*
    "$vigil" lock "$1" "$lock" -- "$hold" "$scratch/go" &
    until_true [ -e "$scratch/go.begun" ]
    if [ -n "$flock" ]; then
        "$flock" "$1" "$file" "$hold" "$scratch/go.file" &
        until_true [ -e "$scratch/go.file.begun" ]
    fi
}
release() { touch "$scratch/go" "$scratch/go.file" && wait; }

held -x
same 124 -n
same 124 -w 0.05
same 124 -w0.05
same 7 -n -E 7
same 124 -s -n
same 124 -x -n
same 124 -sn
release
rm -f "$scratch/wrong"
held -x
for status in 0 1 7 255; do
    expect $status "$vigil" lock -n -E $status "$lock" -- touch "$scratch/wrong"
    expect $status "$vigil" lock -w 0.01 -E$status "$lock" -- touch "$scratch/wrong"
    expect $status "$vigil" lock --try --conflict-exit-code=$status "$lock" -- touch "$scratch/wrong"
    [ -z "$flock" ] || expect $status "$flock" -n -E $status "$file" touch "$scratch/wrong"
done
release
[ ! -e "$scratch/wrong" ] || fail "a command has run without the lock"
held -s
expect 0 "$vigil" lock -s -n "$lock" -- true
expect 0 "$vigil" lock -ns "$lock" true
expect 124 "$vigil" lock -x -n "$lock" -- true
release
# When it is free, they change nothing; -E is not the command's status.
for options in -n "-w 5" -w5 -s -x "-E 9" "-n -E 9" "-s -w 5"; do
    read -r -a words <<<"$options"
    expect 3 "$vigil" lock "${words[@]}" "$lock" -- sh -c 'exit 3'
    [ -z "$flock" ] || expect 3 "$flock" "${words[@]}" "$file" sh -c 'exit 3'
done
# Wrong usage.
for options in "-E 256" "-E x" "-E" "-w x" "-s -x" "-x --shared"; do
    read -r -a words <<<"$options"
    expect 125 "$vigil" lock "$lock" "${words[@]}" -- true
done
expect 125 "$vigil" lock "$lock" -n -E 256 -- true
contains "$err" "from 0 to 255"

# sem -j, and numbers relative to the processors.
processors=$(getconf _NPROCESSORS_ONLN)
slots_of() { "$vigil" ls "$1" | awk 'NR == 2 { print $4 }'; }
slots_are() { # WANT TEXT
    local option
    for option in "--slots $2" "--slots=$2" "-j $2" "-j$2"; do
        read -r -a words <<<"$option"
        expect 0 "$vigil" sem "$name" "${words[@]}" -- true
        [ "$(slots_of "$name")" = "$1" ] || fail "$option are $(slots_of "$name") slots, and not $1"
        expect 0 "$vigil" rm "$name"
    done
}
at_least_1() { echo $(($1 > 1 ? $1 : 1)); }
slots_are 3 3
slots_are "$processors" 100%
slots_are "$(at_least_1 $((processors / 2)))" 50%
slots_are 1 1%
slots_are $((processors * 2)) 200%
slots_are $((processors + 1)) +1
slots_are "$processors" +0
slots_are "$(at_least_1 $((processors - 1)))" -1
slots_are 1 -1000
expect 0 "$vigil" sem "$name" -j 2 -- true
expect 125 "$vigil" sem "$name" -j 3 -- touch "$scratch/wrong"
contains "$err" "$name has 2 slots, not 3" "--set-slots 3"
expect 0 "$vigil" sem "$name" -- "$vigil" sem "$name" -n -E 5 -- true
expect 5 "$vigil" sem "$name" -- "$vigil" sem "$name" -- "$vigil" sem "$name" -n -E 5 -- true
expect 5 "$vigil" sem "$name" -- "$vigil" sem "$name" -- "$vigil" sem "$name" -w 0.01 -E 5 -- true

# --set-slots: more, and waiters start at once; fewer, as slots come back.
running=0
start() { # a command that holds a slot until $scratch/run-N exists
    running=$((running + 1))
    "$vigil" sem "$name" -- "$hold" "$scratch/run-$running" &
}
begun() { [ "$(find "$scratch" -name 'run-*.begun' | wc -l)" = "$1" ]; }
for _ in {1..6}; do start; done
until_true begun 2
until_true in_line 4 "$name"
expect 0 "$vigil" sem "$name" --set-slots 5
[ -z "$out$err" ] || fail "--set-slots says $out$err"
until_true begun 5
until_true in_line 1 "$name"
expect 0 "$vigil" sem "$name" --set-slots 2
in_line 1 "$name" || fail "fewer slots have started a command"
[ "$(slots_of "$name")" = 2 ] || fail "there are $(slots_of "$name") slots"
end_one() { # of those that run
    local begun
    for begun in "$scratch"/run-*.begun; do
        [ -e "${begun%.begun}" ] || break
    done
    touch "${begun%.begun}"
    until_true is_gone "$(cat "$begun")"
}
holders() { [ "$("$vigil" show "$name" --json | grep -o '"shared":false,"count":1' | wc -l)" = "$1" ]; }
for left in 4 3 2; do # the slots of those that end disappear
    end_one
    until_true holders $left
    in_line 1 "$name" || fail "a command has started, and $left slots of 2 are held"
    expect 124 "$vigil" sem "$name" --try -- true
done
end_one # now one comes back
until_true begun 6
until_true holders 2
expect 124 "$vigil" sem "$name" --try -- true
expect 0 "$vigil" sem "$name" --set-slots 1
expect 0 "$vigil" sem "$name" --set-slots 3 # before one was given back
expect 0 "$vigil" sem "$name" --try -- true
expect 124 "$vigil" sem "$name" -- "$vigil" sem "$name" --try -- true
end_one
end_one
wait
expect 0 "$vigil" sem "$name" -- "$vigil" sem "$name" -- "$vigil" sem "$name" --try -- true
expect 124 "$vigil" sem "$name" -- "$vigil" sem "$name" -- "$vigil" sem "$name" -- "$vigil" sem "$name" --try -- true
# A killed holder's slot is not one too many either.
"$vigil" sem "$name" -- "$hold" "$scratch/killed" &
until_true [ -e "$scratch/killed.begun" ]
expect 0 "$vigil" sem "$name" --set-slots 1
expect 124 "$vigil" sem "$name" --try -- true
kill -KILL $!
{ wait $!; } 2>/dev/null
until_true is_gone "$(cat "$scratch/killed.begun")"
expect 0 "$vigil" sem "$name" --timeout 1m -- true
expect 124 "$vigil" sem "$name" -- "$vigil" sem "$name" --try -- true

# Wrong usage of --set-slots.
expect 125 "$vigil" sem "$name-none" --set-slots 2
contains "$err" "there is no semaphore $name-none"
expect 0 "$vigil" lock "$name-lock" -- true
expect 125 "$vigil" sem "$name-lock" --set-slots 2
contains "$err" "is a lock, not a semaphore"
for bad in 0 x 16777216; do
    expect 125 "$vigil" sem "$name" --set-slots $bad
    contains "$err" "--set-slots must be a number"
done
expect 125 "$vigil" sem "$name" --set-slots 2 -- true
contains "$err" "runs no command"
expect 125 "$vigil" sem "$name" --set-slots
expect 0 "$vigil" sem "$name" echo --set-slots # the command's own
[ "$out" = --set-slots ] || fail "the command printed $out"
[ ! -e "$scratch/wrong" ] || fail "a command has run that should not have"
verdict
