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

static int decimals(double value) {
    return value == floor(value) ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
}

static void print_cell(FILE *out, double value, int width) {
    if (isnan(value)) fprintf(out, "%*s", width, "");
    else fprintf(out, "%*.*f", width, decimals(value), value);
}

static int column_width(const struct contestant *contestant) {
    int length = (int)strlen(contestant->name);
    return 2 + (length > 7 ? length : 7);
}

static void table_of(enum part part, FILE *out) {
    fprintf(out, "\n%-29s %-5s", "row", "unit");
    for (size_t i = 0; i < contestant_count; i++)
        if (has_part(part, contestants[i])) fprintf(out, "%*s", column_width(contestants[i]), contestants[i]->name);
    fprintf(out, "\n");
    for (size_t r = 0; r < row_count; r++) {
        if (rows[r].part != part || !has_figures(&rows[r], contestants[0])) continue;
        fprintf(out, "%-29s %-5s", rows[r].name, rows[r].unit);
        for (size_t i = 0; i < contestant_count; i++)
            if (has_part(part, contestants[i]))
                print_cell(out, result_of_row(rows[r].name, contestants[i]->name), column_width(contestants[i]));
        fprintf(out, "\n");
    }
}

void report_table(FILE *out) {
    for (enum part part = 0; part < PARTS; part++)
        if (has_part(part, contestants[0])) table_of(part, out);
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
        fprintf(out, "  %s\n", is_met ? "met" : "MISSED");
    }
    fprintf(out, "%u of %u targets met\n\n", met, judged);
}

static void json_peers(FILE *out, const struct row *row) {
    const char *separator = "";
    fprintf(out, "\"peers\": {");
    for (size_t i = 1; i < contestant_count; i++) {
        if (!has_figures(row, contestants[i])) continue;
        fprintf(out, "%s\"%s\": %.6g", separator, contestants[i]->name, result_of_row(row->name, contestants[i]->name));
        separator = ", ";
    }
    fprintf(out, "}");
}

static void json_targets(FILE *out, const struct row *row) {
    const char *separator = "";
    fprintf(out, "\"targets\": [");
    for (size_t i = 0; i < target_count; i++) {
        double allowed = target_allows(&targets[i]);
        if (strcmp(targets[i].row, row->name) != 0 || isnan(allowed)) continue;
        fprintf(out, "%s{\"text\": \"%s\", \"allowed\": %.6g, \"met\": %s}", separator, targets[i].text, allowed,
                target_met(&targets[i], allowed) ? "true" : "false");
        separator = ", ";
    }
    fprintf(out, "]");
}

void report_json(FILE *out) {
    const char *separator = "[\n";
    for (size_t i = 0; i < row_count; i++) {
        if (!has_figures(&rows[i], contestants[0])) continue;
        fprintf(out, "%s  {\"name\": \"%s\", \"unit\": \"%s\", \"better\": \"%s\", \"vigil\": %.6g, ", separator,
                rows[i].name, rows[i].unit, rows[i].higher_is_better ? "higher" : "lower",
                result_of_row(rows[i].name, "vigil"));
        json_peers(out, &rows[i]);
        fprintf(out, ", ");
        json_targets(out, &rows[i]);
        fprintf(out, ", \"what\": \"%s\"}", rows[i].what);
        separator = ",\n";
    }
    fprintf(out, "%s]\n", separator[0] == '[' ? "[" : "\n");
}
