#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# More threads wait than there are entries for.
. "$(dirname "$0")/common.sh"

expect 0 "$CROWD"
expect 0 "$vigil" run -- "$CROWD"
verdict
