#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The manual: it says what --help says, every function has a page, what the pages refer to exists, they are the same
# each time they are made, and groff and mandoc (as far as they are there) have nothing to complain of at 80 columns.
. "$(dirname "$0")/common.sh"
source=$(cd "$here/../.." && pwd) manual=$scratch/man version=$("$vigil" --version | sed 's/vigil //')

make_pages() { # into folder $1
    local headers=() header page
    mkdir -p "$1"/man{1,3,7}
    for header in "$source"/include/vigil/*.h "$source"/adapter/*.h; do
        [ "${header##*/}" = vigil.h ] || headers+=("$header")
    done
    awk -v folder="$1/man3" -v version="$version" -f "$source/tools/manual.awk" "${headers[@]}" || fail "manual.awk"
    for page in "$source"/doc/man/*.[17]; do
        sed "s/@PROJECT_VERSION@/$version/" "$page" >"$1/man${page##*.}/${page##*/}"
    done
}
make_pages "$manual"
pages=$(grep -L '^\.so ' "$manual"/man?/*)

# --- the README links to the table of the comparison, by its line.
line=$(grep -n '^\.SH COMPARED WITH OTHERS' "$source/doc/man/vigil.1" | cut -d: -f1)
grep -qF "(doc/man/vigil.1#L$line)" "$source/README.md" || fail "README.md does not link to line $line of vigil.1"

# --- they are the same again, and those that were built are these.
LC_ALL=C make_pages "$scratch/again"
diff -r "$manual" "$scratch/again" >&2 || fail "the pages are not the same when they are made again"
built=${vigil%/*}/../man
for folder in man1 man3 man7; do
    [ -d "$built" ] || break
    diff -r "$manual/$folder" "$built/$folder" >&2 || fail "$built/$folder is not made of these sources: build manual"
done

# --- every function has a page, on which it is declared. Not what the inline functions and VIGIL_CHECK call.
functions() {
    cat "$source"/include/vigil/*.h | grep '^VIGIL_API' | grep -oE 'vigil_[a-z0-9_]+\(' | tr -d '(' | sort -u |
        grep -v '^vigil__'
}
[ "$(functions | wc -l)" -ge 80 ] || fail "only these functions: $(functions)"
for function in $(functions); do
    page=$manual/man3/$function.3
    [ -e "$page" ] || { fail "$function has no page" && continue; }
    page=$manual/$(sed 's/^\.so //' "$page")
    grep -qE "^\\\\fB.*[ *]$function\\(" "$page" || fail "$function is not declared in ${page##*/}"
done
for hidden in vigil__mutex_lock_slowly vigil__sem_change vigil__check_mutex_lock; do
    [ ! -e "$manual/man3/$hidden.3" ] || fail "$hidden is internal, but has a page"
done

# --- what pages refer to is there.
# shellcheck disable=SC2086 # one word each
references() {
    cat $pages | grep -oE '\bvigil(_[a-z]+|\\-[a-z]+)?(\\fP| )?"?\([137]\)' |
        sed -e 's/\\fP//' -e 's/\\-/-/' -e 's/[" ]//g'
}
for reference in $(references | sort -u); do
    section=${reference//[!137]/} topic=${reference%%(*}
    [ -e "$manual/man$section/$topic.$section" ] || fail "there is no $reference"
done

# --- vigil(1) and --help.
plain() { sed -e 's/\\f[BIPR]//g' -e 's/\\-/-/g' "$manual/man1/vigil.1"; }
section_of() { plain | awk -v name="$1" '/^\.S[SH]/ { here = $0 == ".SS " name } here'; }
options() { grep -oE -- '-[a-zA-Z]\b|--[a-z-]+' | sort; }
options_in_manual() { section_of "$1" | awk 'was { print } { was = /^\.TP/ }' | options; }
options_in_help() { "$vigil" "$1" --help | grep -oE '^  (-[a-zA-Z], )?--[a-z-]+' | options; }
subcommands=$("$vigil" --help | grep -oE '^  [a-z]+ ' | tr -d ' ')
contains "$subcommands" lock sem create rm ls wait notify load store add cas show top trace doctor run demo bench
for subcommand in $subcommands; do
    [ -n "$(section_of "$subcommand")" ] || fail "vigil $subcommand is not in vigil.1"
    diff <(options_in_help "$subcommand") <(options_in_manual "$subcommand") >&2 ||
        fail "vigil $subcommand: its --help (<) and vigil.1 (>) have different options"
    while read -r usage; do
        plain | grep -qxF -- "$usage" || fail "vigil.1 has no such line as: $usage"
    done < <("$vigil" "$subcommand" --help | sed -n -e 's/^usage: //p' -e 's/^       vigil /vigil /p')
done
# What the options' tables have for a letter is told, so that the above compares it.
help=$(for subcommand in $subcommands; do "$vigil" "$subcommand" --help; done)
letters=$(grep -ohE "\{\"[a-z-]+\", '[a-zA-Z]'" "$source"/cli/*.c "$source"/cli/*/*.c | grep -v help |
    tr -dc 'a-zA-Z\n -')
[ -n "$letters" ] || fail "no options with letters are found"
while read -r option letter; do
    grep -q "^  -$letter, --$option " <<<"$help" || fail "no --help tells of -$letter for --$option"
done <<<"$letters"
for subcommand in $(plain | awk '$1 == ".SS" { print $2 }'); do
    grep -qx "$subcommand" <<<"$subcommands" || fail "vigil.1 has $subcommand, vigil has not"
done

# --- how they look. (That they have no date is as it should be: the version says when.)
if command -v mandoc >/dev/null; then
    # shellcheck disable=SC2086
    complaints=$(mandoc -T lint -W warning $pages | grep -v 'missing date')
    [ -z "$complaints" ] || fail "mandoc: $complaints"
fi
if command -v groff >/dev/null; then
    for page in $pages; do
        complaints=$(groff -ww -man -Tutf8 -z "$page" 2>&1)
        [ -z "$complaints" ] || fail "groff: ${page##*/}: $complaints"
        width=$(groff -man -Tutf8 -rLL=78n -P-c -P-b -P-u "$page" | LC_ALL=C.UTF-8 wc -L)
        [ "$width" -le 80 ] || fail "${page##*/} is $width columns wide"
    done
fi
if man --version >/dev/null 2>&1; then
    for topic in vigil_mutex_lock vigil_op 'vigil_agent_post' '1 vigil' '7 vigil'; do
        # shellcheck disable=SC2086
        text=$(MANPAGER=cat MANWIDTH=80 man --warnings -M "$manual" $topic 2>&1)
        contains "$text" NAME "SEE ALSO" "vigil $version"
    done
    contains "$(MANPAGER=cat MANWIDTH=80 man -M "$manual" vigil_mutex_trylock | col -bx)" \
        "int vigil_mutex_trylock(vigil_mutex *mutex);" "a lock that threads and event loops share" "vigil_segment(3)"
fi
verdict
