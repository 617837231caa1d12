#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil top on terminals of several widths: its help is whole at 80 columns, WAIT, LINE and HELD BY stay at 40, and what
# is cut off is marked. Segments that cannot be listed are an error.
. "$(dirname "$0")/common.sh"
{ command -v tmux >/dev/null && [ -x "${vigil%/*}/vigil-top" ]; } ||
    { echo "needs tmux, and ncurses to build vigil-top" && exit 77; }
build terminal
name=n$$ # short, to be seen whole in 40 columns
export LC_ALL=C.UTF-8

# Segments that cannot be listed.
elsewhere() { unshare --mount sh -c "$1 && shift && exec \"\$@\"" sh "$@"; }
if elsewhere "mount -t tmpfs -o size=1m none /dev/shm" true 2>/dev/null; then
    for hidden in "mount -t tmpfs none /dev" "mount -t tmpfs none /dev && : >/dev/shm"; do
        expect 3 elsewhere "$hidden" "$vigil" top --once
        contains "$err" "vigil top: cannot list the segments"
        [ -z "$out" ] || fail "it printed: $out"
        expect 3 elsewhere "$hidden" "$vigil" top --json
        contains "$out" '"status":"system"' "cannot list the segments"
        expect 3 elsewhere "$hidden" "$vigil" ls
        contains "$err" "vigil ls: cannot list the segments"
    done
else
    echo "cannot have a mount namespace: what top does without /dev/shm is not tested"
fi

long="a command whose name is much too long to be seen whole, whatever the width of the terminal may be"
"$vigil" lock "$name-x" -- sh -c "exec sleep 1000" "$long" &
until_true eval "'$vigil' show '$name-x' | grep -q holds"
"$vigil" lock "$name-x" -- true "$long" &
until_true eval "'$vigil' ls '$name-x' --json | grep -q '\"waiting\":1'"

# once COLUMNS LOCALE: what --once prints on a terminal of that width.
once() {
    "$terminal" "$scratch/screen" sh -c "stty cols $1; LC_ALL=$2 '$vigil' top --once '$name-*'" </dev/null ||
        fail "vigil top --once failed"
    tr -d '\r' <"$scratch/screen"
}
# has COLUMNS TITLE...: those, in that order, and no others; no line is wider.
has() {
    local most=$1 titles
    shift
    titles=$(sed -n 2p <<<"$shown" | sed 's/HELD BY/HELD_BY/' | xargs)
    [ "$titles" = "$*" ] || fail "at $most columns: '$titles' instead of '$*'"
    [ "$(wc -L <<<"$shown")" -le "$most" ] || fail "wider than $most columns: $shown"
}
shown=$(once 80 C.UTF-8)
has 80 WAIT LINE PLACE PID AS COMMAND HELD_BY
contains "$(sed -n 3p <<<"$shown")" "$name-x lock" "1/1" "…"
shown=$(once 79 C.UTF-8)
has 79 WAIT LINE PLACE PID COMMAND HELD_BY
shown=$(once 60 C.UTF-8)
has 60 WAIT LINE PLACE PID HELD_BY
shown=$(once 40 C.UTF-8)
has 40 WAIT LINE HELD_BY
row=$(sed -n 3p <<<"$shown")
[[ $row =~ s\ +$name-x\ lock\ +[0-9]+\ .*…$ ]] || fail "at 40 columns: $row"
[[ $(head -1 <<<"$shown") == "vigil top "*… ]] || fail "the head is not marked as cut: $shown"
shown=$(once 20 C.UTF-8)
[ "$(wc -L <<<"$shown")" -le 20 ] || fail "wider than 20 columns: $shown"
shown=$(once 40 C)
has 40 WAIT LINE HELD_BY
[[ $(sed -n 3p <<<"$shown") == *">" ]] || fail "not marked as cut: $shown"
LC_ALL=C grep -q '[^ -~]' <<<"$shown" && fail "not ASCII: $shown"

# Full screen.
tm() { tmux -L "$name" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; finish' EXIT
screen() { tm capture-pane -p; }
shows() { screen | grep -qE -e "$1"; }
seen() { until_true shows "$1" || screen >&2; }
tm new-session -d -x 80 -y 40 "'$vigil' top '$name-*'; cat"
seen "$name-x lock"
tm send-keys h
seen "is the thread that took it last"
shows "…" && { fail "the help is cut at 80 columns" && screen >&2; }
for end in "which segment,$" "locks that$" "or fair,$" "Otherwise$" "yet to run$" "killed, and$" "this$"; do
    seen "$end"
done
tm resize-window -x 80 -y 24
seen "lines 1-23 of 27"
tm send-keys End
seen "is the thread that took it last" && seen "lines 5-27 of 27"
tm resize-window -x 40 -y 24
seen "…$"
[ "$(screen | wc -L)" -le 40 ] || { fail "wider than 40 columns" && screen >&2; }
tm send-keys q
seen "^ *WAIT  LINE +HELD BY"
seen "$name-x lock +[0-9]+ .*…$"
seen "^q quit .*…$"
tm send-keys Enter
seen "…$" # the details
[ "$(screen | wc -L)" -le 40 ] || { fail "wider than 40 columns" && screen >&2; }
verdict
