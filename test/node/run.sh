#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh TEST - one of the tests of the package for Node, if Node and the package's binary are there. By hand:
#
#     node/build.sh && test/node/run.sh readme
. "$(dirname "$0")/../package.bash"
[ -d node/node_modules/typescript ] || skip "npm ci has failed: see what node/build.sh says"
compgen -G 'node/prebuilds/*.node' >/dev/null || skip "the binary is missing: see what node/build.sh says"
case $1 in
unit) exec node --test test/node/*.test.js ;;
targets) exec test/node/targets.sh ;;
musl) exec test/node/musl.sh ;;
test262_self) exec node test/node/test262.js --self-test ;;
*) exec node "test/node/$1.js" ;;
esac
