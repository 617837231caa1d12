#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What all subcommands have in common: --help, --version, reports of wrong usage, and output that gets lost.
. "$(dirname "$0")/common.sh"

subcommands="lock sem create rm ls wait notify load store add cas show top trace doctor run demo bench"
programs=" top demo bench "
usage_status() { case $1 in lock | sem | run) echo 125 ;; *) echo 64 ;; esac; }

# is_json TEXT: exactly one object. Without a program that knows, it at least looks like one.
is_json() {
    if command -v jq >/dev/null; then jq -es 'length == 1 and (.[0] | type == "object")' <<<"$1" >/dev/null
    elif command -v python3 >/dev/null; then python3 -m json.tool <<<"$1" >/dev/null
    else [[ $1 == '{"'*'}' && $1 != *$'\n'* ]]; fi || fail "no JSON: $1"
}

# Without a subcommand, the overview is an error; asked for, it is not.
expect 64 "$vigil"
[ -z "$out" ] || fail "an error on stdout: $out"
overview=$err
listed=$(sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' <<<"$overview" | sort)
[ "$listed" = "$(tr ' ' '\n' <<<"$subcommands" | sort)" ] ||
    fail "the subcommands that this test knows and those that vigil lists differ: $listed"
expect 0 "$vigil" --help
[ "$out" = "$overview" ] || fail "--help has another overview: $out"
expect 0 "$vigil" help
[ "$out" = "$overview" ] || fail "help has another overview: $out"

# Each has its help, with an example, and it fits the smallest terminal.
for subcommand in $subcommands; do
    expect 0 "$vigil" help "$subcommand"
    help=$out
    [[ $help == "usage: vigil $subcommand "* ]] || fail "no usage in the help of $subcommand"
    [[ $help == *Example*"  vigil $subcommand"* || $help == *Example*"vigil $subcommand "* ]] ||
        fail "no example in the help of $subcommand"
    longest=$(wc -L <<<"$help")
    [ "$longest" -le 80 ] || fail "the help of $subcommand is $longest columns wide"
    for option in --help -h; do
        expect 0 "$vigil" "$subcommand" "$option"
        [ "$out$err" = "$help" ] || fail "vigil $subcommand $option is another help: $out$err"
    done
done
expect 0 "$vigil" wait "$name" 0 --timeout 5s --help
contains "$out" "usage: vigil wait"

expect 0 "$vigil" --version
[[ $out =~ ^vigil\ [0-9]+\.[0-9]+\.[0-9]+ ]] || fail "no version: $out"

# They stand alone, or with one subcommand.
expect 0 "$vigil" --help lock
[[ $out == "usage: vigil lock "* ]] || fail "--help lock is another help: $out"
for call in "--version x" "help lock sem" "--help lock x" "help --json" "help nope --json" "--version --json"; do
    read -r -a words <<<"$call"
    expect 64 "$vigil" "${words[@]}"
    if [[ $call == *--json ]]; then
        is_json "$out"
        contains "$out" '"status":"usage"'
    else
        contains "$err" "vigil: unexpected argument ${words[-1]}"
    fi
done

# What is misspelt gets a proposal, and what is like nothing else does not.
while read -r wrong right; do
    expect 64 "$vigil" "$wrong"
    contains "$err" "vigil: unknown subcommand $wrong (did you mean $right?)" "vigil --help"
done <<'END'
lcok lock
crate create
notfy notify
sotre store
docter doctor
END
for far in nope tups an remote lose; do
    expect 64 "$vigil" $far
    [ "$err" = "vigil: unknown subcommand $far; see vigil --help" ] || fail "a far-fetched proposal: $err"
done
expect 64 "$vigil" help lcok
contains "$err" "did you mean lock"
expect 64 "$vigil" xyzzy
contains "$err" "unknown subcommand xyzzy"
[[ $err != *"did you mean"* ]] || fail "a far-fetched proposal: $err"
expect 64 "$vigil" ""
expect 64 "$vigil" --nonsense

for subcommand in $subcommands; do
    [[ $programs == *" $subcommand "* ]] && continue
    status=$(usage_status "$subcommand")
    for wrong in --nonsense --nonsense=1 --jsn -Z --json=1; do
        expect "$status" "$vigil" "$subcommand" "$wrong"
        contains "$err" "vigil $subcommand: " "see vigil $subcommand --help"
        [ -z "$out" ] || fail "an error on stdout: $out"
    done
done
while read -r wrong right; do
    expect 64 "$vigil" wait "$name" 0 "$wrong"
    contains "$err" "unknown option $wrong (did you mean $right?)"
done <<'END'
--jsn --json
--helpp --help
--tyep --type
--timeot=5s --timeout
END
expect 64 "$vigil" wait "$name" 0 --fin
[[ $err != *"did you mean"* ]] || fail "a far-fetched proposal: $err"
expect 64 "$vigil" wait "$name" 0 --timout 5s
contains "$err" "did you mean --timeout?); see vigil wait --help"
expect 64 "$vigil" wait "$name" 5000000000
contains "$err" "is the word of --type i64? See vigil wait --help"
expect 64 "$vigil" wait "$name" 0 --timeout
contains "$err" "--timeout needs a value"
expect 64 "$vigil" wait "$name" 0 --timeout=
expect 64 "$vigil" wait "$name" 0 --timeout -- 5s
contains "$err" "--timeout needs a value"
expect 64 "$vigil" rm "$name" --force=yes
contains "$err" "--force takes no value"
expect 64 "$vigil" rm -fx "$name"

# Operands that are missing, or too many.
while read -r -a call; do
    expect 64 "$vigil" "${call[@]}"
    contains "$err" "vigil ${call[0]}: " "see vigil ${call[0]} --help"
done <<END
create
create $name $name
rm
ls $name $name
wait
wait $name
wait $name 0 0
notify
notify $name 1 1
load
load $name 0
store $name
store $name 1 2
add $name
add $name 1 2
cas $name 1
cas $name 1 2 3
END

# With --json, wherever it stands, errors are JSON on stdout and nothing is on stderr.
for call in "xyzzy --json" "wait --json" "wait --nonsense --json" "wait --json --nonsense" "load $name --json" \
    "create a/b --json" "rm --json" "wait $name x --json" "ls --json --x"; do
    read -r -a words <<<"$call"
    out=$("$vigil" "${words[@]}" 2>"$scratch/err")
    [ $? -gt 2 ] || fail "that should be an error: $call"
    is_json "$out"
    contains "$out" '"status":' '"error":'
    [ ! -s "$scratch/err" ] || fail "there is something on stderr: $call: $(cat "$scratch/err")"
done
# Of those that run a command it is what stands before that: behind it, it is the command's.
for call in "lock $name --timeout x --json -- true" "sem $name --slots x --json -- true" \
    "lock --nonsense --json -- true" "lock $name --timout 5s --json -- true"; do
    read -r -a words <<<"$call"
    expect 125 "$vigil" "${words[@]}"
    is_json "$err"
    contains "$err" '"event":"failed"' '"status":"usage"'
done
for call in "lock $name --timeout x -- echo --json" "lock $name-l -- false --json" \
    "lock $name-l false --json -- x" "load -- --json"; do
    read -r -a words <<<"$call"
    "$vigil" "${words[@]}" >"$scratch/out" 2>"$scratch/err"
    grep -q '{' "$scratch/out" "$scratch/err" && fail "JSON: $call: $(cat "$scratch/out" "$scratch/err")"
done
expect 3 "$vigil" load $'a"\\\x1b\xff' --json
is_json "$out"
contains "$out" '"status":"bad-name"'

# What a terminal would obey is made visible.
expect 3 "$vigil" load $'evil\x1b[31m'
contains "$err" 'evil\x1b[31m'
[[ $err != *$'\x1b'* ]] || fail "an escape sequence got through"

# Output that gets lost is an error, and never ends up in a segment that has got the number of stdout.
expect 0 "$vigil" create "$name"
expect 0 "$vigil" store "$name" 7
for redirect in ">/dev/full" ">&-" "<&- >&-"; do
    expect 3 bash -c "'$vigil' load $name $redirect"
    contains "$err" "vigil load: cannot write"
    expect 3 bash -c "'$vigil' ls --json $redirect"
    expect 3 bash -c "'$vigil' --help $redirect"
done
expect 3 bash -c "'$vigil' load $name >&- 2>&-"
expect 0 bash -c "'$vigil' store $name 8 >&- <&- 2>&-"
expect 0 "$vigil" load "$name"
[ "$out" = 8 ] || fail "the word has become $out"
expect 0 "$vigil" rm "$name"

# A program of its own is found next to the command, gets its arguments, and is missed where it is not.
mkdir "$scratch/bin"
cp "$vigil" "$scratch/bin/vigil"
expect 3 "$scratch/bin/vigil" top
contains "$err" "vigil top: " "vigil-top" "ncurses"
expect 3 "$scratch/bin/vigil" bench
contains "$err" "make bench"
printf '#!/bin/sh\necho "$# $1"\nexit 7\n' >"$scratch/bin/vigil-top"
expect 3 "$scratch/bin/vigil" top
contains "$err" "ermission denied"
chmod +x "$scratch/bin/vigil-top"
expect 7 "$scratch/bin/vigil" top "a b"
[ "$out" = "1 a b" ] || fail "the program got other arguments: $out"
expect 7 "$scratch/bin/vigil" top -- -h
[ "$out" = "2 --" ] || fail "the program did not get -h: $out"

verdict
