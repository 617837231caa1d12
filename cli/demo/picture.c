/* SPDX-License-Identifier: MIT */
/* The acts as an SVG: a panel for each, a lane for each contestant, time from left to right. */
#include <stdio.h>
#include <stdlib.h>

#include "demo.h"

#define WIDTH        960
#define MARGIN       24
#define NAME_WIDTH   76
#define SERVED_WIDTH 84
#define LANE_LEFT    (MARGIN + NAME_WIDTH)
#define LANE_WIDTH   (WIDTH - LANE_LEFT - SERVED_WIDTH - MARGIN)
#define LANE_HEIGHT  20
#define BAR_HEIGHT   12
#define AXIS_STEPS   5
#define PANELS_TOP   92
#define PANEL_HEAD   34
#define PANEL_HEIGHT (PANEL_HEAD + CONTESTANTS * LANE_HEIGHT + 46)

static const char style[] =
    "<style>"
    "svg{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:13px}"
    "text{fill:#24292f}.paper{fill:#ffffff}.faint{fill:#57606a}.grid{stroke:#d8dee4}"
    ".bar{fill:none;stroke-width:12}.waiting{stroke:#d0d7de;stroke-width:4}"
    ".thread{stroke:#bf8700}.loop{stroke:#0969da}text.thread{fill:#9a6700;stroke:none}text.loop{fill:#0969da;stroke:"
    "none}"
    ".late{stroke:#cf222e}.cancelled{stroke:#8250df}.mark{fill:none;stroke-width:2}.dead{stroke:#24292f;stroke-width:3}"
    ".kill{stroke:#cf222e;stroke-dasharray:3 3}text.kill{fill:#cf222e;stroke:none}.tick{stroke:#1a7f37;stroke-width:3}"
    "@media(prefers-color-scheme:dark){"
    "text{fill:#e6edf3}.paper{fill:#0d1117}.faint{fill:#8b949e}.grid{stroke:#30363d}.waiting{stroke:#484f58}"
    ".thread{stroke:#d29922}.loop{stroke:#58a6ff}text.thread{fill:#d29922}text.loop{fill:#58a6ff}"
    ".late{stroke:#f85149}.cancelled{stroke:#bc8cff}.dead{stroke:#e6edf3}.kill{stroke:#f85149}text.kill{fill:#f85149}"
    ".tick{stroke:#3fb950}}"
    "</style>\n";

/* The part of an act that is shown, and where. */
struct window {
    FILE *out;
    const struct act *act;
    int64_t from_ns, to_ns;
};

static double picture_x_of(const struct window *window, int64_t time_ns) {
    if (time_ns < window->from_ns) time_ns = window->from_ns;
    if (time_ns > window->to_ns) time_ns = window->to_ns;
    return LANE_LEFT +
           (double)LANE_WIDTH * (double)(time_ns - window->from_ns) / (double)(window->to_ns - window->from_ns);
}

/* Adds a stretch of time to a path, so that a lane is a few paths and not a thousand rectangles. */
static void picture_add_stretch(const struct window *window, int64_t from_ns, int64_t to_ns, double y) {
    if (to_ns <= window->from_ns || from_ns >= window->to_ns) return;
    double left = picture_x_of(window, from_ns), width = picture_x_of(window, to_ns) - left;
    fprintf(window->out, "M%.1f %.0fh%.1f", left, y, width < 0.5 ? 0.5 : width);
}

static void draw_stretches(const struct window *window, const struct record *record, bool holding, double y) {
    for (uint32_t i = 0; i < record->count; i++) {
        const struct visit *visit = &record->visits[i];
        if (!holding) picture_add_stretch(window, visit->called_ns, visit->ended_ns, y);
        else if (visit->ending == GRANTED) picture_add_stretch(window, visit->ended_ns, visit->released_ns, y);
    }
}

/* A mark for a visit that was not granted: a cross, a bigger one, or a ring. */
static void add_mark(FILE *out, enum ending ending, double x, double y) {
    if (ending == KILLED) fprintf(out, "M%.1f %.1fl12 12m0-12l-12 12", x - 6, y - 6);
    else if (ending == TIMED_OUT) fprintf(out, "M%.1f %.1fl7 7m0-7l-7 7", x - 3.5, y - 3.5);
    else fprintf(out, "M%.1f %.1fa3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0", x - 3.5, y);
}

