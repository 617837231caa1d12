#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil lock: exit statuses, waiting, sharing, nesting, and names that are something else.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

# The command's exit status, input and output are passed on.
expect 0 "$vigil" lock "$name" -- true
expect 7 "$vigil" lock "$name" -- sh -c 'exit 7'
expect 255 "$vigil" lock "$name" -- sh -c 'exit 255'
expect 137 "$vigil" lock "$name" -- sh -c 'kill -KILL $$'
expect 138 "$vigil" lock "$name" -- sh -c 'kill -USR1 $$'
expect 0 "$vigil" lock "$name" -- cat <<<"in and out"
[ "$out" = "in and out" ] || fail "the command's output is: $out"
[ -z "$err" ] || fail "something was said without need: $err"

# Without "--", options behind the command's name are its own.
expect 3 "$vigil" lock "$name" --fair sh -c 'exit 3'
expect 0 "$vigil" lock --fair "$name" echo --try --timeout
[ "$out" = "--try --timeout" ] || fail "the command did not get its options: $out"

# What cannot be run.
expect 127 "$vigil" lock "$name" -- ./no-such-command
contains "$err" "vigil lock: ./no-such-command: No such file"
expect 127 "$vigil" lock "$name" -- 'echo this is a line'
contains "$err" "sh -c"
expect 126 "$vigil" lock "$name" -- "$scratch"
contains "$err" "Permission denied"
expect 125 "$vigil" lock
contains "$err" "NAME is missing"
expect 125 "$vigil" lock "$name"
contains "$err" "command" "vigil lock --help"
expect 125 "$vigil" lock "$name" --
expect 125 "$vigil" lock "$name" --no-such-option -- true
expect 125 "$vigil" lock "$name" --timeout soon -- true
expect 125 "$vigil" lock "$name" --on-owner-died panic -- true
contains "$err" "continue or fail"
expect 125 "$vigil" lock a/b -- true
contains "$err" "vigil lock: a/b: No such file or directory"
expect 125 "$vigil" lock "" -- true
expect 125 "$vigil" lock .hidden -- true
expect 125 "$vigil" lock "$(printf 'x%.0s' {1..201})" -- true
is_free "$name" || fail "it is not free after all that"

# Names of something else.
expect 0 "$vigil" create "$name-words"
expect 125 "$vigil" lock "$name-words" -- true
contains "$err" "words" "vigil rm $name-words"
expect 0 "$vigil" sem "$name-sem" --slots 2 -- true
expect 125 "$vigil" lock "$name-sem" -- true
contains "$err" "$name-sem is a semaphore, not a lock" "vigil rm $name-sem"
echo "This is no lock." >"$scratch/foreign"
expect 125 "$vigil" lock "$scratch/foreign" -- true
contains "$err" "$scratch/foreign: "
[ "$(cat "$scratch/foreign")" = "This is no lock." ] || fail "the file was changed"
expect 125 "$vigil" lock "$scratch" -- true
expect 125 "$vigil" lock "$scratch/" -- true

# At a path: the file is created, and made a lock if it is empty.
(umask 027 && "$vigil" lock "$scratch/new" -- true) || fail "a new path"
[ "$(stat -c %a "$scratch/new")" = 640 ] || fail "the mode is $(stat -c %a "$scratch/new")"
: >"$scratch/empty"
"$vigil" lock "$scratch/empty" -- "$hold" "$scratch/path" &
until_true [ -e "$scratch/path.begun" ]
ln -s empty "$scratch/link"
for path in "$scratch/empty" "$scratch/link" "$scratch/./empty"; do
    expect 124 "$vigil" lock "$path" --try -- true
done
expect 0 "$vigil" lock "$scratch/new" --try -- true
expect 3 "$vigil" rm "$scratch/empty"
touch "$scratch/path"
wait
expect 0 "$vigil" rm "$scratch/empty" "$scratch/new"
[[ ! -e $scratch/empty && ! -e $scratch/new ]] || fail "the files are not removed"
expect 0 "$vigil" lock --mode 0666 "$scratch/open" -- true
[ "$(stat -c %a "$scratch/open")" = 666 ] || fail "the mode is $(stat -c %a "$scratch/open")"

