#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil rm, while another process is about to use the segment: that process comes first and it is not removed, or it is
# removed and the process creates it again. No process ever uses a segment that others do not find.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
gate=$scratch/gate
"${CC:-cc}" -shared -fPIC -o "$scratch/gate_unlink.so" "$here/gate_unlink.c" || exit 1

expect 0 "$vigil" lock "$name" -- true
file=$(stat -c %i "/dev/shm/vigil-$(id -u)-$name")
# It has seen that the segment is not in use, and is just about to remove it; then another process opens it.
ASAN_OPTIONS=verify_asan_link_order=0 GATE=$gate LD_PRELOAD=$scratch/gate_unlink.so "$vigil" rm "$name" &
removing=$!
until_true [ -e "$gate.begun" ]
"$vigil" lock "$name" -- "$hold" "$scratch/first" &
first=$!
has_it_open() { stat -L -c %i /proc/$first/fd/* | grep -qx "$file"; }
until_true has_it_open
touch "$gate"
wait $removing || fail "it was not removed"
until_true [ -e "$scratch/first.begun" ]
expect 124 "$vigil" lock "$name" --try -- true # two at once
expect 3 "$vigil" rm "$name"
touch "$scratch/first"
wait
until_true is_free "$name"
expect 0 "$vigil" rm "$name"
verdict
