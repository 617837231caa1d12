#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# xz with several threads: what it packs on Vigil's locks is what it packs without them, and comes back whole.
. "$(dirname "$0")/common.sh"
command -v xz >/dev/null || { echo "no xz"; exit 77; }

# A few megabytes that can be packed, but are not all the same.
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%d line %d of many\n", i * 7919 % 100003, i }' >"$scratch/text"
xz -T4 --block-size=256KiB -1 -c "$scratch/text" >"$scratch/without.xz" || fail "xz alone"
"$vigil" run --profile="$scratch/profile" -- xz -T4 --block-size=256KiB -1 -c "$scratch/text" >"$scratch/with.xz" ||
    fail "xz"
cmp "$scratch/without.xz" "$scratch/with.xz" || fail "it packs differently"
"$vigil" run -- xz -T4 -d -c "$scratch/with.xz" | cmp - "$scratch/text" || fail "it does not come back whole"
grep -q "^vigil: profile of process .*(xz)" "$scratch/profile" || fail "no profile: $(cat "$scratch/profile")"
verdict
