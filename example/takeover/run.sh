#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh WRITER READER: a writer is killed with the mutex held, and a reader that is waiting for it takes over.
set -euo pipefail
name=takeover-$$
coproc writer { exec $1 "$name"; }
IFS= read -r line <&"${writer[0]}"
echo "$line"
$2 "$name" &
reader=$!
echo "writer: killed"
kill -9 "$writer_PID"
wait "$reader"
