#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Scripts that lock themselves, in several shells: by --until-exit, as with `flock 9`, and by running again under vigil.
. "$(dirname "$0")/common.sh"
. "$here/locking.bash"
export vigil name scratch

# script FILE: the lines on standard input, as a script of $shell.
script() { { printf '#!%s\n' "$shell" && cat; } >"$scratch/$1" && chmod +x "$scratch/$1"; }
# holder: of the lock, the process that is shown.
holder() { "$vigil" lock "$name" --timeout 0.01 -- true 2>&1 | sed -n 's/.* by pid \([0-9]*\).*/\1/p'; }
is_held() { ! "$vigil" lock "$name" --try -- true; }
can_be_taken() { "$vigil" lock "$name" --try -- true; }
# background: the processes of vigil that hold the lock for another one.
background() { pgrep -f "^$vigil lock $name.* --until-exit"; }
no_background() { ! background; }

in_shell() {
    # Held until the script ends.
    script until <<'END'
"$vigil" lock "$name" --until-exit $$ || exit
echo $$ >"$1.pid" && mv "$1.pid" "$1.begun"
until [ -e "$1" ]; do sleep 0.01; done
exit 5
END
    run_until() { # FILE
        "$scratch/until" "$1" &
        script=$!
        until_true [ -e "$1.begun" ]
    }
    local file=$scratch/at-${shell##*/}
    run_until "$file-one"
    expect 124 "$vigil" lock "$name" --try -- true
    [ "$(holder)" = "$(cat "$file-one.begun")" ] || fail "$shell: the holder is shown as $(holder)"
    expect 124 "$vigil" lock "$name" --timeout 0.01 -- true
    contains "$err" "$scratch/until"
    "$vigil" lock "$name" -- touch "$file-next" &
    until_true in_line 1 "$name"
    [ ! -e "$file-next" ] || fail "$shell: two at once"
    touch "$file-one"
    wait $script
    [ $? = 5 ] || fail "$shell: the script's exit status is $?"
    wait
    [ -e "$file-next" ] || fail "$shell: the next one did not run"
    until_true no_background
    # However it ends. The lock was not held by a process that died: nothing is said to the next one.
    for signal in KILL TERM HUP; do
        run_until "$file-$signal"
        is_held || fail "$shell: it is not held"
        kill -$signal "$script"
        { wait $script; } 2>/dev/null
        until_true can_be_taken
        expect 0 "$vigil" lock "$name" --on-owner-died fail -- true
    done
    # Also in a subshell, for another process, and shared.
    "$scratch/until" "$file-sub" &
    script=$!
    until_true [ -e "$file-sub.begun" ]
    touch "$file-sub"
    wait $script
    until_true can_be_taken
    sleep 1000 &
    sleeper=$!
    expect 0 "$vigil" lock "$name" --until-exit $sleeper
    [ "$(holder)" = $sleeper ] || fail "$shell: the holder is shown as $(holder)"
    kill -KILL $sleeper
    { wait $sleeper; } 2>/dev/null
    until_true can_be_taken
    sleep 1000 &
    sleeper=$!
    expect 0 "$vigil" lock "$name" --shared --until-exit $sleeper
    expect 0 "$vigil" lock "$name" --shared --try -- true
    expect 124 "$vigil" lock "$name" --try -- true
    kill -KILL $sleeper
    { wait $sleeper; } 2>/dev/null
    until_true can_be_taken
    until_true no_background

    # It keeps nothing of the script open: a pipeline ends with the script, and so does what reads its errors.
    script pipe <<'END'
exec 3>&1 4>"$1.four"
"$vigil" lock "$name" --until-exit "$2" || exit
echo out
echo err >&2
END
    sleep 1000 &
    sleeper=$!
    expect 0 timeout 60 bash -c '"$0" "$1" "$2" 2>&1 | cat' "$scratch/pipe" "$file-pipe" $sleeper
    [ "$out" = $'out\nerr' ] || fail "$shell: in a pipeline: $out"
    is_held || fail "$shell: not held"
    if lsof=$(find /proc/"$(background)"/fd -lname "$scratch*" -printf '%l\n' 2>/dev/null) && [ -n "$lsof" ]; then
        fail "$shell: kept open: $lsof"
    fi
    [ "$(readlink /proc/"$(background)"/cwd)" = / ] || fail "$shell: it keeps a folder busy"
    kill -KILL $sleeper
    { wait $sleeper; } 2>/dev/null
    until_true can_be_taken

    # The self-locking script.
    script self <<'END'
case " $VIGIL_LOCKS_HELD" in *" $name:"*) ;; *) exec "$vigil" lock "$name" -- "$0" "$@" ;; esac
echo $$ >"$1.pid" && mv "$1.pid" "$1.begun"
until [ -e "$1" ]; do sleep 0.01; done
echo "$2"
exit 6
END
    "$scratch/self" "$file-self" "two words" >"$file-self.out" &
    script=$!
    until_true [ -e "$file-self.begun" ]
    expect 124 "$vigil" lock "$name" --try -- true
    "$scratch/self" "$file-again" "" &
    until_true in_line 1 "$name"
    [ ! -e "$file-again.begun" ] || fail "$shell: two at once"
    touch "$file-self" "$file-again"
    wait $script
    [ $? = 6 ] || fail "$shell: the script's exit status is $?"
    [ "$(cat "$file-self.out")" = "two words" ] || fail "$shell: the script printed $(cat "$file-self.out")"
    wait
    [ -e "$file-again.begun" ] || fail "$shell: the next one did not run"
    # A lock of a similar name is another one.
    rm -f "$file"-*
    touch "$file-nested"
    expect 6 "$vigil" lock "$name-x" -- "$vigil" lock "x$name" -- timeout 60 "$scratch/self" "$file-nested" ""
    expect 6 "$vigil" lock "$name-x" -- timeout 60 "$scratch/self" "$file-nested" ""
    "$vigil" rm "x$name"
}
for shell in bash dash "busybox sh"; do
    read -r -a words <<<"$shell"
    path=$(command -v "${words[0]}") || { echo "not here: $shell" && continue; }
    shell="$path ${words[1]-}"
    shell=${shell% }
    in_shell
