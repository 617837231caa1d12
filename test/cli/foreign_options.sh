#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Options of flock, of sem of GNU parallel and of setlock: what to write instead. A subcommand may have gained one as an
# option of its own; then there is nothing to say: see flock_letters.sh.
. "$(dirname "$0")/common.sh"

# has SUBCOMMAND OPTION: it is its own, as its table in the source says.
has() {
    local option=${2#-}
    option=${option#-}
    [ ${#option} -gt 1 ] || { grep -q "{\"[a-z-]*\", '$option', " "$here/../../cli/$1.c" && return; }
    grep -q "{\"$option\", " "$here/../../cli/$1.c"
}

# instead SUBCOMMAND WORDS TEXT: those words are refused with that text, before any command is run.
instead() {
    local subcommand=$1 words text=$3
    read -r -a words <<<"$2"
    local option=${words[0]%%=*}
    [[ $option == --* ]] || option=${option:0:2} # -w5
    has "$subcommand" "$option" && return
    expect 125 "$vigil" "$subcommand" "$name" "${words[@]}" -- touch "$scratch/ran"
    [ "$err" = "vigil $subcommand: $text; see vigil $subcommand --help" ] || fail "$subcommand $2: $err"
    [ -z "$out" ] || fail "$subcommand $2: an error on stdout: $out"
}

while IFS='|' read -r subcommands words text; do
    for subcommand in $subcommands; do instead "$subcommand" "$words" "$text"; done
done <<'END'
lock|-e|flock's -e is not needed: a lock is exclusive without --shared
sem|-s|flock's -s is an option of vigil lock: a semaphore has --slots N
sem|--shared|flock's --shared is an option of vigil lock: a semaphore has --slots N
sem|-x|flock's -x is --slots 1
sem|-e|flock's -e is --slots 1
sem|--exclusive|flock's --exclusive is --slots 1
lock sem|--nb|flock's --nb is --try
lock sem|--nonblock|flock's --nonblock is --try
lock|--wait 5|flock's --wait T is --timeout T
lock|--wait=5|flock's --wait T is --timeout T
sem|--wait|sem's --wait is wait of the shell, after commands that were started with &
lock sem|-o|flock's -o is not needed: what the command has started may run on without it
lock sem|--close|flock's --close is not needed: what the command has started may run on without it
lock sem|-u|flock's -u is not needed: the lock or slot is free when the command ends
lock sem|--unlock|flock's --unlock is not needed: the lock or slot is free when the command ends
lock sem|-c true|flock's -c COMMAND is -- sh -c COMMAND
lock sem|--command true|flock's --command COMMAND is -- sh -c COMMAND
lock sem|-F|flock's -F is not available: vigil waits for the command to end
lock sem|--no-fork|flock's --no-fork is not available: vigil waits for the command to end
lock sem|--verbose|flock's --verbose is --wait-status, or --json
sem|--jobs=4|sem's --jobs N is --slots N
lock|-j 4|sem's -j N is --slots N of vigil sem
lock sem|--id x|sem's --id NAME is not needed: NAME is the first operand
lock sem|--semaphorename x|sem's --semaphorename NAME is not needed: NAME is the first operand
lock sem|--fg|sem's --fg is not needed: vigil returns when the command ends
lock sem|--bg|sem's --bg is & of the shell, after the command
lock sem|--st 5|sem's --st T is --timeout T, after which the command is not run
lock sem|--semaphoretimeout 5|sem's --semaphoretimeout T is --timeout T, after which the command is not run
lock sem|-N|setlock's -N is not needed: vigil waits without --try
lock sem|-X|setlock's -X is not needed: if that is not free, the status is 124
END
[ ! -e "$scratch/ran" ] || fail "the command was run"
[ -z "$("$vigil" ls --names "$name")" ] || fail "a lock was created"

# In JSON as well; other subcommands know nothing of it, and what is no tool's option is unknown as before.
expect 125 "$vigil" sem "$name" --jobs 4 --json -- true
contains "$err" '"event":"failed"' '"status":"usage"' "sem's --jobs N is --slots N"
expect 125 "$vigil" run --unlock -- true
contains "$err" "vigil run: unknown option --unlock"
expect 64 "$vigil" load "$name" -u
contains "$err" "vigil load: unknown option -u; see"
expect 125 "$vigil" lock "$name" -Z -- true
contains "$err" "vigil lock: unknown option -Z; see"
expect 125 "$vigil" lock "$name" --far -- true
contains "$err" "unknown option --far (did you mean --fair?)"

verdict
