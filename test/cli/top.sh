#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil top on a terminal, which is tmux: what is on its screen, and what keys do.
. "$(dirname "$0")/common.sh"
waiter=${WAITER:?the path of the program that waits}
{ command -v tmux >/dev/null && [ -x "${vigil%/*}/vigil-top" ]; } ||
    { echo "needs tmux, and ncurses to build vigil-top" && exit 77; }
name=t$$ # short, to be seen whole in 80 columns
export LC_ALL=C.UTF-8

terminal() { tmux -L "$name" -f /dev/null "$@"; }
terminal start-server \; set-option -g exit-empty off \; set-option -g default-shell /bin/sh
trap 'terminal kill-server 2>/dev/null; finish' EXIT
keys() { terminal send-keys "$@"; }
screen() { terminal capture-pane -p; }
shows() { screen | grep -qE -e "$1"; }
hides() { ! shows "$1"; }
seen() { until_true shows "$1" || screen >&2; }
gone() { until_true hides "$1" || screen >&2; }

# rows: the pids of the waiters, from above.
rows() { screen | sed -n 's/.* [0-9]*\/[0-9]* *\([0-9]*\) \(thread\|loop\).*/\1/p' | tr '\n' ' '; }
has_rows() { [ "$(rows)" = "$* " ]; }
in_order() { until_true has_rows "$@" || screen >&2; } # what has been drawn may not all be there yet
widest() { screen | wc -L; }
within() { [ "$(widest)" -le "$1" ] || { fail "wider than $1 columns" && screen >&2; }; }

# wait_as ACTION SEGMENT OFFSET COUNT: a process that, when this returns, is the last of COUNT there; its pid is in $!.
wait_as() {
    "$waiter" "$name$2" "$1" "$3" &
    until_true stands_in_line "$@"
}
stands_in_line() {
    local there
    there=$("$vigil" show "$name$2" --json | sed 's/{"line":/\n&/g' | grep "\"offset\":$3,")
    [ "$(grep -o '"asynchronous":' <<<"$there" | wc -l)" = "$4" ]
}
end() { { kill -KILL "$1" && wait "$1"; } 2>/dev/null; }

# run COMMAND...: in a new terminal, and then it says how that ended, and whether what is typed is echoed.
# (Ctrl-C is for the command: of shells, some would end as well.)
run() {
    local after='echo status=$?; stty -a | grep -o " -\?echo "; cat'
    terminal kill-session 2>/dev/null
    terminal new-session -d -x 80 -y 24 "trap : INT; echo BEFORE; $*; $after"
}
# ended STATUS: and the terminal is as it was.
ended() {
    seen "status=$1"
    seen "^ echo"
    shows "^BEFORE" || fail "the screen was not restored"
    hides "WAIT" || { fail "the table is still there" && screen >&2; }
}

# No terminal.
expect 3 "$vigil" top </dev/null
contains "$err" "--once"
expect 64 "$vigil" top --interval 0
expect 64 "$vigil" top --intervall 1s
expect 0 "$vigil" top --once "$name*"
contains "$out" "0 segments" "WAIT" "HELD BY"

# Output that gets lost is an error, and never ends up in a segment that has got the number of stdout.
"$vigil" create "$name-closed"
cp "/dev/shm/vigil-$(id -u)-$name-closed" "$scratch/before"
for redirect in ">/dev/full" ">&-" "<&- >&-"; do
    expect 3 bash -c "'$vigil' top --once '$name*' $redirect"
    contains "$err" "vigil top: cannot write the output"
done
expect 3 bash -c "'$vigil' top --once '$name*' <&- >&- 2>&-"
cmp "$scratch/before" "/dev/shm/vigil-$(id -u)-$name-closed" || fail "the segment was written to"
"$vigil" rm "$name-closed"

# More segments than it may have files; and if not even one can be opened, it is said why.
for ((i = 0; i < 30; i++)); do "$vigil" create "$name-many-$i"; done
expect 0 with_descriptors 20 "$vigil" top --once "$name-many*"
contains "$out" "30 segments"
[[ $out != *unreadable* ]] || fail "not all could be opened: $out"
"$vigil" lock "$name-many" -- true # the file of the names is there, and cannot be opened either
expect 3 with_descriptors 4 "$vigil" top --json "$name-many-0"
contains "$out" '"status":"system"' ': Too many open files"'
"$vigil" rm "$name-many"
rm "/dev/shm/vigil-$(id -u)-$name-many-"*

# A lock with a line of --fair waiters: its holder counts once, although it holds the turnstile as well.
"$vigil" lock "$name-f" --fair sh -c "exec sleep 1000" -- decoy &
until_true eval "'$vigil' show '$name-f' | grep -q holds"
expect 0 "$vigil" top --once "$name*"
contains "$out" "1 segment, 1 member, 1 holder, 0 waiters" "no waiters; held for"
for count in 1 2; do
    "$vigil" lock "$name-f" --fair -- sleep 1000 &
    until_true stands_in_line async -f 0 $count
done
expect 0 "$vigil" top --once "$name*"
contains "$out" "1 segment, 3 members, 1 holder, 2 waiters" "$name-f fair" "2/2" "sh -c"
[[ $out != *"no waiters"* ]] || fail "there is a waiter: $out"
[ "$(wc -L <<<"$out")" -le 80 ] || fail "wider than 80 columns: $out"