done

# Without the lock: the exit statuses are those of vigil lock, and the script does not go on.
shell=$(command -v bash)
script limited <<'END'
"$vigil" lock "$name" --until-exit $$ "$@" || exit
touch "$scratch/wrong"
END
"$vigil" lock "$name" -- "$hold" "$scratch/held" &
until_true [ -e "$scratch/held.begun" ]
expect 124 "$scratch/limited" --try
[ -z "$out$err" ] || fail "--try says $out$err"
expect 124 "$scratch/limited" --timeout 0.05
contains "$err" "$name" "held for " "$hold $scratch/held" "gave up"
expect 9 "$scratch/limited" -n -E 9
expect 9 "$scratch/limited" -w 0.05 -E 9
expect 124 "$scratch/limited" --try --json
contains "$err" '"status":"timed-out"'
until_true no_background

# A signal while it waits: it ends by that, and its background process with it.
waiting_lock() { # FILE: vigil lock --until-exit waits in the background, as the only child of a process of its own
    "$locking" end "$1" "$vigil" lock "$name" --until-exit $$ --wait-status 2>"$1.said" &
    until_true grep -q "1st in line of 1" "$1.said"
}
for signal in INT TERM HUP KILL; do
    waiting_lock "$scratch/end-$signal"
    kill -$signal "$(pid_in "$scratch/end-$signal")"
    until_true has_line "$scratch/end-$signal" "signal $(kill -l $signal)"
    until_true no_background
    until_true in_line 0 "$name"
done
# Ctrl-C reaches both of them.
build terminal
mkfifo "$scratch/keys"
"$terminal" "$scratch/screen" env TERM=xterm "$locking" end "$scratch/interrupted" \
    "$vigil" lock "$name" --until-exit $$ <"$scratch/keys" &
exec 8>"$scratch/keys"
until_true grep -q "1st in line of 1" "$scratch/screen"
printf '\003' >&8
until_true has_line "$scratch/interrupted" "signal 2"
exec 8>&-
until_true no_background
until_true in_line 0 "$name"
# The background process alone is killed while it waits.
waiting_lock "$scratch/end-child"
kill -KILL "$(pgrep -P "$(pid_in "$scratch/end-child")")"
until_true has_line "$scratch/end-child" "exit 137"
until_true in_line 0 "$name"
# The process ends while vigil waits for the lock: then there is nothing to hold it for.
"$scratch/limited" --wait-status 2>"$scratch/said" &
script=$!
until_true grep -q "1st in line of 1" "$scratch/said"
kill -KILL $script
{ wait $script; } 2>/dev/null
touch "$scratch/held"
until_true no_background
until_true can_be_taken
wait
[ ! -e "$scratch/wrong" ] || fail "a script went on without the lock"

# A process that is not there, and wrong usage.
sleep 0 &
gone=$!
wait $gone
expect 125 "$vigil" lock "$name" --until-exit $gone
contains "$err" "--until-exit: there is no process $gone"
expect 125 "$vigil" lock "$name" --until-exit 99999999999
for bad in "" x -1 0; do
    expect 125 "$vigil" lock "$name" --until-exit "$bad"
done
expect 125 "$vigil" lock "$name" --until-exit
expect 125 "$vigil" lock "$name" --until-exit $$ -- true
contains "$err" "runs no command"
expect 0 "$vigil" lock "$name" echo --until-exit # the command's own
[ "$out" = --until-exit ] || fail "the command printed $out"
can_be_taken || fail "a wrong call has left the lock"

# A holder that died: the script is told, or refused.
die() {
    rm -f "$scratch"/die*
    "$vigil" lock "$name" -- "$hold" "$scratch/die" 2>/dev/null &
    until_true [ -e "$scratch/die.begun" ]
    kill -KILL $!
    { wait $!; } 2>/dev/null
    until_true is_gone "$(cat "$scratch/die.begun")"
}
die
expect 125 "$scratch/limited" --on-owner-died fail
contains "$err" "was killed while holding it"
[ ! -e "$scratch/wrong" ] || fail "the script went on"
expect 0 "$scratch/limited"
contains "$err" "was killed while holding it"
until_true can_be_taken
expect 0 "$vigil" lock "$name" --on-owner-died fail -- true
until_true no_background
# The background process is killed while it holds the lock: the next one is told.
sleep 1000 &
sleeper=$!
expect 0 "$vigil" lock "$name" --until-exit $sleeper
kill -KILL "$(background)"
until_true no_background
expect 0 "$vigil" lock "$name" -- printenv VIGIL_OWNER_DIED
contains "$err" "was killed while holding it"
kill $sleeper
verdict
