#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench.sh - measure the locks of a cluster, if libvigil-etcd was built and etcd is there; the figures are added to
# build/figures.md.
set -eu
cd "$(dirname "$0")/../.."
program=build/bench/bin/vigil-bench-remote
[ -x "$program" ] || {
    echo "skipped: libvigil-etcd was not built; see tools/need.sh for what it needs" >&2
    exit 0
}
. bench/load.sh
PATH=$PATH:$PWD/build/etcd/usr/bin
status=0
load_before
ETCDCTL_API=3 "$program" --json build/bench-remote.json --markdown build/figures-remote.md >&2 || status=$?
[ "$status" -ne 77 ] || exit 0
[ "$status" -eq 0 ] || exit "$status"
load_append build/figures-remote.md
