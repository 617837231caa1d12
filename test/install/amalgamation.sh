#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The amalgamation builds with one command by every available compiler, is the same library, and reports when it cannot
# be made.
. "$(dirname "$0")/common.sh"
root=$(cd "$here/../.." && pwd)
compilers=$(for each in "$CC" gcc clang; do
    command -v "$each" >/dev/null && readlink -f "$(command -v "$each")"
done | sort -u)

"$root/tools/amalgamate.sh" "$scratch/one"
"$root/tools/amalgamate.sh" "$scratch/two"
diff -r "$scratch/one" "$scratch/two" >/dev/null || fail "two runs differ"
cd "$scratch/one"

for compiler in $compilers; do
    for options in -std=c11 "-std=gnu17 -O2 -DNDEBUG -DVIGIL_CHECK"; do
        # shellcheck disable=SC2086
        "$compiler" $options -Wall -Wextra -Wpedantic -Werror -c vigil.c
        echo "$compiler $options -c vigil.c"
    done
done

# Its global symbols are those that the shared library exports. (One weak symbol belongs to the tracing probes.)
symbols() { awk 'NF == 3 && $2 != "A" { sub("@.*", "", $3); print $3 }' | grep -v '^_\.stapsdt\.base$' | sort; }
nm -g --defined-only vigil.o | symbols >global
nm -D --defined-only "$libdir/libvigil.so" | symbols >exported
diff exported global || fail "exported by the shared library (<) and global in vigil.o (>) differ"

# No two variables have become one, which C would accept silently.
variables() { nm "$@" | awk 'NF == 3 && $2 ~ /[bdBD]/' | wc -l; }
include=$(printf -- "-I$root/%s " include src src/prim src/prim/linux)
for source in $(sed -n 's/^\/\* ======== \(src\/.*\.c\) .*/\1/p' vigil.c); do
    # shellcheck disable=SC2086
    "$CC" -O0 $include -c "$root/$source" -o "$(echo "$source" | tr / -).o"
done
"$CC" -O0 -c vigil.c
apart=$(variables src-*.o)
together=$(variables vigil.o)
[ "$apart" = "$together" ] && [ "$apart" -gt 0 ] || fail "$apart variables in the files, $together in vigil.c"

# Whole programs, one command each.
run() {
    local program=$1
    sed 's/<vigil\/vigil\.h>/"vigil.h"/' "$root/example/$program.c" >"$program.c"
    for compiler in $compilers; do
        "$compiler" -std=c11 -Wall -Wextra -Werror "$program.c" vigil.c -o "$program" -pthread
        timeout 60 "./$program" >"$program.out" 2>&1 || fail "$program, by $compiler: $(cat "$program.out")"
        echo "$compiler $program.c vigil.c"
    done
}
run queue
run line
run minute
sort minute.out | diff - <(printf '%s\n' "notified 2" "the loop, hurried: timed-out" "the loop, patient: ok" \
    "the worker: ok") || fail "minute.c prints something else (<) than expected (>)"

sed 's/<vigil\/vigil\.h>/"vigil.h"/' "$here/consumer/main.c" >consumer.cc
"$CXX" -std=c++17 -Wall -Wextra -Wpedantic -Werror consumer.cc vigil.o -o consumer -pthread
./consumer
"$CC" -std=c11 -Wall -Wextra -Werror -DVIGIL_CHECK -x c consumer.cc -x none vigil.c -o consumer -pthread
./consumer

# Names that collide, and what cannot be handled, are errors.
cp -r "$root/src" "$root/include" "$root/tools" "$root/CMakeLists.txt" "$root/LICENSE" "$scratch"
sem=$scratch/src/sync/sem.c
cp "$sem" "$scratch/sem.c"
for planted in '#define PATIENCE_NS 1' 'static uint32_t gate;' \
    'static bool mutex_is_held(uint32_t seen) { return seen; }' '#include "nowhere.h"' 'static void unused(void) {}'; do
    cp "$scratch/sem.c" "$sem"
    echo "$planted" >>"$sem"
    if "$scratch/tools/amalgamate.sh" "$scratch/bad" 2>"$scratch/log"; then fail "no error for: $planted"; fi
    [ -s "$scratch/log" ] && [ ! -e "$scratch/bad/vigil.c" ] || fail "it fails in silence for: $planted"
    echo "fails as it should: $planted"
done
