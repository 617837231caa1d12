#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What has been installed can be taken away again: every file, and the folders that are Vigil's, but nothing else.
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
[ -e "$libdir/libvigil.so" ] || fail "it has removed more than it should have"
