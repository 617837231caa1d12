#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Names of locks: what is one, what is listed, removing those that nobody uses, and how much memory they take.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

# names_alone: runs this script again in a /dev/shm of its own, where no other process has names.
names_alone() {
    local alone=(unshare --mount --map-root-user bash -c 'mount -t tmpfs -o mode=1777 none /dev/shm && exec "$@"' bash)
    if "${alone[@]}" true 2>/dev/null; then
        NAMES_ALONE=1 "${alone[@]}" "$0" || fail "in a /dev/shm of its own: exit status $?"
    else
        echo "partly skipped: this system does not let us have a /dev/shm of our own" >&2
    fi
}

if [ -z "${NAMES_ALONE-}" ]; then
    # What is a name: a letter, a digit or _ first. -- before it changes nothing.
    for good in "$name" "${name}_.-" "0$name" "_$name"; do
        expect 0 "$vigil" lock "$good" -- true
        expect 0 "$vigil" ls --names "$good"
        [ "$out" = "$good" ] || fail "$good is listed as $out"
        expect 0 "$vigil" rm -- "$good"
        expect 0 "$vigil" ls --names "$good"
        [ -z "$out" ] || fail "$good is still there: $out"
        expect 3 "$vigil" rm -- "$good"
        contains "$err" "there is no lock or segment $good"
        expect 0 "$vigil" rm --force -- "$good"
    done
    for bad in "-$name" "--$name" "-f" ".$name" "$name x" "$name:1" "$name*" $'a\tb' "é$name"; do
        for call in lock sem; do
            err=$("$vigil" $call --timeout 1m -- "$bad" true 2>&1) && fail "vigil $call -- '$bad' succeeds"
            [ -n "$err" ] || fail "vigil $call -- '$bad' says nothing"
            err=$("$vigil" $call "$bad" -- true 2>&1) && fail "vigil $call '$bad' succeeds"
        done
        expect 3 "$vigil" rm -- "$bad"
        contains "$err" "invalid name"
    done

    # Odd files in the folder are not names, whatever they are called.
    user=$(id -u)
    odd=("/dev/shm/vigil-$user--f" "/dev/shm/vigil-$user-.$name" "/dev/shm/vigil-$user-$name x"
        "/dev/shm/vigil-$user-"$'a\nb' \
        "/dev/shm/vigil-$user.$name" "/dev/shm/vigil-${user}x-$name" "/dev/shm/vigil--$name" "/dev/shm/vigil-$name")
    for file in "${odd[@]}"; do
        [ ! -e "$file" ] || continue
        echo odd >"$file"
        expect 0 "$vigil" ls --names
        listed=$out
        rm "$file"
        while IFS= read -r line; do
            [[ $line =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]] || fail "listed with $file: $line"
            case $line in "$name" | *"x-$name" | *".$name" | a | b) fail "listed with $file: $line" ;; esac
        done <<<"${listed:-none}"
        [[ $'\n'$listed$'\n' != *$'\n-f\n'* ]] || fail "-f is listed"
    done
    names_alone
    verdict
fi

user=$(id -u) book=/dev/shm/vigil-$(id -u)
kilobytes() { du -k "$book" | cut -f 1; }

# Without names.
expect 0 "$vigil" ls
[ -z "$out" ] || fail "something is listed: $out"
expect 0 "$vigil" rm --unused
[ "$out" = "removed 0" ] || fail "rm --unused printed $out"
[ -z "$(ls /dev/shm)" ] || fail "there are files: $(ls /dev/shm)"

# One name takes 16 kB in all, however often it is used; 200 names take at most 16 kB each, and far less.
for i in 1 2 3; do "$vigil" lock one -- true; done
[ "$(kilobytes)" -le 16 ] || fail "one name takes $(kilobytes) kB"
for i in {1..199}; do "$vigil" lock "name-$i" -- true; done
[ "$("$vigil" ls --names | wc -l)" = 200 ] || fail "$("$vigil" ls --names | wc -l) names"
[ "$(kilobytes)" -le $((200 * 16)) ] || fail "200 names take $(kilobytes) kB"
[ "$(kilobytes)" -le 180 ] || fail "200 names take $(kilobytes) kB" # 384 bytes each, and what the file needs
[ "$(ls /dev/shm)" = "vigil-$user" ] || fail "there are other files: $(ls /dev/shm)"
# Names come and go without making the file larger.
before=$(kilobytes)
for i in {1..50}; do "$vigil" lock "other-$i" -- true && "$vigil" rm "other-$i"; done
[ "$(kilobytes)" -le $((before + 4)) ] || fail "names that are gone take memory: $before kB, then $(kilobytes) kB"

# rm --unused removes locks and semaphores that no process has open, and keeps those whose owner died.
"$vigil" lock held -- "$hold" "$scratch/held" &
"$vigil" lock shared --shared -- "$hold" "$scratch/shared" &
"$vigil" sem slots --slots 2 -- "$hold" "$scratch/slots" &
until_true [ -e "$scratch/held.begun" ]
until_true [ -e "$scratch/shared.begun" ]
until_true [ -e "$scratch/slots.begun" ]
"$vigil" lock died -- "$hold" "$scratch/died" 2>/dev/null &
until_true [ -e "$scratch/died.begun" ]
kill -KILL $!
{ wait $!; } 2>/dev/null
until_true is_gone "$(cat "$scratch/died.begun")"
"$vigil" lock orphans -- sh -c '(echo >"$0.begun"; until [ -e "$0" ]; do sleep 0.01; done) & wait' "$scratch/orphan" &
until_true [ -e "$scratch/orphan.begun" ]
kill -KILL $!
{ wait $!; } 2>/dev/null
"$vigil" create segment
"$vigil" sem free --slots 3 -- true
expect 0 "$vigil" rm --unused
[ "$out" = "removed 201" ] || fail "rm --unused printed $out"
expect 0 "$vigil" ls --names
[ "$out" = $'died\nheld\norphans\nsegment\nshared\nslots' ] || fail "after rm --unused there are $out"
expect 124 "$vigil" lock held --try -- true
expect 124 "$vigil" lock orphans --try -- true
touch "$scratch/orphan" "$scratch/held" "$scratch/shared" "$scratch/slots"
wait
expect 0 "$vigil" rm --unused --json
[[ $out =~ ^\{\"status\":\"ok\",\"removed\":[0-9]+\}$ ]] || fail "rm --unused --json printed $out"
expect 125 "$vigil" lock died --on-owner-died fail -- true
contains "$err" "was killed while holding it"
expect 0 "$vigil" lock died -- true # which settles that
expect 0 "$vigil" lock orphans -- true
expect 0 "$vigil" rm --unused
expect 0 "$vigil" ls --names
[ "$out" = segment ] || fail "left over: $out"
expect 64 "$vigil" rm --unused died
expect 64 "$vigil" rm --unused --force
verdict
