#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many vigil lock processes contend, and many of them are killed: no two commands ever run at once, and a process
# that finds what a dead one has left behind has been told.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
workers=8 seconds=4
log=$scratch/log
: >"$log"

# One after the other: some in order, some not; half of them are killed, at any moment. For some seconds, and on a busy
# machine until there were some of both.
storm() {
    local end=$((SECONDS + seconds)) kills=0 ran=0 fair
    RANDOM=$1
    while [ $SECONDS -lt $end ] || [ $kills -lt 2 ] || [ $ran -lt 2 ]; do
        fair=()
        [ $((RANDOM % 2)) = 0 ] && fair=(--fair)
        "$vigil" lock "$name" "${fair[@]}" -- "$locking" alone "$scratch/inside" "$log" &
        if [ $((RANDOM % 2)) = 0 ]; then
            sleep 0.00$((RANDOM % 10))$((RANDOM % 10))
            kill -KILL $! && kills=$((kills + 1))
        fi
        wait $! && ran=$((ran + 1))
    done 2>/dev/null
    echo $kills >"$scratch/kills-$1"
}
for ((i = 1; i <= workers; i++)); do
    storm $i &
done
wait

done=$(grep -c '^done' "$log") cleaned=$(grep -c '^cleaned' "$log")
kills=$(($(cat "$scratch"/kills-* | tr '\n' '+')0))
echo "$done commands, $kills kills, $cleaned times something had been left behind"
! grep 'not alone' "$log" || fail "two at once"
[ "$done" -gt $workers ] || fail "hardly any have run"
expect 0 "$vigil" lock "$name" --timeout 10s -- "$locking" alone "$scratch/inside" "$log"
! grep 'not alone' "$log" || fail "something was left behind, and the next one was not told"

# What the last ones have left behind is cleared away by the next process that opens it.
is_cleared() { "$vigil" lock "$name" --try -- true && is_free "$name"; }
until_true is_cleared
verdict
