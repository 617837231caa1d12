#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# vigil doctor: healthy segments, dead members, deadlocks through several segments, repair, and damage of every kind.
. "$(dirname "$0")/common.sh"
waiter=${WAITER:?the path of the program that waits}
a=$name-a b=$name-b c=$name-c
file() { echo "/dev/shm/vigil-$(id -u)-$1"; }
waiting() { [ "$("$vigil" show "$1" --json | grep -o '"called":false' | wc -l)" = "$2" ]; }
held() { "$vigil" show "$1" --json | grep -q '"holders":\[{'; }
# chain LENGTH: $out has one deadlock, of so many processes.
chain() {
    [ "$(grep -o '"chain":' <<<"$out" | wc -l)" = 1 ] || fail "not one deadlock: $out"
    [ "$(grep -o '"for_pid":' <<<"$out" | wc -l)" = "$1" ] || fail "not $1 in the circle: $out"
}
# are_json FILE: each of its lines is.
are_json() { ! command -v python3 >/dev/null || python3 -c 'import json, sys; [*map(json.loads, sys.stdin)]' <"$1"; }

# --- nothing to examine, and nonsense.
expect 64 "$vigil" doctor
contains "$err" "--all"
expect 64 "$vigil" doctor "$a" --all
expect 64 "$vigil" doctor --mend "$a"
expect 3 "$vigil" doctor "$a"
contains "$err" "$a"
expect 3 "$vigil" doctor "$a" --json
contains "$out" '"status":"not-found"'
contains "$out" '"error":"not all segments can be examined"'
expect 3 "$vigil" doctor no/name
contains "$err" "no/name"
expect 3 "$vigil" doctor "$a" "$b" # the same of each of them
contains "$err" "vigil doctor: there is no lock or segment $a" "vigil doctor: there is no lock or segment $b"
[ -z "$out" ] || fail "an error on stdout: $out"

# --- healthy: without members, and with a holder and a waiter.
"$vigil" lock "$a" -- true
expect 0 "$vigil" doctor "$a"
contains "$out" "$a: sound; 0 members"
"$vigil" lock "$a" -- sleep 600 &
holder=$!
until_true held "$a"
"$vigil" lock "$a" -- sleep 600 &
waits=$!
until_true waiting "$a" 1
expect 0 "$vigil" doctor "$a"
contains "$out" "2 members, 1 waiting"
expect 0 "$vigil" doctor "$a" --json
contains "$out" '"healthy":true' '"findings":[]' '"deadlocks":[]'
expect 3 "$vigil" doctor "$a" "$b" # one of them is not there, but the other is examined
contains "$out" "$a: sound"
contains "$err" "there is no lock or segment $b"
expect 3 "$vigil" doctor "$a" "$b" --json
contains "$out" '{"status":"cannot","error":"' '"healthy":false' "\"name\":\"$a\",\"status\":\"ok\"" \
    "\"name\":\"$b\",\"status\":\"not-found\""
kill $waits
wait $waits

# --- a member is killed while no other process has the segment open.
kill -KILL $holder
wait $holder
expect 1 "$vigil" doctor "$a"
contains "$out" "1 finding" "--fix"
# Another process of this user, with another lock, may have removed the member.
dead="process $holder (vigil) has died" killed="(sleep 600)"
[[ $out == *"  dead: $dead"* || $out == *"  owner-died: its last holder"*"$killed"* ]] || fail "the finding is $out"
expect 1 "$vigil" doctor "$a" --json
contains "$out" '"healthy":false' '"meaning":' '"advice":'
[[ $out == *'"kind":"dead"'*"$dead"* || $out == *'"kind":"owner-died"'*"$killed"* ]] || fail "the finding is $out"
expect 1 "$vigil" doctor "$a" # looking has changed nothing
expect 0 "$vigil" doctor "$a" --fix
contains "$out" "$a: sound" "0 now"
expect 0 "$vigil" doctor "$a"
contains "$out" "0 members"
expect 0 "$vigil" doctor "$a" --fix # nothing to do
[[ $out != *left* ]] || fail "it has repaired what was not broken: $out"

# --- so with a lock at a path, whose file has no other lock: first the member is found, and then that it held the lock.
"$vigil" lock "$scratch/path" -- sleep 600 &
holder=$!
until_true held "$scratch/path"
kill -KILL $holder
wait $holder
expect 1 "$vigil" doctor "$scratch/path"
contains "$out" "1 finding" "  dead: process $holder (vigil) has died"
expect 125 "$vigil" lock "$scratch/path" --on-owner-died fail -- true
contains "$err" "(sleep 600)" "was killed while holding it"
expect 1 "$vigil" doctor "$scratch/path"
contains "$out" "1 finding" "  owner-died: its last holder, pid " "(sleep 600)" "was killed while holding it"
expect 0 "$vigil" doctor "$scratch/path" --fix
expect 0 "$vigil" lock "$scratch/path" --on-owner-died fail -- true

