#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Jobs as people write them: cron, a deploy, many commands over few slots, a cache, stages, a pipeline, and under other
# tools: timeout and env.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
export vigil name scratch

# A cron job that must not overlap: the second one ends at once, and is silent.
cat >"$scratch/cron" <<'END'
#!/bin/sh
exec "$vigil" lock "$name-cron" --try -- "$@"
END
chmod +x "$scratch/cron"
"$scratch/cron" "$hold" "$scratch/minute" &
first=$!
until_true [ -e "$scratch/minute.begun" ]
expect 124 "$scratch/cron" touch "$scratch/overlap"
[ -z "$out$err" ] || fail "cron would send this by mail: $out$err"
[ ! -e "$scratch/overlap" ] || fail "the jobs overlap"
touch "$scratch/minute"
wait $first || fail "the first job: $?"
expect 0 "$scratch/cron" echo next
[ "$out" = next ] || fail "the next job printed $out"

# A deploy with a deadline: the message names the holder, by the pid of the command, and for how long.
"$vigil" lock "$name-deploy" -- "$hold" "$scratch/deploy" &
until_true [ -e "$scratch/deploy.begun" ]
pid=$(cat "$scratch/deploy.begun")
until_true has_described "$pid" "$name-deploy"
expect 124 "$vigil" lock "$name-deploy" --timeout 50ms -- touch "$scratch/overlap"
contains "$err" "for $name-deploy; held for " " by pid $pid: $hold $scratch/deploy; gave up"
[[ $err =~ "held for "[0-9.]+\ (us|ms|s)" by pid" ]] || fail "how long is not said: $err"
expect 124 "$vigil" lock "$name-deploy" --timeout 50ms --json -- true
contains "$err" '"status":"timed-out"' "by pid $pid: $hold"
# A pid that can be acted on.
kill "$pid"
{ wait; } 2>/dev/null
expect 0 "$vigil" lock "$name-deploy" --try --on-owner-died fail -- true # the command was ended, but not its holder

# 200 commands over 4 slots, by xargs: never more than 4 at once, and all of them run.
: >"$scratch/log"
mkdir "$scratch/slots"
seq 200 | xargs -P 16 -I% "$vigil" sem "$name-four" --slots 4 -- "$locking" among 4 "$scratch/slots" "$scratch/log" ||
    fail "xargs: exit status $?"
[ "$(grep -c '^done' "$scratch/log")" = 200 ] || fail "only $(grep -c '^done' "$scratch/log") of 200 have run"
! grep 'too many' "$scratch/log" || fail "more than four at once"
until_true is_free "$name-four"

# A cache: readers see the old or the new content, and never half of it.
echo "old old" >"$scratch/cache"
write() { # VERSION: in two steps
    "$vigil" lock "$name-cache" -- sh -c 'printf "%s " "$1" >"$0"; sleep 0.005; echo "$1" >>"$0"' "$scratch/cache" "$1"
}
read_cache() {
    local i content
    for i in {1..25}; do
        content=$("$vigil" lock "$name-cache" --shared -- cat "$scratch/cache") || echo "failed" >>"$scratch/seen"
        [ "${content% *}" = "${content#* }" ] && [ -n "$content" ] || echo "half: $content" >>"$scratch/seen"
    done
}
: >"$scratch/seen"
for i in 1 2 3 4; do read_cache & done
for i in {1..20}; do write "v$i"; done
wait
[ ! -s "$scratch/seen" ] || fail "readers: $(cat "$scratch/seen")"
[ "$(cat "$scratch/cache")" = "v20 v20" ] || fail "the cache has $(cat "$scratch/cache")"
# Readers read at the same time: each waits inside for the other one.
meet() { "$vigil" lock "$name-cache" --shared -- sh -c 'touch "$0"; until [ -e "$1" ]; do sleep 0.01; done' "$@"; }
meet "$scratch/left" "$scratch/right" &
meet "$scratch/right" "$scratch/left" &
wait

