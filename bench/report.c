/* SPDX-License-Identifier: MIT */
/* The figures as a table and as JSON. */
#include "bench.h"

#include <math.h>
#include <string.h>

static bool has_figures(const struct row *row, const struct contestant *contestant) {
    return !isnan(result_of_row(row->name, contestant->name));
}

static bool has_part(enum part part, const struct contestant *contestant) {
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].part == part && has_figures(&rows[i], contestant)) return true;
    return false;
}

/* By one contestant at least: with --by, Vigil may be left out. */
static bool is_measured(const struct row *row) {
    for (size_t i = 0; i < contestant_count; i++)
        if (has_figures(row, contestants[i])) return true;
    return false;
}

static bool is_part_measured(enum part part) {
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].part == part && is_measured(&rows[i])) return true;
    return false;
}

static int decimals(double value) {
    return value == floor(value) ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
}

static void print_cell(FILE *out, double value, int width) {
    if (isnan(value)) fprintf(out, "%*s", width, "");
    else fprintf(out, "%*.*f", width, decimals(value), value);
}

/* How well Vigil's figure is known. */
static void print_error(FILE *out, struct known ours) {
    double error = known_error(ours);
    if (isnan(error)) fprintf(out, " %6s", "");
    else fprintf(out, " %4.*f %%", error < 0.1 ? 1 : 0, 100 * error);
}

/* A peer's figure that is known less well than the others is marked. */
static void print_figure(FILE *out, const struct row *row, const struct contestant *contestant, int width) {
    struct known known = result_known(row->name, contestant->name);
    print_cell(out, known.median, width);
    fprintf(out, "%s", known_error(known) > KNOWN_WELL ? "~" : " ");
}

static int column_width(const struct contestant *contestant) {
    int length = (int)strlen(contestant->name);
    return 1 + (length > 7 ? length : 7);
}

static void table_of(enum part part, FILE *out) {
    fprintf(out, "\n%-29s %-5s %6s", "row", "unit", "+- ");
    for (size_t i = 0; i < contestant_count; i++)
        if (has_part(part, contestants[i])) fprintf(out, "%*s ", column_width(contestants[i]), contestants[i]->name);
    fprintf(out, "\n");
    for (size_t r = 0; r < row_count; r++) {
        if (rows[r].part != part || !is_measured(&rows[r])) continue;
        fprintf(out, "%-29s %-5s", rows[r].name, rows[r].unit);
        print_error(out, result_known(rows[r].name, contestants[0]->name));
        for (size_t i = 0; i < contestant_count; i++)
            if (has_part(part, contestants[i]))
                print_figure(out, &rows[r], contestants[i], column_width(contestants[i]));
        fprintf(out, "\n");
    }
}

void report_table(FILE *out) {
    for (enum part part = 0; part < PARTS; part++)
        if (is_part_measured(part)) table_of(part, out);
    fprintf(out,
            "\nMedians. +- is how far Vigil's may be from the true one, with 95 %% confidence; ~ marks what is known\n"
            "less well than to 2 %%.\n");
    load_describe(out);
    fprintf(out, "\n");
}

void report_targets(FILE *out) {
    unsigned met = 0, judged = 0;
    fprintf(out, "%-29s %-33s %9s  %9s\n", "target", "", "allowed", "vigil");
    for (size_t i = 0; i < target_count; i++) {
        double ours = result_of_row(targets[i].row, "vigil"), allowed = target_allows(&targets[i]);
        if (isnan(ours) || isnan(allowed)) continue;
        bool is_met = target_met(&targets[i], allowed);
        judged++;
        met += is_met;
        fprintf(out, "%-29s %-33s ", targets[i].row, targets[i].text);
        print_cell(out, allowed, 9);
        print_cell(out, ours, 11);
        fprintf(out, "  %s\n", target_verdict(&targets[i], allowed));
    }
    fprintf(out, "%u of %u targets met\n\n", met, judged);
}

static void json_number(FILE *out, double value) {
    if (isnan(value)) fprintf(out, "null");
    else fprintf(out, "%.6g", value);
}

static void json_peers(FILE *out, const struct row *row) {
    const char *separator = "";
    fprintf(out, "\"peers\": {");
    for (size_t i = 1; i < contestant_count; i++) {
        if (!has_figures(row, contestants[i])) continue;
        fprintf(out, "%s\"%s\": %.6g", separator, contestants[i]->name, result_of_row(row->name, contestants[i]->name));
        separator = ", ";
    }
    fprintf(out, "}, \"peer_errors\": {");
    separator = "";
    for (size_t i = 1; i < contestant_count; i++) {
        if (!has_figures(row, contestants[i])) continue;
        fprintf(out, "%s\"%s\": ", separator, contestants[i]->name);
        json_number(out, known_error(result_known(row->name, contestants[i]->name)));
        separator = ", ";
    }
    fprintf(out, "}");
}

static void json_targets(FILE *out, const struct row *row) {
    const char *separator = "";
    fprintf(out, "\"targets\": [");
    for (size_t i = 0; i < target_count; i++) {
        double ours = result_of_row(row->name, "vigil"), allowed = target_allows(&targets[i]);
        if (strcmp(targets[i].row, row->name) != 0 || isnan(ours) || isnan(allowed)) continue;
        fprintf(out, "%s{\"text\": \"%s\", \"allowed\": %.6g, \"met\": %s, \"verdict\": \"%s\"}", separator,
                targets[i].text, allowed, target_met(&targets[i], allowed) ? "true" : "false",
                target_verdict(&targets[i], allowed));
        separator = ", ";
    }
    fprintf(out, "]");
}

static void json_load(FILE *out) {
    const struct {
        const char *name;
        double value;
    } loads[] = {{"others_before", load_before.others},
                 {"others", load_meanwhile.others},
                 {"stolen_before", load_before.stolen},
                 {"stolen", load_meanwhile.stolen}};
    fprintf(out, "\"load\": {");
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        fprintf(out, "%s\"%s\": ", i > 0 ? ", " : "", loads[i].name);
        json_number(out, loads[i].value);
    }
    fprintf(out, "}");
}

void report_json(FILE *out) {
    const char *separator = "\n";
    fprintf(out, "{");
    json_load(out);
    fprintf(out, ", \"rows\": [");
    for (size_t i = 0; i < row_count; i++) {
        if (!is_measured(&rows[i])) continue;
        fprintf(out, "%s  {\"name\": \"%s\", \"unit\": \"%s\", \"better\": \"%s\", \"rounds\": %u, ", separator,
                rows[i].name, rows[i].unit, rows[i].higher_is_better ? "higher" : "lower",
                result_known(rows[i].name, "vigil").rounds);
        fprintf(out, "\"vigil\": ");
        json_number(out, result_of_row(rows[i].name, "vigil"));
        fprintf(out, ", \"error\": ");
        json_number(out, known_error(result_known(rows[i].name, "vigil")));
        fprintf(out, ", ");
        json_peers(out, &rows[i]);
        fprintf(out, ", ");
        json_targets(out, &rows[i]);
        fprintf(out, ", \"what\": \"%s\"}", rows[i].what);
        separator = ",\n";
    }
    fprintf(out, "\n]}\n");
}
