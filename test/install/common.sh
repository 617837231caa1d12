# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# Sourced by the tests here: the installed tree, a scratch folder, and the flags of a careful user's build.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
stage=$1
libdir=$(dirname "$(find "$stage" -name libvigil.so)")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror"
CC=${CC:-cc}
CXX=${CXX:-g++}
fail() {
    echo "$*" >&2
    exit 1
}
# finds_demo VIGIL: the program vigil-demo is there and, run by that command, knows its own options.
finds_demo() {
    local status=0
    "$1" demo --nonsense >/dev/null 2>&1 || status=$?
    [ $status = 64 ]
}