# Three stages, one after the other, started in the wrong order.
expect 0 "$vigil" create "$name-stages" --length 64
stage() { # NUMBER
    "$vigil" wait "$name-stages" --until $(($1 - 1)) >/dev/null || echo "failed" >>"$scratch/stages"
    echo "stage $1" >>"$scratch/stages"
    "$vigil" store "$name-stages" "$1" --notify
}
waits() { "$vigil" ls "$name-stages" --json | grep -q "\"waiting\":$1,"; }
stage 3 &
stage 2 &
until_true waits 2
stage 1
"$vigil" wait "$name-stages" --until 3 >/dev/null
wait
[ "$(cat "$scratch/stages")" = $'stage 1\nstage 2\nstage 3' ] || fail "the stages: $(cat "$scratch/stages")"

# Locks in each other, always in the same order, in several processes.
: >"$scratch/log"
both() {
    local i
    for i in {1..20}; do
        "$vigil" lock "$name-a" -- "$vigil" lock "$name-b" -- "$locking" alone "$scratch/inside" "$scratch/log"
    done
}
both & both & both &
wait
[ "$(grep -c '^done' "$scratch/log")" = 60 ] || fail "only $(grep -c '^done' "$scratch/log") of 60 have run"
! grep 'not alone' "$scratch/log" || fail "two at once"

# In a pipeline: input, output and the exit status pass through; each part may have a lock.
expect 0 bash -o pipefail -c 'seq 10000 | "$vigil" lock "$name" -- sort -n | "$vigil" lock "$name-b" -- tail -n 1'
[ "$out" = 10000 ] || fail "the pipeline printed $out"
expect 3 bash -o pipefail -c 'echo | "$vigil" lock "$name" -- sh -c "cat; exit 3" | cat'
# The reader has gone: the command is ended by SIGPIPE, as without vigil, and the lock is free.
expect 0 timeout 60 bash -c '"$vigil" lock "$name" -- yes | head -n 1; echo "${PIPESTATUS[0]}"'
[ "$out" = $'y\n141' ] || fail "a pipeline whose reader has gone: $out"
expect 0 "$vigil" lock "$name" --try -- true

# Under timeout: while it waits, and while its command runs. SIGALRM tells timeout that the time is over.
over() { # STATUS CONDITION...: of the timeout in the background, whose time is over when that is true
    local want=$1 timeout=$! got
    shift
    until_true "$@"
    # Not while it is still in fork: it would end at once, without its child.
    until_true grep -q '^State:.S' "/proc/$timeout/status"
    kill -ALRM "$timeout"
    { wait "$timeout"; got=$?; } 2>/dev/null
    [ $got = "$want" ] || fail "exit status $got under timeout instead of $want"
}
"$vigil" lock "$name" -- "$hold" "$scratch/long" &
until_true [ -e "$scratch/long.begun" ]
for signal in TERM KILL; do
    timeout -s $signal 600 "$vigil" lock "$name" -- touch "$scratch/overlap" &
    over "$([ $signal = TERM ] && echo 124 || echo 137)" in_line 1 "$name"
    until_true in_line 0 "$name"
done
touch "$scratch/long"
wait
timeout 600 "$vigil" lock "$name" -- "$hold" "$scratch/ended" &
over 124 [ -e "$scratch/ended.begun" ]
expect 0 "$vigil" lock "$name" --try --on-owner-died fail -- true
timeout -s KILL 600 "$vigil" lock "$name" -- "$hold" "$scratch/killed" &
over 137 [ -e "$scratch/killed.begun" ]
expect 0 "$vigil" lock "$name" --timeout 1m -- printenv VIGIL_OWNER_DIED
contains "$err" "($hold $scratch/killed)" "was killed while holding it"
expect 124 "$vigil" lock "$name" -- timeout 0.1 sleep 1000
[ ! -e "$scratch/overlap" ] || fail "a command has run that should not have"

# Without an environment.
expect 0 env -i "$vigil" lock "$name" -- /usr/bin/env
[[ $out =~ ^VIGIL_LOCKS_HELD=$name:[0-9]+$ ]] || fail "the environment is $out"
expect 124 env -i "$vigil" lock "$name" -- env -i "$vigil" lock "$name" --timeout 20ms -- true # it cannot know
expect 0 env -i "$vigil" sem "$name-four" -- "$vigil" sem "$name-four" -- /bin/true
expect 0 env -i "$vigil" ls "$name*"
verdict
