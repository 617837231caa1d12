# SPDX-License-Identifier: MIT
#
# manual.awk - the manual pages of section 3, made of the headers' own text, so that the two cannot disagree.
#
#     awk -v folder=OUT -v version=0.1.0 -f tools/manual.awk include/vigil/*.h adapter/*.h
#
# A header becomes a page of its name, and each function and type in it a page that is a link to that one.
#
# How a header must be written: it opens with an essay, "vigil/x.h - what it is. ..."; then come declarations, each
# group of them below the comment that is about it. Comments have
#
#     paragraphs, and "- " before each item of a list;
#     HEADINGS, on a line of their own or at the beginning of a paragraph, then with a full stop;
#     examples and tables, which are indented by four;
#     "vigil_f, vigil_g - what they do", or "vigil_f: ...", where it is about one function of several;
#     `names` of parameters.
#
# What is inline is taken from the prototypes for VIGIL_NO_INLINE; in an adapter, what has a comment right above it.
# No extensions of any awk are used.

# ---------------------------------------------------------------------------------------------------- words and lines

function trimmed(s) {
    sub(/^[ \t]+/, "", s)
    sub(/[ \t]+$/, "", s)
    return s
}

function spaces(n) { return sprintf("%" n "s", "") }

function indentation(s) {
    match(s, /^ */)
    return RLENGTH
}

