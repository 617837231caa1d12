#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh TEST [ARGUMENT...] - one of the tests of the package for the browser: chromium, firefox, self, self_demo,
# size, serve, screenshots, types, package or emscripten.
# By hand:
#
#     web/build.sh && test/web/run.sh chromium 'order|abort'
. "$(dirname "$0")/../package.bash"
[ -d web/node_modules/terser ] || skip "npm ci has failed: see what web/build.sh says"
[ -f build/web/vigil.wasm ] || skip "the package is not built: see what web/build.sh says"
test=$1
shift
case $test in
chromium | firefox) exec node test/web/tests.mjs "$test" "$@" ;;
self_demo) exec node test/web/self.mjs --demo "$@" ;;
*) exec node "test/web/$test.mjs" "$@" ;;
esac
