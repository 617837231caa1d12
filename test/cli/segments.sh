#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# create, ls and rm; and what is under a segment's name but is none.
. "$(dirname "$0")/common.sh"

file() { echo "/dev/shm/vigil-$(id -u)-$1"; }
# row NAME: its fields in the list, with single spaces.
row() { "$vigil" ls "$1" | tail -n +2 | tr -s ' '; }

# A segment comes, is listed, and goes.
expect 0 "$vigil" ls "$name*"
[ -z "$out" ] || fail "something is listed before there is anything: $out"
expect 0 "$vigil" ls "$name*" --json
[ "$out" = '{"status":"ok","segments":[]}' ] || fail "an empty list is $out"
expect 0 "$vigil" create "$name-b"
[ -z "$out$err" ] || fail "create says something: $out$err"
[ "$(stat -c %a "$(file "$name-b")")" = 600 ] || fail "others may open it"
expect 0 "$vigil" create "$name-a" --length 1M --mode 0660 --waiters 10 --members 3 --max-length 2M --json
[ "$out" = "{\"status\":\"ok\",\"name\":\"$name-a\"}" ] || fail "create said $out"
[ "$(stat -c %a "$(file "$name-a")")" = 660 ] || fail "the mode is another"
expect 3 "$vigil" create "$name-a"
contains "$err" "$name-a already exists" "vigil rm $name-a"
expect 3 "$vigil" create "$name-a" --json
contains "$out" '"status":"exists"'
"$vigil" lock "$name-lock" -- true
"$vigil" sem "$name-sem" --slots 3 -- true

expect 0 "$vigil" ls "$name*"
names=$(awk 'NR > 1 { printf "%s ", $1 }' <<<"$out")
[ "$names" = "$name-a $name-b $name-lock $name-sem " ] || fail "the list is $names"
[[ $out == NAME*KIND*BYTES*MEMBERS*WAITING* ]] || fail "no head over the list: $out"
[ "$(row "$name-a")" = "$name-a words 1048576 0 0" ] || fail "the row is $(row "$name-a")"
[ "$(row "$name-lock")" = "$name-lock vigil lock 384 0 0" ] || fail "the row is $(row "$name-lock")"
[ "$(row "$name-sem")" = "$name-sem vigil sem 3 384 0 0" ] || fail "the row is $(row "$name-sem")"
expect 0 "$vigil" ls "$name-?" --names
[ "$out" = "$name-a"$'\n'"$name-b" ] || fail "the names are $out"
expect 0 "$vigil" ls "$name-b" --json
want="{\"name\":\"$name-b\",\"status\":\"ok\",\"kind\":\"words\",\"bytes\":4096,\"members\":0,\"waiting\":0,"
want+='"owner_died":false}'
[ "$out" = "{\"status\":\"ok\",\"segments\":[$want]}" ] || fail "the list is $out"
expect 0 "$vigil" ls
contains "$out" "$name-a" "$name-b"

# One that is in use is not removed, unless by force; a process that has it open keeps it.
"$vigil" wait "$name-b" 0 >"$scratch/answer" &
waiter=$!
in_use() { [ "$(row "$name-b")" = "$name-b words 4096 1 1" ]; }
until_true in_use
expect 3 "$vigil" rm "$name-b"
contains "$err" "vigil rm: $name-b: " "--force"
expect 3 "$vigil" rm "$name-b" --json
contains "$out" "{\"name\":\"$name-b\",\"status\":\"busy\",\"error\":" '"status":"cannot"}'
in_use || fail "it has been removed, or its waiter is gone"
expect 0 "$vigil" rm --force "$name-b"
expect 0 "$vigil" ls "$name-b" --names
[ -z "$out" ] || fail "it is still there: $out"
kill $waiter
wait $waiter 2>/dev/null

# If it is not there, commands that do not use its words do not propose to create it.
for call in "show $name-b" "doctor $name-b" "trace $name-b --svg $scratch/b.svg" "rm $name-b"; do
    read -r -a words <<<"$call"
    expect 3 "$vigil" "${words[@]}"
    [ "$err" = "vigil ${words[0]}: there is no lock or segment $name-b: vigil ls lists them" ] || fail "$call: $err"
done

# Several at once: what can be removed is.
expect 0 "$vigil" create "$name-c"
expect 3 "$vigil" rm "$name-a" "$name-b" a/b "$name-c"
contains "$err" "there is no lock or segment $name-b" "there is no lock or segment a/b"
expect 0 "$vigil" ls "$name-[abc]" --names
[ -z "$out" ] || fail "these are left: $out"
expect 0 "$vigil" rm -f "$name-a" "$name-b"
expect 0 "$vigil" rm -f a/b # there is none

