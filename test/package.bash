# SPDX-License-Identifier: MIT
# package.bash - for run.sh of test/node and test/web: go to the project's folder; skip the test if Node is missing.
set -eu
cd "$(dirname "$0")/../.."
skip() {
    echo "skipped: $1"
    exit 77
}
command -v node >/dev/null || skip "there is no node; on Debian, install nodejs"
command -v npm >/dev/null || skip "there is no npm; on Debian, install npm"
