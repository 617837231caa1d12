#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil show: members, holders and lines, as text and as JSON.
. "$(dirname "$0")/common.sh"
waiter=${WAITER:?the path of the program that waits}

# start ACTION OFFSET: a process; its pid is in $!.
start() { "$waiter" "$name" "$1" "$2" & }

# line OFFSET [NAME]: what the JSON has of the line there.
line() { "$vigil" show "${2:-$name}" --json | sed 's/{"line":/\n&/g' | grep "\"offset\":$1,"; }

# in_line COUNT OFFSET [NAME]: so many wait there.
in_line() { [ "$(line "$2" "${3:-$name}" | grep -o '"asynchronous":' | wc -l)" = "$1" ]; }

# place_of PID: what the text says in the column PLACE.
place_of() { awk -v pid="$1" '$1 == pid && NF > 2 { place = $2 } END { print place }' <<<"$out"; }

# What cannot be shown.
expect 64 "$vigil" show
expect 64 "$vigil" show one two
expect 64 "$vigil" show --nonsense "$name"
expect 3 "$vigil" show "$name"
contains "$err" "vigil show:" "$name"
expect 3 "$vigil" show "$name" --json
contains "$out" '"status":"not-found"' '"error":'
expect 3 "$vigil" show a/b
contains "$err" "there is no lock or segment a/b"
echo "This is no segment." >"/dev/shm/vigil-$(id -u)-$name-foreign"
expect 3 "$vigil" show "$name-foreign" --json
contains "$out" '"status":"foreign"'

# Two threads and an event loop wait for a mutex, in that order.
start lock 64
holder=$!
until_true is_locked "$name"
start lock 64
first=$!
until_true in_line 1 64
start lock-async 64
second=$!
until_true in_line 2 64
start lock 64
third=$!
until_true in_line 3 64
expect 0 "$vigil" show "$name"
contains "$out" "$name: words, 4096 bytes" "4 of 64 members" "byte 64: mutex" "cli_waiter $name lock-async 64"
[ "$(place_of $holder) $(place_of $first) $(place_of $second) $(place_of $third)" = "holds 1 2 3" ] ||
    fail "the line of a mutex is not in order: $out"
contains "$(grep "^ *$first 1 " <<<"$out")" "thread $first"
contains "$(grep "^ *$second 2 " <<<"$out")" "event loop"
grep -q "^ *$holder holds *? " <<<"$out" || fail "since when a mutex is held is not known, and that is not said: $out"
[[ $out != *$'\033'* ]] || fail "colours, and no terminal"
of() { echo "\"pid\":$1,\"command_pid\":$1,"; }
contains "$(line 64)" '"kind":"mutex"' '"holders":[{"number":' "$(of $holder)\"shared\":false" \
    "$(of $first)\"thread_id\":$first,\"kind\":\"mutex\",\"asynchronous\":false,\"called\":false" \
    "$(of $second)\"thread_id\":null,\"kind\":\"mutex\",\"asynchronous\":true"
expect 0 "$vigil" show "$name" --json
contains "$out" "{\"status\":\"ok\",\"name\":\"$name\"" '"for_ns":null'
grep -q "\"for_ns\":[1-9]" <<<"$out" || fail "no times"

# Conditions and words; a read-write lock, with the reader behind the writer.
start cond 128
until_true in_line 1 128
start cond-async 128
until_true in_line 2 128
start wait 256
until_true in_line 1 256
start wait-async 256
until_true in_line 2 256
start read 512
reader=$!
until_true line 512
start write 512
writer=$!
until_true in_line 1 512
saves() { (($("$vigil" load "$name:128") & 8)); } # the word of the lock: the writer keeps out new readers
until_true saves
start read-async 512
until_true in_line 2 512
expect 0 "$vigil" show "$name"
contains "$out" "byte 128: condition" "byte 256: word, as i32 0" "byte 512: read-write lock"
contains "$(grep "^ *$reader holds *[1-9][0-9.]* *[mnu]*s " <<<"$out")" "reads"
contains "$(grep "^ *$writer 1 " <<<"$out")" "to write"
contains "$(line 512)" '"shared":true,"count":1,"for_ns":' '"shared":false,"permits":0' \
    '"asynchronous":true,"called":false,"shared":true'

