#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check.sh - visit every state of the models: the correct ones must hold, the broken variants must be caught.
# Exit code 77: spin or a C compiler is missing, nothing was checked.
set -u
here=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null || { echo "skipped: no spin"; exit 77; }
compiler=$(command -v gcc || command -v cc) || { echo "skipped: no C compiler"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# search OPTIMIZE ends|cycles MODEL MACRO...: visit all states, or until the first error; print what pan says.
search() {
    local optimize=$1 model=$3 build=-DSAFETY run=(-n)
    [ "$2" = cycles ] && build=-DNP run=(-n -l)
    shift 3
    rm -rf "${work:?}"/* && cd "$work" || return
    spin "${@/#/-D}" -a "$here/$model.pml" &&
        "$compiler" -w "$optimize" $build -DMEMLIM=1500 -o pan pan.c &&
        timeout 120 ./pan "${run[@]}" -m10000
}

# report VERDICT WANTED NAME...: count and print the verdict, with all output if it is not the wanted one.
report() {
    local verdict=$1 wanted=$2
    shift 2
    if [ "$verdict" = "$wanted" ]; then
        passed=$((passed + 1))
        echo "$verdict: $*${reason:+ ($reason)}"
    else
        failed=$((failed + 1))
        echo "FAILED: $*: $verdict instead of $wanted"
        echo "$said"
    fi
}

# check ok|caught ends|cycles MODEL MACRO...: check assertions and end states, or that there are no cycles.
check() {
    local wanted=$1 said reason verdict=unfinished optimize=-O1
    [ "$wanted" = caught ] && optimize=-O0 # an error is found before the optimizer would be done
    shift
    said=$(search $optimize "$@" 2>&1)
    reason=$(sed -nE 's/^pan:1: (assertion violated|invalid end state|non-progress cycle).*/\1/p' <<<"$said")
    if [ -n "$reason" ]; then
        verdict=caught
    elif grep -q 'errors: 0' <<<"$said" && ! grep -qiE 'too small|out of memory|not completed' <<<"$said"; then
        verdict=ok
    fi
    report $verdict "$wanted" "$@"
}

check ok ends line
for bug in NO_FENCE COMPARE_BEFORE_LOCK COUNTED_TOO_LATE COUNT_AFTER_TIMEOUT LEAVE_WITHOUT_LOOKING WAKE_BEFORE_STATE; do
    check caught ends line $bug
done

for players in STOPPING CROWD OWN_REQUEST PATIENT; do
    check ok ends mutex $players
    check ok ends mutex FAIR $players
done
check ok ends mutex WATCHED
check ok cycles mutex OWN_REQUEST
check ok cycles mutex FAIR OWN_REQUEST
for bug in UNGUARDED PASS_UNGUARDED FREE_OUTSIDE JOIN_BLINDLY TAKE_AS_LOCKED WAIT_AT_LOCKED GIVE_UP_BLINDLY \
    GUARD_FOREVER TAKE_BY_STORE MARK_BY_STORE LOOP_IS_COMING COMING_STAYS; do
    check caught ends mutex OWN_REQUEST $bug
done
# Of the release by a store.
for bug in FENCE_FORGOTTEN FENCE_BEFORE_LOCK STORED_UNSAID UNLOCKED_UNSEEN NEW_HOLDER_UNTOLD STORE_OVER_MARK; do
    check caught ends mutex OWN_REQUEST $bug
done
check caught ends mutex WATCHED COUNT_ALWAYS
check caught ends mutex PATIENT DROP_CALL
check caught cycles mutex OWN_REQUEST GUARD_AWAKE
for bug in CALL_MORE UNGUARDED PASS_UNGUARDED GUARD_FOREVER; do
    check caught ends mutex FAIR OWN_REQUEST $bug
done

for players in NEWCOMERS THREE_HOLDERS STRAY; do
    check ok ends lanes $players
done
check ok cycles lanes HOLDERS
check ok cycles lanes STRAY
for bug in NOT_CHECKED ADDED_UNSEEN; do
    check caught ends lanes NEWCOMERS $bug
done
for bug in NOT_COUNTED COUNTED_TWICE CLEARED_EARLY NOT_SEARCHED SEARCHED_ONCE TAKEN_WHILE_CLOSING JOINED_UNCLOSED; do
    check caught ends lanes HOLDERS $bug
done
check caught ends lanes THREE_HOLDERS TAKEN_BACK_EARLY
check caught ends lanes STRAY LEFT_SILENTLY
check caught cycles lanes STRAY NOT_CLOSED

echo "$passed passed, $failed failed"
[ $failed = 0 ]
