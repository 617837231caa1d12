/* SPDX-License-Identifier: MIT */
/*
 * How cost grows with the number of waiters: four panels, both axes logarithmic. Below them, bars: each thread's part
 * of a mutex that they contend for.
 */
#include "bench.h"

#include <math.h>
#include <string.h>

enum { PANEL_WIDTH = 380, PANEL_HEIGHT = 230, MARGIN_LEFT = 64, MARGIN_TOP = 84, GAP_X = 76, GAP_Y = 84 };
enum { WIDTH = MARGIN_LEFT + 2 * PANEL_WIDTH + GAP_X + 24, LOCKS_TOP = MARGIN_TOP + 2 * PANEL_HEIGHT + GAP_Y + 60 };
enum { BAR_STEP = 26, BAR_HEIGHT = 16, BAR_LABEL = 58, BAR_VALUE = 46, BARS_WIDTH = (WIDTH - 2 * 24 - 2 * 30) / 3 };
enum { BARS_MAX = 5, BARS_TOP = LOCKS_TOP + 84, HEIGHT = BARS_TOP + BARS_MAX * BAR_STEP + 20 };

static const double WAITERS_LOG_MAX = 6; /* 1 to 1,000,000 */
static const uint64_t waiters[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
static const char *const waiter_labels[] = {"1", "10", "100", "1k", "10k", "100k", "1M"};
static const char *const cost_labels[] = {"1 ns", "10 ns", "100 ns", "1 µs", "10 µs"};
enum { WAITERS_COUNT = sizeof waiters / sizeof *waiters, COSTS_COUNT = sizeof cost_labels / sizeof *cost_labels };

static const struct panel {
    const char *title;
    const char *job;
    size_t figure;
} panels[] = {
    {"register one more", "line", 0},
    {"notify all, each", "line", 1},
    {"run the callbacks, each", "line", 2},
    {"cancel one, random order", "cancel", 0},
};

static const struct bars {
    const char *title;
    const char *row;
    int decimals;
} bars[] = {
    {"million locks per second", "mutex_contended_16", 1},
    {"least served over most served", "mutex_share_16", 2},
    {"longest single wait, ms", "mutex_longest_wait_16", 0},
};

static const char style[] =
    "<style>"
    "svg{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;font-size:13px}"
    ".paper{fill:#ffffff}text{fill:#24292f}.faint{fill:#57606a}.grid{stroke:#d8dee4;stroke-width:1}"
    ".line{fill:none;stroke-width:2.5;stroke-linejoin:round}"
    ".vigil{stroke:#0969da}text.vigil-dot,.vigil-dot{fill:#0969da}.V8{stroke:#bc4c00}text.V8-dot,.V8-dot{fill:#bc4c00}"
    ".peer{fill:#afb8c1}"
    "@media(prefers-color-scheme:dark){"
    ".paper{fill:#0d1117}text{fill:#e6edf3}.faint{fill:#8b949e}.grid{stroke:#30363d}"
    ".vigil{stroke:#58a6ff}text.vigil-dot,.vigil-dot{fill:#58a6ff}.V8{stroke:#f0883e}text.V8-dot,.V8-dot{fill:#f0883e}"
    ".peer{fill:#6e7681}}"
    "</style>\n";

static double x_of(double count) {
    return PANEL_WIDTH * log10(count) / WAITERS_LOG_MAX;
}

static double y_of(double cost_ns) {
    double height = log10(cost_ns < 1 ? 1 : cost_ns) / (COSTS_COUNT - 1);
    return PANEL_HEIGHT * (1 - (height > 1 ? 1 : height));
}

static void draw_grid(FILE *out) {
    for (size_t i = 0; i < COSTS_COUNT; i++) {
        double y = y_of(pow(10, (double)i));
        fprintf(out, "<line class=\"grid\" x1=\"0\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", y, PANEL_WIDTH, y);
        fprintf(out, "<text class=\"faint\" x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", y + 4,
                cost_labels[i]);
    }
    for (size_t i = 0; i < WAITERS_COUNT; i++)
        fprintf(out, "<text class=\"faint\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x_of((double)waiters[i]), PANEL_HEIGHT + 20, waiter_labels[i]);
}

/* Above the line, which may come down to it. */
static void draw_last_value(FILE *out, const struct panel *panel, size_t contestant) {
    double before_ns = result_at(panel->job, waiters[WAITERS_COUNT - 2], panel->figure, contestant);
    double cost_ns = result_at(panel->job, waiters[WAITERS_COUNT - 1], panel->figure, contestant);
    if (!isnan(cost_ns))
        fprintf(out, "<text class=\"%s-dot\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f ns</text>\n",
                contestants[contestant]->name, PANEL_WIDTH + 4, y_of(fmax(before_ns, cost_ns)) - 9, cost_ns);
}

static void draw_line(FILE *out, const struct panel *panel, size_t contestant) {
    const char *name = contestants[contestant]->name;
    const char *command = "M";
    fprintf(out, "<path class=\"line %s\" d=\"", name);
    for (size_t i = 0; i < WAITERS_COUNT; i++) {
        double cost_ns = result_at(panel->job, waiters[i], panel->figure, contestant);
        if (isnan(cost_ns)) continue;
        fprintf(out, "%s%.1f %.1f", command, x_of((double)waiters[i]), y_of(cost_ns));
        command = "L";
    }
    fprintf(out, "\"/>\n");
    draw_last_value(out, panel, contestant);
    for (size_t i = 0; i < WAITERS_COUNT; i++) {
        double cost_ns = result_at(panel->job, waiters[i], panel->figure, contestant);
        if (isnan(cost_ns)) continue;
        fprintf(out, "<circle class=\"%s-dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\">", name, x_of((double)waiters[i]),
                y_of(cost_ns));
        fprintf(out, "<title>%s: %.3g ns</title></circle>\n", waiter_labels[i], cost_ns);
    }
}

/* Vigil and V8 are drawn, as only these have asynchronous waiters. V8 cannot cancel one. */
static bool is_drawn(size_t contestant) {
    return strcmp(contestants[contestant]->name, "vigil") == 0 || strcmp(contestants[contestant]->name, "V8") == 0;
}

static void draw_panel(FILE *out, const struct panel *panel, size_t position) {
    fprintf(out, "<g transform=\"translate(%d %d)\">\n", MARGIN_LEFT + (int)(position % 2) * (PANEL_WIDTH + GAP_X),
            MARGIN_TOP + (int)(position / 2) * (PANEL_HEIGHT + GAP_Y));
    fprintf(out, "<text x=\"0\" y=\"-14\" font-weight=\"600\">%s</text>\n", panel->title);
    draw_grid(out);
    bool alone = true;
    for (size_t i = contestant_count; i-- > 0;) {
        if (!is_drawn(i)) continue;
        draw_line(out, panel, i);
        alone &= i == 0 || isnan(result_at(panel->job, waiters[WAITERS_COUNT - 1], panel->figure, i));
    }
    if (alone)
        fprintf(out, "<text class=\"faint\" x=\"%d\" y=\"-14\" text-anchor=\"end\">V8 cannot</text>\n", PANEL_WIDTH);
    fprintf(out, "</g>\n");
}

static void draw_legend(FILE *out) {
    static const char *const names[] = {"vigil", "V8"};
    for (int i = 0; i < 2; i++) {
        int x = WIDTH - 24 - 150 + i * 90;
        fprintf(out, "<path class=\"line %s\" d=\"M%d 32h26\"/>", names[i], x);
        fprintf(out, "<circle class=\"%s-dot\" cx=\"%d\" cy=\"32\" r=\"3.5\"/>", names[i], x + 13);
        fprintf(out, "<text x=\"%d\" y=\"36\" font-weight=\"600\">%s</text>\n", x + 32, names[i]);
    }
}

static double greatest_of(const char *row) {
    double greatest = NAN;
    for (size_t i = 0; i < contestant_count; i++) greatest = fmax(greatest, result_of_row(row, contestants[i]->name));
    return greatest;
}

static void draw_bar(FILE *out, const struct bars *kind, size_t contestant, int y) {
    const char *name = contestants[contestant]->name;
    double value = result_of_row(kind->row, name);
    double length = (BARS_WIDTH - BAR_LABEL - BAR_VALUE) * value / greatest_of(kind->row);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\"%s>%s</text>", BAR_LABEL - 8, y + 13,
            contestant == 0 ? " font-weight=\"600\"" : " class=\"faint\"", name);
    fprintf(out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>",
            contestant == 0 ? "vigil-dot" : "peer", BAR_LABEL, y, length, BAR_HEIGHT);
    fprintf(out, "<text class=\"faint\" x=\"%.1f\" y=\"%d\">%.*f</text>\n", BAR_LABEL + length + 6, y + 13,
            kind->decimals, value);
}

static void draw_bars(FILE *out, const struct bars *kind, int position) {
    int y = 0;
    fprintf(out, "<g transform=\"translate(%d %d)\">\n", 24 + position * (BARS_WIDTH + 30), BARS_TOP);
    fprintf(out, "<text x=\"0\" y=\"-14\" font-weight=\"600\">%s</text>\n", kind->title);
    for (size_t i = 0; i < contestant_count; i++) {
        if (isnan(result_of_row(kind->row, contestants[i]->name))) continue;
        draw_bar(out, kind, i, y);
        y += BAR_STEP;
    }
    fprintf(out, "</g>\n");
}

static void draw_heading(FILE *out, int y, const char *text) {
    fprintf(out, "<text x=\"24\" y=\"%d\" font-size=\"17\" font-weight=\"600\">%s</text>\n", y, text);
}

bool chart_svg(const char *path) {
    FILE *out = fopen(path, "w");
    if (out == NULL) return false;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" ");
    fprintf(out, "viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(out, "<title>Cost per waiter by the number of asynchronous waiters, Vigil and V8; ");
    fprintf(out, "16 threads and one mutex, Vigil and its peers</title>\n");
    fputs(style, out);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", WIDTH, HEIGHT);
    draw_heading(out, 37, "Cost per waiter, by how many wait");
    draw_legend(out);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++) draw_panel(out, &panels[i], i);
    fprintf(out,
            "<text class=\"faint\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">"
            "asynchronous waiters in one line</text>\n",
            WIDTH / 2, LOCKS_TOP - 14);
    draw_heading(out, LOCKS_TOP + 37, "One mutex, 16 threads");
    for (int i = 0; i < (int)(sizeof bars / sizeof *bars); i++) draw_bars(out, &bars[i], i);
    fprintf(out, "</svg>\n");
    return fclose(out) == 0;
}
