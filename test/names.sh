#!/bin/sh
# SPDX-License-Identifier: MIT
#
# names.sh - whether the name of each file-local function stands in one file only: in src/ (without prim/, of whose
# folders one is built), in cli/, pthread/ and remote/. So a search, a stack trace and the amalgamation find one thing.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1

# functions_of FOLDER: file and name of each static function that is defined there.
functions_of() {
    find "$1" -name '*.c' ! -path 'src/prim/*' -exec awk '
        /^static [^;={]*\(/ {
            name = $0
            sub(/\(.*/, "", name)
            sub(/.*[ *]/, "", name)
            print FILENAME, name
        }' {} +
}

status=0
for folder in src cli pthread remote; do
    repeated=$(functions_of "$folder" | sort -u | awk '
        { files[$2] = files[$2] " " $1; count[$2]++ }
        END { for (name in count) if (count[name] > 1) print name ":" files[name] }' | sort)
    [ -z "$repeated" ] && continue
    echo "names.sh: several files of $folder/ have a static function of the same name:"
    echo "$repeated"
    status=1
done
[ $status = 0 ] &&
    echo "names.sh: $(for folder in src cli pthread remote; do functions_of "$folder"; done | wc -l) functions"
exit $status
