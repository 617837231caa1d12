# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the tests here: what those of the command have, and
. "$(dirname "$0")/../cli/common.sh"

# dies_with_us COMMAND... &: the system kills it when the test is killed.
dies_with_us() {
    if command -v setpriv >/dev/null; then exec setpriv --pdeathsig KILL "$@"; fi
    exec "$@"
}