# Of a word, 32 bits can be seen: that is what vigil load says of them, be it part of a wider one or not.
"$vigil" create "$name-words"
"$vigil" store "$name-words:2" -- -7
"$vigil" store --type i64 "$name-words:2" 0x100000005
"$vigil" wait "$name-words:2" -- -7 &
"$vigil" wait --type i64 "$name-words:2" 0x100000005 &
until_true in_line 1 8 "$name-words"
until_true in_line 1 16 "$name-words"
expect 0 "$vigil" show "$name-words"
contains "$out" "byte 8: word, as i32 -7" "byte 16: word, as i32 5"
contains "$(line 8 "$name-words")" '"i32":-7,'
contains "$(line 16 "$name-words")" '"i32":5,'

# Dead members stay while no other process is there to remove them. Control characters don't reach the terminal.
(exec -a $'evil\033[31m' "$waiter" "$name-dead" read 0) &
dead=$!
until_true line 0 "$name-dead"
expect 0 "$vigil" show "$name-dead"
[[ $out != *$'\033'* ]] || fail "the name of a program was printed as it is"
contains "$out" 'evil\x1b[31m'
{ kill -KILL $dead && wait $dead; } 2>/dev/null
expect 0 "$vigil" show "$name-dead"
contains "$(grep "^ *$dead holds" <<<"$out")" "(dead)"
expect 0 "$vigil" show "$name-dead" --json
contains "$out" "\"pid\":$dead,\"other_pid_namespace\":false,\"alive\":false"

# What vigil lock and vigil sem make has names for its lines.
"$vigil" lock "$name-lock" -- sleep 1000 &
until_true line 4 "$name-lock"
"$vigil" lock "$name-lock" --fair -- sleep 2000 &
until_true in_line 1 4 "$name-lock"
"$vigil" lock "$name-lock" --fair --shared -- sleep 3000 &
until_true in_line 1 0 "$name-lock"
expect 0 "$vigil" show "$name-lock"
contains "$out" "$name-lock: vigil lock" "lock: read-write lock at byte 4" "turnstile: mutex at byte 0"
contains "$(grep " holds .*alone" <<<"$out")" "sleep 1000"
contains "$(grep "event loop *alone" <<<"$out")" "sleep 2000"
contains "$(sed -n '/^turnstile/,/^$/p' <<<"$out")" "sleep 3000"

# What it runs is what follows its own options, and not what follows another "--".
"$vigil" lock "$name-plain" --timeout 9s sh -c 'exec sleep 4000' -- decoy.sh &
until_true line 4 "$name-plain"
expect 0 "$vigil" show "$name-plain"
contains "$(grep " holds .*alone" <<<"$out")" "alone     sh -c exec sleep 4000 -- decoy.sh"
"$vigil" lock "$name-plain" --wait-status -- true 2>"$scratch/place" &
until_true grep -q "1st in line" "$scratch/place"
contains "$(cat "$scratch/place")" ": sh -c exec sleep 4000 -- decoy.sh"

# The last holder has died, and no process has repaired what it left: a reader cannot declare that.
"$vigil" lock "$name-died" -- sleep 1000 &
dead=$!
until_true line 4 "$name-died"
{ kill -KILL $dead && wait $dead; } 2>/dev/null
"$vigil" lock "$name-died" --shared -- sleep 1000 2>/dev/null &
until_true eval "line 4 '$name-died' | grep -q '\"shared\":true'"
expect 0 "$vigil" show "$name-died"
contains "$out" "lock: read-write lock at byte 4, its last holder, pid " "(sleep 1000)" \
    "was killed while holding it"
contains "$(line 4 "$name-died")" '"owner_died":true'

for _ in 1 2 3; do
    "$vigil" sem "$name-sem" --slots 2 -- sleep 1000 &
done
until_true in_line 1 8 "$name-sem"
expect 0 "$vigil" show "$name-sem"
contains "$out" "$name-sem: vigil sem 2" "slots: semaphore" "1 permit "
[ "$(grep -c " holds " <<<"$out")" = 2 ] || fail "two slots, and not two holders: $out"

verdict