# --- deadlocks. deadlock NAME...: each holds its lock and waits for the next one's.
deadlock() {
    local names=("$@") i next
    for i in "${!names[@]}"; do
        next=${names[(i + 1) % $#]}
        "$vigil" lock "${names[i]}" -- sh -c "touch '$scratch/has-${names[i]}'
            until [ -e '$scratch/has-$next' ]; do sleep 0.01; done
            '$vigil' lock '$next' -- true" &
    done
    for i in "${names[@]}"; do until_true waiting "$i" 1; done
}
pids_of() { "$vigil" show "$1" --json | grep -o '"pid":[0-9]*' | sort -u | tr -dc '0-9\n'; }
resolve() { # end the process that the doctor names, and all others go on
    local youngest
    youngest=$(grep -o '"waited_least_pid":[0-9]*' <<<"$out" | tr -dc 0-9)
    kill "$youngest" || { fail "no pid to end: $out" && jobs -p | xargs kill; }
    wait
    rm -f "$scratch"/has-*
}
deadlock "$a" "$b"
expect 1 "$vigil" doctor "$a" "$b"
contains "$out" "$a: sound" "deadlock: pid" "waits for the lock $a" "waits for the lock $b" \
    "waits for the command it runs" "unless another thread" "in the background" "kill "
for pid in $(pids_of "$a") $(pids_of "$b"); do contains "$out" "pid $pid (vigil lock $name-"; done
expect 1 "$vigil" doctor "$b" --fix # it leads through a as well, which was not named
contains "$out" "deadlock" "lock $a" "cannot be repaired"
[[ $out != *"$a: sound"* ]] || fail "a was not asked for: $out"
expect 1 "$vigil" doctor "$a" --json
contains "$out" '"healthy":false' '"deadlocks":[{"chain":[{' '"kind":"read-write lock","thread":null'
chain 4
resolve
expect 0 "$vigil" doctor "$a" "$b"
deadlock "$a" "$b" "$c"
expect 1 "$vigil" doctor "$c" --json
chain 6
for one in "$a" "$b" "$c"; do contains "$out" "\"for\":\"the lock $one\""; done
resolve
expect 0 "$vigil" doctor "$a" "$b" "$c"

# --- a program holds a mutex, and runs a vigil lock; whose holder's command waits for that mutex.
m=$name-m w=$name-w
left() { [ -z "$(pids_of "$1")" ]; }
"$vigil" create "$m"
"$vigil" lock "$a" -- sh -c "until [ -e '$scratch/goes' ]; do sleep 0.01; done; exec '$waiter' '$m' lock 64" &
one=$!
until_true held "$a"
sh -c "'$vigil' lock '$a' -- true & exec '$waiter' '$m' lock 64" &
other=$!
until_true is_locked "$m"
until_true waiting "$a" 1
touch "$scratch/goes"
until_true waiting "$m" 1
expect 1 "$vigil" doctor "$a" --json
chain 4
contains "$out" "\"pid\":$other,\"command\":\"$waiter $m lock 64\"" "\"for\":\"the mutex at byte 64 of $m\""
{ kill $one && kill -KILL $other && wait; } 2>/dev/null
until_true left "$a"
# A worker that waits for its parent's lock is no more than that.
"$vigil" create "$w"
sh -c "(until [ \"\$('$vigil' load '$w:16')\" != 0 ]; do sleep 0.01; done; exec '$waiter' '$w' lock 64) &
    exec '$waiter' '$w' lock 64" &
until_true waiting "$w" 1
expect 0 "$vigil" doctor "$w"
# shellcheck disable=SC2046 # several pids
{ kill -KILL $(pids_of "$w") && wait; } 2>/dev/null

# --- those with --fair queue at the turnstile.
"$vigil" lock "$name-fair" --fair -- sh -c "touch '$scratch/has-fair'
    until [ -e '$scratch/has-$b' ]; do sleep 0.01; done; exec '$vigil' lock '$b' -- true" &
until_true test -e "$scratch/has-fair"
"$vigil" lock "$b" -- sh -c "touch '$scratch/has-$b'; exec '$vigil' lock '$name-fair' --fair -- true" &
until_true waiting "$name-fair" 1
until_true waiting "$b" 1
expect 1 "$vigil" doctor "$b" --json
contains "$out" "\"for\":\"the turnstile of $name-fair\""
resolve

# --- permits: as long as one of their holders is not in the circle, there is no deadlock.
slot() { # slot NAME COMMAND: with a slot, run it when $scratch/NAME-goes is there
    "$vigil" sem "$name-sem" --slots 2 -- sh -c \
        "touch '$scratch/$1'; until [ -e '$scratch/$1-goes' ]; do sleep 0.01; done; $2" &
}
slot one "exit 0"
slot two "exec '$vigil' lock '$a' -- true"
until_true test -e "$scratch/one" -a -e "$scratch/two"
"$vigil" lock "$a" -- sh -c "touch '$scratch/has-lock'; exec '$vigil' sem '$name-sem' --slots 2 -- true" &
until_true waiting "$name-sem" 1
touch "$scratch/two-goes"
until_true waiting "$a" 1
expect 0 "$vigil" doctor "$name-sem" "$a"
touch "$scratch/one-goes"
wait
expect 0 "$vigil" doctor "$name-sem" "$a"

# --- damage, while a process waits: it is found or refused, and never a crash; --fix repairs it, or says why not.
is_verdict() { [ "$1" = 0 ] || [ "$1" = 1 ] || [ "$1" = 3 ]; }
c=$scratch/lock # the file has nothing else
damage() { # damage OFFSET COUNT: what members hold and wait for there may be lost
    local waits
    rm -f "$c"
    "$vigil" lock "$c" -- sleep 600 &
    holder=$!
    until_true held "$c"
    "$vigil" lock "$c" -- true 2>/dev/null &
    waits=$!
    until_true waiting "$c" 1
    head -c "$2" /dev/urandom | dd of="$c" bs=1 seek="$1" conv=notrunc status=none
    timeout 20 "$vigil" doctor "$c" >"$scratch/doctor" 2>&1
    local status=$?
    is_verdict $status || fail "exit status $status, damaged at $1: $(cat "$scratch/doctor")"
    echo "$status" >>"$scratch/statuses"
    timeout 20 "$vigil" show "$c" --json >>"$scratch/reports" 2>"$scratch/doctor-err"
    status=$?
    is_verdict $status || fail "exit status $status, show, damaged at $1: $(cat "$scratch/doctor-err")"
    timeout 20 "$vigil" doctor "$c" --fix --json >"$scratch/doctor" 2>"$scratch/doctor-err"
    status=$?
    is_verdict $status || fail "exit status $status, --fix at $1: $(cat "$scratch/doctor-err")"
    cat "$scratch/doctor" >>"$scratch/reports"
    kill -KILL $holder $waits 2>/dev/null # some have noticed, and are gone
    wait $holder $waits 2>/dev/null
}
damage 0 16  # what it is
damage 24 64 # the header
damage 24 0
blocks() { cmp -l "$c" /dev/zero 2>/dev/null | awk '{ at = int(($1 - 1) / 256) * 256 } at > last { print last = at }'; }
used=$(blocks) # of a file that is mostly empty
[ "$(wc -l <<<"$used")" -ge 5 ] || fail "what is used of the file: $used"
for at in $used; do damage "$at" 256; done
size=$(stat -c %s "$c")
for ((at = 4096; at < size; at += size / 6)); do damage $at 2000; done
are_json "$scratch/reports" || fail "no JSON: $(cat "$scratch/reports")"
! grep -q '"for_ns":-' "$scratch/reports" || fail "a waiter has waited since the future: $(cat "$scratch/reports")"
grep -q 1 "$scratch/statuses" || fail "no damage was found: $(tr '\n' ' ' <"$scratch/statuses")"
grep -q 3 "$scratch/statuses" || fail "no damage was refused: $(tr '\n' ' ' <"$scratch/statuses")"

# --- a file that is no segment, one that is cut off, and all of them.
echo "no segment" >"$(file "$name-text")"
expect 3 "$vigil" doctor "$name-text"
contains "$err" "$name-text"
"$vigil" create "$name-whole"
head -c 5000 "$(file "$name-whole")" >"$(file "$name-cut")"
expect 3 "$vigil" doctor "$name-cut" --fix
"$vigil" doctor --all >"$scratch/all" 2>&1 # of which some may be others' by the same user
contains "$(cat "$scratch/all")" "$a: sound" "vigil doctor: $name-text: "

# --- more of them than it may have files; and if not even one can be opened, it is said why.
many=()
for ((i = 0; i < 30; i++)); do many+=("$name-many-$i") && "$vigil" create "$name-many-$i"; done
expect 0 with_descriptors 20 "$vigil" doctor "${many[@]}"
[ "$(grep -c "sound; 0 members" <<<"$out")" = 30 ] || fail "not all were examined: $out"
expect 3 with_descriptors 4 "$vigil" doctor "$a"
contains "$err" "vigil doctor: $a: Too many open files"
expect 3 with_descriptors 4 "$vigil" doctor "$a" --json
contains "$out" '"status":"system","error":"Too many open files"'
verdict
