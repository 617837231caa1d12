#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A lock inside itself: --shared inside --shared is allowed, also while a writer waits; all else is refused.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

for lock in "$name" "$scratch/lock"; do
    # Refused at once, however often it is nested, and whatever is between.
    expect 125 "$vigil" lock "$lock" -- "$vigil" lock "$lock" -- touch "$scratch/wrong"
    contains "$err" "$lock: this already runs under that lock, and would wait for itself"
    expect 125 "$vigil" lock "$lock" -- "$vigil" lock "$lock" --shared -- touch "$scratch/wrong"
    contains "$err" "would wait for itself"
    expect 125 "$vigil" lock "$lock" --shared -- "$vigil" lock "$lock" -- touch "$scratch/wrong"
    contains "$err" "would wait for itself"
    expect 125 "$vigil" lock "$lock" --shared -- "$vigil" lock "$lock" --shared -- "$vigil" lock "$lock" -- true
    expect 125 "$vigil" lock "$lock" -- sh -c '"$0" lock "$1" --try -- true; exit $?' "$vigil" "$lock"
    expect 125 "$vigil" lock "$lock" -- "$vigil" lock "$name-between" -- "$vigil" lock "$lock" -- true
    expect 125 "$vigil" lock "$lock" -- "$vigil" lock "$lock" --until-exit $$

    # Allowed.
    expect 0 "$vigil" lock "$lock" --shared -- "$vigil" lock "$lock" --shared -- "$vigil" lock "$lock" -s -- echo inside
    [ "$out" = inside ] || fail "shared inside shared: $out"
    expect 0 "$vigil" lock "$lock" --shared --fair -- "$vigil" lock "$lock" --shared --fair -- true

    # Also while another command waits for it alone, which other readers would wait for.
    for fair in "" --fair; do
        # shellcheck disable=SC2086
        "$vigil" lock "$lock" --shared $fair -- sh -c 'echo >"$2.begun"; until [ -e "$2" ]; do sleep 0.01; done
            "$0" lock "$1" --shared $3 --timeout 1m -- touch "$2.inside"' "$vigil" "$lock" "$scratch/go" "$fair" &
        until_true [ -e "$scratch/go.begun" ]
        "$vigil" lock "$lock" $fair -- touch "$scratch/alone" &
        until_true in_line 1 "$lock"
        until_true status_is 124 "$vigil" lock "$lock" --shared --try -- true # soon, not at once
        [ ! -e "$scratch/alone" ] || fail "alone, and another process reads"
        touch "$scratch/go"
        wait
        [ -e "$scratch/go.inside" ] || fail "shared inside shared, while another waits: not run"
        [ -e "$scratch/alone" ] || fail "the one that waited has not run"
        rm "$scratch"/go* "$scratch/alone"
    done
    until_true is_free "$lock"
done
[ ! -e "$scratch/wrong" ] || fail "a command has run that should not have"

# By any path to the same file; another file of the same name is another lock.
mkdir "$scratch/a" "$scratch/b"
ln -s a "$scratch/c"
expect 125 "$vigil" lock "$scratch/a/lock" -- "$vigil" lock "$scratch/c/lock" -- true
contains "$err" "would wait for itself"
(cd "$scratch/a" && expect 125 "$vigil" lock ./lock -- "$vigil" lock ../a/lock -- true && exit $failures) || failures=1
expect 0 "$vigil" lock "$scratch/a/lock" -- "$vigil" lock "$scratch/b/lock" -- true
# A name that begins like another one, or contains it.
expect 0 "$vigil" lock "$name" -- "$vigil" lock "$name-x" -- "$vigil" lock "x-$name" -- true
"$vigil" rm "x-$name"

# A semaphore inside itself takes another slot.
expect 0 "$vigil" sem "$name-sem" --slots 2 -- "$vigil" sem "$name-sem" -- true
expect 124 "$vigil" sem "$name-sem" -- "$vigil" sem "$name-sem" -- "$vigil" sem "$name-sem" --try -- true
# Lock and semaphore in each other.
expect 0 "$vigil" lock "$name" -- "$vigil" sem "$name-sem" -- "$vigil" lock "$name-x" -- true
verdict
