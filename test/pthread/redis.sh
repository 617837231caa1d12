#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# redis-server with threads for input and output and in the background, on a socket in a folder of our own; traced.
. "$(dirname "$0")/common.sh"
for program in redis-cli redis-benchmark redis-check-rdb; do
    command -v $program >/dev/null || { echo "no $program"; exit 77; }
done

cd "$scratch" || exit 1
ln -s "$(command -v redis-check-rdb)" redis-server # that is the server, by another name
dies_with_us "$vigil" run --profile="$scratch/profile" -- ./redis-server \
    --port 0 --unixsocket "$scratch/socket" --dir "$scratch" --save '' \
    --appendonly yes --appendfsync always --io-threads 3 --io-threads-do-reads yes --daemonize no --loglevel warning \
    --lazyfree-lazy-user-del yes >"$scratch/log" 2>&1 &
pid=$!
cli() { timeout 60 redis-cli -s "$scratch/socket" "$@"; }
is_up() { [ "$(cli ping 2>/dev/null)" = PONG ]; }
until_true is_up || cat "$scratch/log" >&2

"$vigil" trace $pid -o "$scratch/trace" --svg "$scratch/picture" --json >"$scratch/summary" 2>"$scratch/trace-err" &
tracer=$!
until_true grep -q recording "$scratch/trace-err"
timeout 120 redis-benchmark -s "$scratch/socket" -q -n 2000 -c 20 -P 8 --threads 2 -t set,get,incr,lpush \
    >"$scratch/bench" ||
    fail "redis-benchmark: $(cat "$scratch/bench")"
[ "$(cli incrby count 41)" = 41 ] || fail "incrby"
[ "$(cli incr count)" = 42 ] || fail "incr"
[ "$(cli llen mylist)" = 2000 ] || fail "llen: $(cli llen mylist)"
cli del mylist >/dev/null # by a thread in the background
[ "$(cli bgrewriteaof)" = "Background append only file rewriting started" ] || fail "bgrewriteaof" # by a child
is_rewritten() { cli info persistence | grep -q 'aof_rewrite_in_progress:0'; }
until_true is_rewritten
kill -INT $tracer
wait $tracer || fail "vigil trace: $? $(cat "$scratch/trace-err")"
contains "$(cat "$scratch/summary")" '"status":"ok"'
contains "$(cat "$scratch/trace")" '"name":"bio_' '"name":"waits at condition ' '"name":"holds mutex ' '"ph":"s"'
if command -v python3 >/dev/null; then
    python3 -m json.tool "$scratch/trace" >/dev/null || fail "the trace is no JSON"
fi
expect 0 "$vigil" show $pid
contains "$out" "vigil: process $pid (redis-server)" "at bioProcessBackgroundJobs+0x"

cli shutdown nosave 2>/dev/null
wait $pid
status=$?
[ $status = 0 ] || fail "redis-server ended with $status: $(cat "$scratch/log")"
[ -s "$scratch/profile" ] || fail "there is no profile"
verdict
