#!/bin/sh
# SPDX-License-Identifier: MIT
#
# language.sh [FOLDER] - whether prose names its actors: see "Language and names" in CONTRIBUTING.md. It reads the
# comments of C, C++, JavaScript and TypeScript files, and the Markdown files and manual pages without their examples
# and `code`. It prints per folder the number of words, and how many of each 1,000 are
#
#     who, whom, whoever                           at most 1, for people
#     somebody, nobody, anybody, everybody         at most 0.5
#     he, him, his, himself                        at most 0.2
#
# and fails if a folder has more, with file:line of each such word there. It needs no git, so that it works in an
# archive of the sources too. There is no list of exceptions.
set -u
export LC_ALL=C
cd "${1-$(dirname "$0")/..}" || exit 1

# The names have no spaces.
# shellcheck disable=SC2046
exec awk '
function limit(kind) { return kind == "who" ? 1 : kind == "-body" ? 0.5 : 0.2 }
function kind_of(word) {
    if (word ~ /^(who|whom|whoever)$/) return "who"
    if (word ~ /^(some|no|any|every)body(s|\047s)?$/) return "-body"
    return word ~ /^(he|him|his|himself)$/ ? "he" : ""
}
function count(text,    i, n, word, kind) {
    gsub(/`[^`]*`/, " ", text)
    gsub(/[^A-Za-z\047]+/, " ", text)
    n = split(tolower(text), word, " ")
    words[folder] += n
    for (i = 1; i <= n; i++) {
        kind = kind_of(word[i])
        if (kind == "") continue
        hits[folder, kind]++
        places[folder, kind] = places[folder, kind] "    " substr(FILENAME, 3) ":" FNR ": " word[i] "\n"
    }
}
function count_comments(line,    token, end) {
    while (line != "") {
        if (in_comment) {
            if (!(end = index(line, "*/"))) { count(line); return }
            count(substr(line, 1, end - 1))
            line = substr(line, end + 2)
            in_comment = 0
        } else {
            if (!match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/)) return
            token = substr(line, RSTART, 2)
            if (token == "//") { count(substr(line, RSTART + 2)); return }
            if (token == "/*") in_comment = 1
            line = substr(line, RSTART + (in_comment ? 2 : RLENGTH))
        }
    }
}
FNR == 1 {
    folder = FILENAME
    sub(/\/[^\/]*$/, "", folder)
    folder = folder == "." ? "(root)" : substr(folder, 3)
    in_comment = in_example = 0
    language = FILENAME ~ /[.]md$/ ? "Markdown" : FILENAME ~ /[.][0-9]$/ ? "roff" : "C"
}
language == "C" { if (in_comment || index($0, "/")) count_comments($0); next }
/^ *```/ && language == "Markdown" { in_example = !in_example; next }
language == "roff" {
    if (/^[.](EX|nf)/) in_example = 1
    if (/^[.](EE|fi)/) in_example = 0
    if (!sub(/^[.][A-Z][A-Z]? /, "") && /^[.\047]/) next # a request without text
    gsub(/\\f[A-Z]/, " ")
}
!in_example { count($0) }
END {
    kinds = split("who -body he", kind, " ")
    for (folder in words) {
        if (!words[folder]) continue
        row = sprintf("%-24s %6d words", folder, words[folder])
        over = ""
        for (i = 1; i <= kinds; i++) {
            rate = hits[folder, kind[i]] * 1000 / words[folder]
            row = row sprintf("  %s %.1f", kind[i], rate)
            if (rate <= limit(kind[i])) continue
            over = over "    more than " limit(kind[i]) " in 1,000 of " kind[i] ":\n" places[folder, kind[i]]
        }
        print row (over == "" ? "" : "  too many") | "sort"
        failures = failures (over == "" ? "" : folder ":\n" over)
    }
    close("sort")
    printf "%s", failures
    exit failures != ""
}' $(find . \( -name .git -o -name .cache -o -name node_modules -o -path ./build -o -path './build-*' \) -prune -o \
    -type f \( \
    -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' -o -name '*.js' -o -name '*.mjs' -o -name '*.ts' -o \
    -path './doc/*.md' -o -path './doc/man/*.[0-9]' -o -path ./README.md -o -path ./node/README.md -o \
    -path ./web/README.md -o -path ./CONTRIBUTING.md -o -path ./CHANGELOG.md -o -path ./SECURITY.md \) -print | sort)
