#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# soak.sh - look longer than the tests do: random schedules in the simulator and of the recipes of remote/, stress
# with and without the thread sanitizer, and fuzzing, a third of SOAK_MINUTES (10) each; and 10,000 processes killed in
# each of two storms, and a million signals, which takes some minutes more; and SOAK_MINUTES each of faults on an etcd
# cluster, and of contention in Chromium and in Firefox. Ends at the first failure and says how to repeat it.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
jobs=${JOBS:-$(nproc)}
share_s=$((${SOAK_MINUTES:-10} * 20))
skipped=""
unset MAKEFLAGS MAKELEVEL
steady=""
setarch -R true 2>/dev/null && steady="setarch -R"

build() {
    mkdir -p build/log
    { cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs"; } >"build/log/soak-$1.log" 2>&1 ||
        { tail -n 50 "build/log/soak-$1.log"; exit 1; }
}

build release
sim=build/release/test/sim/sim_test
scenarios=$($sim --list | sed '/^$/,$d' | wc -l)
seed=$(date +%s)
echo "Simulator: $scenarios scenarios, random schedules from seed $seed, $share_s s"
$sim --random "$seed" --seconds $((share_s / scenarios + 1))

search=build/release/test/remote/remote_search
scenarios=$($search --list | sed '/^$/,$d' | wc -l)
echo "Recipes of the cluster: $scenarios scenarios, random schedules from seed $seed, $share_s s"
$search --random "$seed" --seconds $((share_s / scenarios + 1))

echo "Storm: 10000 kills, seed $seed"
build/release/test/storm/storm --kills 10000 --seed "$seed" --json build/storm.json

echo "Storm of the queue: 10000 kills, seed $seed"
build/release/test/storm/storm --queue --kills 10000 --seed "$seed" --json build/storm_queue.json

echo "Signals: a million, seed $seed"
build/release/test/stress_signals --seed "$seed" --signals 1000000

storm=test/remote/storm.sh # of a cluster
echo "Storm of a cluster: seed $seed, $((share_s * 3)) s"
status=0
cluster=build/release/test/remote/remote
VIGIL=$root/build/release/bin/vigil SERVE=$root/${cluster}_serve MEMBER=$root/${cluster}_member \
    $storm --seed "$seed" --minutes "${SOAK_MINUTES:-10}" || status=$?
[ $status = 0 ] || [ $status = 77 ] || exit 1 # 77: something is missing
[ $status = 0 ] || skipped+=" the storm of a cluster,"

build tsan
for preset in release tsan; do
    for stress in stress locks rwlocks; do
        echo "Stress of $stress, $preset: from seed $seed, $((share_s / 6)) s"
        $steady build/$preset/test/stress_$stress --seconds $((share_s / 6)) --seed "$seed"
    done
done

if command -v clang >/dev/null; then
    build clang
    cd build/clang/test/fuzz
    for target in line atomics; do
        echo "Fuzzing $target: $((share_s / 2)) s"
        $steady ./fuzz_$target -seed="$seed" -max_total_time=$((share_s / 2)) -max_len=1024 -timeout=20 \
            >fuzz.log 2>&1 || { tail -n 60 fuzz.log; exit 1; }
        tail -n 1 fuzz.log
    done
else
    echo "Fuzzing: skipped, no clang"
    skipped+=" fuzzing,"
fi
cd "$root"

echo "Browsers: contention of workers and a page, seed $seed, $((share_s * 3)) s in each"
status=0
web/build.sh >build/log/soak-web.log 2>&1 || status=$?
for browser in chromium firefox; do
    [ $status = 0 ] || break
    test/web/run.sh soak $((share_s * 3)) "$seed" $browser || status=$?
    [ $status != 77 ] || skipped+=" $browser,"
    [ $status != 77 ] || status=0
done
[ $status = 0 ] || [ $status = 75 ] || exit 1 # 75: npm fetches nothing
[ $status = 0 ] || skipped+=" browsers ($(tail -n 1 build/log/soak-web.log)),"
[ -z "$skipped" ] || echo "Skipped:${skipped%,}."
echo "Soaked without a failure${skipped:+, but not all of it}."
