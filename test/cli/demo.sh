#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil demo: with and without a terminal, and interrupted. It checks the contest itself: here it is about the show.
# shellcheck source=common.sh disable=SC2016,SC2317
. "$(dirname "$0")/common.sh"
export LC_ALL=C.UTF-8

# Not a terminal: plain text, and no file unless one is asked for.
mkdir "$scratch/empty"
cd "$scratch/empty" || exit 1
expect 0 "$vigil" demo --quick
contains "$out" "Two processes, fair." "P2 thread C" "killed" "the owner died: " "the line goes on" \
    "✓ killed with the lock held" "never two at a time"
[[ $out != *$'\033'* ]] || fail "control sequences where there is no terminal"
[[ $out != *"✗"* ]] || fail "something was wrong: $out"
[ -z "$(ls)" ] || fail "it left behind: $(ls)"

# The picture is whole; each of the three of P2 ends with a cross, and the legend has one.
expect 0 "$vigil" demo --quick --svg demo.svg
contains "$out" "The picture: demo.svg"
svg=$(cat demo.svg)
[[ $svg == "<svg "*"</svg>" ]] || fail "the picture is not whole"
contains "$svg" "P2 is killed, with the lock held." "is told" "The line goes on."
[ "$(grep -o 'class="mark dead"' demo.svg | wc -l)" = 4 ] || fail "crosses: $(grep -o 'class="mark dead"' demo.svg)"

expect 0 "$vigil" demo --quick --json
contains "$out" '{"status":"ok","verdict":"right"' '"next_after_ns":' '"name":"loop 2","process":2'
[ "$(wc -l <<<"$out")" = 1 ] || fail "more than an object: $out"

expect 64 "$vigil" demo --quack
contains "$err" "vigil demo: " "--quick"
for call in "--json --quack" "--quack --json" "now --json"; do
    read -r -a words <<<"$call"
    expect 64 "$vigil" demo "${words[@]}"
    contains "$out" '{"status":"usage","error":"'
    [ -z "$err" ] || fail "there is something on stderr: demo $call: $err"
done
expect 64 "$vigil" demo --svg
expect 64 "$vigil" demo now
expect 3 "$vigil" demo --svg no/such/folder/demo.svg
contains "$err" "vigil demo: cannot write no/such/folder/demo.svg: "
expect 3 bash -c "'$vigil' demo --quick >&-"
contains "$err" "vigil demo: cannot write the output: Bad file descriptor"
expect 3 bash -c "'$vigil' demo --quick <&- >&- 2>&-"
# What it lacks is reported, by one of the parts that need it. (The check for leaks needs descriptors.)
expect 3 with_descriptors 4 env ASAN_OPTIONS=detect_leaks=0 "$vigil" demo --quick
contains "$err" "vigil demo: cannot make an event loop: Too many open files"
expect 3 with_descriptors 4 env ASAN_OPTIONS=detect_leaks=0 "$vigil" demo --quick --json
[ "$out" = '{"status":"system","error":"cannot make an event loop: Too many open files"}' ] || fail "no error: $out"
expect 0 "$vigil" demo --help
contains "$out" --quick --svg --json "Example"

# Killed while there is a second process, this one ends as well.
children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
dies_with_it() {
    local signal=$1 demo second=
    while [ -z "$second" ]; do # it is there for a part of the time only
        "$vigil" demo --quick >/dev/null &
        demo=$!
        while kill -0 $demo 2>/dev/null && [ -z "$second" ]; do second=$(children $demo); done
        kill -"$signal" $demo 2>/dev/null
        wait $demo 2>/dev/null
    done
    until_true test ! -e "/proc/${second% }/exe"
}
dies_with_it KILL
dies_with_it TERM

if ! command -v tmux >/dev/null; then
    echo "no tmux: not tried on a terminal" >&2
    [ $failures = 0 ] && exit 77
    verdict
fi
plays=0 # each has a server of its own: a session may begin while the server of the last one is still going
tmux() { command tmux -L "$name-$plays" "$@"; }
trap 'tmux kill-server 2>/dev/null; finish' EXIT

# play OPTION...: begins on a terminal; the screen stays when it has ended. What it writes goes into $scratch/written,
# its exit status into $scratch/status.
play() {
    plays=$((plays + 1))
    rm -f "$scratch"/{go,status,written}
    tmux -f /dev/null new-session -d -s demo -x 80 -y 24 bash -c '
        trap : INT
        until [ -e "$1/go" ]; do sleep 0.01; done
        "${@:2}"
        echo $? >"$1/status"
        printf "\033]2;ended\033\\"
        sleep 600' play "$scratch" "$vigil" demo "$@"
    tmux set-option -t demo history-limit 1000
    tmux pipe-pane -t demo "cat >'$scratch/written'"
    until_true test -e "$scratch/written"
    touch "$scratch/go"
}
# When the title is there, so is all that was written before it.
ended() { until_true eval '[ "$(ask "#{pane_title}")" = ended ]' && status=$(cat "$scratch/status"); }
ask() { tmux display-message -p -t demo "$1"; }
screen() { tmux capture-pane -p -t demo "$@"; }
written() { grep -q "$1" "$scratch/written"; }
close_it() { tmux kill-server; }

# Those of its programs that are still there.
left_on_terminal() {
    local tty
    tty=$(ask '#{pane_tty}')
    find /proc/[0-9]*/fd/1 -lname "$tty" 2>/dev/null | while IFS=/ read -r _ _ pid _; do
        grep -l '^vigil' "/proc/$pid/comm" 2>/dev/null
    done
}

play --quick
ended
[ "$status" = 0 ] || fail "exit status $status on a terminal"
contains "$(screen)" "the latest by" "✓ killed with the lock held" "never two at a time" "max wait" "two processes"
contains "$(screen -S -)" "P2 thread C" "killed" "the owner died: " "the line goes on"
[[ $(screen -S -) != *"✗"* ]] || fail "something was wrong: $(screen -S -)"
# Had a line been too long for the terminal, lanes would have been drawn below each other: 6 for each of the 4 acts.
lanes=$(screen -S - | grep -cE '^(P[12]|  ) (thread [A-D]|loop [12]) .* served')
[ "$lanes" = 24 ] || fail "$lanes lanes on the screen"
close_it

# Ctrl-C leaves the last frame and an ordinary terminal: a line of its own, and plain.
frame=
while [[ $frame != *"in line  "[[\(]* ]]; do # at some moments the line is empty
    play
    until_true eval 'screen | grep -q "in line  [[(]"'
    tmux send-keys -t demo C-c
    ended
    frame=$(screen)
    column=$(ask '#{cursor_x}')
    left=$(left_on_terminal)
    close_it
    if [ "$status $column $left" != "130 0 " ]; then
        fail "after Ctrl-C: exit status $status, cursor in column $column, still there: $left"
        break
    fi
done
contains "$frame" "thread A" "waits" "served"

# The same while there are two processes.
play --quick
until_true written "P2"
tmux send-keys -t demo C-c
ended
until_true eval '[ -z "$(left_on_terminal)" ]'
close_it
verdict
