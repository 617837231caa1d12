#!/bin/sh
# SPDX-License-Identifier: MIT
#
# uninstall.sh MANIFEST - remove the files that `cmake --install` has listed there, below DESTDIR if that is set, and
# the folders that are Vigil's alone.
set -eu
[ $# = 1 ] || { echo "usage: uninstall.sh MANIFEST" >&2; exit 2; }
[ -f "$1" ] || { echo "Nothing has been installed from here: there is no $1." >&2; exit 1; }

while read -r file || [ -n "$file" ]; do
    rm -f "${DESTDIR:-}$file"
    echo "${DESTDIR:-}${file%/*}"
done <"$1" | sort -ru | while read -r folder; do
    case $folder in
    */vigil | */vigil/adapter) rmdir "$folder" 2>/dev/null || true ;;
    esac
done
echo "Removed what $1 lists: $(grep -c . "$1") files."
