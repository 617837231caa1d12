/* SPDX-License-Identifier: MIT */
/* The figures as a Markdown page: doc/figures.md is one. */
#include "bench.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const headings[PARTS] = {
    [WAITING] = "Waiting and notifying",
    [LOCKS] = "Locks",
    [PROCESSES] = "Between processes",
    [COMMANDS] = "The command",
};

/* The processor's model, or "unknown". */
static void find_processor(char model[96]) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    strcpy(model, "unknown processor");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "model name", 10) != 0 || strchr(line, ':') == NULL) continue;
        snprintf(model, 96, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"), strchr(line, ':') + 2);
        break;
    }
    if (file != NULL) fclose(file);
}

static void write_machine(FILE *out) {
    char model[96];
    struct utsname system;
    find_processor(model);
    must(uname(&system) == 0);
    fprintf(out, "%s, %ld processors; %s %.*s, %s; compiled by ", model, sysconf(_SC_NPROCESSORS_ONLN), system.sysname,
            (int)strcspn(system.release, "-"), system.release, system.machine);
#if defined(__clang__)
    fprintf(out, "clang %d", __clang_major__);
#else
    fprintf(out, "gcc %d", __GNUC__);
#endif
    fprintf(out, ".\n");
}

static bool has_figure(const struct row *row, const char *contestant) {
    return !isnan(result_of_row(row->name, contestant));
}

static void write_value(FILE *out, double value) {
    fprintf(out, "%.*f", value == floor(value) ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0, value);
}

/* With fewer rounds than 95 % confidence takes, how many they were. */
static void write_few_rounds(FILE *out, struct known known) {
    if (known.rounds < KNOWN_ROUNDS) fprintf(out, " of %u round%s", known.rounds, known.rounds == 1 ? "" : "s");
}

static void write_peers(FILE *out, const struct row *row) {
    const char *separator = "";
    bool varies = result_known(row->name, "vigil").rounds > 1;
    for (size_t i = 1; i < contestant_count; i++) {
        if (!has_figure(row, contestants[i]->name)) continue;
        fprintf(out, "%s%s ", separator, contestants[i]->name);
        write_value(out, result_of_row(row->name, contestants[i]->name));
        struct known known = result_known(row->name, contestants[i]->name);
        double error = known_error(known);
        if (error > KNOWN_WELL) fprintf(out, " ±%.0f %%", 100 * error);
        if (varies) write_few_rounds(out, known);
        separator = ", ";
    }
}

static void write_part(FILE *out, enum part part) {
    fprintf(out, "\n## %s\n\n| row | what | unit | Vigil | ± | peers |\n|---|---|---|---|---|---|\n", headings[part]);
    for (size_t i = 0; i < row_count; i++) {
        if (rows[i].part != part || !has_figure(&rows[i], "vigil")) continue;
        fprintf(out, "| `%s` | %s | %s%s | ", rows[i].name, rows[i].what, rows[i].unit,
                rows[i].higher_is_better ? ", more is better" : "");
        write_value(out, result_of_row(rows[i].name, "vigil"));
        fprintf(out, " | ");
        struct known known = result_known(rows[i].name, "vigil");
        double error = known_error(known);
        if (!isnan(error)) fprintf(out, "%.*f %%", error < 0.1 ? 1 : 0, 100 * error);
        if (!isnan(error)) write_few_rounds(out, known);
        fprintf(out, " | ");
        write_peers(out, &rows[i]);
        fprintf(out, " |\n");
    }
}

static void write_targets(FILE *out) {
    fprintf(out, "\n## Targets\n\n| row | target | allowed | Vigil | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < target_count; i++) {
        double ours = result_of_row(targets[i].row, "vigil"), allowed = target_allows(&targets[i]);
        if (isnan(ours) || isnan(allowed)) continue;
        fprintf(out, "| `%s` | %s | ", targets[i].row, targets[i].text);
        write_value(out, allowed);
        fprintf(out, " | ");
        write_value(out, ours);
        const char *emphasis = target_met(&targets[i], allowed) ? "" : "**";
        fprintf(out, " | %s%s%s |\n", emphasis, target_verdict(&targets[i], allowed), emphasis);
    }
}

bool figures_markdown(const char *path) {
    FILE *out = fopen(path, "w");
    if (out == NULL) return false;
    fprintf(out, "<!-- SPDX-License-Identifier: MIT -->\n# Figures\n\n"
                 "Written by `make bench`: Vigil and its peers interleaved in one run, medians. Read them as\n"
                 "ratios: the absolute times are those of one machine, on one day. ± is how far Vigil's median may be\n"
                 "from the true one, with 95 %% confidence; 'of 5 rounds': these are too few for that, and it is the\n"
                 "greatest distance. No ±: measured once, as it does not vary, or is the median or the worst of many.\n"
                 "A peer's is known to 2 %% where nothing is said.\n\n");
    write_machine(out);
    load_describe(out);
    for (enum part part = 0; part < PARTS; part++) write_part(out, part);
    write_targets(out);
    bool success = ferror(out) == 0;
    return fclose(out) == 0 && success;
}
