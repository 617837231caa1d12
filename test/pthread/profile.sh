#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The profile names the contended lock, where it was wanted, and nothing else; on standard error, in a file, as JSON.
. "$(dirname "$0")/common.sh"

expect 7 "$vigil" run --profile -- "$CONTENDED"
[ "$out" = 80 ] || fail "it counts to $out"
contains "$err" "vigil: profile of process" "vigil: contended locks: 1" "mutex 0x" "wanted (pthread_contended)" \
    "at work+0x"
[[ $err != *spare* ]] || fail "it names what no thread has waited for: $err"

# In a folder that the program leaves; its children have files of their own, if they have waited.
mkdir "$scratch/folder"
cd "$scratch/folder" || exit 1
expect 7 "$vigil" run --profile=locks.txt -- "$CONTENDED" "cd / && '$CONTENDED'; :"
pattern='wanted (pthread_contended)'
grep -q "$pattern" locks.txt || fail "no profile: $(ls)"
[ -z "$err" ] || fail "there is something on standard error, too: $err"
grep -q "$pattern" locks.txt.* || fail "the child's profile is not there: $(ls)"
[ "$(find . -type f | wc -l)" = 2 ] || fail "there are other files: $(ls)"

expect 7 "$vigil" run --profile="$scratch/locks.json" --json -- "$CONTENDED"
if command -v python3 >/dev/null; then
    python3 - "$scratch/locks.json" <<'PYTHON' || fail "that JSON is not as it should be: $(cat "$scratch/locks.json")"
import json, sys
locks = json.load(open(sys.argv[1]))["locks"]
[wanted] = [lock for lock in locks if lock["kind"] == "mutex"]
assert wanted["name"] == "wanted (pthread_contended)" and wanted["waits"] > 0
assert wanted["total_ns"] >= wanted["longest_ns"] > 0
assert sum(site["waits"] for site in wanted["sites"]) == wanted["waits"]
assert wanted["sites"][0]["name"].startswith("work+0x")
PYTHON
fi

# While it runs, it is part of the report.
dies_with_us "$vigil" run --profile="$scratch/later" -- "$DEADLOCK" &
pid=$!
shows() { "$vigil" show $pid | grep -q "$1"; }
until_true shows "4 threads in 3 lines"
expect 0 "$vigil" show $pid
contains "$out" "deadlock: " "vigil: contended locks: "
expect 0 "$vigil" show $pid --json
contains "$out" '"profile":{"pid":'
kill -KILL $pid

# Where it cannot be written, that is said.
expect 7 "$vigil" run --profile="$scratch/no/such/folder" -- "$CONTENDED"
contains "$err" "the profile cannot be written to"
verdict
