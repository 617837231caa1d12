#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# storm.py, in namespaces of its own. Its arguments are passed on.
. "$(dirname "$0")/common.sh"
python3 "$here/storm.py" "$@"
exit $?
