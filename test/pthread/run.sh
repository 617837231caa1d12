#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil run itself: the program takes its place, with its arguments, environment, signals and exit status.
. "$(dirname "$0")/common.sh"

expect 7 "$vigil" run -- sh -c 'echo "$1"; exit 7' sh 'a  b'
[ "$out" = "a  b" ] || fail "other arguments: $out"
expect 0 "$vigil" run echo --profile --json
[ "$out" = "--profile --json" ] || fail "it takes the program's options: $out"
expect 127 "$vigil" run -- "$scratch/nothing"
contains "$err" "vigil run: cannot run" "No such file"
touch "$scratch/plain"
expect 126 "$vigil" run -- "$scratch/plain"
contains "$err" "ermission denied"
expect 125 "$vigil" run
contains "$err" "the program to run is missing"
expect 125 "$vigil" run --signal NOPE -- true
contains "$err" "unknown signal"
expect 125 "$vigil" run --check=yes -- true
contains "$err" "--check takes no value"
expect 125 "$vigil" run --profile="$(printf '%02000d' 0)" -- true
contains "$err" "too long"

# Others that are preloaded stay so; the program's process is the one that was started.
library=$(LD_PRELOAD='' "$vigil" run -- sh -c 'echo "$LD_PRELOAD"')
[ -f "$library" ] || fail "LD_PRELOAD is $library"
[ "$(LD_PRELOAD=$library "$vigil" run -- sh -c 'echo "$LD_PRELOAD"')" = "$library:$library" ] ||
    fail "LD_PRELOAD is lost"
dies_with_us "$vigil" run -- sleep 600 &
pid=$!
is_sleep() { [ "$(cat /proc/$pid/comm)" = sleep ]; }
until_true is_sleep
kill -TERM $pid
wait $pid
[ $? = 143 ] || fail "it does not end by the signal"

# A limit of file sizes does not end the program, although there can be no file to look at then.
expect 0 bash -c 'ulimit -f 100; exec "$0" run -- env true' "$vigil"

# Without the library next to it, or installed, that is said.
mkdir -p "$scratch/bin"
cp "$vigil" "$scratch/bin/vigil"
expect 125 "$scratch/bin/vigil" run -- true
contains "$err" "libvigil-pthread.so is not installed"

# A handler of the program's own has the signal: no report, and vigil show says why.
dies_with_us "$vigil" run -- bash -c 'trap "echo mine" USR2; echo ready; while :; do read -r -t 1 <> <(:) || :; done' \
    >"$scratch/out" &
pid=$!
until_true grep -q ready "$scratch/out"
expect 3 "$vigil" show $pid
contains "$err" "uses the signal itself"
kill -USR2 $pid
until_true grep -q mine "$scratch/out"
verdict
