#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# soak.sh - look longer than the tests do: random schedules in the simulator, stress with and without the thread
# sanitizer, and fuzzing, a third of SOAK_MINUTES (10) each. Ends at the first failure and says how to repeat it.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
share_s=$((${SOAK_MINUTES:-10} * 20))
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

build tsan
echo "Stress: over and over, $share_s s"
rounds=0
end=$((SECONDS + share_s))
while [ $SECONDS -lt $end ]; do
    for preset in release tsan; do
        $steady ctest --preset $preset -L stress --output-on-failure >build/log/soak-stress.log 2>&1 ||
            { cat build/log/soak-stress.log; exit 1; }
    done
    rounds=$((rounds + 1))
done
echo "$rounds rounds"

if command -v clang >/dev/null; then
    build clang
    cd build/clang/test/fuzz
    for target in line atomics; do
        echo "Fuzzing $target: $((share_s / 2)) s"
        $steady ./fuzz_$target -seed="$seed" -max_total_time=$((share_s / 2)) -max_len=1024 -timeout=20 >fuzz.log 2>&1 ||
            { tail -n 60 fuzz.log; exit 1; }
        tail -n 1 fuzz.log
    done
else
    echo "Fuzzing: skipped, no clang"
fi
echo "Soaked without a failure."