static void draw_marks(const struct window *window, const struct record *record, enum ending ending, double y) {
    for (uint32_t i = 0; i < record->count; i++) {
        const struct visit *visit = &record->visits[i];
        if (visit->ending == ending && visit->ended_ns > window->from_ns && visit->ended_ns < window->to_ns)
            add_mark(window->out, ending, picture_x_of(window, visit->ended_ns), y);
    }
}

static void draw_lane(const struct window *window, int contestant, double y) {
    const struct record *record = &window->act->records[contestant];
    const char *kind = is_loop(contestant) ? "loop" : "thread";
    FILE *out = window->out;
    fprintf(out, "<text class=\"%s\" x=\"%d\" y=\"%.0f\">%s</text>\n", kind, MARGIN, y + 4.5,
            contestant_names[contestant]);
    if (window->act->two_processes)
        fprintf(out, "<text class=\"faint\" font-size=\"10\" x=\"6\" y=\"%.1f\">%s</text>\n", y + 3.5,
                is_in_second(window->act, contestant) ? "P2" : "P1");
    fprintf(out, "<path class=\"bar waiting\" d=\"M%d %.0f", LANE_LEFT, y);
    draw_stretches(window, record, false, y);
    fprintf(out, "\"/><path class=\"bar %s\" d=\"M%d %.0f", kind, LANE_LEFT, y);
    draw_stretches(window, record, true, y);
    fprintf(out, "\"/><path class=\"bar tick\" d=\"M%d %.0f", LANE_LEFT, y);
    for (uint32_t i = 0; i < record->tick_count; i++) {
        const struct tick *tick = &record->ticks[i];
        picture_add_stretch(window, tick->at_ns, tick->at_ns + tick->busy_ns, y + LANE_HEIGHT / 2.0 - 2);
    }
    fprintf(out, "\"/><path class=\"mark late\" d=\"M%d %.0f", LANE_LEFT, y);
    draw_marks(window, record, TIMED_OUT, y);
    fprintf(out, "\"/><path class=\"mark cancelled\" d=\"M%d %.0f", LANE_LEFT, y);
    draw_marks(window, record, CANCELLED, y);
    if (is_in_second(window->act, contestant)) {
        fprintf(out, "\"/><path class=\"mark dead\" d=\"");
        add_mark(out, KILLED, picture_x_of(window, window->act->killed_ns), y);
    }
    fprintf(out, "\"/>\n<text class=\"faint\" x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%s</text>\n", WIDTH - MARGIN,
            y + 4.5, grouped(record->endings[GRANTED]));
}

static void picture_draw_axis(const struct window *window, double top, double bottom) {
    for (int i = 0; i <= AXIS_STEPS; i++) {
        double x = LANE_LEFT + (double)LANE_WIDTH * i / AXIS_STEPS;
        double ms = (double)(window->to_ns - window->from_ns) / 1e6 * i / AXIS_STEPS;
        fprintf(window->out, "<path class=\"grid\" d=\"M%.1f %.0fV%.0f\"/>", x, top, bottom);
        fprintf(window->out, "<text class=\"faint\" font-size=\"11\" x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">", x,
                bottom + 14);
        if (i == 0) fprintf(window->out, "0</text>\n");
        else fprintf(window->out, ms < 1000 ? "%g ms</text>\n" : "%g s</text>\n", ms < 1000 ? ms : ms / 1000);
    }
}

/* Of all parts of the act that could be shown, the one with most grants after a wait. */
static int64_t liveliest_part(const struct act *act) {
    size_t count = (size_t)(act->duration_ns / act->shown_ns), liveliest = 0;
    uint32_t *waits = calloc(count, sizeof *waits);
    must("cannot draw the picture", waits ? VIGIL_OK : VIGIL_ENOMEM);
    for (int i = 0; i < CONTESTANTS; i++) {
        for (uint32_t j = 0; j < act->records[i].count; j++) {
            const struct visit *visit = &act->records[i].visits[j];
            size_t part = (size_t)((visit->ended_ns - act->began_ns) / act->shown_ns);
            bool waited = visit->ending == GRANTED && visit->ended_ns - visit->called_ns > act->hold_ns;
            if (part < count && waited && ++waits[part] > waits[liveliest]) liveliest = part;
        }
    }
    free(waits);
    return act->began_ns + (int64_t)liveliest * act->shown_ns;
}

static void picture_draw_note(FILE *out, const char *class, double x, double y, const char *text) {
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x, y + 4.5, text);
}

