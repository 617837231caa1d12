#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil lock --fair: first come, first served, also when some of those in line are killed or give up.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
count=40

"$vigil" lock "$name" -- "$hold" "$scratch/go" &
until_true [ -e "$scratch/go.begun" ]

# Each is in line before the next one comes. Every seventh shares it, which changes nothing about the order.
pids=() expected=()
for ((i = 1; i <= count; i++)); do
    shared=()
    [ $((i % 7)) = 0 ] && shared=(--shared)
    "$vigil" lock "$name" --fair "${shared[@]}" -- sh -c 'echo "$0" >>"$1"' $i "$scratch/order" &
    pids[i]=$!
    until_true in_line $i "$name"
done

# Every fifth goes away, one way or the other; the first in line among them. For a moment the line may seem shorter than
# it is, while the process that is now first goes from the turnstile to the lock: so the test makes sure that they are
# gone before it counts.
gone=()
for ((i = 1; i <= count; i++)); do
    if [ $((i % 5)) = 1 ]; then
        signal=TERM
        [ $((i % 2)) = 0 ] && signal=KILL
        kill -$signal "${pids[i]}"
        gone+=("${pids[i]}")
    else
        expected+=("$i")
    fi
done
{ wait "${gone[@]}"; } 2>/dev/null
until_true in_line ${#expected[@]} "$name"
touch "$scratch/go"
{ wait; } 2>/dev/null
[ "$(cat "$scratch/order")" = "$(printf '%s\n' "${expected[@]}")" ] ||
    fail "they should be served in the order ${expected[*]} but it was $(tr "\n" " " <"$scratch/order")"
until_true is_free "$name"
verdict
