/* SPDX-License-Identifier: MIT */
/* The story as an SVG: a row for each process or thread, time from left to right. The colours are those of the demo. */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define WIDTH       960
#define MARGIN      24
#define NAME_WIDTH  190
#define ROW_LEFT    (MARGIN + NAME_WIDTH)
#define ROW_WIDTH   (WIDTH - ROW_LEFT - MARGIN)
#define ROW_HEIGHT  22
#define ROWS_MOST   40
#define ARROWS_MOST 120 /* more in one panel cannot be told apart */
#define CLOSE_UP    40  /* arrows in the second panel */
#define KEYS_TOP    58  /* the middle of their first row */
#define KEYS_HEIGHT 22  /* of a row */
#define KEYS_MOST   (COLOURS + 4)
#define COLOURS     5   /* for as many words; others share the last */
#define BIT         0.5 /* of a pixel: less is not visible */
#define NAME_FITS   24  /* letters */
#define NO_ROW      UINT32_MAX

static const char style[] =
    "<style>"
    "svg{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:13px}"
    "text{fill:#24292f}.paper{fill:#ffffff}.faint{fill:#57606a}.grid{stroke:#d8dee4}"
    ".bar{fill:none}.shared{opacity:.5}.waiting{stroke:#d0d7de;stroke-width:3}"
    ".w0{stroke:#0969da;stroke-width:14}.w1{stroke:#bf8700;stroke-width:11}.w2{stroke:#1a7f37;stroke-width:8.5}"
    ".w3{stroke:#8250df;stroke-width:6.5}.w4{stroke:#57606a;stroke-width:5}"
    ".mark{fill:none;stroke:#cf222e;stroke-width:2.5}.up{fill:none;stroke:#8250df;stroke-width:2}"
    ".over{fill:none;stroke:#57606a;stroke-width:1}.head{fill:#57606a;stroke:none}.lost{fill:#cf222e;opacity:.15}"
    "@media(prefers-color-scheme:dark){"
    "text{fill:#e6edf3}.paper{fill:#0d1117}.faint{fill:#8b949e}.grid{stroke:#30363d}.waiting{stroke:#484f58}"
    ".w0{stroke:#58a6ff}.w1{stroke:#d29922}.w2{stroke:#3fb950}.w3{stroke:#bc8cff}.w4{stroke:#8b949e}"
    ".mark{stroke:#f85149}.up{stroke:#bc8cff}.over{stroke:#8b949e}.head{fill:#8b949e}.lost{fill:#f85149}}"
    "</style>\n";

struct row {
    uint32_t process;
    int64_t busy_ns; /* how long it waited or held anything */
};

/* A word, and how long it was held in all. */
struct use {
    uint32_t word;
    int64_t held_ns;
};

/* What a sign in the picture means. */
struct key {
    enum sign { KEY_BAR, KEY_RING, KEY_CROSS } sign;
    char class[16]; /* of the bar */
    char text[64];
    double x, y;
};

struct picture {
    FILE *out;
    const struct story *story;
    struct row *rows; /* at first for all processes, then for those that are shown */
    uint32_t *row_of; /* by process; NO_ROW: it is not shown */
    uint32_t row_count, shown;
    struct use *uses;  /* the words, the one that was held longest first */
    unsigned *colours; /* by word */
    uint32_t *spans;   /* of the rows that are shown: row by row, by time */
    uint32_t *arrows;  /* hand-overs that are shown, by time */
    uint32_t span_count, arrow_count;
    struct key keys[KEYS_MOST];
    unsigned key_count;

    /* The panel that is being drawn. */
    int64_t from_ns, to_ns, zero_ns; /* the time shown, and the time labelled 0 */
    double top, bottom;              /* of its rows */
};

