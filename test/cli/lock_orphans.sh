#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vigil lock and vigil sem are killed: what their commands have started keeps the next one waiting; nothing else does.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"

# What a command starts. child FILE: until FILE exists, or the test is over. FILE.begun exists from its beginning,
# FILE.ended from its end.
child=$scratch/child
cat >"$child" <<'END'
#!/bin/sh
echo >"$1.begun"
until [ -e "$1" ] || [ ! -d "${1%/*}" ]; do sleep 0.01; done
echo >"$1.ended"
END
chmod +x "$child"

# orphan FILE ARGUMENT...: that child runs, and the vigil is dead whose command has started it.
orphan() {
    local file=$1
    shift
    "$vigil" "$@" -- sh -c '"$0" "$1" & wait' "$child" "$file" 2>/dev/null &
    until_true [ -e "$file.begun" ]
    kill -KILL $!
    { wait $!; } 2>/dev/null
}
runs_still="processes that a killed holder started still run"
was_killed="was killed while holding it"

# keeps KILLED NEXT: the arguments of the vigil that is killed, and of the one that has to wait for what that has left.
# What the latter says is in $said.
keeps() {
    local file=$scratch/orphan-$RANDOM killed next
    read -r -a killed <<<"$1"
    read -r -a next <<<"$2"
    orphan "$file" "${killed[@]}"
    expect 3 "$vigil" rm "$name"
    contains "$err" "$runs_still"
    expect 124 "$vigil" "${next[@]}" --try -- touch "$scratch/wrong"
    [ -z "$err" ] || fail "a process that only tries need not be told: $err"
    expect 124 "$vigil" "${next[@]}" --timeout 30ms -- touch "$scratch/wrong"
    contains "$err" "$name" "$runs_still"
    "$vigil" "${next[@]}" --wait-status -- test -e "$file.ended" 2>"$file.said" &
    until_true grep -q "$runs_still" "$file.said"
    touch "$file"
    wait $! || fail "$2 has not waited for what $1 has left"
    [ "$(grep -c "$runs_still" "$file.said")" = 1 ] || fail "not said once: $(cat "$file.said")"
    said=$(cat "$file.said")
    [ ! -e "$scratch/wrong" ] || fail "$2: a command has run that should not have"
    until_true is_free "$name"
}
keeps "lock $name" "lock $name"
contains "$said" "$was_killed" # also after others have tried in vain
keeps "lock $name --fair" "lock $name --fair"
contains "$said" "$was_killed"
keeps "lock $name" "lock $name --shared"
contains "$said" "$was_killed"
expect 0 "$vigil" lock "$name" -- true # which clears that
keeps "lock $name --shared" "lock $name"
[[ $said != *"last holder"* ]] || fail "a killed reader has left nothing half done: $said"
expect 0 "$vigil" rm "$name"
keeps "sem $name --slots 1" "sem $name"

# Of two slots one is free.
expect 0 "$vigil" rm "$name"
orphan "$scratch/slot" sem "$name" --slots 2
expect 0 "$vigil" sem "$name" -- true
expect 124 "$vigil" sem "$name" -- "$vigil" sem "$name" --timeout 30ms -- true
touch "$scratch/slot"
expect 0 "$vigil" sem "$name" -- "$vigil" sem "$name" -- true
expect 0 "$vigil" rm "$name"

# Sharers share with what a killed sharer has left, too.
orphan "$scratch/reader" lock "$name" --shared
expect 0 "$vigil" lock "$name" --shared -- true
expect 124 "$vigil" lock "$name" --try -- true
touch "$scratch/reader"
expect 0 "$vigil" lock "$name" -- true

# Meanwhile waiters are in line as always.
orphan "$scratch/order" lock "$name"
"$vigil" lock "$name" --fair --wait-status -- sh -c 'echo first >>"$0"' "$scratch/log" 2>"$scratch/first" &
until_true grep -q "$runs_still" "$scratch/first"
"$vigil" lock "$name" --fair -- sh -c 'echo second >>"$0"' "$scratch/log" &
until_true in_line 1 "$name"
touch "$scratch/order"
wait
[ "$(cat "$scratch/log")" = $'first\nsecond' ] || fail "the order was $(cat "$scratch/log")"

