#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# layers.sh - prints which folder of src includes which, and fails if one includes a folder above it.
set -u
cd "$(dirname "$0")/../src" || exit 1
layers="prim base shm lot recovery agent memory sync observe debug" # from the bottom up
failed=0

rank() {
    local n=0 layer
    for layer in $layers; do
        [ "$layer" = "$1" ] && { echo $n; return; }
        n=$((n + 1))
    done
    echo "layers.sh does not know the folder $1" >&2
    exit 1
}

# includes FOLDER: the folders that its files include.
includes() { grep -hoE '^#include "[a-z_]+/' "$1"/*.[ch] "$1"/*/*.[ch] 2>/dev/null | sed 's/.*"//; s#/##' | sort -u; }

for folder in $layers; do
    arrows=""
    for other in $(includes "$folder"); do
        [ -d "$other" ] && [ "$other" != "$folder" ] || continue # for example the public headers
        arrows="$arrows $other"
        [ "$(rank "$other")" -lt "$(rank "$folder")" ] && continue
        failed=1
        grep -nE "^#include \"$other/" "$folder"/*.[ch] | sed 's/^/upwards: /'
    done
    printf '%-10s ->%s\n' "$folder" "$arrows"
done
for folder in */; do rank "${folder%/}" >/dev/null; done
exit $failed
