#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh [FOLDER] - build the package for the browser into FOLDER, default build/web: vigil.wasm, vigil.js, the same
# for memory of other programs (side.wasm, side.js), the service worker isolate.js, types, package.json; npm can install
# that folder.
#
# build.sh --plant SOURCE CHANGED FOLDER - for test/web/self.mjs: FOLDER/vigil.wasm, not optimised, with the file
# CHANGED in place of SOURCE; the package must have been built before.
#
# Exit status 75: the programs that npm brings (esbuild, terser, wasm-opt) cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
plant="" changed=""
if [ "${1-}" = --plant ]; then
    plant=$2 changed=$3
    shift 3
fi
into=${1:-build/web}
work=build/web-work
mkdir -p "$into" "$work"

if [ ! -d web/node_modules/terser ]; then
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

# compile FOLDER FLAG...: into the array of objects.
compile() {
    local folder=$work/$1 source
    shift
    mkdir -p "$folder"
    objects=()
    for source in "${sources[@]}"; do
        objects+=("$folder/${source//\//_}.o")
        [ -z "$plant" ] || continue
        clang-19 "${flags[@]}" "$@" -c "$source" -o "${objects[-1]}"
    done
}
link=(--lto-O2 --no-entry --gc-sections --strip-all --shared-memory --import-memory --export=prim_wasm_door
    --export=prim_wasm_threads --export=web_probe --export=web_damaged --export=__wasm_init_tls
    --export=__tls_base)
optimise() {
    web/node_modules/.bin/wasm-opt -tnh -Oz --converge --enable-threads --enable-bulk-memory --enable-mutable-globals \
        --enable-sign-ext "$@"
}

# The stack is for prim_wasm_take_area alone: each thread then has one of its own.
link_main() {
    wasm-ld-19 "${link[@]}" "${objects[@]}" -o "$1" -z stack-size=16384 --initial-memory=262144 \
        --max-memory=1073741824 --export=__stack_pointer --export-table
}
compile main
if [ "$plant" ]; then
    clang-19 "${flags[@]}" -iquote "$(dirname "$plant")" -c "$changed" -o "$into/plant.o"
    objects=("${objects[@]/#"$work/main/${plant//\//_}.o"/"$into/plant.o"}")
    [[ " ${objects[*]} " = *" $into/plant.o "* ]] || { echo "$plant is no source of the package"; exit 1; }
    link_main "$into/vigil.wasm"
    exit 0
fi
link_main "$work/vigil.wasm"
optimise --low-memory-unused "$work/vigil.wasm" -o "$into/vigil.wasm"

# The same, position-independent, for memory of other programs (lib/side.js).
compile side -fPIC -ftls-model=local-exec -DVIGIL_API=
wasm-ld-19 "${link[@]}" "${objects[@]}" -o "$work/side.wasm" -shared --experimental-pic --max-memory=4294967296 \
    --export=prim_wasm_set_heap
optimise "$work/side.wasm" -o "$into/side.wasm"

# Names of properties that no user of the package sees: shorter ones save some bytes.
internal='^(tryFast|tryOnce|takeAtOnce|noteDeath|unlockContended|checkHeld|onAbort|unlisten|startAsync|startWait'
internal+='|mayBlock|isMine|addressOf|isShared|segments|holdings|counts|integers|numbers|canBlock|viewOf|wordOf'
internal+='|lengthOf|outcomeOf|optionsOf|closedError|checkCallback|failure|parts|waitableView|doWait|doWaitAsync'
internal+='|rejectPending|deliver|operationsOf|isDamaged|damages|alarm|spin|watch|resume|ended|begin|fail'
internal+='|doNotify|toExpected|toTimeout|toCount|counted|died|taken|describe|settle|listen|is64|segment|entry|wide'
internal+='|WAIT32|WAIT64|MUTEX|READ|WRITE|PERMITS|CONDITION|BARRIER|NAMED|COUNTED_MUTEX|RWLOCK|NOT_EQUAL|TIMED_OUT'
internal+='|PENDING|CANCELLED|LAST|OWNER_DIED|TERMINATED|EIDLE|ETOOLATE|EINVAL|ENOTHELD|ENOTFOUND|EBUSY)$'
# The files of node/lib are ES modules here: so they become one scope, in which terser shortens all names. What they do
# for segments is left out, as there are none, and so are the parts of atomics.js that only @vigil/node uses.
modules=$work/modules
mkdir -p "$modules/web/lib" "$modules/node/lib"
cp web/lib/*.js "$modules/web/lib"
for file in node/lib/{core,words,atomics,mutex,sync,errors,held,options}.js; do
    sed -E "s/^const (\{.*\}) = require\((.*)\);$/import \1 from \2;/; s/^module\.exports = /export /
        /throw closedError\(\);$|^ *(this\.(counted|#fast) =|parts:)/d; s/ #fast;//
        s/word\.segment === undefined|this\.#fast/true/g; s/word\.segment !== undefined|(this|word)\.counted/false/g
        " "$file" >"$modules/$file"
done

# bundle SIDE FILE
bundle() {
    web/node_modules/.bin/esbuild "$modules/web/lib/index.js" --bundle --format=esm --minify-syntax --target=es2022 \
        --log-level=warning --mangle-props="$internal" --legal-comments=none --define:SIDE="$1" \
        --banner:js='// SPDX-License-Identifier: MIT' |
        web/node_modules/.bin/terser --module --compress passes=4,ecma=2022 --mangle --comments /SPDX/ --output "$2"
}
bundle false "$into/vigil.js"
bundle true "$into/side.js"
cp web/lib/index.d.ts "$into/vigil.d.ts"
cp node/lib/common.d.ts web/lib/{target,side}.d.ts web/package.json web/demo/isolate.js LICENSE "$into"
# Of what a checkout has and the package has not, the README of the package says where it is.
sed -E 's@\[demo/isolate\.js\]\(demo/isolate\.js\)@[isolate.js](isolate.js)@g
    s@!\[([^]]*)\]\(\.\./([^)]*)\)@\1: `\2` in a checkout.@g; s@\[([^]]*)\]\(\.\./[^)]*\)@\1@g
    s@\[[^]]*\]\(((example|emscripten)/[^)]*)\)@`web/\1` in a checkout@g' web/README.md >"$into/README.md"

# shellcheck disable=SC2016 # it is JavaScript
for file in vigil.wasm vigil.js side.wasm side.js; do
    node -e 'const { readFileSync } = require("fs"), { gzipSync, brotliCompressSync } = require("zlib");
        const file = process.argv[1], bytes = readFileSync(file);
        console.log(`${file}: ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} by gzip, ` +
            `${brotliCompressSync(bytes).length} by brotli`)' "$into/$file"
done