static double timeline_x_of(const struct picture *picture, int64_t at_ns) {
    int64_t from_ns = picture->from_ns, to_ns = picture->to_ns;
    if (at_ns < from_ns) at_ns = from_ns;
    if (at_ns > to_ns) at_ns = to_ns;
    return ROW_LEFT + (double)ROW_WIDTH * (double)(at_ns - from_ns) / (double)(to_ns > from_ns ? to_ns - from_ns : 1);
}

static bool is_in(const struct picture *picture, int64_t at_ns) {
    return at_ns >= picture->from_ns && at_ns <= picture->to_ns;
}

static double y_of(const struct picture *picture, uint32_t row) {
    return picture->top + (row + 0.5) * ROW_HEIGHT;
}

static void put_escaped(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", out);
        else if (*text == '&') fputs("&amp;", out);
        else if (*text == '"') fputs("&quot;", out);
        else putc(*text, out);
    }
}

/* Shows the time in which anything happened. */
static void choose_whole(struct picture *picture) {
    const struct story *story = picture->story;
    int64_t from_ns = story->to_ns, to_ns = story->from_ns;
    for (uint32_t i = 0; i < story->spans.count; i++) {
        const struct story_span *span = &story->spans.at[i];
        if (span->from_ns < from_ns) from_ns = span->from_ns;
        if (span->to_ns > to_ns) to_ns = span->to_ns;
    }
    for (uint32_t i = 0; i < story->deaths.count; i++) {
        if (story->deaths.at[i].at_ns > to_ns) to_ns = story->deaths.at[i].at_ns;
    }
    bool any = from_ns < to_ns;
    picture->from_ns = any ? from_ns : story->from_ns;
    picture->to_ns = any ? to_ns : story->to_ns;
    picture->zero_ns = story->from_ns;
}

/* The rows: processes that waited and held longest, in the order of their arrival. */

static int busiest_first(const void *one, const void *other) {
    const struct row *a = one, *b = other;
    if (a->busy_ns != b->busy_ns) return a->busy_ns > b->busy_ns ? -1 : 1;
    return a->process < b->process ? -1 : a->process > b->process;
}

static int timeline_in_order(const void *one, const void *other) {
    const struct row *a = one, *b = other;
    return a->process < b->process ? -1 : a->process > b->process;
}

static bool choose_rows(struct picture *picture) {
    const struct story *story = picture->story;
    uint32_t count = story->processes.count;
    picture->rows = calloc(count + 1, sizeof *picture->rows);
    picture->row_of = malloc((count + 1) * sizeof *picture->row_of);
    if (!picture->rows || !picture->row_of) return false;
    for (uint32_t i = 0; i < count; i++) picture->rows[i].process = i, picture->row_of[i] = NO_ROW;
    for (uint32_t i = 0; i < story->spans.count; i++) {
        const struct story_span *span = &story->spans.at[i];
        picture->rows[span->process].busy_ns += span->to_ns - span->from_ns + 1;
    }
    for (uint32_t i = 0; i < story->deaths.count; i++) picture->rows[story->deaths.at[i].process].busy_ns++;
    qsort(picture->rows, count, sizeof *picture->rows, busiest_first);
    while (picture->row_count < count && picture->rows[picture->row_count].busy_ns) picture->row_count++;
    picture->shown = picture->row_count < ROWS_MOST ? picture->row_count : ROWS_MOST;
    qsort(picture->rows, picture->shown, sizeof *picture->rows, timeline_in_order);
    for (uint32_t i = 0; i < picture->shown; i++) picture->row_of[picture->rows[i].process] = i;
    return true;
}

/* The colours: the words that were held longest have their own. */

static int longest_first(const void *one, const void *other) {
    const struct use *a = one, *b = other;
    if (a->held_ns != b->held_ns) return a->held_ns > b->held_ns ? -1 : 1;
    return a->word < b->word ? -1 : a->word > b->word;
}