# Its last holder was killed, and no process has declared the data repaired.
"$vigil" lock "$name-died" -- sleep 1000 &
until_true eval "'$vigil' show '$name-died' | grep -q holds"
end $!
"$vigil" lock "$name-died" --shared -- sleep 1000 2>/dev/null &
until_true eval "'$vigil' top --once '$name-died' | grep -q 'owner died, '"
for pid in $(jobs -p); do end "$pid"; done
"$vigil" ls --names "$name-*" | xargs "$vigil" rm --force

"$waiter" "${name}b" lock 64 &
holder=$!
until_true is_locked "${name}b"
wait_as lock b 64 1 && first=$!
wait_as lock-async b 64 2 && second=$!
wait_as wait a 0 1 && third=$!
wait_as lock b 64 3 && fourth=$!
"$waiter" "${name}a" read 512 &
until_true eval "'$vigil' show ${name}a | grep holds"
echo "This is no segment." >"/dev/shm/vigil-$(id -u)-${name}z"

expect 0 "$vigil" top --once "$name*"
contains "$out" "3 segments, 6 members, 2 holders, 4 waiters" "${name}a @512" "no waiters; held for" \
    "unreadable, foreign"
contains "$(grep " $second loop" <<<"$out")" "${name}b @64" "2/3" "cli_waiter" "$holder"
[ "$(wc -L <<<"$out")" -le 80 ] || fail "wider than 80 columns: $out"
[[ $out != *$'\033'* ]] || fail "colours, and no terminal"
expect 0 "$vigil" top --json "$name*"
contains "$out" "\"name\":\"${name}a\"" "\"pid\":$fourth" "\"status\":\"foreign\",\"name\":\"${name}z\""
contains "${out:0:60}" '{"status":"ok","segments":[{"status":"ok","name":'

# Rows, longest wait first.
run "'$vigil' top --interval 50ms '$name*'"
seen "4 waiters"
in_order "$first" "$second" "$third" "$fourth"
for text in "longest wait first" "${name}b @64" "no waiters; held for" "unreadable" "q quit"; do seen "$text"; done
hides BEFORE || fail "not full screen"
within 80
terminal capture-pane -p -e | grep -q $'\033\\[3[0-7]' || fail "no colours"

# Sorted by the next column, and the other way round.
keys s && seen "lines from A to Z" && in_order "$third" "$first" "$second" "$fourth"
keys r && seen "lines from Z to A" && in_order "$fourth" "$second" "$first" "$third"
keys s && seen "first in line first" && in_order "$first" "$third" "$second" "$fourth"
sorted() { printf '%s\n' "$first" "$second" "$third" "$fourth" | sort "$@"; }
# shellcheck disable=SC2046 # several words
keys s && seen "lowest PID first" && in_order $(sorted -n)
# shellcheck disable=SC2046
keys r && seen "highest PID first" && in_order $(sorted -nr)
keys s && seen "longest wait first"

# Filter: as it is typed, kept by Enter, cleared by Esc.
keys / l o o p && seen "Rows with: loop" && seen "1 of 6 with: loop" && in_order "$second"
keys Enter && seen "q quit" && in_order "$second"
keys Escape && gone "with: loop" && in_order "$first" "$second" "$third" "$fourth"
keys / Q U X && seen "No row contains that text"
keys BSpace BSpace BSpace && seen "Rows with: *$" && keys Escape && seen "q quit"

# While it is frozen nothing changes on the screen; what did is there when it goes on.
keys f && seen FROZEN
end "$first"
until_true stands_in_line lock b 64 2
keys r && seen "shortest wait first, frozen" && keys r && seen "longest wait first, frozen"
in_order "$first" "$second" "$third" "$fourth"
keys Space && gone FROZEN && seen "3 waiters"
in_order "$second" "$third" "$fourth"

# Segments come, go, and come again under the same name.
wait_as wait c 0 1 && fifth=$!
seen "${name}c @0" && in_order "$second" "$third" "$fourth" "$fifth"
end "$fifth"
rm "/dev/shm/vigil-$(id -u)-${name}c"
gone "${name}c"
wait_as wait-async c 0 1
seen "${name}c @0"

# The rows do not fit: the last one is there when one goes there.
terminal resize-window -x 60 -y 8
seen "q quit.*Enter" && gone "unreadable" && within 60
keys End && seen "unreadable" && gone " $second "
keys Home && seen " $second "
keys NPage && gone " $second " && keys PPage && seen " $second "
terminal resize-window -x 120 -y 30
seen "^ *WAIT  LINE  *PLACE  *PID AS  *COMMAND .{20,}HELD BY" && seen unreadable

# All about a segment, and help.
keys Home Enter && seen "^${name}b: words" && seen "holds" && seen "event loop" && seen "q back"
end "$fourth"
gone " $fourth "
keys q && seen "HELD BY"
keys h && seen "reverse the order" && keys Escape && seen "HELD BY"

# Ways to leave.
terminal resize-window -x 80 -y 24
seen "^ *WAIT  LINE {12}PLACE"
keys q && ended 0
run "NO_COLOR=1 '$vigil' top '$name*'"
seen "$second" && terminal capture-pane -p -e | grep -q $'\033\\[3[0-7]' && fail "colours, and NO_COLOR is set"
keys C-c && ended 0
run "'$vigil' top '$name*'"
seen "$second" && kill -TERM "$(pgrep -P "$(terminal display-message -p '#{pane_pid}')")"
ended 143
run "ASAN_OPTIONS=detect_leaks=0 TERM=nonsense '$vigil' top" # ncurses forgets to free something then
seen "status=3" && seen "nonsense"
run "TERM=dumb '$vigil' top"
seen "status=3" && seen "'dumb'" && seen "^ echo"

verdict
