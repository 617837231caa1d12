#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The shared library has its tracing probes, if the system has their header.
. "$(dirname "$0")/common.sh"
echo '#include <sys/sdt.h>' | "$CC" -E - >/dev/null 2>&1 || { echo "no sys/sdt.h"; exit 77; }
readelf -n "$libdir/libvigil.so" >"$scratch/notes"
for probe in lock_contended lock_granted lock_released lock_reserved; do
    grep -A1 'Provider: vigil$' "$scratch/notes" | grep -q "Name: $probe\$" || fail "there is no vigil:$probe"
    echo "vigil:$probe"
done