static bool choose_colours(struct picture *picture) {
    const struct story *story = picture->story;
    uint32_t count = story->words.count;
    picture->uses = calloc(count + 1, sizeof *picture->uses);
    picture->colours = malloc((count + 1) * sizeof *picture->colours);
    if (!picture->uses || !picture->colours) return false;
    for (uint32_t i = 0; i < count; i++) picture->uses[i].word = i;
    for (uint32_t i = 0; i < story->spans.count; i++) {
        const struct story_span *span = &story->spans.at[i];
        if (span->type == SPAN_HOLD) picture->uses[span->word].held_ns += span->to_ns - span->from_ns + 1;
    }
    qsort(picture->uses, count, sizeof *picture->uses, longest_first);
    for (uint32_t i = 0; i < count; i++) picture->colours[picture->uses[i].word] = i < COLOURS ? i : COLOURS - 1;
    return true;
}

/* The bars: one path for all bars of a kind in a row. Stretches that touch on the screen are drawn as one. */

struct stroke {
    FILE *out;
    double left, right, y;
    bool any;
};

static void put_stroke(struct stroke *stroke) {
    if (stroke->any) fprintf(stroke->out, "M%.1f %.0fh%.1f", stroke->left, stroke->y, stroke->right - stroke->left);
    stroke->any = false;
}

static void timeline_add_stretch(struct stroke *stroke, double left, double right) {
    if (right < left + BIT) right = left + BIT;
    if (stroke->any && left <= stroke->right + BIT / 2 && left >= stroke->left) {
        if (right > stroke->right) stroke->right = right;
        return;
    }
    put_stroke(stroke);
    stroke->left = left, stroke->right = right, stroke->any = true;
}

/* Which of a row's spans are drawn as one path. */
struct sort {
    enum span_type type;
    bool shared;
    unsigned colour; /* of holds */
};

static bool is_of(const struct picture *picture, const struct story_span *span, const struct sort *sort) {
    if (span->type != sort->type) return false;
    return span->type == SPAN_WAIT || (span->shared == sort->shared && picture->colours[span->word] == sort->colour);
}

static void draw_bars(const struct picture *picture, const uint32_t *spans, uint32_t count, struct sort sort,
                      double y) {
    struct stroke stroke = {.out = picture->out, .y = y};
    bool begun = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct story_span *span = &picture->story->spans.at[spans[i]];
        if (!is_of(picture, span, &sort) || span->to_ns < picture->from_ns || span->from_ns > picture->to_ns) continue;
        if (!begun && sort.type == SPAN_WAIT) fputs("<path class=\"bar waiting\" d=\"", picture->out);
        else if (!begun)
            fprintf(picture->out, "<path class=\"bar w%u%s\" d=\"", sort.colour, sort.shared ? " shared" : "");
        begun = true;
        timeline_add_stretch(&stroke, timeline_x_of(picture, span->from_ns), timeline_x_of(picture, span->to_ns));
    }
    put_stroke(&stroke);
    if (begun) fputs("\"/>\n", picture->out);
}

static void draw_ring(FILE *out, double x, double y) {
    fprintf(out, "<path class=\"up\" d=\"M%.1f %.1fa3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0\"/>\n", x - 3.5, y);
}

static void draw_given_up(const struct picture *picture, const uint32_t *spans, uint32_t count, double y) {
    for (uint32_t i = 0; i < count; i++) {
        const struct story_span *span = &picture->story->spans.at[spans[i]];
        bool shown = span->ending == SPAN_GAVE_UP && is_in(picture, span->to_ns);
        if (shown) draw_ring(picture->out, timeline_x_of(picture, span->to_ns), y);
    }
}

/* Cut to fit, by characters of UTF-8. */
static void timeline_put_name(FILE *out, const char *name) {
    char text[160];
    size_t used = 0;
    unsigned letters = 0;
    for (; name[used] && used < sizeof text - 5; used++) {
        bool begins = ((unsigned char)name[used] & 0xc0) != 0x80;
        if (begins && letters++ == NAME_FITS) break;
        text[used] = name[used];
    }
    text[used] = 0;
    put_escaped(out, text);
    if (name[used]) fputs("…", out);
}

