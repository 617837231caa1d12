#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The completions: subcommands, options, values and names of segments, in each shell that is here.
. "$(dirname "$0")/common.sh"
completions=$here/../../cli/completion
PATH=$(dirname "$vigil"):$PATH
export ASAN_OPTIONS=detect_leaks=0 # how that stops a process sometimes never ends on zsh's terminal

expect 0 vigil create "$name-one"
expect 0 vigil create "$name-two"

# What is typed, and what should be among the proposals; a word with a "!" should not.
cases="\
vigil |lock sem create wait doctor help !--type
vigil not|notify !lock
vigil help do|doctor !demo
vigil load $name|$name-one $name-two
vigil wait --timeout 5s $name|$name-one $name-two
vigil wait --timeout=5s $name|$name-one $name-two
vigil wait $name-one $name|!$name-one
vigil rm $name-one $name-t|$name-two !$name-one
vigil doctor $name-one $name-t|$name-two !$name-one
vigil top $name-one $name-t|$name-two !$name-one
vigil demo $name-o|!$name-one
vigil bench $name-o|!$name-one
vigil create $name-o|!$name-one
vigil create $name-x --wai|--waiters
vigil lock x --timeout $completions/vigil.ba|!$completions/vigil.bash
vigil sem x --slots $completions/vigil.ba|!$completions/vigil.bash
vigil bench --only $completions/vigil.ba|!$completions/vigil.bash
vigil bench --svg $completions/vigil.ba|$completions/vigil.bash
vigil wait x --t|--timeout --type !--json
vigil wait x --un|--until
vigil wait --until 5 $name|$name-one $name-two
vigil store x 1 --not|--notify !--json
vigil wait x --type |i32 i64
vigil wait x --type=|i32 i64
vigil wait x --type=i6|i64 !i32
vigil load --type=i64 $name-o|$name-one !$name-two
vigil lock x --on-owner-died |continue fail
vigil lock $name-o|$name-one !$name-two
vigil lock x --fa|--fair !--try
vigil lock x --un|--until-exit
vigil lock x --con|--conflict-exit-code
vigil lock -w 5s -n $name-o|$name-one !$name-two
vigil lock -E 7 $name-o|$name-one !$name-two
vigil lock $completions/vigil.ba|$completions/vigil.bash
vigil sem -j 50% $name-o|$name-one !$name-two
vigil sem x --set|--set-slots !--slots
vigil rm $name-one $completions/vigil.ba|$completions/vigil.bash
vigil rm --un|--unused
vigil lock x -- vigi|vigil
vigil lock x --fair -- cat $completions/vigil.ba|$completions/vigil.bash
vigil run --pro|--profile !--json
vigil run --signal USR1 -- vigi|vigil
vigil run -- cat $completions/vigil.ba|$completions/vigil.bash
vigil run vigi|vigil
vigil trace x -o $completions/vigil.fi|$completions/vigil.fish
vigil trace x --output $completions/vigil.fi|$completions/vigil.fish"

# check SHELL FUNCTION: the function is called with a line and prints what the shell proposes, a word a line.
check() {
    local line wanted word proposals
    while IFS='|' read -r line wanted; do
        proposals=$("$2" "$line")
        for word in $wanted; do
            if [[ $word == !* ]]; then
                grep -qx -- "${word#!}" <<<"$proposals" && fail "$1: '$line' proposes ${word#!}: $proposals"
            else
                grep -qx -- "$word" <<<"$proposals" || fail "$1: '$line' does not propose $word: $proposals"
            fi
        done
    done <<<"$cases"
}

# As bash splits the line into words: also before and after each "=".
in_bash() {
    bash --norc -c '
        . "$1/vigil.bash"
        read -r -a COMP_WORDS <<<"${2//=/ = }"
        [[ $2 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _vigil
        printf "%s\n" "${COMPREPLY[@]}"' bash "$completions" "$1"
}
check bash in_bash

# It proposes --type=i32 as a whole.
in_fish() {
    HOME=$scratch fish --no-config -c 'source $argv[1]/vigil.fish; complete -C $argv[2]' "$completions" "$1" |
        cut -f 1 | sed -E 's/^--[a-z-]+=//'
}
if command -v fish >/dev/null; then check fish in_fish; fi

# zsh proposes on a terminal only: completion.zsh has one.
if command -v zsh >/dev/null; then
    HOME=$scratch zsh -f "$here/completion.zsh" "$completions" <<<"$cases" || fail "zsh: see above"
fi

verdict
