#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Several users: names are each user's own, a path is for all that may read and write the file, and root sees all.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" != 0 ] || ! "${nobody[@]}" "$vigil" --version >/dev/null 2>&1; then
    echo "skipped: another user is needed, and so root"
    exit 77
fi
clean_up() {
    "${nobody[@]}" "$vigil" rm --force "$name" 2>/dev/null
    finish
}
trap clean_up EXIT
chmod 777 "$scratch"

# A name: both have it at once, and root sees both.
"${nobody[@]}" "$vigil" lock "$name" -- "$hold" "$scratch/theirs" &
until_true [ -e "$scratch/theirs.begun" ]
until_true has_described "$(cat "$scratch/theirs.begun")" "nobody:$name"
expect 0 "$vigil" lock "$name" --try -- true
expect 0 "$vigil" ls --all-users "*:$name"
contains "$out" "root:$name" "nobody:$name"
expect 0 "$vigil" ls "$name"
[[ $out != *nobody* ]] || fail "without --all-users: $out"
expect 0 "$vigil" show "nobody:$name"
contains "$out" "nobody:$name: vigil lock" " holds " "$(cat "$scratch/theirs.begun")"
expect 0 "$vigil" show "65534:$name" --json
contains "$out" "\"command_pid\":$(cat "$scratch/theirs.begun")"
expect 0 "$vigil" top --once --all-users "nobody:$name"
contains "$out" "nobody:"
expect 3 "$vigil" show "nobody:$name-none"
expect 0 "${nobody[@]}" "$vigil" ls --all-users "*:$name"
[[ $out != *root* ]] || fail "another user sees the names of root: $out"
expect 3 "${nobody[@]}" "$vigil" show "root:$name"
contains "$err" "another user"
touch "$scratch/theirs"
wait

# A path: one at a time, in one line; and the death of one user's holder is told to the other.
path=$scratch/lock
install -m 0666 /dev/null "$path"
"${nobody[@]}" "$vigil" lock "$path" -- "$hold" "$scratch/first" 2>/dev/null &
until_true [ -e "$scratch/first.begun" ]
until_true has_described "$(cat "$scratch/first.begun")" "$path"
expect 124 "$vigil" lock "$path" --try -- true
expect 124 "$vigil" lock "$path" --timeout 10ms -- true
contains "$err" "by pid $(cat "$scratch/first.begun")"
"$vigil" lock "$path" -- sh -c "touch '$scratch/second'" 2>"$scratch/told" &
until_true in_line 1 "$path"
holder=$("$vigil" show "$path" --json | grep -o '"members":\[{[^}]*' | grep -o '"pid":[0-9]*' | head -1)
kill -KILL "${holder#*:}"
until_true [ -e "$scratch/second" ]
{ wait; } 2>/dev/null
grep -q "was killed while holding it" "$scratch/told" || fail "not told: $(cat "$scratch/told")"

# The mode decides, and the error says so.
chmod 600 "$path"
expect 125 "${nobody[@]}" "$vigil" lock "$path" -- true
contains "$err" "permission denied" "user root" "mode 0600"
verdict