# Characters that roff would take for something else. For code, and for the rest of prose.
function escaped(s) {
    gsub(/\\/, "\\e", s)
    gsub(/`/, "\\(ga", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    return s
}

function code(s) {
    s = escaped(s)
    gsub(/-/, "\\-", s)
    gsub(/'/, "\\(aq", s)
    if (s ~ /^\./) s = "\\&" s
    return s
}

# The page that a word like "wait.h" or "vigil/wait.h" stands for; "" if it is none of ours.
function page_of(word) {
    sub(/^vigil\//, "", word)
    sub(/\.h$/, "", word)
    if (("vigil_" word) in pages) return "vigil_" word
    return ""
}

# Names are set in bold, `parameters` in italics, and headers become the pages that are made of them.
function marked(s,    out, word, page) {
    out = ""
    while (match(s, /`[^`]*`|vigil\/[a-z_]+\.h|[a-z_]+\.h|vigil_[a-z0-9_]+|VIGIL_[A-Z0-9_]+/)) {
        word = substr(s, RSTART, RLENGTH)
        out = out escaped(substr(s, 1, RSTART - 1))
        s = substr(s, RSTART + RLENGTH)
        if (word ~ /^`/) {
            out = out "\\fI" code(substr(word, 2, length(word) - 2)) "\\fP"
        } else if (word ~ /\.h$/) {
            page = page_of(word)
            mention(page)
            out = out (page == "" ? code(word) : "\\fB" page "\\fP(3)")
        } else {
            mention(word)
            out = out "\\fB" word "\\fP"
        }
    }
    return out escaped(s)
}

# A page, or a name, for SEE ALSO.
function mention(word) { mentions[name] = mentions[name] " " word }

# A paragraph: each sentence on a line of its own, as roff wants it.
function say(s,    sentence) {
    s = trimmed(s)
    while (match(s, /[.!?][)"]? +[A-Z(`"]/)) {
        sentence = substr(s, 1, RSTART + RLENGTH - 2)
        s = substr(s, RSTART + RLENGTH - 1)
        say_line(trimmed(sentence))
    }
    say_line(s)
}

function say_line(s) {
    s = marked(s)
    if (s ~ /^[.']/) s = "\\&" s
    put(s)
}

# A line of the page. A paragraph's beginning waits until it is known to be needed: not next to a heading or an item.
function put(s) {
    if (s == ".PP") {
        if (!heading_due && last_put !~ /^\.S[HS]/) break_due = 1
        return
    }
    if (heading_due) {
        print heading_due > file
        heading_due = ""
        break_due = 0
    }
    if (s ~ /^\.(S[HS]|[IT]P)/) break_due = 0
    if (break_due && s !~ /^\.(PD|RE)/) {
        print ".PP" > file
        break_due = 0
    }
    print s > file
    last_put = s
}

# A line broken at blanks so that no part is wider than there is room for, the later ones further in.
function put_broken(s,    margin, cut) {
    margin = spaces(indentation(s) + 4)
    while (length(s) > room) {
        cut = last_before(s, "; ", room) + 1
        if (cut < room / 2) cut = last_before(s, ", ", room) + 1
        if (cut < room / 2) cut = last_before(s, " ", room + 1)
        if (cut <= length(margin)) break
        put(code(substr(s, 1, cut - 1)))
        s = margin trimmed(substr(s, cut))
    }
    put(code(s))
}

# Where `what` occurs last in s, at `limit` or before; 0: nowhere.
function last_before(s, what, limit) {
    while (limit && substr(s, limit, length(what)) != what) limit--
    return limit
}

# --------------------------------------------------------------------------------------------------------- prototypes

# A prototype broken at commas, the later lines below the first parameter; parameters in italics.
function put_prototype(s,    open, head, list, n, i, line, part, margin, width) {
    open = index(s, "(")
    head = substr(s, 1, open)
    n = split(substr(s, open + 1), list, /, */)
    margin = spaces(length(head))
    line = "\\fB" code(head)
    width = length(head)
    for (i = 1; i <= n; i++) {
        part = list[i] (i < n ? "," : "")
        if (i > 1 && width + 1 + length(part) > 72) {
            put(line "\\fP")
            line = margin "\\fB"
            width = length(margin)
        } else if (i > 1) {
            line = line " "
            width++
        }
        line = line parameter(part)
        width += length(part)
    }
    put(line "\\fP")
}

function parameter(s,    n) {
    if (match(s, /[a-z_0-9]+(,|\);)$/) && RSTART > 1) {
        n = s
        sub(/(,|\);)$/, "", n)
        return code(substr(s, 1, RSTART - 1)) "\\fI" substr(n, RSTART) "\\fB" substr(s, length(n) + 1)
    }
    return code(s)
}

function put_declaration(d) {
    if (kind[d] ~ /function/) put_prototype(text[d])
    else put("\\fB" code(text[d]) "\\fP")
}

# ------------------------------------------------------------------------------------------------------------ comments

# Comment text, as lines, becomes paragraphs, lists, headings and examples.
function put_comment(lines, n,    i, j, k, block, para, line) {
    paragraph_due = 0
    for (i = 1; i <= n; i = j) {
        line = lines[i]
        j = i + 1
        if (line == "") {
            paragraph_due = 1
            continue
        }
        if (line ~ /^    / && (i == 1 || lines[i - 1] == "")) {
            k = 0
            for (j = i; j <= n && lines[j] ~ /^    /; j++) block[++k] = substr(lines[j], 5)
            put_block(block, k)
            paragraph_due = 1
            continue
        }
        para = line
        while (j <= n && lines[j] != "" && lines[j] !~ /^- / && !tag_length(lines[j]))
            para = para " " trimmed(lines[j++])
        put_paragraph(para)
    }
}

# How much of a line is "vigil_f - " or "vigil_f, vigil_g - " or "vigil_f: ".
function tag_length(line) {
    if (match(line, /^vigil_[a-z0-9_]+(, vigil_[a-z0-9_]+)* - /)) return RLENGTH
    if (match(line, /^vigil_[a-z0-9_]+: /)) return RLENGTH
    return 0
}

function put_paragraph(s,    heading) {
    if (s ~ /^[A-Z][A-Z ]+$/) {
        put_heading(s)
    } else if (s ~ /^- /) {
        put(".IP \\(bu 2")
        say(substr(s, 3))
    } else if (s ~ /^  /) {
        put(".IP \"\" 2")
        say(s)
    } else {
        if (match(s, /^[A-Z][A-Z]+( [A-Z]+)*\. /)) {
            heading = substr(s, 1, RLENGTH - 2)
            s = substr(s, RLENGTH + 1)
            put_heading(heading)
        }
        if (paragraph_due) put(".PP")
        say(s)
    }
    paragraph_due = 1
}

function put_heading(s) {
    put(".SS " substr(s, 1, 1) tolower(substr(s, 2)))
    paragraph_due = 0
}

# What is indented: as it is, if it fits; else with its columns moved together; else rearranged.
function put_block(lines, n,    i, widest, labels, is_label) {
    labels = find_columns(lines, n)
    if (widest_of(lines, n) > room && labels && !continued) {
        for (i = 1; i <= n; i++)
            if (right[i] != "") lines[i] = left[i] spaces(left_widest - length(left[i]) + 3) right[i]
    }
    widest = widest_of(lines, n)
    if (widest > room && labels && !looks_like_code(lines, n)) {
        put_table(n)
        return
    }
    if (widest > room && looks_like_list(lines, n)) {
        for (i = 1; i <= n; i++) {
            put(".IP \\(bu 2")
            say(lines[i])
        }
        return
    }
    put(".PP")
    put(".RS 4")
    put(".EX")
    for (i = 1; i <= n; i++) {
        is_label = widest > room && left[i] !~ /;$/
        if (right[i] != "" && (is_label || length(lines[i]) > room)) {
            if (left[i] != "") put_broken(left[i])
            put_broken(spaces(indentation(left[i]) + 4) right[i])
        } else {
            put_broken(lines[i])
        }
    }
    put(".EE")
    put(".RE")
}

function looks_like_list(lines, n,    i) {
    for (i = 1; i <= n; i++) if (lines[i] !~ /^[^ ].*[;.]$/ || lines[i] ~ /\);$/ && lines[i] !~ / \(/) return 0
    return 1
}

function widest_of(lines, n,    i, most) {
    most = 0
    for (i = 1; i <= n; i++) if (length(lines[i]) > most) most = length(lines[i])
    return most
}

function looks_like_code(lines, n,    i) {
    for (i = 1; i <= n; i++) if (lines[i] ~ /[A-Za-z0-9_]\(.*\).*;/) return 1
    return 0
}

# Two columns? Then left[] and right[] of each line, and how wide the left ones are. `continued`: some line has only
# the right one. Lines without a gap are split where the first one was.
function find_columns(lines, n,    i, at, column, s) {
    column = 0
    continued = 0
    left_widest = 0
    for (i = 1; i <= n; i++) {
        s = lines[i]
        left[i] = s
        right[i] = ""
        at = 0
        if (column && substr(s, 1, column - 1) ~ /^ *$/) {
            left[i] = ""
            right[i] = substr(s, column)
            continued = 1
            continue
        }
        if (match(s, /[^ ]   */)) at = RSTART + RLENGTH
        else if (column && substr(s, column - 1, 1) == " ") at = column
        if (!at) continue
        if (!column) column = at
        left[i] = substr(s, 1, at - 1)
        sub(/ +$/, "", left[i])
        right[i] = substr(s, at)
        if (length(left[i]) > left_widest) left_widest = length(left[i])
    }
    return column
}

# Items without blank lines between them: up to .PD.
function put_compactly() {
    if (last_put !~ /^\.(S[HS]|RS)/) put(".sp")
    put(".PD 0")
}

function put_table(n,    i, body) {
    if (left_widest < 8) put_compactly()
    for (i = 1; i <= n; i++) {
        if (left[i] != "") {
            put(".TP " (left_widest < 8 ? left_widest + 3 : 8))
            put("\\fB" code(left[i]) "\\fP")
            body = ""
        }
        body = body " " trimmed(right[i])
        if (i == n || left[i + 1] != "") say(body)
    }
    if (left_widest < 8) put(".PD")
}

# ------------------------------------------------------------------------------------------------------- reading a file

# Not for readers: what the inline functions and the macros of VIGIL_CHECK call.
function hidden(symbol) {
    return symbol ~ /^vigil__/ || symbol ~ /^VIGIL_(API|HERE|STATUS_ENUMERATOR)$/ || symbol ~ /_H$/
}

function new_group() {
    if (group_lines[groups] || group_size[groups]) groups++
    group_lines[groups] = 0
    group_size[groups] = 0
    group_hides[groups] = 0
}

function declare(what, symbol, s, in_group) {
    if (hidden(symbol)) {
        group_hides[groups] = 1
        return
    }
    if ((what, symbol) in declared) return
    declared[what, symbol] = 1
    kind[++declarations] = what
    symbols[declarations] = symbol
    text[declarations] = s
    group_of[declarations] = in_group
    fields[declarations] = 0
    if (in_group) group_size[in_group]++
}

# The comment that begins at line i, into comment[1..comment_lines]; returns the line after it.
function read_comment(i,    s, more) {
    comment_lines = 0
    s = source[i]
    sub(/^ *\/\*/, "", s)
    more = 1
    while (more) {
        more = s !~ /\*\/ *$/
        sub(/ *\*\/ *$/, "", s)
        sub(/^ /, "", s)
        if (s !~ /^ *$/ || comment_lines) comment[++comment_lines] = s
        more = more && i < lines_of_file
        if (more) {
            s = source[++i]
            sub(/^ \*/, "", s)
            if (s == "/") s = "*/"
        }
    }
    while (comment_lines && comment[comment_lines] ~ /^ *$/) comment_lines--
    return i + 1
}

# The rest of a declaration, up to a line that ends as `last` says, into `joined`; returns the line after it.
function join_until(i, last) {
    joined = source[i]
    while (source[i] !~ last && i < lines_of_file) joined = joined " " trimmed(source[++i])
    return i + 1
}

function skip_conditional(i,    depth) {
    depth = 0
    do {
        if (source[i] ~ /^#if/) depth++
        if (source[i] ~ /^#endif/) depth--
        i++
    } while (depth && i <= lines_of_file)
    return i
}

# Behind the next line that is exactly this.
function skip_to(i, last) {
    while (i <= lines_of_file && source[i] != last) i++
    return i + 1
}

function name_before_paren(s) {
    match(s, /[a-z0-9_]+\(/)
    return substr(s, RSTART, RLENGTH - 1)
}

function read_function(s, in_group) {
    sub(/^VIGIL_API /, "", s)
    if (s !~ /\(/) group_hides[groups] = 1
    else declare("function", name_before_paren(s), s, in_group)
}

function read_macro(s,    symbol) {
    sub(/^#define +/, "", s)
    gsub(/ *\\ */, " ", s)
    match(s, /^[A-Za-z0-9_]+/)
    symbol = substr(s, 1, RLENGTH)
    if (symbol == "VIGIL_STATUS_MAP") {
        status_map = s
        group_lines[groups] = 0 # the comment is for maintainers
        return
    }
    if (s ~ /^[A-Z0-9_]+ +/) sub(/ +/, " ", s)
    declare("macro", symbol, "#define " s, groups)
}

# A struct or enum with a body: a name, and fields with their comments.
function read_type(i,    s, symbol, head) {
    s = source[i]
    head = s
    sub(/ *[{].*/, "", head)
    match(s, /vigil_[a-z0-9_]+/)
    symbol = substr(s, RSTART, RLENGTH)
    delete declared["type", symbol] # it has been announced
    declare("type", symbol, head " { ... };", groups)
    if (s ~ /[}];$/) {
        read_enumerators(s)
        return i + 1
    }
    for (i++; i <= lines_of_file && source[i] !~ /^[}]/; i++) i = read_field(i)
    if (length(head) > 36) sub(/ vigil_[a-z0-9_]+$/, "", head) # the tag of a typedef: the name follows
    text[declarations] = head " { ... }" substr(source[i], 2)
    return i + 1
}

# All on one line.
function read_enumerators(s,    list, n, i) {
    sub(/^[^{]*[{] */, "", s)
    sub(/ *[}];$/, "", s)
    n = split(s, list, /, */)
    for (i = 1; i <= n; i++) add_field(list[i] (i < n ? "," : ""), "")
}

function read_field(i,    s, at, remark) {
    s = trimmed(source[i])
    if (s == "" || s ~ /^#/ || s ~ /^[A-Z_]+\(/) return i
    if (s ~ /^\/\* The library's/) {
        add_field("...", substr(s, 4, length(s) - 6))
        while (i < lines_of_file && source[i + 1] !~ /^[}]/) i++
        return i
    }
    at = index(s, "/*")
    if (!at) {
        add_field(s, "")
        return i
    }
    remark = substr(s, at + 2)
    s = trimmed(substr(s, 1, at - 1))
    while (remark !~ /\*\/$/ && i < lines_of_file) {
        i++
        joined = trimmed(source[i])
        sub(/^\* ?/, "", joined)
        remark = trimmed(remark) " " joined
    }
    sub(/\*\/$/, "", remark)
    add_field(s, trimmed(remark))
    return i
}

function add_field(s, remark,    d) {
    d = declarations
    field[d, ++fields[d]] = s
    field_remark[d, fields[d]] = remark
    if (remark != "") remarks[d] = 1
}

# These return the line after what they have read, which begins at line i.

function read_explanation(i,    j) {
    new_group()
    i = read_comment(i)
    group_lines[groups] = comment_lines
    for (j = 1; j <= comment_lines; j++) group_text[groups, j] = comment[j]
    return i
}

function read_inline_prototypes(i) {
    while (i < lines_of_file && source[i] !~ /^#else/) {
        i = join_until(i, ";$")
        read_function(joined, 0)
    }
    source[i] = "#if" # what follows is how they are inline
    return skip_conditional(i)
}

function read_inline_function(i) {
    i = join_until(i, "[{]$")
    sub(/^static inline /, "", joined)
    sub(/ [{]$/, ";", joined)
    if (group_lines[groups]) read_function(joined, groups)
    return skip_to(i, "}")
}

function read_typedef(i,    symbol) {
    i = join_until(i, ";$")
    match(joined, /vigil_[a-z0-9_]+(;|\()/)
    symbol = substr(joined, RSTART, RLENGTH - 1)
    declare(joined ~ /\(/ ? "function type" : "type", symbol, joined, groups)
    return i
}

function read_directive(i,    s) {
    s = source[i]
    if (s ~ /^#ifdef VIGIL_NO_INLINE/) return read_inline_prototypes(i + 1)
    if (s ~ /^#ifndef VIGIL_[A-Z_]*_H$/) return i + 1
    if (s ~ /^#if/) return skip_conditional(i)
    if (s ~ /^#include "/) mention(page_of(substr(s, 11, length(s) - 11)))
    if (s !~ /^#define/) return i + 1
    i = join_until(i, "[^\\\\]$")
    read_macro(joined)
    return i
}

function read_line(i,    s) {
    s = source[i]
    if (s ~ /^ *$/ && group_size[groups]) new_group()
    if (s ~ /^\/\*/) return read_explanation(i)
    if (s ~ /^#/) return read_directive(i)
    if (s ~ /^static inline/) return read_inline_function(i)
    if (s ~ /^struct vigil_[a-z]+_seat [{]/) return skip_to(i, "};") # an adapter's own
    if (s ~ /^(typedef )?(struct|enum) vigil_[a-z0-9_]+ [{]/) return read_type(i)
    if (s ~ /^typedef/) return read_typedef(i)
    if (s !~ /^VIGIL_API/) return i + 1
    i = join_until(i, ";$")
    read_function(joined, groups)
    return i
}

# ------------------------------------------------------------------------------------------------------------- the page

# Which declarations a comment of group g is about, or the part of it that begins with the tag `tag`: into about[].
function find_about(g, tag,    d, n) {
    n = 0
    for (d = 1; d <= declarations; d++) if (owner(d) == g SUBSEP tag) about[++n] = d
    return n
}

# Each declaration belongs to the tag that names it, or that it is a form of: vigil_x_trylock and vigil_x_lock_for of
# vigil_x_lock. Otherwise to the comment it stands below.
function owner(d,    base, t, best) {
    base = symbols[d]
    sub(/try/, "", base)
    best = 0
    for (t = 1; t <= tags; t++) {
        if (tag_name[t] == symbols[d]) return tag_group[t] SUBSEP tag_of[t]
        if (group_of[d] && group_of[d] != tag_group[t]) continue
        if (base != tag_name[t] && index(base, tag_name[t] "_") != 1) continue
        if (!best || length(tag_name[t]) > length(tag_name[best])) best = t
    }
    if (best) return tag_group[best] SUBSEP tag_of[best]
    if (first_tag[group_of[d]] != "" && kind[d] ~ /function/) return group_of[d] SUBSEP first_tag[group_of[d]]
    return group_of[d] SUBSEP ""
}

function find_tags(    g, j, s, list, n, k) {
    tags = 0
    for (g = 1; g <= groups; g++) {
        first_tag[g] = ""
        for (j = 1; j <= group_lines[g]; j++) {
            s = group_text[g, j]
            if (!tag_length(s)) continue
            s = substr(s, 1, tag_length(s))
            sub(/( - |: )$/, "", s)
            n = split(s, list, /, /)
            for (k = 1; k <= n; k++) {
                tag_name[++tags] = list[k]
                tag_group[tags] = g
                tag_of[tags] = s
            }
            if (first_tag[g] == "") first_tag[g] = s
        }
    }
}

# In the order in which they are explained.
function put_synopsis(    g, t, last) {
    put(".SH LIBRARY")
    put("Vigil (\\fIlibvigil\\fP, \\fI\\-lvigil\\fP)")
    put(".SH SYNOPSIS")
    put(".nf")
    put("\\fB#include <" include_name ">\\fP")
    for (g = 0; g <= groups; g++) {
        paragraph_due = 1
        put_declarations_of(g, "")
        last = ""
        for (t = 1; t <= tags; t++) {
            if (tag_group[t] != g || tag_of[t] == last) continue
            last = tag_of[t]
            put_declarations_of(g, last)
        }
    }
    put(".fi")
}

function put_declarations_of(g, tag,    n, i) {
    n = find_about(g, tag)
    if (n && paragraph_due) put(".PP")
    if (n) paragraph_due = 0
    for (i = 1; i <= n; i++) put_declaration(about[i])
}

function put_essay(    i) {
    # The first sentence is the NAME; the rest of its paragraph begins the description.
    put(".SH DESCRIPTION")
    if (name_rest == "" && essay[1] == "") {
        for (i = 2; i <= essay_lines; i++) essay[i - 1] = essay[i]
        essay_lines--
    } else if (name_rest != "") {
        for (i = essay_lines; i >= 1; i--) essay[i + 1] = essay[i]
        essay[1] = name_rest
        essay_lines++
    }
    put_comment(essay, essay_lines)
}

function put_fields(d,    i) {
    if (remarks[d]) put_compactly()
    else put(".nf")
    for (i = 1; i <= fields[d]; i++) {
        if (field[d, i] == "...") {
            put(".PP")
            say("The other fields are the library's.")
            continue
        }
        if (remarks[d]) put(".TP 8")
        put("\\fB" code(field[d, i]) "\\fP")
        if (field_remark[d, i] != "") say(field_remark[d, i])
    }
    put(remarks[d] ? ".PD" : ".fi")
}

function put_with_fields(d) {
    put(".PP")
    put(".nf")
    put_declaration(d)
    put(".fi")
    put(".RS 4")
    put_fields(d)
    put(".RE")
}

# What is said, from line `from` to line `to` of group g, below the declarations that it is about. Of those about which
# nothing is said, only what is in the types.
function put_part(g, tag, from, to,    n, i, k, lines, own) {
    n = find_about(g, tag)
    for (i = 1; i <= n; i++) own[i] = about[i]
    k = 0
    for (i = from; i <= to; i++) lines[++k] = group_text[g, i]
    while (k && lines[k] == "") k--
    if (tag != "") {
        lines[1] = substr(lines[1], tag_length(lines[1]) + 1)
        lines[1] = toupper(substr(lines[1], 1, 1)) substr(lines[1], 2)
    }
    if (k) {
        put(".PP")
        if (n) {
            put(".nf")
            for (i = 1; i <= n; i++) if (n == 1 || !fields[own[i]]) put_declaration(own[i])
            put(".fi")
            put(".RS 4")
            room = 65
        }
        put_comment(lines, k)
        room = 69
        if (n == 1 && fields[own[1]]) {
            if (!remarks[own[1]]) put(".PP")
            put_fields(own[1])
        }
        if (n) put(".RE")
    }
    if (!k || n > 1) for (i = 1; i <= n; i++) if (fields[own[i]]) put_with_fields(own[i])
}

function put_group(g,    j, from, tag, s) {
    if (group_hides[g] && !group_size[g] && first_tag[g] == "") return
    from = 1
    tag = ""
    for (j = 1; j <= group_lines[g]; j++) {
        s = group_text[g, j]
        if (!tag_length(s)) continue
        if (j > 1) put_part(g, tag, from, j - 1)
        tag = substr(s, 1, tag_length(s))
        sub(/( - |: )$/, "", tag)
        from = j
    }
    put_part(g, tag, from, group_lines[g])
    if (tag != "" && tag_length(group_text[g, 1])) put_part(g, "", 1, 0) # types among tagged functions
}

function put_statuses(    rest, row, n, part, last) {
    if (status_map == "") return
    rest = status_map
    last = ""
    sub(/^[^)]*\) */, "", rest)
    while (match(rest, /X\([A-Z_]+, *-?[0-9]+, *"[^"]*", *"[^"]*"\)/)) {
        row = substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH)
        n = split(row, part, /, *"|, *|"/)
        match(row, /"[^"]*"$/)
        if ((part[2] < 0) != (last < 0) || last == "") put(part[2] < 0 ? ".SH ERRORS" : ".SH OUTCOMES")
        last = part[2]
        put(".TP 8")
        put("\\fBVIGIL_" part[1] "\\fP (" code(part[2]) ", \\(dq" code(part[3]) "\\(dq)")
        say(substr(row, RSTART + 1, RLENGTH - 2))
    }
}

# Written last, when it is known on which page each name is explained.
function put_see_also(    words, n, page, seen, list, count, i, j) {
    file = folder "/" name ".3"
    n = split(mentions[name] " vigil_status", words, / +/)
    count = 0
    for (i = 1; i <= n; i++) {
        page = words[i] in home ? home[words[i]] : words[i]
        if (!(page in pages) || page == name || page in seen) continue
        seen[page] = 1
        for (j = ++count; j > 1 && list[j - 1] > page; j--) list[j] = list[j - 1]
        list[j] = page
    }
    print ".SH SEE ALSO" >> file
    for (i = 1; i <= count; i++) print ".BR " list[i] " (3)," >> file
    print ".BR vigil (7)" >> file
    close(file)
}

function put_links(    d, path, s) {
    for (d = 1; d <= declarations; d++) {
        s = symbols[d]
        if (!(s in home)) home[s] = name
        if (s !~ /^vigil_/ || s in pages || s in linked) continue
        linked[s] = 1
        path = folder "/" s ".3"
        print ".so man3/" name ".3" > path
        close(path)
    }
}

function put_page(    i, g) {
    file = folder "/" name ".3"
    put(".\\\" Made by tools/manual.awk of " include_name ": change it there.")
    put(".nr HY 0") # names must not be hyphenated
    put(".TH " name " 3 \"\" \"vigil " version "\" \"Vigil\"")
    put(".ad l")
    put(".SH NAME")
    put(name " \\- " escaped(name_text))
    put_synopsis()
    put_essay()
    put_statuses()
    heading_due = ".SH INTERFACE"
    for (g = 1; g <= groups; g++) put_group(g)
    heading_due = ""
    close(file)
    put_links()
}

# The first paragraph of the essay: "vigil/x.h - what it is. More." What it is, without the full stop, and more.
function take_name(    s, i, j) {
    s = ""
    for (i = 1; i <= essay_lines && essay[i] != ""; i++) s = s " " essay[i]
    for (j = 1; i <= essay_lines; i++) essay[j++] = essay[i]
    essay_lines = j - 1
    sub(/^[^-]* - /, "", s)
    name_rest = ""
    if (match(s, /\. +[A-Z]/)) {
        name_rest = substr(s, RSTART + RLENGTH - 1)
        s = substr(s, 1, RSTART)
    }
    sub(/\.$/, "", s)
    name_text = s
}

function make_page(path,    i, j) {
    room = 69 # columns for examples
    name = page_name(path)
    include_name = path ~ /adapter/ ? "vigil/adapter/" name ".h" : "vigil/" substr(name, 7) ".h"
    groups = 1
    declarations = 0
    status_map = ""
    split("", declared)
    split("", remarks)
    split("", first_tag)
    group_lines[1] = group_size[1] = group_hides[1] = 0

    i = read_comment(2)
    essay_lines = comment_lines
    for (j = 1; j <= comment_lines; j++) essay[j] = comment[j]
    take_name()
    while (i <= lines_of_file) i = read_line(i)
    find_tags()
    put_page()
}

function page_name(path) {
    sub(/.*\//, "", path)
    sub(/\.h$/, "", path)
    return path ~ /^vigil_/ ? path : "vigil_" path
}

BEGIN {
    for (argument = 1; argument < ARGC; argument++) if (ARGV[argument] ~ /\.h$/) pages[page_name(ARGV[argument])] = 1
}
FNR == 1 && NR > 1 { make_page(previous) }
{
    source[FNR] = $0
    lines_of_file = FNR
    previous = FILENAME
}
END {
    make_page(previous)
    for (argument = 1; argument < ARGC; argument++) {
        name = page_name(ARGV[argument])
        if (name in pages) put_see_also()
    }
}
