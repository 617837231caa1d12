#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The shell as an agent: load, store, add, cas, wait and notify; stories for two terminals, of which one is a background
# process here.
. "$(dirname "$0")/common.sh"
ulimit -c 0

# seen MEMBERS WAITING: so many have the segment open, and wait in it.
seen() { "$vigil" ls "$name" --json | grep -q "\"members\":$1,\"waiting\":$2,"; }

# prints TEXT COMMAND...: the words that vigil prints.
prints() {
    local want=$1
    shift
    out=$("$vigil" "$@" 2>"$scratch/err")
    [ "$out" = "$want" ] || fail "'$out' instead of '$want': $* ($(cat "$scratch/err"))"
}

# begin FILE WORD...: vigil wait in the background, its output in the file; returns when it is in line.
begin() {
    local file=$scratch/$1
    shift
    "$vigil" wait "$@" >"$file" &
    waiting=$((waiting + 1))
    until_true seen $waiting $waiting
}
waiting=0

expect 0 "$vigil" create "$name" --length 64
prints 0 load "$name"

# Words, by index and type.
expect 0 "$vigil" store "$name:1" 5
[ -z "$out$err" ] || fail "store says something: $out$err"
prints 5 load "$name:1"
prints 0 load "$name"
prints 21474836480 load "$name:0" --type i64
expect 0 "$vigil" store "$name:7" -3 --type i64
prints -3 load "$name:14"
prints -1 load "$name:0xf"
expect 3 "$vigil" load "$name:16"
contains "$err" "$name has 16 words of type i32, and no index 16"
expect 3 "$vigil" load "$name:8" --type i64
contains "$err" "8 words of type i64"
expect 3 "$vigil" load "$name:18446744073709551615"
expect 0 "$vigil" show "$name" --json
contains "$out" '"members":[]'
for bad in : :x :-1 :1.5 :18446744073709551616 :1:2x; do
    expect 64 "$vigil" load "$name$bad"
    contains "$err" "invalid index"
done

prints 5 add "$name:1" 10
prints 15 add "$name:1" -20
prints -5 load "$name:1"
expect 0 "$vigil" store "$name:1" 2147483647
prints 2147483647 add "$name:1" 1
prints -2147483648 load "$name:1"
expect 0 "$vigil" cas "$name:1" -2147483648 1
[ "$out" = -2147483648 ] || fail "cas found $out"
expect 1 "$vigil" cas "$name:1" 7 8
[ "$out" = 1 ] || fail "cas found $out"
prints 1 load "$name:1"

prints '{"status":"ok","value":1}' load "$name:1" --json
prints '{"status":"ok","value":2}' store "$name:1" 2 --json
prints '{"status":"ok","old":2}' add "$name:1" 1 --json
prints '{"status":"ok","old":3}' cas "$name:1" 3 0 --json
prints '{"status":"not-equal","old":0}' cas "$name:1" 3 0 --json
prints '{"status":"ok","notified":0}' notify "$name:1" --json

# No such segment, or no such name.
for call in "load NAME" "store NAME 1" "add NAME 1" "cas NAME 0 1" "wait NAME 0" "notify NAME"; do
    read -r -a words <<<"${call/NAME/$name-missing}"
    expect 3 "$vigil" "${words[@]}"
    contains "$err" "vigil ${words[0]}: there is no segment $name-missing" "vigil create $name-missing"
    expect 3 "$vigil" "${words[@]}" --json
    contains "$out" '"status":"not-found"'
    read -r -a words <<<"${call/NAME/a/b}"
    expect 3 "$vigil" "${words[@]}"
    contains "$err" "invalid name 'a/b'" "try a-b"
done

# Waiting: not-equal beats everything, a deadline ends it, and a wait of no length never joins.
expect 1 "$vigil" wait "$name" 1
[ "$out" = not-equal ] || fail "wait printed $out"
expect 1 "$vigil" wait "$name" 1 --timeout 0
expect 2 "$vigil" wait "$name" 0 --timeout 0
[ "$out" = timed-out ] || fail "wait printed $out"
expect 2 "$vigil" wait "$name" 0 --timeout 1ms --json
contains "$out" '{"status":"timed-out","waited_ns":'
prints 0 notify "$name"

# The first story: one waits for a click, the other clicks. A store alone wakes no waiter.
begin story "$name" 0
waiter=$!
expect 0 "$vigil" store "$name" 1
seen 1 1 || fail "a store has ended the wait"
prints 1 notify "$name"
wait $waiter || fail "the wait ended with $?"
[ "$(cat "$scratch/story")" = ok ] || fail "wait printed $(cat "$scratch/story")"
expect 1 "$vigil" wait "$name" 0
expect 0 "$vigil" store "$name" 0
waiting=0

# First come, first served; 32- and 64-bit words of the same byte have one line, another word has another.
begin a "$name" 0
first=$!
begin b "$name" 0 --type i64 --json
second=$!
begin c "$name:0" 0
third=$!
begin d "$name:2" 0
other=$!
prints 0 notify "$name" 0
prints 2 notify "$name" 2
wait $first $second
seen 2 2 || fail "two should be left: $("$vigil" ls "$name")"
[ "$(cat "$scratch/a") $(cat "$scratch/c")" = "ok " ] || fail "not the first two were woken"
contains "$(cat "$scratch/b")" '{"status":"ok","waited_ns":'
prints 1 notify "$name" 18446744073709551615
wait $third
prints 1 notify "$name:2"
wait $other
[ "$(cat "$scratch/c") $(cat "$scratch/d")" = "ok ok" ] || fail "a waiter was not told that it is ok"
for bad in -1 x 1.5 18446744073709551616 ""; do expect 64 "$vigil" notify "$name" "$bad"; done

