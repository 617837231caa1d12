#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# plants.sh AMALGAMATION - the test of copies can fail: each bug that is planted into src/lot/copies.c is found by
# copies.c, and without one it passes. AMALGAMATION has vigil.h and vigil.c.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
amalgamation=$(cd "$1" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vigil-copies-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
compiler=("${CC:-cc}" -std=gnu11 -O1 -fPIC -pthread -I"$here/../../include")

# What a bug changes: a line of copies.c, and what it becomes.
names=() from=() to=()
plant() { names+=("$1") from+=("$2") to+=("$3"); }
plant "no bug" "" ""
plant "the first copy goes on alone" "prim_store_release(copy->alone, only ? lot : NULL);" \
    "if (copy == &copies_self) prim_store_release(copy->alone, only ? lot : NULL);"
plant "the list loses the copies that came before" "copies_self.next = copies_first(lot);" "copies_self.next = NULL;"
plant "a copy is not in the list" "prim_store_release(&lot->copies, &copies_self);" ""
plant "a copy counts forks for itself" "prim_generation = lot->forks;" ""
plant "a copy of another version does not know that" "if (!lot) prim_store_relaxed(&copies_refused, 1);" ""
plant "each copy empties the lot after a fork" "lot->forks = prim_generation;" ""

# planted FROM TO: vigil.c with TO in place of FROM, which must occur once.
planted() {
    awk -v from="$1" -v to="$2" '{
        at = from == "" ? 0 : index($0, from)
        if (at) { $0 = substr($0, 1, at - 1) to substr($0, at + length(from)); count++ }
        print
    }
    END { exit from != "" && count != 1 }' "$amalgamation/vigil.c"
}

# object NAME OBJECT: a shared object with that copy.
object() { "${compiler[@]}" -shared -Wl,--version-script="$here/copy.map" copy.o "$2" -o "$1"; }

# build: the program and its three objects, all from vigil.c.
build() {
    cp vigil.c other
    "${compiler[@]}" -c vigil.c -o vigil.o &
    "${compiler[@]}" -c other/vigil.c -o other.o
    wait $!
    object a.so vigil.o
    object b.so vigil.o
    object other.so other.o
    "${compiler[@]}" copies.o vigil.o -ldl -o copies
}

mkdir other
sed 's/^#define VIGIL_VERSION_PATCH .*/#define VIGIL_VERSION_PATCH 99/' "$amalgamation/vigil.h" >other/vigil.h
cp "$amalgamation/vigil.h" .
"${compiler[@]}" -c "$here/copy.c" -o copy.o
"${compiler[@]}" -c "$here/copies.c" -o copies.o

# With a bug it may hang: that is noticed after ten times as long as it takes without, and some seconds.
failed=0 limit_s=600
for ((i = 0; i < ${#names[@]}; i++)); do
    planted "${from[i]}" "${to[i]}" >vigil.c || { echo "copies.c does not have: ${from[i]}" && exit 1; }
    build
    began=$SECONDS status=0
    { (ulimit -c 0 && timeout $limit_s ./copies "$PWD/a.so" "$PWD/b.so" "$PWD/other.so"); } >out 2>&1 || status=$?
    [ $i != 0 ] || limit_s=$((10 * (SECONDS - began) + 5))
    if [ $((status != 0)) = $((i != 0)) ]; then
        echo "ok     ${names[i]}: status $status $(head -n 1 out)"
    else
        echo "FAILED ${names[i]}: status $status: $(tail -n 1 out)"
        failed=1
    fi
done
exit $failed