/* The lanes of the second process are empty from there on: there is room for text. */
static void draw_death(const struct window *window, double top) {
    const struct act *act = window->act;
    double x = picture_x_of(window, act->killed_ns), bottom = top + CONTESTANTS * LANE_HEIGHT;
    char heir[64];
    snprintf(heir, sizeof heir, "%s is next, %.1f ms later, and is told", contestant_names[act->heir],
             (double)(act->heir_ns - act->killed_ns) / 1e6);
    fprintf(window->out, "<path class=\"kill\" d=\"M%.1f %.0fV%.0f\"/>\n", x, top - 4, bottom + 2);
    picture_draw_note(window->out, "kill", x + 16, bottom - 2.5 * LANE_HEIGHT, "P2 is killed, with the lock held.");
    picture_draw_note(window->out, "faint", x + 16, bottom - 1.5 * LANE_HEIGHT, heir);
    picture_draw_note(window->out, "faint", x + 16, bottom - 0.5 * LANE_HEIGHT,
                      "that the owner died. The line goes on.");
}

static void picture_draw_panel(FILE *out, const struct act *act, int number) {
    double top = PANELS_TOP + number * PANEL_HEIGHT, lanes = top + PANEL_HEAD;
    int64_t from_ns = liveliest_part(act);
    struct window window = {out, act, from_ns, from_ns + act->shown_ns};
    fprintf(
        out,
        "<text x=\"%d\" y=\"%.0f\"><tspan font-weight=\"600\">%s</tspan> <tspan class=\"faint\">%s%s</tspan></text>\n",
        MARGIN, top + 16, act->title, act->explanation, act->slow ? "" : " The busiest few milliseconds:");
    fprintf(out, "<text class=\"faint\" x=\"%d\" y=\"%.0f\" text-anchor=\"end\">served</text>\n", WIDTH - MARGIN,
            top + 16);
    picture_draw_axis(&window, lanes - 4, lanes + CONTESTANTS * LANE_HEIGHT + 2);
    if (act->heir_ns) draw_death(&window, lanes);
    for (int i = 0; i < CONTESTANTS; i++) draw_lane(&window, in_lane(act, i), lanes + (i + 0.5) * LANE_HEIGHT);
}

static void draw_legend(FILE *out) {
    double y = 58;
    fprintf(out,
            "<path class=\"bar thread\" d=\"M24 %.0fh22\"/><path class=\"bar loop\" d=\"M50 %.0fh22\"/>"
            "<text x=\"80\" y=\"%.1f\">holds it</text>"
            "<path class=\"bar waiting\" d=\"M150 %.0fh40\"/><text x=\"198\" y=\"%.1f\">waits</text>",
            y, y, y + 4.5, y, y + 4.5);
    fprintf(out, "<path class=\"mark late\" d=\"");
    add_mark(out, TIMED_OUT, 256, y);
    fprintf(out, "\"/><text x=\"268\" y=\"%.1f\">timed out</text><path class=\"mark cancelled\" d=\"", y + 4.5);
    add_mark(out, CANCELLED, 348, y);
    fprintf(out, "\"/><text x=\"360\" y=\"%.1f\">cancelled</text>", y + 4.5);
    fprintf(out, "<path class=\"mark dead\" d=\"");
    add_mark(out, KILLED, 442, y);
    fprintf(out, "\"/><text x=\"456\" y=\"%.1f\">killed</text>", y + 4.5);
    fprintf(out,
            "<path class=\"bar tick\" d=\"M512 %.0fh16\"/><text x=\"536\" y=\"%.1f\">the loop's clock ticks</text>\n",
            y, y + 4.5);
}

void picture_draw(FILE *out, const struct act *acts, int count) {
    int height = PANELS_TOP + count * PANEL_HEIGHT;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %d %d\" ", WIDTH, height);
    fprintf(out, "width=\"%d\" height=\"%d\">\n", WIDTH, height);
    fprintf(out, "<title>Four threads and two event loops contend for one mutex</title>\n%s", style);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", WIDTH, height);
    fprintf(out, "<text x=\"%d\" y=\"34\" font-size=\"17\" font-weight=\"600\">", MARGIN);
    fprintf(out, "One mutex, four threads that block, two event loops that must not</text>\n");
    draw_legend(out);
    for (int i = 0; i < count; i++) picture_draw_panel(out, &acts[i], i);
    fprintf(out, "</svg>\n");
}
