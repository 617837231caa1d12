# SPDX-License-Identifier: MIT
#
# amalgamate.awk - many files into one: each file named, after the files it includes, each once. See amalgamate.sh.
#
#     awk -f amalgamate.awk -v folders="include src ..." [-v public=include/ -v system_names="signal ..."] FILE...
#
# With `public`, what lies below that folder is left out (another file has it), and the rest is made fit for one
# translation unit. It relies on the project's own format: what begins in the first column is at file scope, and one
# declaration has one name.
#
#   - What is declared in headers for other files, and is not public, becomes static.
#   - A name that several files have for something of their own (a static function or variable, a tag, an enumerator),
#     or that is one of the system's, gets the file's name before it: `take` of sem.c becomes sem_c_take. Members,
#     comments and strings stay.
#   - The macros of a .c file end with it.
#
# What cannot be dealt with so ends in an error; what this does not see, the compiler does.

BEGIN {
    for (i = 1; i < ARGC; i++) visit(ARGV[i])
    if (public) {
        for (f = 1; f <= files; f++) gather(order[f])
        resolve()
    }
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
    named[base(path)]++
}

function load(path,    line, i, answer) {
    while ((answer = getline line <path) > 0) text[path, ++lines[path]] = line
    if (answer < 0) die("cannot read " path)
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

function base(path) {
    sub(/.*\//, "", path)
    return path
}

function is_header(path) { return path ~ /\.h$/ }

# What stands before its names: sem_c, or, if two have that name, debug_check_c.
function prefix_of(path,    prefix) {
    prefix = base(path)
    if (named[prefix] > 1) prefix = base(substr(path, 1, length(path) - length(prefix) - 1)) "_" prefix
    gsub(/\./, "_", prefix)
    return prefix
}

# ---- Words of a line. After scan(line), word[1..words] is all of it, piece by piece, and kind[] tells words of the
# program ("w") from what lies between them ("-") and from comments and literals (" ").

function scan(line) {
    words = 0
    while (line != "") {
        if (in_comment) {
            in_comment = !match(line, /\*\//)
            line = piece(" ", line, in_comment ? length(line) : RSTART + 1)
        } else if (line ~ /^\/\*/) {
            in_comment = 1
            line = piece(" ", line, 2)
        } else if (match(line, /^("([^"\\]|\\.)*"|'([^'\\]|\\.)*')/)) line = piece(" ", line, RLENGTH)
        else if (match(line, /^[A-Za-z_][A-Za-z_0-9]*/)) line = piece("w", line, RLENGTH)
        else if (match(line, /^[0-9][A-Za-z_0-9]*/)) line = piece("-", line, RLENGTH)
        else if (match(line, /^[^A-Za-z_0-9"'\/]+/)) line = piece("-", line, RLENGTH)
        else line = piece("-", line, 1)
    }
}

function piece(which, line, length_of_it) {
    word[++words] = substr(line, 1, length_of_it)
    kind[words] = which
    return substr(line, length_of_it + 1)
}

function bare_line(    i, bare) {
    for (i = 1; i <= words; i++) bare = bare (kind[i] == " " ? " " : word[i])
    return bare
}

# ---- Names at file scope.

function gather(path,    i, j, line, place, inside, name) {
    in_comment = 0
    for (i = 1; i <= lines[path]; i++) {
        place = path ":" i
        scan(text[path, i])
        for (j = 1; j <= words; j++) if (kind[j] == "w") used[word[j]] = 1
        line = bare_line()
        if (line ~ /^ *# *define /) macro(path, line)
        if (line ~ /^ *# *undef /) {
            undone[path, last_word(line)] = 1
            delete header_macro[last_word(line)]
        }
        if (line ~ /^enum( [A-Za-z_0-9]+)? \{/) inside = "enum"
        if (line ~ /^(static )?(struct|union)( [A-Za-z_0-9]+)? \{ *$/) inside = "struct"
        if (match(line, /^(struct|union|enum) [A-Za-z_0-9]+ \{/)) own(path, "tag", first_word(after(line, " ")))
        if (inside == "enum") enumerators(path, line)
        if (inside == "struct") in_struct[path, i] = 1
        if (inside && line ~ /^\} [A-Za-z_]/) own(path, "name", first_word(after(line, " ")))
        else if (!inside && line ~ /^typedef/) own(path, "name", typedef_name(line))
        else if (!inside && line ~ /^[A-Za-z_]/ && line !~ /^(struct|union|enum) [A-Za-z_0-9]+;/)
            declaration(path, i, line, place)
        if (inside && line ~ /(^\}|\};?) *[A-Za-z_]* *;/) inside = ""
    }
}

function after(line, mark) { return substr(line, index(line, mark) + 1) }

function first_word(line) { return match(line, /[A-Za-z_][A-Za-z_0-9]*/) ? substr(line, RSTART, RLENGTH) : "" }

function last_word(line) {
    sub(/[^A-Za-z_0-9]*$/, "", line)
    sub(/.*[^A-Za-z_0-9]/, "", line)
    return line
}

function macro(path, line) {
    sub(/^ *# *define */, "", line)
    line = first_word(line)
    if (is_header(path)) header_macro[line] = path
    else if (line !~ /^(_|VIGIL_)/) file_macros[path] = file_macros[path] " " line
}

function enumerators(path, line,    part, n, i) {
    if (line ~ /\{/) line = after(line, "{")
    n = split(line, part, ",")
    for (i = 1; i <= n; i++) if (part[i] !~ /^ *\}/ && first_word(part[i])) own(path, "name", first_word(part[i]))
}

function typedef_name(line) {
    sub(/\(.*/, "", line)
    return last_word(line)
}

# A function's or a variable's. Less than two words before its end: no declaration but a macro's call.
function declaration(path, i, line, place,    head, name) {
    gsub(/__attribute__\(\(([^()]|\([^()]*\))*\)\)/, "", line)
    gsub(/ PRIM_PROCESS/, "", line)
    head = line
    sub(/[(=;\[,{].*/, "", head)
    if (match(line, /^[a-z_0-9 *]+\(\*[a-z_0-9]+\)\(/)) name = last_word(substr(line, 1, RLENGTH - 1))
    else if (head ~ /\* *$/ || line ~ /^[^(={]*,/) die(place ": more or less than one name is declared here")
    else if (head !~ /[A-Za-z_0-9][ *]+[A-Za-z_]/ || head ~ /^static (const )?(struct|union) *$/) return
    else name = last_word(head)
    if (line ~ /(^| )static /) own(path, "name", name)
    else if (name !~ /^(vigil_|__)/) {
        becomes_static[path, i] = 1
        shared["name", name] = 1
    }
}

# The file has something of its own of that name.
function own(path, space, name) {
    if (is_header(path)) shared[space, name] = 1
    else if (!((path, space, name) in owned)) {
        owned[path, space, name] = 1
        owners[space, name]++
    }
}

function resolve(    key, part, new, i, n) {
    n = split(system_names, part, " ")
    for (i = 1; i <= n; i++) shared["name", part[i]] = 1
    for (key in owned) {
        split(key, part, SUBSEP)
        if (owners[part[2], part[3]] < 2 && !((part[2], part[3]) in shared)) continue
        new = prefix_of(part[1]) "_" part[3]
        if (new in used || ((part[2], new) in made)) die(part[1] ": " part[3] " collides, and so does " new)
        made[part[2], new] = 1
        renamed[key] = new
    }
}

# ---- The result.

function emit(path,    i, line, blank, macros, n, part) {
    printf "\n/* ======== %s ======== */\n\n", path
    in_comment = 0
    blank = 1
    before = ""
    for (i = 1; i <= lines[path]; i++) {
        line = text[path, i]
        if (line ~ /SPDX-License-Identifier/ || line ~ /^ *# *include "/ || line ~ /^# *define _GNU_SOURCE/) continue
        if (public) line = fitting(path, i, line)
        if (line != "" || !blank) print line
        blank = line == ""
    }
    n = split(file_macros[path], part, " ")
    if (n) print ""
    for (i = 1; i <= n; i++) {
        if (part[i] in header_macro) die(path ": the macro " part[i] " is one of " header_macro[part[i]] " as well")
        if (!((path, part[i]) in undone)) print "#undef " part[i]
        undone[path, part[i]] = 1
    }
}

# The line with its names changed, and static if it is to be. `before` is the last word, or what stands after it.
function fitting(path, i, line,    j, space, result) {
    scan(line)
    for (j = 1; j <= words; j++) {
        if (kind[j] == "w") {
            space = before ~ /^(struct|union|enum)$/ ? "tag" : "name"
            if (space == "name" && (before ~ /(\.|->) *$/ || ((path, i) in in_struct))) space = "member"
            if ((path, space, word[j]) in renamed) word[j] = renamed[path, space, word[j]]
        }
        if (kind[j] != " " && word[j] !~ /^ *$/) before = word[j]
        result = result word[j]
    }
    if ((path, i) in becomes_static) {
        sub(/^extern /, "", result)
        result = "static " result
    }
    return result
}
