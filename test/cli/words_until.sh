#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil wait --until, and --notify of store, add and cas.
. "$(dirname "$0")/common.sh"

seen() { "$vigil" ls "$name" --json | grep -q "\"waiting\":$1,"; }

# begin FILE COUNT WORD...: vigil wait in the background, its output in the file; returns when COUNT are in line.
begin() {
    local file=$scratch/$1 count=$2
    shift 2
    "$vigil" wait "$@" >"$file" &
    until_true seen "$count"
}
# ends PID FILE: the wait has ended with ok.
ends() {
    wait "$1" || fail "the wait ended with $?"
    [ "$(cat "$scratch/$2")" = ok ] || fail "it printed '$(cat "$scratch/$2")'"
}
prints() {
    local want=$1
    shift
    out=$("$vigil" "$@" 2>&1)
    [ "$out" = "$want" ] || fail "'$out' instead of '$want': $*"
}

# The same after a notification: the waiter may not be back in line yet, so the text may have a 0 for its last 1.
prints_soon() {
    local want=$1
    shift
    out=$("$vigil" "$@" 2>&1)
    case $out in
    "$want" | "${want%1*}0${want##*1}") ;;
    *) fail "'$out' instead of '$want': $*" ;;
    esac
}

expect 0 "$vigil" create "$name" --length 64

# Wrong usage: exactly one of EXPECTED and --until.
expect 64 "$vigil" wait "$name"
contains "$err" "a value is missing after the NAME"
expect 64 "$vigil" wait "$name" 0 --until 1
contains "$err" "EXPECTED and --until exclude each other"
expect 64 "$vigil" wait --until 1
contains "$err" "a NAME is missing"
expect 64 "$vigil" wait "$name" --until
contains "$err" "--until needs a value"
for bad in x "" 1.5 99999999999999999999; do
    expect 64 "$vigil" wait "$name" --until "$bad"
    contains "$err" "invalid integer '$bad'"
done
expect 64 "$vigil" wait "$name" --until 4294967296
contains "$err" "is the word of --type i64?"
expect 64 "$vigil" wait "$name" --until 1 --timeout soon
contains "$err" "invalid duration"
expect 64 "$vigil" load "$name" --notify
contains "$err" "unknown option --notify"
expect 64 "$vigil" store "$name" 1 --notify=yes
contains "$err" "--notify takes no value"
expect 64 "$vigil" store "$name" 1 --until 1
expect 3 "$vigil" wait "$name-missing" --until 1
contains "$err" "there is no segment $name-missing"
expect 3 "$vigil" wait "$name:16" --until 1
contains "$err" "no index 16"

# At once if the word is the value, whatever the time; otherwise the time ends it.
prints ok wait "$name" --until 0
prints ok wait "$name" --until 0 --timeout 0
expect 2 "$vigil" wait "$name" --until 1 --timeout 0
[ "$out" = timed-out ] || fail "wait printed $out"
expect 2 "$vigil" wait "$name" --until 1 --timeout 20ms --json
contains "$out" '{"status":"timed-out","waited_ns":'
expect 0 "$vigil" wait "$name" --until 0 --json
contains "$out" '{"status":"ok","waited_ns":'
expect 0 bash -ec "'$vigil' wait '$name' --until 0 >/dev/null; echo passed"
[ "$out" = passed ] || fail "under set -e: $out"
seen 0 || fail "a waiter is left: $("$vigil" ls "$name")"

# Other values and notifications do not end it; the value does. In JSON, how many were notified.
begin one 1 "$name" --until 3
one=$!
prints '{"status":"ok","value":1,"notified":1}' store "$name" 1 --notify --json
until_true seen 1
prints_soon 1 notify "$name"
until_true seen 1
prints_soon '{"status":"ok","old":1,"notified":1}' add "$name" 1 --notify --json
until_true seen 1
[ ! -s "$scratch/one" ] || fail "it has ended early: $(cat "$scratch/one")"
prints '{"status":"not-equal","old":2}' cas "$name" 7 3 --notify --json # not written, and so not notified
prints_soon '{"status":"ok","old":2,"notified":1}' cas "$name" 2 3 --notify --json
ends $one one

# What they print without --json is as without --notify, and all waiters at the word are woken, others are not.
expect 0 "$vigil" store "$name" 0
begin a 1 "$name" 0
a=$!
begin b 2 "$name" --until -1
b=$!
begin c 3 "$name:1" --until 1
c=$!
prints "" store "$name" -1 --notify
ends $a a
ends $b b
seen 1 || fail "the waiter at the other word should be left"
prints 0 add "$name:1" 1 --notify
ends $c c
prints 1 cas "$name:1" 1 2 --notify
prints '{"status":"ok","value":2,"notified":0}' store "$name:1" 2 --notify --json

# 64 bits, and a bit pattern.
begin wide 1 "$name:4" --type i64 --until 0xffffffffffffffff
wide=$!
expect 0 "$vigil" store "$name:4" -1 --type i64 --notify
ends $wide wide

# Between looking and waiting nothing is missed: two processes take turns, each waiting for the other's value.
turns=100
play() { # MINE THEIRS, where the word goes from THEIRS to MINE
    local i
    for ((i = 0; i < turns; i++)); do
        "$vigil" wait "$name:3" --until "$1" >/dev/null || return
        "$vigil" store "$name:3" "$2" --notify || return
    done
}
play 0 1 &
first=$!
play 1 0 &
second=$!
wait $first || fail "the first player ended with $?"
wait $second || fail "the second player ended with $?"

# A signal ends it, and leaves nothing in the line.
begin signal 1 "$name" --until 77
pid=$!
kill -TERM $pid
wait $pid 2>/dev/null
[ $? = 143 ] || fail "SIGTERM: it ended otherwise"
seen 0 || fail "a waiter is left: $("$vigil" ls "$name")"

verdict