static void timeline_draw_row(const struct picture *picture, uint32_t row, const uint32_t *spans, uint32_t count) {
    const struct story *story = picture->story;
    const struct story_process *process = &story->processes.at[picture->rows[row].process];
    double y = y_of(picture, row);
    fprintf(picture->out, "<text clip-path=\"url(#names)\" x=\"%d\" y=\"%.1f\"><title>", MARGIN, y + 4.5);
    put_escaped(picture->out, process->command);
    fputs("</title>", picture->out);
    if (process->pid) fprintf(picture->out, "<tspan class=\"faint\">%u</tspan> ", process->pid);
    timeline_put_name(picture->out, *process->task ? cli_without_folder(process->task) : "(left too soon)");
    fputs("</text>\n", picture->out);
    for (unsigned colour = 0; colour < COLOURS; colour++) { /* later colours are drawn on top, and are narrower */
        draw_bars(picture, spans, count, (struct sort){SPAN_HOLD, false, colour}, y);
        draw_bars(picture, spans, count, (struct sort){SPAN_HOLD, true, colour}, y);
    }
    draw_bars(picture, spans, count, (struct sort){.type = SPAN_WAIT}, y);
    draw_given_up(picture, spans, count, y);
}

/* The spans, by row and time. */

static const struct story *sorted_story; /* qsort passes no argument */