# A damaged file of a lock is reported, and left alone.
for damage in "truncate -s 100" "truncate -s 5000" "dd if=/dev/urandom bs=64 count=1 conv=notrunc status=none of="; do
    rm -f "$scratch/damaged" && "$vigil" lock "$scratch/damaged" -- true
    # shellcheck disable=SC2086 # several words
    case $damage in *=) $damage"$scratch/damaged" ;; *) $damage "$scratch/damaged" ;; esac
    before=$(cksum <"$scratch/damaged")
    expect 125 "$vigil" lock "$scratch/damaged" -- touch "$scratch/wrong-damaged"
    contains "$err" "$scratch/damaged: "
    [ "$(cksum <"$scratch/damaged")" = "$before" ] || fail "the damaged file was changed: $damage"
done
[ ! -e "$scratch/wrong-damaged" ] || fail "a command ran without the lock"

# While it is held, others give up at once, wait for a while, or wait until it is free.
"$vigil" lock "$name" -- "$hold" "$scratch/go" &
until_true [ -e "$scratch/go.begun" ]
expect 124 "$vigil" lock "$name" --try -- true
[ -z "$err" ] || fail "a process that only tries need not be told: $err"
expect 124 "$vigil" lock "$name" --timeout 50ms -- true
contains "$err" "$name"
expect 124 "$vigil" lock "$name" --timeout 0 -- true
expect 124 "$vigil" lock "$name" --fair --timeout 50ms -- true
expect 124 "$vigil" lock "$name" --shared --try --json -- true
contains "$err" '"status":"timed-out"'
expect 0 "$vigil" lock "$name-other" --try -- true
"$vigil" lock "$name" -- touch "$scratch/second" &
until_true in_line 1 "$name"
[ ! -e "$scratch/second" ] || fail "two at once"
touch "$scratch/go"
wait
[ -e "$scratch/second" ] || fail "the waiter did not run"
is_free "$name" || fail "it is not free when all have ended"

# Those that share it run together; one that does not runs alone.
"$vigil" lock "$name" --shared -- "$hold" "$scratch/shared" &
until_true [ -e "$scratch/shared.begun" ]
expect 0 "$vigil" lock "$name" --shared --try -- true
expect 124 "$vigil" lock "$name" --try -- true
"$vigil" lock "$name" -- touch "$scratch/alone" &
until_true in_line 1 "$name"
until_true status_is 124 "$vigil" lock "$name" --shared --try -- true # soon, not at once: it would overtake
touch "$scratch/shared"
wait
[ -e "$scratch/alone" ] || fail "the command that wanted it alone did not run"

# The place in the line, as lines and as JSON.
"$vigil" lock "$name" -- "$hold" "$scratch/front" &
until_true [ -e "$scratch/front.begun" ]
"$vigil" lock "$name" --fair --wait-status -- true 2>"$scratch/first" &
until_true grep -q "1st in line of 1" "$scratch/first"
"$vigil" lock "$name" --fair --json -- sh -c 'exit 5' 2>"$scratch/second" &
second=$!
until_true grep -q '"place":2' "$scratch/second"
touch "$scratch/front"
wait $second
[ $? = 5 ] || fail "the second one's exit status"
wait
contains "$(cat "$scratch/first")" "$name: 1st in line of 1" "held for " " by pid " ": $hold $scratch/front"
contains "$(cat "$scratch/second")" '{"event":"waiting","name":"'"$name"'","place":2,"of":2,' \
    '"holder_command":"'"$hold" \
    '{"event":"granted","name":"'"$name"'","waited_ns":' '"owner_died":false' '{"event":"done","exit_status":5,'

# If its messages are no longer read, it goes on.
mkfifo "$scratch/ear"
"$vigil" lock "$name" --json -- "$hold" "$scratch/deaf" 2>"$scratch/ear" &
exec 7<"$scratch/ear"
until_true [ -e "$scratch/deaf.begun" ]
exec 7<&-
touch "$scratch/deaf"
wait $! || fail "it has ended because its messages are not read"
expect 0 "$vigil" lock "$name" --on-owner-died fail -- true

