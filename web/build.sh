#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh [FOLDER] - build the package for the browser into FOLDER, default build/web: vigil.wasm, vigil.js, types,
# package.json; npm can install that folder.
#
# Exit status 75: the programs that npm brings (esbuild, wasm-opt) cannot be had.
set -eu
cd "$(dirname "$0")/.."
into=${1:-build/web}
work=build/web-work
mkdir -p "$into" "$work"

if [ ! -d web/node_modules/esbuild ]; then
    npm ci --prefix web --no-audit --no-fund --loglevel=error || exit 75
fi

# cmake_list NAME: the words of set(NAME ...) in CMakeLists.txt.
cmake_list() { awk -v name="$1" '$0 ~ "^set\\(" name "$" { inside = 1; next }
    inside { last = /\)/; sub(/\)/, ""); print "src/" $1; if (last) exit }' CMakeLists.txt; }

# The library without what only programs in C use.
mapfile -t sources < <(for part in CORE ALONE WASM; do cmake_list VIGIL_${part}_SOURCES; done | grep -v src/debug)
sources+=(node/native/{operations,holdings,locks}.c web/native/{web,look}.c)
flags=(--target=wasm32-unknown-unknown -std=gnu11 -Oz -flto -matomics -mbulk-memory -mmutable-globals -msign-ext
    -fvisibility=hidden -ffunction-sections -fdata-sections -DNDEBUG -DTSAN_SEES_US -D__wasi__
    -isystem /usr/include/wasm32-wasi -I. -Iinclude -Isrc -Isrc/prim -Isrc/prim/wasm -Wall -Wextra -Werror)

objects=()
for source in "${sources[@]}"; do
    object=$work/${source//\//_}.o
    objects+=("$object")
    clang-19 "${flags[@]}" -c "$source" -o "$object"
done

# The stack is for prim_wasm_take_area alone: each thread then has one of its own.
wasm-ld-19 --lto-O2 "${objects[@]}" -o "$work/vigil.wasm" --no-entry --gc-sections --strip-all -z stack-size=16384 \
    --shared-memory --import-memory --initial-memory=262144 --max-memory=1073741824 \
    --export=prim_wasm_door --export=web_probe --export=__stack_pointer --export=__wasm_init_tls --export=__tls_base \
    --export-table
web/node_modules/.bin/wasm-opt -tnh --low-memory-unused -Oz --converge --enable-threads --enable-bulk-memory \
    --enable-mutable-globals --enable-sign-ext "$work/vigil.wasm" -o "$into/vigil.wasm"

# Names of properties that no user of the package sees: shorter ones save some bytes.
internal='^(tryFast|tryOnce|takeAtOnce|noteDeath|unlockContended|checkHeld|onAbort|unlisten|startAsync|startWait'
internal+='|mayBlock|isMine|addressOf|isShared|segments|holdings|counts|integers|numbers|canBlock|viewOf|wordOf'
internal+='|lengthOf|outcomeOf|optionsOf|closedError|checkCallback|failure|parts|waitableView|doWait|doWaitAsync'
internal+='|doNotify|toExpected|toTimeout|toCount)$'
web/node_modules/.bin/esbuild web/lib/index.js --bundle --format=esm --minify --target=es2022 --log-level=warning \
    --mangle-props="$internal" --legal-comments=none \
    --banner:js='// SPDX-License-Identifier: MIT' --outfile="$into/vigil.js"
cp web/lib/index.d.ts "$into/vigil.d.ts"
cp node/lib/index.d.ts "$into/common.d.ts"
cp web/package.json web/README.md LICENSE "$into"

# shellcheck disable=SC2016 # it is JavaScript
for file in vigil.wasm vigil.js; do
    node -e 'const { readFileSync } = require("fs"), { gzipSync, brotliCompressSync } = require("zlib");
        const file = process.argv[1], bytes = readFileSync(file);
        console.log(`${file}: ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} by gzip, ` +
            `${brotliCompressSync(bytes).length} by brotli`)' "$into/$file"
done