# rm removes the file of a lock at a path, and no other file, not even by force.
mkdir "$scratch/folder"
: >"$scratch/empty"
echo "This is no lock." >"$scratch/text"
head -c 100000 /dev/zero >"$scratch/zeros"
for kind in folder empty text zeros; do
    for force in "" --force; do
        expect 3 "$vigil" rm $force "$scratch/$kind"
        contains "$err" "vigil rm: $scratch/$kind: "
        [ -e "$scratch/$kind" ] || fail "rm $force has removed $kind"
    done
done
expect 0 "$vigil" rm "$name-lock" "$name-sem" --json
contains "$out" "\"segments\":[{\"name\":\"$name-lock\",\"status\":\"ok\"},{\"name\":\"$name-sem\",\"status\":\"ok\"}]"

# Names that are none.
long=$name-$(printf 'x%.0s' {1..200})
long=${long:0:200}
expect 0 "$vigil" create "$long"
expect 0 "$vigil" rm "$long"
for bad in "" . .hidden a/b /a ../../etc/passwd "a b" "a*" $'a\nb' äöü "x$long"; do
    for subcommand in create rm load show; do
        [[ $bad == */* && $subcommand =~ rm|show ]] && continue # a lock at a path
        expect 3 "$vigil" "$subcommand" "$bad"
        contains "$err" "invalid name '" "; try "
        proposal=${err##*; try }
        [[ $proposal =~ ^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$ ]] || fail "'$proposal' is no better than '$bad'"
    done
    expect 3 "$vigil" create "$bad" --json
    contains "$out" '"status":"bad-name"'
done
# What begins with a dash would be taken for an option: there is no such name, whatever files there are.
for call in "create -- --$name" "create -1$name" "lock -1$name -- true" "sem -1$name --slots 1 -- true"; do
    read -r -a words <<<"$call"
    err=$("$vigil" "${words[@]}" 2>&1)
    contains "$err" "vigil ${words[0]}: the name '-" "begins with a dash"
    [[ ! -e $(file "--$name") && ! -e $(file "-1$name") ]] || fail "$call has made a file"
done
dashed=--$name
expect 0 "$vigil" create "$name-whole"
mv "$(file "$name-whole")" "$(file "$dashed")"
expect 0 "$vigil" ls --names -- "$dashed"
[ -z "$out" ] || fail "the names are $out"
for subcommand in load show rm; do
    expect 3 "$vigil" $subcommand -- "$dashed"
    contains "$err" "invalid name '$dashed'" "try $name"
done
expect 3 "$vigil" rm --force -- "$dashed"
[ -e "$(file "$dashed")" ] || fail "$dashed is removed"
rm -f "$(file "$dashed")"
expect 64 "$vigil" create -x
expect 3 "$vigil" create -- ":"

# More than there is.
expect 3 "$vigil" create "$name-large" --length 1000000G
[ ! -e "$(file "$name-large")" ] || fail "it has left a file behind"

# Files that are no segments: each is listed with what is wrong with it, refused, and can be removed by force.
expect 0 "$vigil" create "$name-whole"
echo "This is no segment." >"$(file "$name-foreign")"
: >"$(file "$name-empty")"
mkfifo "$(file "$name-fifo")"
ln -s "$(file "$name-whole")" "$(file "$name-link")"
head -c 5000 "$(file "$name-whole")" >"$(file "$name-truncated")"
cp "$(file "$name-whole")" "$(file "$name-corrupt")"
chmod 600 "$(file "$name-empty")" "$(file "$name-truncated")"
head -c 64 /dev/zero | tr '\0' '\377' | dd of="$(file "$name-corrupt")" bs=1 seek=16 conv=notrunc status=none
expect 0 "$vigil" ls "$name-*" --json
list=$out
for kind in foreign empty fifo link truncated corrupt; do
    expect 3 "$vigil" load "$name-$kind"
    contains "$err" "vigil load: $name-$kind: "
    expect 3 "$vigil" load "$name-$kind" --json
    [[ $out =~ \"status\":\"([a-z-]+)\" ]]
    status=${BASH_REMATCH[1]}
    [[ $status =~ ^(foreign|truncated|corrupt|other-version|other-machine)$ ]] || fail "$kind is $out"
    contains "$list" "{\"name\":\"$name-$kind\",\"status\":\"$status\",\"error\":"
    expect 0 "$vigil" ls "$name-$kind"
    [[ $out != *words* ]] || fail "$kind is listed like a segment: $out"
    expect 3 "$vigil" create "$name-$kind"
    contains "$err" "$name-$kind already exists" "vigil rm --force $name-$kind"
    expect 3 "$vigil" rm "$name-$kind"
    expect 0 "$vigil" rm --force "$name-$kind"
    expect 3 "$vigil" rm "$name-$kind"
done
expect 3 "$vigil" rm "$name-missing" --json
[[ $out != *create* ]] || fail "rm proposes create: $out"
contains "$out" '"status":"not-found"'
[ "$(row "$name-whole")" = "$name-whole words 4096 0 0" ] || fail "the whole one has suffered: $(row "$name-whole")"

# Colours on terminals only, and not if NO_COLOR is set.
echo "This is no segment." >"$(file "$name-foreign")"
build terminal
shown() { "$terminal" "$scratch/screen" env "$@" "$vigil" ls "$name-foreign" </dev/null && cat "$scratch/screen"; }
shown TERM=xterm | grep -q $'\033' || fail "no colours on a terminal"
shown TERM=xterm NO_COLOR=1 | grep -q $'\033' && fail "colours in spite of NO_COLOR"
shown TERM=dumb | grep -q $'\033' && fail "colours on a dumb terminal"
$vigil ls "$name-foreign" | grep -q $'\033' && fail "colours, and no terminal"
expect 0 "$vigil" rm -f "$name-foreign"

# Another user's: under our names, it is refused. Every user has names of their own.
if [ "$(id -u)" = 0 ]; then
    chown 65534 "$(file "$name-whole")"
    expect 3 "$vigil" create "$name-whole"
    contains "$err" "$name-whole already exists, and another user owns it"
    for call in "load $name-whole" "rm $name-whole" "show $name-whole"; do
        read -r -a words <<<"$call"
        expect 3 "$vigil" "${words[@]}"
        contains "$err" "vigil ${words[0]}: $name-whole: another user owns it"
    done
    expect 0 "$vigil" ls "$name-whole"
    contains "$out" "another user owns it"
    chown 0 "$(file "$name-whole")"
    as_other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    if "${as_other[@]}" "$vigil" --version >/dev/null 2>&1; then
        expect 0 "${as_other[@]}" "$vigil" ls "$name*"
        [ -z "$out" ] || fail "another user sees ours: $out"
        expect 3 "${as_other[@]}" "$vigil" load "$name-whole"
        contains "$err" "there is no segment"
        expect 0 "${as_other[@]}" "$vigil" create "$name-whole"
        for mode in 000 0400; do # what is closed to oneself is still one's own; to root nothing is closed
            chmod $mode "/dev/shm/vigil-65534-$name-whole"
            for call in "load $name-whole" "show $name-whole" "rm $name-whole"; do
                read -r -a words <<<"$call"
                err=$("${as_other[@]}" "$vigil" "${words[@]}" 2>&1)
                [ "$err" = "vigil ${words[0]}: $name-whole: Permission denied" ] || fail "with mode $mode: $err"
            done
        done
        expect 0 "${as_other[@]}" "$vigil" rm -f "$name-whole"
        # A lock at a path is for users that may read and write the file.
        chmod 755 "$scratch"
        expect 0 "$vigil" lock "$scratch/ours" --mode 0644 -- true
        expect 125 "${as_other[@]}" "$vigil" lock "$scratch/ours" -- true
        contains "$err" "$scratch/ours: permission denied" "mode 0644"
        expect 3 "${as_other[@]}" "$vigil" rm -f "$scratch/ours"
        chmod 666 "$scratch/ours"
        expect 124 "$vigil" lock "$scratch/ours" -- env -u VIGIL_LOCKS_HELD "${as_other[@]}" "$vigil" lock \
            "$scratch/ours" --try true
        expect 0 "${as_other[@]}" "$vigil" lock "$scratch/ours" -- true
        expect 0 "$vigil" lock "$scratch/ours" -- true
    fi
    [ "$(row "$name-whole")" = "$name-whole words 4096 0 0" ] || fail "ours has suffered: $(row "$name-whole")"
fi
expect 0 "$vigil" rm "$name-whole"

# What all segments need is closed or missing: it is said what. (That needs a root that may use mount namespaces.)
elsewhere() { unshare --mount sh -c "$1 && shift && exec \"\$@\"" sh "$@"; }
closed="mount -t tmpfs -o mode=0700 none /dev/shm" no_proc="umount -l /proc"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
for call in "create $name" "lock $name -- true"; do
    read -r -a words <<<"$call"
    if elsewhere "$closed" "${nobody[@]}" "$vigil" --version >/dev/null 2>&1; then
        err=$(elsewhere "$closed" "${nobody[@]}" "$vigil" "${words[@]}" 2>&1)
        [ "$err" = "vigil ${words[0]}: $name: segments need /dev/shm: Permission denied" ] || fail "no /dev/shm: $err"
    fi
    if elsewhere "$no_proc" "$vigil" --version >/dev/null 2>&1; then
        err=$(elsewhere "$no_proc" "$vigil" "${words[@]}" 2>&1)
        [ "$err" = "vigil ${words[0]}: $name: segments need /proc: No such file or directory" ] || fail "no /proc: $err"
    fi
done

# All users can write to the folder: what is not a name is not shown, least of all to a terminal.
touch "$(file "$name-x")"$'\033[2J' "$(file "$name y")"
expect 0 "$vigil" ls
[[ $out != *$'\033'* && $out != *"$name y"* ]] || fail "shown: $out"
expect 0 "$vigil" ls --names "$name*"
[ -z "$out" ] || fail "listed: $out"

verdict
