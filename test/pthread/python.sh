#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Python's threads: its interpreter lock is a mutex and a condition, and its locks are semaphores. Also its own tests,
# if they are installed, and what the threads of a Python program that hangs wait for.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }

expect 0 timeout 600 "$vigil" run -- python3 "$here/threads.py"
[ "$out" = well ] || fail "python: $out $err"
if python3 -c 'import test.test_threading' 2>/dev/null; then # (the one left out depends on how Python is installed)
    cd "$scratch" || exit 1
    expect 0 timeout 600 "$vigil" run -- python3 -m test -i test_import_from_another_thread \
        test_threading test_thread test_queue test_threadsignals
fi

cat >"$scratch/bank.py" <<'PYTHON'
import threading
accounts, ledger, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def book(first, second):
    with first:
        both.wait()
        with second:
            print("booked")
for locks in (accounts, ledger), (ledger, accounts):
    threading.Thread(target=book, args=locks).start()
PYTHON
dies_with_us "$vigil" run -- python3 "$scratch/bank.py" &
pid=$!
hangs() { "$vigil" show $pid | grep -q "^possible deadlock, if each semaphore"; }
until_true hangs
expect 0 "$vigil" show $pid
contains "$out" "at PyThread_acquire_lock_timed+0x" "last taken by thread"
[ "$(grep -c ' waits for semaphore' <<<"$out")" = 2 ] || fail "the circle has not two threads: $out"
verdict
