#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tour.sh [FILE] - each line "`FILE`: `NAME` - ..." of doc/tour.md names a function, or a table, that is defined in that
# file, at file scope.
set -u
cd "$(dirname "$0")/.." || exit 1
tour=${1-doc/tour.md} failed=0 count=0

steps=$(sed -nE 's/^ *([0-9]+\.|-) `([^`]+)`: `([^`]+)` - .*/\2 \3/p' "$tour")
while read -r file name; do
    count=$((count + 1))
    grep -qE "^[a-zA-Z_].*[ *]$name(\(|\[)" "$file" && continue
    echo "$tour: $name is not in $file" >&2
    failed=1
done <<END
$steps
END
[ $count -ge 80 ] || { echo "$tour: only $count steps are found" >&2 && failed=1; }
echo "tour.sh: $count steps"
exit $failed
