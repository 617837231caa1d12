#!/usr/bin/awk -f
# SPDX-License-Identifier: MIT
#
# screen_svg.awk - a terminal's screen as an SVG:
#     tmux capture-pane -p -e -N | awk -v title="vigil top" -f screen_svg.awk
#
# It knows what `vigil top` uses: bold, dim, reverse, and the sixteen colours.
BEGIN {
    columns = columns ? columns : 80
    rows = rows ? rows : 24
    cell_width = 8.43
    cell_height = 18
    margin = 16
    bar = 30 # with the title
    paper = "#0d1117"
    ink = "#c9d1d9"
    split("#484f58 #ff7b72 #3fb950 #d29922 #58a6ff #bc8cff #39c5cf #b1bac4 " \
          "#6e7681 #ffa198 #56d364 #e3b341 #79c0ff #d2a8ff #56d4dd #f0f6fc", palette, " ")
    width = int(2 * margin + columns * cell_width)
    height = bar + margin + rows * cell_height + margin / 2
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", \
        width, height, width, height
    printf "<title>%s</title>\n", escaped(title)
    print "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;" \
        "white-space:pre}.bold{font-weight:bold}</style>"
    printf "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"%s\"/>\n", width, height, paper
    for (i = 0; i < 3; i++)
        printf "<circle cx=\"%d\" cy=\"17\" r=\"5\" fill=\"%s\"/>", margin + 5 + i * 18, palette[1]
    printf "\n<text x=\"%d\" y=\"22\" text-anchor=\"middle\" fill=\"%s\">%s</text>\n", \
        width / 2, palette[9], escaped(title)
    plain()
}

# What is said for one line goes on in the next: so does the terminal's state.
NR <= rows {
    rest = $0
    column = 0
    while (match(rest, /\033\[[0-9;]*m/)) {
        run(substr(rest, 1, RSTART - 1))
        set(substr(rest, RSTART + 2, RLENGTH - 3))
        rest = substr(rest, RSTART + RLENGTH)
    }
    run(rest)
}

END { print "</svg>" }

function escaped(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    return text
}

function plain() {
    bold = dim = reverse = 0
    front = ink
    back = paper
}

function set(codes,    i, count, code, list) {
    count = split(codes, list, ";")
    if (count == 0) plain()
    for (i = 1; i <= count; i++) {
        code = list[i] + 0
        if (code == 0) plain()
        else if (code == 1) bold = 1
        else if (code == 2) dim = 1
        else if (code == 7) reverse = 1
        else if (code == 22) bold = dim = 0
        else if (code == 27) reverse = 0
        else if (code >= 30 && code <= 37) front = palette[code - 29]
        else if (code == 39) front = ink
        else if (code >= 40 && code <= 47) back = palette[code - 39]
        else if (code == 49) back = paper
        else if (code >= 90 && code <= 97) front = palette[code - 81]
    }
}

# A piece of a line, all in the same colours. Its length is given, so that columns are columns in every font.
function run(text,    x, y, length_px, fill, behind) {
    if (text == "") return
    x = margin + column * cell_width
    y = bar + margin / 2 + (NR - 1) * cell_height
    length_px = length(text) * cell_width
    column += length(text)
    fill = reverse ? back : front
    behind = reverse ? front : back
    if (behind != paper)
        printf "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>", \
            x, y, length_px, cell_height, behind
    sub(/ +$/, "", text)
    if (text == "") return
    printf "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\" fill=\"%s\"" \
        "%s%s xml:space=\"preserve\">%s</text>\n", \
        x, y + 13, length(text) * cell_width, fill, bold ? " class=\"bold\"" : "", dim ? " opacity=\"0.6\"" : "", \
        escaped(text)
}
