#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test.sh - every test in every build, one line for each build, and the counts at the end.
#
# A stage is one preset of CMakePresets.json: configure, build, ctest. To repeat one by hand, asan say:
#     cmake --preset asan && cmake --build --preset asan && ctest --preset asan
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=${JOBS:-$(nproc)}
logs=build/log
mkdir -p "$logs"
passed=0 failed=0 skipped=0
unset MAKEFLAGS MAKELEVEL # of the make that started us: not for the makes below

# Sanitizers of this age want their shadow memory where address randomisation may put something else.
steady=""
setarch -R true 2>/dev/null && steady="setarch -R"

run_preset() {
    cmake --preset "$1" -DVIGIL_WERROR=ON && cmake --build --preset "$1" -j "$jobs" || return
    rm -f "build/$1/$failed_tests"
    $steady ctest --preset "$1" -j $((jobs + 3)) --no-tests=error && return # three more: many tests mostly wait
    only_of_others "build/$1/$failed_tests" && $steady ctest --preset "$1" --rerun-failed
}

# Tests of pages in browsers and with etcd depend on programs of others. If no other test has failed, they are run once
# more, one at a time, and the stage says so, with what the first run said. Not web.self and web.self_demo: a planted
# bug must be found each time. Nor the storm of a cluster: its second run would have other faults.
failed_tests=Testing/Temporary/LastTestsFailed.log
may_run_again='^[0-9]+:(web\.(chromium|firefox|screenshots)|remote\..*)$'
only_of_others() { [ -s "$1" ] && ! grep -qvE "$may_run_again" "$1" && ! grep -q ':remote\.storm$' "$1"; }

# outcomes LOG: the last of each test, by ctest's lines.
outcomes() { sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#([0-9]+): ([^ ]+) (.*)/\1 \2 \3/p' "$1" | tac | sort -u -s -n -k 1,1; }
# count PATTERN LOG: how many tests ended so.
count() { outcomes "$2" | grep -cE "$1"; }
# ran_twice LOG
ran_twice() { sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*/\1/p' "$1" | sort | uniq -d | tr '\n' ' '; }

# progress TITLE: on a terminal, show how far ctest is.
progress() {
    [ -t 1 ] || exec cat >/dev/null
    local line
    while IFS= read -r line; do
        [[ $line =~ ^\ *([0-9]+/[0-9]+)\ Test ]] && printf '\r%-52s %s ' "$1" "${BASH_REMATCH[1]}"
    done
    printf '\r%-52s ' "$1"
}

# what_failed LOG: the failed tests' output or, if it did not come that far, the end of the build.
what_failed() {
    echo "---- from $1"
    if grep -q '^Test project' "$1"; then
        sed '1,/^Test project/d' "$1" | grep -vE '^ *Start +[0-9]+: | Passed ' | tail -n 200
    else
        tail -n 50 "$1"
    fi
    echo "----"
}

# stage PRESET TITLE COMMAND...: run it if the commands it needs are there.
stage() {
    local preset=$1 title=$2 log=$logs/$1.log start=$SECONDS command ok p s f
    shift 2
    printf '%-52s ' "$title"
    for command in "$@"; do
        if ! command -v "$command" >/dev/null; then
            echo "skipped: no $command"
            skipped=$((skipped + 1))
            return
        fi
    done

    run_preset "$preset" 2>&1 | tee "$log" | progress "$title"
    ok=$((PIPESTATUS[0] == 0))
    p=$(count ' Passed ' "$log") s=$(count '\*\*\*Skipped' "$log")
    f=$(($(count '' "$log") - p - s))
    [ $ok = 1 ] || [ $f != 0 ] || f=1 # it did not build, or has no tests
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))

    printf '%4d s  %3d passed, %d failed' $((SECONDS - start)) "$p" "$f"
    [ "$s" = 0 ] || printf ', %d skipped' "$s"
    [ -z "$(ran_twice "$log")" ] || printf '; run once more: %s' "$(ran_twice "$log")"
    echo
    if [ $f != 0 ] || [ -n "$(ran_twice "$log")" ]; then what_failed "$log"; fi
}

stage release "gcc, as shipped: all tests, simulator, install" gcc
stage clang   "clang: unit tests, fuzzing against the model"   clang
stage asan    "address and undefined-behaviour sanitizers"     gcc
stage tsan    "thread sanitizer"                               gcc
stage aarch64 "aarch64 under qemu"                             aarch64-linux-gnu-gcc qemu-aarch64
stage musl    "musl"                                           musl-gcc
stage posix   "posix primitives: unit tests without segments"  gcc
headers=wasi-libc # not a command: skipped
[ ! -f /usr/include/wasm32-wasi/stdio.h ] || headers=true
stage wasm    "WebAssembly in Node: unit tests of the core"    clang-19 wasm-ld-19 node "$headers"

echo "$((SECONDS / 60)) min $((SECONDS % 60)) s; logs in $logs"
echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
[ $failed = 0 ]
