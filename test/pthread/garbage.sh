#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whatever another process has in its file, show, top and trace end by themselves.
. "$(dirname "$0")/common.sh"

# ends COMMAND...: with a status of its own, not by a signal, and not because it takes for ever.
ends() {
    timeout -k 5 60 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    local got=$?
    [ $got = 0 ] || [ $got = 3 ] || fail "exit status $got: $* (seed $seed): $(cat "$scratch/err")"
}

for seed in 1 2 3 4 unsealed other; do
    dies_with_us "$GARBAGE" $seed >"$scratch/ready" &
    pid=$!
    until_true grep -q ready "$scratch/ready"
    ends "$vigil" show $pid
    ends "$vigil" show $pid --json
    if [ -x "${vigil%/*}/vigil-top" ]; then
        ends "$vigil" top --once $pid
        ends "$vigil" top --json $pid
        [ $seed != 1 ] || ! command -v python3 >/dev/null || python3 -m json.tool "$scratch/out" >/dev/null ||
            fail "no JSON"
    fi
    ends "$vigil" trace $pid -o "$scratch/trace" --svg "$scratch/svg" --for 0.2s
    if [ $seed = unsealed ] || [ $seed = other ]; then
        expect 3 "$vigil" show $pid
        contains "$err" "another version"
    elif command -v python3 >/dev/null; then
        python3 -m json.tool "$scratch/trace" >/dev/null || fail "the trace is no JSON (seed $seed)"
    fi
    { kill -KILL $pid; wait $pid; } 2>/dev/null
done
# What the process writes does not reach the terminal as it is.
dies_with_us "$vigil" run -- "$OBSERVED" take >"$scratch/out" 2>&1 &
pid=$!
shows_taker() { "$vigil" show $pid | grep -qF '(\x1b[7mtaker)'; }
until_true shows_taker
verdict