# A process that is interrupted or killed while it waits for that leaves no trace; the next one is told of the death.
for signal in INT TERM KILL; do
    orphan "$scratch/$signal" lock "$name"
    "$locking" end "$scratch/end-$signal" "$vigil" lock "$name" --wait-status -- touch "$scratch/wrong" \
        2>"$scratch/said-$signal" &
    until_true grep -q "$runs_still" "$scratch/said-$signal"
    kill -$signal "$(pid_in "$scratch/end-$signal")"
    until_true has_line "$scratch/end-$signal" "signal $(kill -l $signal)"
    [ $signal = KILL ] || is_free "$name" || fail "$signal has left a trace: $("$vigil" show "$name")"
    expect 124 "$vigil" lock "$name" --try -- touch "$scratch/wrong"
    touch "$scratch/$signal"
    expect 0 "$vigil" lock "$name" -- printenv VIGIL_OWNER_DIED
    contains "$err" "$was_killed"
done
# So is the process after one whose command could not be run.
orphan "$scratch/none" lock "$name"
touch "$scratch/none"
expect 127 "$vigil" lock "$name" -- ./no-such-command
expect 0 "$vigil" lock "$name" -- printenv VIGIL_OWNER_DIED
[ ! -e "$scratch/wrong" ] || fail "a command has run that should not have"

# One that is left, and wants the same lock, would wait for itself: it is told. One of two slots is enough for it.
left_wants() { # STATUS KILLED NEXT
    local status killed next
    read -r -a killed <<<"$2"
    read -r -a next <<<"$3"
    "$vigil" "${killed[@]}" -- sh -c '(echo >"$0.begun"; until [ -e "$0" ]; do sleep 0.01; done
        "$@" -- true 2>"$0.said"; echo $? >"$0.status") & wait' "$scratch/self" "$vigil" "${next[@]}" 2>/dev/null &
    until_true [ -e "$scratch/self.begun" ]
    kill -KILL $!
    { wait $!; } 2>/dev/null
    touch "$scratch/self"
    until_true [ -s "$scratch/self.status" ]
    read -r status <"$scratch/self.status"
    [ "$status" = "$1" ] || fail "$2, then $3: $status instead of $1, $(cat "$scratch/self.said")"
    [ "$status" = 0 ] || contains "$(cat "$scratch/self.said")" "would now wait for itself"
    rm "$scratch"/self*
}
left_wants 125 "lock $name" "lock $name"
left_wants 125 "lock $name" "lock $name --shared"
left_wants 125 "lock $name --shared" "lock $name"
left_wants 0 "lock $name --shared" "lock $name --shared"
left_wants 125 "sem $name-one --slots 1" "sem $name-one"
left_wants 0 "sem $name-two --slots 2" "sem $name-two"
expect 0 "$vigil" lock "$name" -- true

# What is left behind by a command that has ended keeps no other process waiting, whatever the command has died of.
for ending in "exit 0" "exit 3" 'kill -KILL $$'; do
    for held in "lock $name" "lock $name --shared" "sem $name-sem --slots 1"; do
        read -r -a words <<<"$held"
        "$vigil" "${words[@]}" -- sh -c '"$0" "$1" & until [ -e "$1.begun" ]; do sleep 0.01; done; eval "$2"' \
            "$child" "$scratch/daemon" "$ending"
        expect 0 "$vigil" "${words[@]}" --try -- true
        [ "${words[0]}" = sem ] || expect 0 "$vigil" lock "$name" --try -- true
        [ ! -e "$scratch/daemon.ended" ] || fail "it was not left behind"
        touch "$scratch/daemon"
        until_true [ -e "$scratch/daemon.ended" ]
        rm "$scratch"/daemon*
    done
done

# The command inherits one descriptor of each lock, out of the way of those to which scripts give numbers; if so few are
# allowed that there is none, another.
inherited() { find /proc/self/fd -lname '*/shm/*' -printf '%f\n' | sort -n | awk '$1 > 2'; }
export -f inherited
mine=$(inherited | wc -l) # of the caller
expect 0 "$vigil" lock "$name" -- "$vigil" lock "$name-other" -- bash -c inherited
[ "$(wc -l <<<"$out")" = $((mine + 2)) ] || fail "these are inherited: $out"
[ "$(awk '$1 > 9' <<<"$out" | wc -l)" -ge 2 ] || fail "these are in the way: $out"
expect 0 with_descriptors 24 "$vigil" lock "$name" -- bash -c inherited
[ "$(wc -w <<<"$out")" = 1 ] || fail "with few descriptors these are inherited: $out"
verdict
