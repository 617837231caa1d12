#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Uninstalling removes every installed file and Vigil's own folders, but nothing else; also from a folder with a space
# in its name, and after another installation from the same build.
. "$(dirname "$0")/common.sh"
mkdir -p "$scratch$(dirname "$stage")"
cp -a "$stage" "$scratch$(dirname "$stage")"
copy=$scratch$stage
touch "$copy/lib/of somebody else" "$copy/include/of_somebody_else.h"

DESTDIR=$scratch "$here/../../tools/uninstall.sh" "$(dirname "$stage")/../../install_manifest.txt"
left=$(cd "$copy" && find . -type f -o -type l | sort)
[ "$left" = "./include/of_somebody_else.h
./lib/of somebody else" ] || fail "these are left: $left"
[ -z "$(find "$copy" -type d -name vigil)" ] || fail "these are left: $(find "$copy" -type d -name vigil)"
[ -e "$libdir/libvigil.so" ] || fail "uninstalling has removed more than it should have"

# make install and make uninstall, with a fake cmake that builds nothing and installs one file.
mkdir -p "$scratch/tree/build/release" "$scratch/tree/tools" "$scratch/bin"
cp "$here/../../Makefile" "$scratch/tree"
cp "$here/../../tools/uninstall.sh" "$scratch/tree/tools"
ln -s /bin/true "$scratch/tree/tools/need.sh"
cat >"$scratch/bin/cmake" <<'END'
#!/bin/sh
[ "$1 $3" = "--install --prefix" ] || exit 0
file=$4/include/vigil/vigil.h
mkdir -p "$DESTDIR${file%/*}"
touch "$DESTDIR$file"
echo "$file" >"$2/install_manifest.txt"
END
chmod +x "$scratch/bin/cmake"
unset MAKEFLAGS MAKELEVEL
in_tree() {
    PATH=$scratch/bin:$PATH make -s -C "$scratch/tree" "$1" DESTDIR="$scratch/some where" PREFIX="/a folder" ||
        fail "make $1"
}
prefix="$scratch/some where/a folder"
(umask 077 && in_tree install)
[ "$(stat -c %a "$prefix/include/vigil/vigil.h")" = 644 ] || fail "an installed file is not readable by all users"
[ "$(stat -c %a "$prefix/include/vigil")" = 755 ] || fail "an installed folder is not accessible to all users"
touch "$prefix/of_somebody_else.h"
echo "/a folder/of_somebody_else.h" >"$scratch/tree/build/release/install_manifest.txt" # as the tests leave it
in_tree uninstall
[ ! -e "$prefix/include/vigil" ] || fail "make uninstall has left something: $(find "$prefix")"
[ -e "$prefix/of_somebody_else.h" ] || fail "make uninstall has removed what the tests have installed"
