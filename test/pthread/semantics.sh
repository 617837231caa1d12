#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every function against what glibc documents: without Vigil, and with it, with and without the check and the profile.
. "$(dirname "$0")/common.sh"

[ "$("$vigil" run -- grep -c libvigil-pthread /proc/self/maps)" -gt 0 ] || fail "the library is not loaded"
expect 0 "$SEMANTICS"
for options in "" --check "--profile=$scratch/profile" "--check --profile=$scratch/profile --json"; do
    # shellcheck disable=SC2086 # several words
    expect 0 "$vigil" run $options -- "$SEMANTICS"
    contains "$out" "all is as documented"
done
[ -s "$scratch/profile" ] || fail "there is no profile"

if [ "$("$SEMANTICS" fences)" = "not registered" ]; then
    expect 0 "$vigil" run -- "$SEMANTICS" fences
    [ "$out" = registered ] || fail "the library has not asked for fences: $out"
fi
expect 0 "$vigil" run -- "$SEMANTICS" without-fences
[ "$out" = waited ] || [ "$out" = "there are no filters" ] || fail "without fences: $out"
verdict