# A signal while it waits leaves no trace in the line, and is what it dies of. (Job control: a shell without it has its
# background processes ignore SIGINT.)
waiting=0
for signal in INT TERM HUP QUIT USR1 USR2 ALRM PIPE; do
    set -m
    begin signal "$name" 0
    set +m
    pid=$!
    kill -$signal $pid
    wait $pid 2>/dev/null
    status=$?
    [ $status = $((128 + $(kill -l $signal))) ] || fail "SIG$signal: it ended with $status"
    seen 0 0 || fail "SIG$signal: a process is left: $("$vigil" ls "$name")"
    prints 0 notify "$name"
    [ ! -s "$scratch/signal" ] || fail "SIG$signal: it printed $(cat "$scratch/signal")"
    waiting=0
done

# Short of descriptors it does not wait for what it could not hear of; whatever it lacks, it says so.
for limit in 4 5 6 7; do
    expect 3 with_descriptors $limit "$vigil" wait "$name" 0 --timeout 1ms
    contains "$err" "vigil wait: " "Too many open files"
    seen 0 0 || fail "with $limit descriptors a process is left: $("$vigil" ls "$name")"
done
expect 2 with_descriptors 20 "$vigil" wait "$name" 0 --timeout 1ms

# A signal that it inherits as ignored it ignores.
(trap '' INT TERM; exec "$vigil" wait "$name" 0 >"$scratch/ignores") &
pid=$!
until_true seen 1 1
kill -INT $pid
kill -TERM $pid
prints 1 notify "$name"
wait $pid || fail "it did not ignore what it should: $?"

# A signal that comes after the notification comes too late: a waiter that was counted by notify reports ok.
begin late "$name" 0
pid=$!
kill -STOP $pid
until_true grep -q "State:.T" /proc/$pid/status
prints 1 notify "$name"
kill -TERM $pid
kill -CONT $pid
wait $pid || fail "it was notified, and then ended with $?"
[ "$(cat "$scratch/late")" = ok ] || fail "it was notified, and printed '$(cat "$scratch/late")'"
waiting=0

# Killed: the next one gets its notification.
begin killed "$name" 0
pid=$!
begin next "$name" 0
next=$!
kill -KILL $pid
wait $pid 2>/dev/null
"$vigil" notify "$name" 1 >/dev/null
wait $next
[ "$(cat "$scratch/next")" = ok ] || fail "the next in line printed '$(cat "$scratch/next")'"

# The last story: a lock of three states, as one writes it with these operations: free, held, held with waiters.
acquire() {
    local state
    state=$("$vigil" cas "$name:4" 0 1) && return
    while :; do
        if [ "$state" = 2 ] || [ "$("$vigil" cas "$name:4" 1 2)" != 0 ]; then "$vigil" wait "$name:4" 2 >/dev/null; fi
        state=$("$vigil" cas "$name:4" 0 2) && return
    done
}
release() {
    [ "$("$vigil" add "$name:4" -1)" = 1 ] && return
    "$vigil" store "$name:4" 0
    "$vigil" notify "$name:4" 1 >/dev/null
}
contend() {
    for _ in 1 2 3 4 5 6 7 8; do
        acquire
        echo $(($(cat "$scratch/counter") + 1)) >"$scratch/counter"
        release
    done
}
echo 0 >"$scratch/counter"
contenders=()
for _ in 1 2 3; do
    contend &
    contenders+=($!)
done
wait "${contenders[@]}"
[ "$(cat "$scratch/counter")" = 24 ] || fail "not 24 turns, but $(cat "$scratch/counter")"
prints 0 load "$name:4"

# The examples of the help work as they stand there, and a process that comes late to the gate passes as well.
example() {
    "$vigil" help "$1" | sed -n '/^Example/,$ s/^  //p' |
        sed -E "s/\\b(gate|queue|counters|ready|tickets|done)\\b/$name-&/g"
}
run_example() { PATH=$(dirname "$vigil"):$PATH bash -c "$1"; }
for subcommand in notify load store add cas; do
    lines=$(example $subcommand)
    expect 0 run_example "${lines/.\/do-it-once.sh/true}"
    [ -z "$err" ] || fail "the example of $subcommand: $err"
    rm -f /dev/shm/vigil-"$(id -u)"-"$name"-*
done
at_the_gate() { "$vigil" ls "$name-gate" --json | grep -q '"waiting":1,'; }
{ read -r create; read -r pass; read -r open; } <<<"$(example wait)"
expect 0 run_example "$create"
run_example "$pass" >"$scratch/early" &
pid=$!
until_true at_the_gate
expect 0 run_example "$open"
wait $pid
[ "$(cat "$scratch/early")" = $'ok\nopen' ] || fail "the gate: $(cat "$scratch/early")"
expect 0 run_example "$pass"
[ "$out" = $'ok\nopen' ] || fail "the gate, for a late process: $out"

# A lock has no words, and no segment is made beside it.
"$vigil" lock "$name-lock" -- true
for call in "load $name-lock" "store $name-lock 1" "add $name-lock 1" "cas $name-lock 0 1" "wait $name-lock 0" \
    "notify $name-lock"; do
    read -r -a words <<<"$call"
    expect 3 "$vigil" "${words[@]}"
    contains "$err" "$name-lock is a lock or a semaphore, which has no words"
done
expect 3 "$vigil" create "$name-lock"
contains "$err" "$name-lock is a lock or a semaphore" "vigil rm $name-lock"
expect 0 "$vigil" lock "$name-lock" --try -- true

verdict
