# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the tests of vigil lock and vigil sem, after common.sh.
# shellcheck disable=SC2154 # scratch, vigil: of common.sh

build locking

# A command to be run under a lock. hold FILE: until FILE exists; FILE.begun exists from its beginning, with its pid.
hold=$scratch/hold
cat >"$hold" <<'END'
#!/bin/sh
echo $$ >"$1.begin" && mv "$1.begin" "$1.begun"
until [ -e "$1" ]; do sleep 0.01; done
END
chmod +x "$hold"

# in_line COUNT NAME: so many wait for it. has_members COUNT NAME: so many processes have it open.
in_line() { [ "$("$vigil" show "$2" --json | grep -o '"asynchronous":' | wc -l)" = "$1" ]; }
has_members() { [ "$("$vigil" show "$2" --json | grep -o '"alive":true' | wc -l)" = "$1" ]; }

# is_free NAME: it has no holder, living or dead, and no waiter, and no living process has it open.
is_free() {
    local seen
    seen=$("$vigil" show "$1" --json) || return
    [[ $seen == *'"lines":['* && $seen != *'"for_ns":'* && $seen != *'"asynchronous":'* && $seen != *'"alive":true'* ]]
}

# pid_in LOG: of the process that said there that it has begun.
pid_in() { sed -n 's/^begun //p' "$1"; }
has_begun() { [ -n "$(pid_in "$1")" ]; }

# has_line FILE TEXT: it is one of the file's lines.
has_line() { grep -qx "$2" "$1"; }

# is_gone PID: there is no such process, or it is dead.
is_gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.[ZX]' "/proc/$1/status"; }
