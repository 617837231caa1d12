# SPDX-License-Identifier: MIT
#
# amalgamate.awk - many files into one: each file named, after the files it includes, each once. See amalgamate.sh.
#
#     awk -f amalgamate.awk -v folders="include src ..." [-v public=include/] FILE...
#
# With `public`, what lies below that folder is left out (another file has it), and the rest is made fit for one
# translation unit:
#
#   - What is declared for other files, and is not public, becomes static: what begins in the first column is at file
#     scope.
#   - The macros of a .c file end with it.
#
# File-local names carry the prefix of their module, so they do not collide. If two do, the compiler reports it, unless
# they are variables of the same type: those are looked for here.

BEGIN {
    for (i = 1; i < ARGC; i++) visit(ARGV[i])
    for (f = 1; f <= files; f++) emit(order[f])
    exit
}

function die(message) {
    print "amalgamate: " message >"/dev/stderr"
    failed = 1
    exit 1
}
END { if (failed) exit 1 }

# ---- Files, in order.

function visit(path,    i, found) {
    if (visited[path] == "done" || (public && index(path, public) == 1)) return
    if (visited[path]) die(path " includes itself")
    visited[path] = "begun"
    load(path)
    for (i = 1; i <= lines[path]; i++) {
        if (text[path, i] !~ /^ *# *include "/) continue
        found = text[path, i]
        gsub(/^[^"]*"|"[^"]*$/, "", found)
        visit(find(found, path))
    }
    visited[path] = "done"
    order[++files] = path
}

function load(path,    line, status) {
    while ((status = getline line <path) > 0) text[path, ++lines[path]] = line
    if (status < 0) die("cannot read " path)
    close(path)
}

function find(name, from,    folder, n, i, path, line) {
    n = split(folders, folder, " ")
    folder[0] = from
    sub(/\/[^\/]*$/, "", folder[0])
    for (i = 0; i <= n; i++) {
        path = folder[i] "/" name
        if ((getline line <path) > 0) {
            close(path)
            return path
        }
    }
    die("cannot find \"" name "\", which " from " includes")
}

# ---- The result.

function emit(path,    i, line, blank, is_source) {
    printf "\n/* ======== %s ======== */\n\n", path
    is_source = public && path ~ /\.c$/
    blank = 1
    for (i = 1; i <= lines[path]; i++) {
        line = text[path, i]
        if (line ~ /SPDX-License-Identifier/ || line ~ /^ *# *include "/ || line ~ /^# *define _GNU_SOURCE/) continue
        if (public && is_private(line)) {
            sub(/^extern /, "", line)
            line = "static " line
        }
        if (is_source) {
            note_macro(line)
            note_variable(path, line)
        }
        if (line != "" || !blank) print line
        blank = line == ""
    }
    if (is_source) end_macros()
}

# The declaration or definition, for other files, of a function or variable that is not public.
function is_private(line,    head) {
    if (line !~ /^[A-Za-z_]/ || line ~ /^(static|typedef) / || line ~ /^(_Static_assert|VIGIL_API)/) return 0
    if (line ~ /^(struct|union|enum)( [A-Za-z_0-9]+)?( \{.*)?;?$/) return 0
    if (line ~ /^[A-Za-z_0-9]+\(/ || line ~ /^[A-Za-z_0-9]+:/) return 0
    gsub(/ PRIM_PROCESS/, "", line)
    gsub(/__attribute__\(\(([^()]|\([^()]*\))*\)\)/, "", line)
    head = line
    sub(/[(=;\[{].*/, "", head)
    if (line ~ /\(\*[a-z_0-9]+\)\(/) return 1
    return head ~ /[A-Za-z_0-9][ *]+[A-Za-z_]/ && head !~ /[ *](vigil_|__)[A-Za-z_0-9]* *$/
}

function note_macro(line) {
    if (line !~ /^ *# *(define|undef) /) return
    line = substr(line, match(line, /(define|undef) +/) + RLENGTH)
    match(line, /^[A-Za-z_0-9]+/)
    line = substr(line, 1, RLENGTH)
    if (line ~ /^(_|VIGIL_)/ || line in macros) return
    macros[line] = ++macro_count
    macro[macro_count] = line
}

function note_variable(path, line) {
    if (line !~ /^static [^(]*;/ && line !~ /^static [^(]*=/) return
    gsub(/ PRIM_PROCESS|\[.*|=.*|;.*/, "", line)
    sub(/ *$/, "", line)
    sub(/.*[ *]/, "", line)
    if ((line in variable) && variable[line] != path) die(path " and " variable[line] " both have a variable " line)
    variable[line] = path
}

function end_macros(    i) {
    if (macro_count) print ""
    for (i = 1; i <= macro_count; i++) print "#undef " macro[i]
    split("", macros)
    macro_count = 0
}
