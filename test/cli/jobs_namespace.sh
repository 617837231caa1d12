#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A holder in another pid namespace, which shares /dev/shm: its pid is of no use here, and it is said so.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

inside=(unshare --pid --fork --kill-child)
[ "$(id -u)" = 0 ] || inside=(unshare --user --map-current-user --pid --fork --kill-child)
if ! timeout 20 "${inside[@]}" true 2>/dev/null; then
    echo "skipped: this system does not let us have a pid namespace" >&2
    exit 77
fi

# Locks exclude each other across namespaces.
"${inside[@]}" "$vigil" lock "$name" -- "$hold" "$scratch/inside" &
until_true [ -e "$scratch/inside.begun" ]
expect 124 "$vigil" lock "$name" --try -- true
expect 3 "$vigil" rm "$name"

# The holder is marked; there is no advice to act on its pid.
expect 124 "$vigil" lock "$name" --timeout 30ms -- true
contains "$err" "held for " "another pid namespace"
[[ $err != *kill* ]] || fail "the advice is to kill it: $err"
expect 0 "$vigil" show "$name"
contains "$out" "another pid namespace"
[[ $out != *kill\ * ]] || fail "the advice is to kill it: $out"
"$vigil" lock "$name" --wait-status -- touch "$scratch/next" 2>"$scratch/said" &
until_true grep -q "1st in line of 1" "$scratch/said"
grep -q "another pid namespace" "$scratch/said" || fail "not marked: $(cat "$scratch/said")"
expect 0 "$vigil" doctor "$name"
[[ $out$err != *kill\ * ]] || fail "the advice is to kill it: $out$err"
[ ! -e "$scratch/next" ] || fail "two at once"
touch "$scratch/inside"
wait
[ -e "$scratch/next" ] || fail "the waiter did not run"

# A waiter there gets it when a holder here has ended.
"$vigil" lock "$name" -- "$hold" "$scratch/outside" &
until_true [ -e "$scratch/outside.begun" ]
"${inside[@]}" "$vigil" lock "$name" -- touch "$scratch/inner" &
until_true in_line 1 "$name"
touch "$scratch/outside"
wait
[ -e "$scratch/inner" ] || fail "the waiter in the namespace did not run"

# The whole namespace is killed: the next one here gets the lock, and is told.
"${inside[@]}" "$vigil" lock "$name" -- "$hold" "$scratch/killed" &
until_true [ -e "$scratch/killed.begun" ]
kill -KILL $!
{ wait; } 2>/dev/null
expect 0 "$vigil" lock "$name" --timeout 1m -- printenv VIGIL_OWNER_DIED
contains "$err" "was killed while holding it" "$hold"
# And --until-exit holds for a process of its own namespace.
cat >"$scratch/script" <<'END'
"$1" lock "$2" --until-exit $$ || exit
echo >"$3.begun"
until [ -e "$3" ]; do sleep 0.01; done
END
"${inside[@]}" sh "$scratch/script" "$vigil" "$name" "$scratch/until" &
until_true [ -e "$scratch/until.begun" ]
expect 124 "$vigil" lock "$name" --try -- true
touch "$scratch/until"
wait
expect 0 "$vigil" lock "$name" --timeout 1m -- true
verdict
