#!/bin/sh
# SPDX-License-Identifier: MIT
#
# layers.sh [--draw] [SRC] - the folders of src and which of them includes which.
#
# Fails if the folders form a cycle, if a folder includes one that is above it in `layers`, or if it is not listed
# there; and if a source outside of prim is not in exactly one of the lists in CMakeLists.txt (core, system, alone).
# Prints a line for each folder; with --draw the graph for Graphviz (layers.sh --draw | dot -Tsvg).
#
# An include is resolved as the compiler does it: the folder of the file, then src, src/prim and src/prim/linux. A
# header that lies in src itself belongs to no folder: a file that includes it includes what it includes.
set -u
draw=0
[ "${1-}" != --draw ] || { draw=1 && shift; }
cd "${1-$(dirname "$0")/../src}" || exit 1

if [ -f ../CMakeLists.txt ]; then
    listed=$(awk '/^set\(VIGIL_(CORE|SYSTEM|ALONE)_SOURCES/ { inside = 1; next }
        inside { last = /\)/; sub(/\)/, ""); print $1; if (last) inside = 0 }' ../CMakeLists.txt | sort)
    there=$(find . -name '*.c' ! -path './prim/*' | sed 's/^..//' | sort)
    if [ "$listed" != "$there" ]; then
        echo "CMakeLists.txt does not list each source once" >&2
        exit 1
    fi
fi

# shellcheck disable=SC2016
find . -name '*.[ch]' | sort | xargs awk -v draw="$draw" '
BEGIN {
    # from the bottom up
    count = split("prim base shm lot recovery agent memory alone sync named observe debug", layers, " ")
    for (i = 1; i <= count; i++) rank[layers[i]] = i
}
FNR == 1 { file = substr(FILENAME, 3); known[file] = 1 }
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, part, "\"")
    included[++includes] = part[2]; from[includes] = file; line[includes] = FNR
}
function folder_of(path) { return path ~ "/" ? substr(path, 1, index(path, "/") - 1) : "" }
function resolved(path, name,    folder) {
    folder = path
    if (!sub("/[^/]*$", "/", folder)) folder = ""
    if (folder name in known) return folder name
    if (name in known) return name
    if ("prim/" name in known) return "prim/" name
    if ("prim/linux/" name in known) return "prim/linux/" name
    return ""
}
function place(i) { return "src/" from[i] ":" line[i] ": #include \"" included[i] "\"" }
function fail(text) { print text > "/dev/stderr"; failed = 1 }

# An arrow from the folder, for an include of its own or of a header in src.
function arrow(folder, i, because,    target, j, to) {
    target = resolved(from[i], included[i])
    to = folder_of(target)
    if (target == "") {
        if (included[i] !~ "^vigil/") fail(place(i) ": no such file in src")
    } else if (to == "") {
        for (j = 1; j <= includes; j++) if (from[j] == target) arrow(folder, j, because "    by way of " place(i) "\n")
    } else if (to != folder) {
        arrows[folder, to] = arrows[folder, to] "    " place(i) "\n" because
    }
}
# Follows the arrows depth first; what is on the way has state 1, what has been left has state 2.
function visit(folder, way,    i, to, at) {
    state[folder] = 1
    for (i = 1; i <= folders; i++) {
        to = name[i]
        if (!((folder, to) in arrows)) continue
        if (state[to] == 1) {
            at = index(way " ", " " to " ")
            report_cycle(substr(way, at + 1) " " to)
        } else if (!state[to]) visit(to, way " " to)
    }
    state[folder] = 2
}
function report_cycle(way,    part, n, i) {
    n = split(way, part, " ")
    gsub(" ", " -> ", way)
    fail("cycle: " way)
    for (i = 1; i < n; i++) {
        fail("  " part[i] " -> " part[i + 1])
        printf "%s", arrows[part[i], part[i + 1]] > "/dev/stderr"
    }
}
END {
    for (i = 1; i <= count; i++) name[++folders] = layers[i]
    for (path in known) {
        folder = folder_of(path)
        if (folder == "" || (folder in rank)) continue
        fail("src/" folder ": not in the list of layers.sh")
        name[++folders] = folder; rank[folder] = folders
    }
    for (i = 1; i <= includes; i++) if (folder_of(from[i]) != "") arrow(folder_of(from[i]), i, "")
    if (draw) print "digraph src {\n    node [shape=box];"
    for (i = folders; i >= 1; i--) {
        text = ""
        if (draw) print "    " name[i] ";"
        for (j = folders; j >= 1; j--) {
            if (!((name[i], name[j]) in arrows)) continue
            text = text " " name[j]
            if (draw) print "    " name[i] " -> " name[j] ";"
            if (rank[name[j]] < rank[name[i]]) continue
            fail("upwards: " name[i] " -> " name[j])
            printf "%s", arrows[name[i], name[j]] > "/dev/stderr"
        }
        if (!draw) printf "%-10s ->%s\n", name[i], text
    }
    if (draw) print "}"
    for (i = 1; i <= folders; i++) if (!state[name[i]]) visit(name[i], " " name[i])
    exit failed
}'