# Locks in locks; but not the same one, whose holder waits for us.
expect 0 "$vigil" lock "$name" -- "$vigil" lock "$name-other" -- echo both
[ "$out" = both ] || fail "nested: $out"
expect 125 "$vigil" lock "$name" -- "$vigil" lock "$name" -- true
contains "$err" "$name" "would wait for itself"
expect 125 "$vigil" lock "$name" -- sh -c '"$0" lock "$1-other" -- "$0" lock "$1" --shared -- true; exit $?' \
    "$vigil" "$name"
# One that was left behind by a command that has ended may have it.
"$vigil" lock "$name" -- sh -c '(until [ -e "$2" ]; do sleep 0.01; done; exec "$0" lock "$1" -- touch "$2.late") &' \
    "$vigil" "$name" "$scratch/leave"
touch "$scratch/leave"
until_true [ -e "$scratch/leave.late" ]

# A holder that was killed: its command dies with it, and the next one is told.
die() {
    "$vigil" lock "$name" -- "$hold" "$scratch/$1" 2>/dev/null &
    until_true [ -e "$scratch/$1.begun" ]
    kill -KILL $!
    wait $! 2>/dev/null
    until_true is_gone "$(cat "$scratch/$1.begun")"
}
die one
expect 125 "$vigil" lock "$name" --on-owner-died fail -- touch "$scratch/wrong"
contains "$err" "was killed while holding it" "--on-owner-died continue"
[ ! -e "$scratch/wrong" ] || fail "the command ran all the same"
expect 125 "$vigil" lock "$name" --on-owner-died fail -- true
expect 0 "$vigil" lock "$name" --shared -- printenv VIGIL_OWNER_DIED
contains "$err" "was killed while holding it"
[ "$out" = 1 ] || fail "the command is not told"
expect 0 "$vigil" lock "$name" --json -- printenv VIGIL_OWNER_DIED
contains "$err" '"owner_died":true' '"warning":'
[ "$out" = 1 ] || fail "the command is not told"
expect 1 env VIGIL_OWNER_DIED=1 "$vigil" lock "$name" --on-owner-died fail -- printenv VIGIL_OWNER_DIED
[ -z "$err" ] || fail "told once more: $err"
# And once more, if the first one's command was interrupted before it began.
"${CC:-cc}" -shared -fPIC -o "$scratch/interrupt_early.so" "$here/interrupt_early.c" || exit 1
"$vigil" lock "$name" -- "$hold" "$scratch/early" 2>/dev/null &
until_true [ -e "$scratch/early.begun" ]
kill -KILL $!
{ wait $!; } 2>/dev/null
ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$scratch/interrupt_early.so \
    "$locking" end "$scratch/interrupted" "$VIGIL_DYNAMIC" lock "$name" -- touch "$scratch/wrong" 2>/dev/null
has_line "$scratch/interrupted" "signal 2" || fail "interrupted before it began: $(cat "$scratch/interrupted")"
[ ! -e "$scratch/wrong" ] || fail "it has begun"
expect 0 "$vigil" lock "$name" -- printenv VIGIL_OWNER_DIED
[ "$out" = 1 ] || fail "the next holder after an interrupted one is not told"
# Waiters are told as well.
"$vigil" lock "$name" -- "$hold" "$scratch/two" 2>/dev/null &
killed=$!
until_true [ -e "$scratch/two.begun" ]
"$vigil" lock "$name" --fair -- "$locking" alone "$scratch/two.begun" "$scratch/log" 2>"$scratch/told" &
until_true in_line 1 "$name"
kill -KILL $killed
{ wait; } 2>/dev/null
contains "$(cat "$scratch/told")" "its last holder, pid " "($hold $scratch/two)" "was killed while holding it"
[ "$(cat "$scratch/log")" = $'cleaned\ndone' ] || fail "the next one: $(cat "$scratch/log")"
until_true is_free "$name"
# A process that could not learn of its turn does not join the line.
"$vigil" lock "$name" -- "$hold" "$scratch/few" &
until_true [ -e "$scratch/few.begun" ]
for most in 4 5 6 7; do
    expect 125 with_descriptors $most "$vigil" lock "$name" --timeout 1m -- true
    contains "$err" "Too many open files"
done
touch "$scratch/few"
wait
verdict