static int by_row_and_time(const void *one, const void *other) {
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    const struct story_span *first = &sorted_story->spans.at[a], *second = &sorted_story->spans.at[b];
    if (first->process != second->process) return first->process < second->process ? -1 : 1;
    if (first->from_ns != second->from_ns) return first->from_ns < second->from_ns ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool choose_spans(struct picture *picture) {
    const struct story *story = picture->story;
    picture->spans = malloc((story->spans.count + 1) * sizeof *picture->spans);
    if (!picture->spans) return false;
    for (uint32_t i = 0; i < story->spans.count; i++) {
        if (picture->row_of[story->spans.at[i].process] != NO_ROW) picture->spans[picture->span_count++] = i;
    }
    sorted_story = story;
    qsort(picture->spans, picture->span_count, sizeof *picture->spans, by_row_and_time);
    return true;
}

static void draw_rows(const struct picture *picture) {
    const struct story_span *all = picture->story->spans.at;
    for (uint32_t row = 0, at = 0; row < picture->shown; row++) {
        uint32_t first = at;
        while (at < picture->span_count && all[picture->spans[at]].process == picture->rows[row].process) at++;
        timeline_draw_row(picture, row, picture->spans + first, at - first);
    }
}

/* Hand-overs and deaths. */

static void draw_handover(const struct picture *picture, const struct story_handover *handover) {
    uint32_t from = picture->row_of[handover->from], to = picture->row_of[handover->to];
    int64_t got_ns = handover->hold == STORY_NONE ? handover->at_ns : picture->story->spans.at[handover->hold].from_ns;
    double left = timeline_x_of(picture, handover->at_ns), right = timeline_x_of(picture, got_ns);
    double down = to > from ? 1 : -1, begin = y_of(picture, from) + 7 * down, end = y_of(picture, to) - 7 * down;
    fprintf(picture->out,
            "<path class=\"over\" d=\"M%.1f %.1fL%.1f %.1f\"/><path class=\"head\" d=\"M%.1f %.1fl-3 %.0fh6z\"/>\n",
            left, begin, right, end - 4 * down, right, end, -5 * down);
}

static int timeline_by_time(const void *one, const void *other) {
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    int64_t first_ns = sorted_story->handovers.at[a].at_ns, second_ns = sorted_story->handovers.at[b].at_ns;
    return first_ns < second_ns ? -1 : first_ns > second_ns;
}

static bool choose_arrows(struct picture *picture) {
    const struct story *story = picture->story;
    picture->arrows = malloc((story->handovers.count + 1) * sizeof *picture->arrows);
    if (!picture->arrows) return false;
    for (uint32_t i = 0; i < story->handovers.count; i++) {
        const struct story_handover *handover = &story->handovers.at[i];
        uint32_t from = picture->row_of[handover->from], to = picture->row_of[handover->to];
        if (from == NO_ROW || to == NO_ROW || from == to) continue;
        picture->arrows[picture->arrow_count++] = i;
    }
    sorted_story = story;
    qsort(picture->arrows, picture->arrow_count, sizeof *picture->arrows, timeline_by_time);
    return true;
}

static void draw_handovers(const struct picture *picture) {
    for (uint32_t i = 0; i < picture->arrow_count; i++) {
        const struct story_handover *handover = &picture->story->handovers.at[picture->arrows[i]];
        if (is_in(picture, handover->at_ns)) draw_handover(picture, handover);
    }
}

/* If there are too many arrows to tell apart: the shortest time that has CLOSE_UP of them. */
static void choose_liveliest(struct picture *picture) {
    const struct story_handover *all = picture->story->handovers.at;
    uint32_t few = CLOSE_UP - 1, liveliest = 0;
    int64_t shortest_ns = INT64_MAX;
    for (uint32_t i = 0; i + few < picture->arrow_count; i++) {
        int64_t long_ns = all[picture->arrows[i + few]].at_ns - all[picture->arrows[i]].at_ns;
        if (long_ns < shortest_ns) shortest_ns = long_ns, liveliest = i;
    }
    int64_t margin_ns = shortest_ns / 20 + 1;
    picture->zero_ns = picture->from_ns = all[picture->arrows[liveliest]].at_ns - margin_ns;
    picture->to_ns = all[picture->arrows[liveliest + few]].at_ns + margin_ns;
}

static void draw_cross(FILE *out, double x, double y) {
    fprintf(out, "<path class=\"mark\" d=\"M%.1f %.1fl10 10m0-10l-10 10\"/>", x - 5, y - 5);
}

static void draw_deaths(const struct picture *picture) {
    const struct story *story = picture->story;
    for (uint32_t i = 0; i < story->deaths.count; i++) {
        const struct story_death *death = &story->deaths.at[i];
        uint32_t row = picture->row_of[death->process];
        if (row != NO_ROW && is_in(picture, death->at_ns))
            draw_cross(picture->out, timeline_x_of(picture, death->at_ns), y_of(picture, row));
    }
    for (uint32_t i = 0; i < story->losses.count; i++) { /* events are missing there */
        if (!is_in(picture, story->losses.at[i].at_ns)) continue;
        fprintf(picture->out, "<rect class=\"lost\" x=\"%.1f\" y=\"%.0f\" width=\"4\" height=\"%.0f\"/>",
                timeline_x_of(picture, story->losses.at[i].at_ns) - 2, picture->top, picture->bottom - picture->top);
    }
}

/* Axis, keys and headings. */

/* 1, 2 or 5 times a power of ten, so that there are at most about eight steps. */
static int64_t step_of(int64_t duration_ns) {
    int64_t step = 1;
    for (int i = 0; duration_ns / step > 8; i++) step = step / (i % 3 == 1 ? 2 : 1) * (i % 3 == 1 ? 5 : 2);
    return step;
}

static void timeline_draw_axis(const struct picture *picture) {
    int64_t begin_ns = picture->from_ns - picture->zero_ns, end_ns = picture->to_ns - picture->zero_ns;
    int64_t step = step_of(end_ns - begin_ns);
    double unit_ns = end_ns >= 1000000000 ? 1e9 : end_ns >= 1000000 ? 1e6 : 1e3;
    const char *unit = unit_ns > 1e8 ? "s" : unit_ns > 1e5 ? "ms" : "µs";
    for (int64_t at_ns = (begin_ns + step - 1) / step * step; at_ns <= end_ns; at_ns += step) {
        double x = timeline_x_of(picture, picture->zero_ns + at_ns);
        fprintf(picture->out, "<path class=\"grid\" d=\"M%.1f %.0fV%.0f\"/>", x, picture->top - 2, picture->bottom + 2);
        fprintf(picture->out, "<text class=\"faint\" font-size=\"11\" x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">", x,
                picture->bottom + 16);
        if (at_ns == 0) fprintf(picture->out, "0</text>\n");
        else fprintf(picture->out, "%.9g %s</text>\n", (double)at_ns / unit_ns, unit);
    }
}

/* The keys (the legend), in as many rows as they need. */

static double text_of(const struct key *key) {
    return key->x + (key->sign == KEY_BAR ? 30 : 18);
}

static double right_of(const struct key *key) {
    return text_of(key) + 7.2 * (double)strlen(key->text);
}

static void add_key(struct picture *picture, enum sign sign, const char *class, const char *text) {
    struct key *key = &picture->keys[picture->key_count++];
    *key = (struct key){.sign = sign, .x = MARGIN, .y = KEYS_TOP};
    snprintf(key->class, sizeof key->class, "%s", class);
    snprintf(key->text, sizeof key->text, "%s", text);
    if (picture->key_count == 1) return;
    key->x = right_of(key - 1) + 16;
    key->y = key[-1].y;
    if (right_of(key) <= WIDTH - MARGIN) return;
    key->x = MARGIN;
    key->y += KEYS_HEIGHT;
}

static void add_colours(struct picture *picture) {
    const struct story *story = picture->story;
    for (uint32_t i = 0; i < story->words.count && i < COLOURS && picture->uses[i].held_ns; i++) {
        char class[8], text[64];
        bool others = i == COLOURS - 1 && story->words.count > COLOURS;
        snprintf(class, sizeof class, "w%u", (unsigned)i);
        snprintf(text, sizeof text, "holds %.50s", others ? "another" : story->words.at[picture->uses[i].word].name);
        add_key(picture, KEY_BAR, class, text);
    }
}

static void choose_keys(struct picture *picture) {
    const struct story *story = picture->story;
    bool gives_up = false, reads = false;
    for (uint32_t i = 0; i < story->spans.count; i++) {
        gives_up |= story->spans.at[i].ending == SPAN_GAVE_UP;
        reads |= story->spans.at[i].shared;
    }
    add_key(picture, KEY_BAR, "waiting", "waits");
    add_colours(picture);
    if (reads) add_key(picture, KEY_BAR, "w0 shared", "shared");
    if (gives_up) add_key(picture, KEY_RING, "", "gave up");
    if (story->deaths.count) add_key(picture, KEY_CROSS, "", "died");
}

static void draw_key(FILE *out, const struct key *key) {
    switch (key->sign) {
    case KEY_BAR: fprintf(out, "<path class=\"bar %s\" d=\"M%.0f %.0fh22\"/>", key->class, key->x, key->y); break;
    case KEY_RING: draw_ring(out, key->x + 5, key->y); break;
    case KEY_CROSS: draw_cross(out, key->x + 5, key->y); break;
    }
    fprintf(out, "<text x=\"%.0f\" y=\"%.1f\">", text_of(key), key->y + 4.5);
    put_escaped(out, key->text);
    fputs("</text>\n", out);
}

/* Says what the picture does not show. */
static void timeline_draw_note(const struct picture *picture, double y) {
    char text[256] = "";
    size_t used = 0;
    if (picture->row_count > picture->shown)
        used = (size_t)snprintf(text, sizeof text, "%u %s that waited and held less are not shown. ",
                                picture->row_count - picture->shown, picture->story->pid ? "threads" : "processes");
    if (picture->story->lost)
        snprintf(text + used, sizeof text - used, "%llu events were lost, where the picture is red. ",
                 (unsigned long long)picture->story->lost);
    if (picture->row_count == 0) snprintf(text, sizeof text, "There were no waits.");
    fprintf(picture->out, "<text class=\"faint\" x=\"%d\" y=\"%.0f\">%s</text>\n", MARGIN, y, text);
}

static void put_count(FILE *out, const char *before, uint32_t count, const char *what) {
    fprintf(out, "%s%u %s%s", before, count, what, count == 1 ? "" : "s");
}

static void put_counts(FILE *out, const struct story *story) {
    put_count(out, "", story_spans(story, SPAN_WAIT), "wait");
    put_count(out, ", ", story_spans(story, SPAN_HOLD), "hold");
    put_count(out, ", ", story->handovers.count, "hand-over");
    if (story->deaths.count) put_count(out, ", ", story->deaths.count, "death");
}

static void draw_heading(const struct picture *picture, const char *name, int height) {
    FILE *out = picture->out;
    char duration[16];
    cli_print_duration(duration, picture->story->to_ns - picture->story->from_ns);
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %d %d\" ", WIDTH, height);
    fprintf(out, "width=\"%d\" height=\"%d\">\n", WIDTH, height);
    fputs("<title>", out);
    put_escaped(out, name);
    fprintf(out, ", %s</title>\n%s", duration, style);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", WIDTH, height);
    fprintf(out, "<clipPath id=\"names\"><rect width=\"%d\" height=\"%d\"/></clipPath>\n", ROW_LEFT - 8, height);
    fprintf(out, "<text x=\"%d\" y=\"34\"><tspan font-size=\"17\" font-weight=\"600\">", MARGIN);
    put_escaped(out, name);
    fputs("</tspan><tspan class=\"faint\" dx=\"10\">", out);
    put_counts(out, picture->story);
    fprintf(out, " in %s</tspan></text>\n", duration);
    for (unsigned i = 0; i < picture->key_count; i++) draw_key(out, &picture->keys[i]);
}

