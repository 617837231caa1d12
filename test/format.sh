#!/bin/sh
# SPDX-License-Identifier: MIT
#
# format.sh [FOLDER] - how sources, headers, scripts and documents are written. Prints file:line of each violation:
#
#     a line of more than 120 columns, except a row of a table in Markdown; a URL does not count
#     a space, tab or carriage return at the end of a line
#     a tab, except at the beginning of a line in a Makefile
#     a source file that does not name its licence in one of its first two lines (SPDX)
#     no newline at the end of the file
#
# It needs no git, so that it works in an archive of the sources too. There is no list of exceptions.
set -u
export LC_ALL=C
cd "${1-$(dirname "$0")/..}" || exit 1

files() {
    find . \( -name .git -o -name .cache -o -name node_modules -o -path ./build -o -path './build-*' \) -prune -o \
        -type f \( "$@" \) ! -name compile_commands.json -print | sort
}
sources=$(files \
    -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' -o -name '*.js' -o -name '*.mjs' -o -name '*.ts' -o \
    -name '*.[cm]ts' -o -name '*.py' -o -name '*.pml' -o -name '*.sh' -o -name '*.bash' -o -name '*.zsh' -o \
    -name '*.fish' -o -name '*.awk' -o -name '*.map' -o -name CMakeLists.txt -o -name '*.cmake' -o \
    -name Makefile -o -name '*.[137]' -o -name '*.yml' -o -path './cli/completion/_*' -o -path ./.ci/run)
others=$(files \
    -name '*.md' -o -name '*.json' -o -name '*.in' -o -name control -o -name copyright -o -name LICENSE -o \
    -name .clang-format -o -name .editorconfig -o -name .gitignore)

# The names have no spaces. The lines as wc counts them are one less than those of awk if the last one has no newline.
# shellcheck disable=SC2086
SOURCES=$sources COUNTS=$(wc -l $sources $others) exec awk '
BEGIN {
    count = split(ENVIRON["SOURCES"], list, "\n")
    for (i = 1; i <= count; i++) is_source[list[i]] = 1
    count = split(ENVIRON["COUNTS"], list, "\n")
    for (i = 1; i < count; i++) { # the last one is the total
        split(list[i], field, " ")
        newlines[field[2]] = field[1]
        ARGV[ARGC++] = field[2]
    }
}
function columns(text) {
    gsub("https?://[^ \t<>()\"]*", "", text)
    gsub("[\200-\277]", "", text) # UTF-8: what follows the first byte of a character
    return length(text)
}
function fail(line, text) { print substr(file, 3) ":" line ": " text; failed++ }
function end_file() {
    if (file == "") return
    if (is_source[file] && !licensed) fail(1, "no SPDX-License-Identifier in the first two lines")
    if (newlines[file] < lines) fail(lines, "no newline at the end of the file")
}
FNR == 1 {
    end_file()
    file = FILENAME; licensed = 0; read[file] = 1
    is_makefile = file ~ "/Makefile$"; is_markdown = file ~ "[.]md$"
}
FNR <= 2 && /SPDX-License-Identifier: / { licensed = 1 }
/[ \t\r]$/ { fail(FNR, "white space at the end of the line") }
/\t/ {
    text = $0
    if (is_makefile) sub("^\t+", "", text)
    if (text ~ "\t") fail(FNR, "a tab")
}
length($0) > 120 && !(is_markdown && /^ *[|]/) && columns($0) > 120 { fail(FNR, "more than 120 columns: " columns($0)) }
{ lines = FNR }
END {
    end_file()
    for (file in is_source) if (!(file in read)) fail(1, "an empty file")
    if (!failed) print "format.sh: nothing to complain of in " ARGC - 1 " files"
    exit failed != 0
}'
