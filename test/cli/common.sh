# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the tests here. VIGIL is the command; names of segments begin with $name, and are gone in the end.
set -u
here=$(cd "$(dirname "$0")" && pwd)
vigil=${VIGIL:?the path of the vigil command}
name=test-${0##*/}-$$
name=${name//.sh/}
scratch=$(mktemp -d)
failures=0
unset NO_COLOR # of the caller

finish() {
    local pid
    { for pid in $(jobs -p); do kill -KILL "$pid"; done; wait; } 2>/dev/null
    "$vigil" ls --names "$name*" | xargs -r "$vigil" rm --force --
    rm -rf "$scratch" /dev/shm/vigil-"$(id -u)"-"$name"*
}
trap finish EXIT

# build PROGRAM: makes it from the source beside us; then $PROGRAM is its path.
# shellcheck disable=SC2034 # used by the tests
crowd='' locking='' terminal=''
build() {
    printf -v "$1" %s "$scratch/program_$1"
    "${CC:-cc}" -o "$scratch/program_$1" "$here/$1.c" -lutil || exit 1
}

# fail TEXT...: go on, but the test has failed.
fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# expect STATUS COMMAND...: its exit status; what it printed is in $out and $err.
expect() {
    local want=$1 got
    shift
    out=$("$@" 2>"$scratch/err")
    got=$?
    err=$(cat "$scratch/err")
    [ $got = "$want" ] || fail "exit status $got instead of $want: $* (out: $out) (err: $err)"
}

# with_descriptors COUNT COMMAND...: runs it with at most COUNT descriptors, of which only the standard ones are open.
with_descriptors() (
    for fd in /proc/"$BASHPID"/fd/*; do
        [ "${fd##*/}" -le 2 ] || eval "exec ${fd##*/}>&-"
    done
    ulimit -n "$1"
    shift
    exec "$@"
)

# status_is STATUS COMMAND...
status_is() {
    local want=$1
    shift
    "$@"
    [ $? = "$want" ]
}

# contains TEXT PART...: each part is somewhere in it.
contains() {
    local text=$1 part
    shift
    for part in "$@"; do
        [[ $text == *"$part"* ]] || fail "no '$part' in: ${text:0:2000}"
    done
}

# until_true COMMAND...: again and again until it succeeds; after a minute it has failed.
until_true() {
    local end=$((SECONDS + 60))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { fail "never came true: $*" && return 1; }
        sleep 0.01
    done
}

# has_described PID NAME: the lock or semaphore says that it is held for this command, which its vigil writes down once
# the command runs. In a test that names the holder, after the command has begun.
has_described() { "$vigil" show "$2" --json | grep -q "\"command_pid\":$1,"; }

# is_locked SEGMENT: the mutex at byte 64 of it; until it has a waiter, only its word says so.
is_locked() {
    local word
    word=$("$vigil" load "$1:16") && [ "$word" != 0 ]
}

# The last line of each test.
verdict() { exit $((failures != 0)); }