static void timeline_draw_panel(struct picture *picture, double top, bool arrows) {
    picture->top = top;
    picture->bottom = top + (picture->shown ? picture->shown : 1) * ROW_HEIGHT;
    timeline_draw_axis(picture);
    draw_rows(picture);
    if (arrows) draw_handovers(picture);
    draw_deaths(picture);
}

static void draw_close_up(struct picture *picture) {
    char duration[16], from[16];
    choose_liveliest(picture);
    cli_print_duration(duration, picture->to_ns - picture->from_ns);
    cli_print_duration(from, picture->from_ns - picture->story->from_ns);
    fprintf(picture->out, "<text class=\"faint\" x=\"%d\" y=\"%.0f\">", MARGIN, picture->bottom + 48);
    fprintf(picture->out, "The busiest %s, %s after the start:</text>\n", duration, from);
    timeline_draw_panel(picture, picture->bottom + 64, true);
}

static void timeline_draw_in(struct picture *picture, const char *name) {
    choose_keys(picture);
    bool dense = picture->arrow_count > ARROWS_MOST;
    int rows_height = (int)(picture->shown ? picture->shown : 1) * ROW_HEIGHT;
    int top = (int)picture->keys[picture->key_count - 1].y + 26;
    draw_heading(picture, name, top + rows_height + (dense ? 64 + rows_height : 0) + 56);
    choose_whole(picture);
    timeline_draw_panel(picture, top, !dense);
    if (dense) draw_close_up(picture);
    timeline_draw_note(picture, picture->bottom + 40);
    fputs("</svg>\n", picture->out);
}

bool timeline_draw(FILE *out, const char *name, const struct story *story) {
    struct picture picture = {.out = out, .story = story};
    bool room = choose_rows(&picture) && choose_colours(&picture) && choose_spans(&picture) && choose_arrows(&picture);
    if (room) timeline_draw_in(&picture, name);
    free(picture.rows);
    free(picture.row_of);
    free(picture.uses);
    free(picture.colours);
    free(picture.spans);
    free(picture.arrows);
    return room && fflush(out) == 0 && !ferror(out);
}
