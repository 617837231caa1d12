#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Thousands of vigil lock processes queue for one lock while every processor is busy with something else: when the
# holder lets go, each has its turn, one at a time. CROWD is how many, 2,000 by default. Only ctest limits the time.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
build crowd
count=${CROWD:-2000}
log=$scratch/log
: >"$log"
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# A process that waits has a thread of the library's besides its own; a few more are for what else runs here.
if ! "$crowd" room $((2 * count + 50)); then
    echo "skipped: this system does not let us have $((2 * count + 50)) processes" >&2
    exit 77
fi

# The holder keeps the lock until its standard input ends: when we say so, or when this script is killed.
coproc holder { exec "$vigil" lock "$name" -- sh -c 'echo held && exec cat'; }
holder_pid=$!
read -r held <&"${holder[0]}"
[ "$held" = held ] || fail "the lock is free, but the first process does not get it"

for ((i = $(nproc); i > 0; i--)); do
    "$crowd" busy $$ &
done

began_ms=$(now_ms)
"$crowd" run $$ "$count" "$vigil" lock "$name" -- "$locking" alone "$scratch/inside" "$log" &
crowd_pid=$!
until in_line "$count" "$name" || is_gone $crowd_pid; do sleep 0.2; done
[ ! -s "$log" ] || fail "a command has run while another process held the lock"

let_go_ms=$(now_ms)
eval "exec ${holder[1]}>&-"
wait $crowd_pid || fail "not every one of the $count processes has ended with exit status 0"
drained_ms=$(now_ms)
wait $holder_pid || fail "exit status $? of the holder"
echo "$count processes: in line after $((let_go_ms - began_ms)) ms, drained in $((drained_ms - let_go_ms)) ms more"

done=$(grep -c '^done' "$log")
[ "$done" = "$count" ] || fail "$done commands have run instead of $count"
! grep 'not alone' "$log" || fail "two at once"
[ $failures != 0 ] || until_true is_free "$name"
verdict
