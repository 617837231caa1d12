/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* The rows, their targets, and how they are shown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define NONE SERIES

struct row {
    const char *name, *what, *unit;
    enum series ours;
    bool tail; /* of ours: the 99th percentile, not the median */
    struct row_peer {
        const char *name;
        enum series series;
        bool tail;
    } peers[2];
    double factor; /* times the first peer, or times 1 if there is none; 0: no target */
    bool at_least;
    const char *wanted;
};

static const struct row rows[] = {
    {"remote_txn",
     "a transaction of a single put, without a comparison",
     "ms",
     TXN,
     false,
     {{"put", PUT, false}, {NULL, NONE, false}},
     0,
     false,
     ""},
    {"remote_pair",
     "lock and unlock a free lock, given back to the cluster",
     "ms",
     PAIR,
     false,
     {{"put", PUT, false}, {"/v3/lock", PAIR_ETCD, false}},
     2.2,
     false,
     "at most 2.2x a put"},
    {"remote_pair_kept",
     "the same while the machine keeps the lock",
     "ms",
     PAIR_KEPT,
     false,
     {{"put", PUT, false}, {"/v3/lock", PAIR_ETCD, false}},
     1.05,
     false,
     "at most 1.05x a put"},
    {"remote_handover",
     "from the end of the release on one machine to the grant on the next",
     "ms",
     HANDOVER,
     false,
     {{"put after a rest", HANDOVER_PUT, false}, {"/v3/lock", HANDOVER_ETCD, false}},
     1.5,
     false,
     "at most 1.5x a put"},
    {"remote_handover_99",
     "the 99th percentile of that",
     "ms",
     HANDOVER,
     true,
     {{"put after a rest", HANDOVER_PUT, false}, {"its 99th percentile", HANDOVER_PUT, true}},
     4,
     false,
     "at most 4x a put"},
    {"remote_handover_whole",
     "the same from the beginning of the release",
     "ms",
     HANDOVER_WHOLE,
     false,
     {{"put after a rest", HANDOVER_PUT, false}, {"/v3/lock", HANDOVER_ETCD_WHOLE, false}},
     0,
     false,
     ""},
    {"remote_grants_64",
     "64 processes on 4 machines at one lock: grants",
     "per s, more is better",
     GRANTS_64,
     false,
     {{"/v3/lock", GRANTS_64_ETCD, false}, {NULL, NONE, false}},
     5,
     true,
     "at least 5x /v3/lock"},
    {"remote_grants_4",
     "4 processes, one on each machine",
     "per s, more is better",
     GRANTS_4,
     false,
     {{"/v3/lock", GRANTS_4_ETCD, false}, {NULL, NONE, false}},
     1,
     true,
     "at least 1.0x /v3/lock"},
    {"remote_command",
     "vigil lock --at ... true, from start to end",
     "ms",
     COMMAND,
     false,
     {{"etcdctl lock", COMMAND_ETCD, false}, {NULL, NONE, false}},
     0.5,
     false,
     "at most 0.5x etcdctl"},
    {"remote_waiting_1000",
     "memory of 1,000 requests of a process that wait for one lock",
     "MB",
     WAITING_MB,
     false,
     {{NULL, NONE, false}, {NULL, NONE, false}},
     2,
     false,
     "at most 2 MB"},
    {"remote_waiting_1000_locks",
     "the same, each for another lock",
     "MB",
     WAITING_LOCKS_MB,
     false,
     {{NULL, NONE, false}, {NULL, NONE, false}},
     2,
     false,
     "at most 2 MB"},
    {"remote_waiting_connections",
     "and its connections",
     "count",
     WAITING_CONNECTIONS,
     false,
     {{NULL, NONE, false}, {NULL, NONE, false}},
     1,
     false,
     "1"},
};
#define ROWS (sizeof rows / sizeof rows[0])

static const char *const nodes_text[] = {"one node", "three nodes"};
static const int nodes_count[] = {1, 3};

static int report_compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

/* NAN: nothing was measured. */
static double report_quantile(const struct samples *samples, double share) {
    static double sorted[SAMPLES_MAX];
    unsigned count = samples->count;
    if (!count) return NAN;
    memcpy(sorted, samples->values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, report_compare);
    double at = share * (count - 1);
    unsigned below = (unsigned)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/*
 * How far the true median may be from that of the samples, as a part of it, with 95 % confidence: bench/results.c has
 * the argument. How many of n samples are below the median has a standard deviation of half the root of n; with less
 * than 6 it is the greatest distance. NAN: there are less than two.
 */
static double report_error(const struct samples *samples) {
    double count = samples->count, middle = report_quantile(samples, 0.5);
    if (count < 2) return NAN;
    double distance = count < 6 ? 0.5 : 0.98 / sqrt(count);
    double low = report_quantile(samples, fmax(0.5 - distance, 0)),
           high = report_quantile(samples, fmin(0.5 + distance, 1));
    return middle == 0 ? 0 : fmax(high - middle, middle - low) / middle;
}

static double report_ours(const struct row *row, const struct samples *series) {
    return report_quantile(&series[row->ours], row->tail ? 0.99 : 0.5);
}

static double report_peer(const struct row *row, unsigned peer, const struct samples *series) {
    return row->peers[peer].name ? report_quantile(&series[row->peers[peer].series], row->peers[peer].tail ? 0.99 : 0.5)
                                 : NAN;
}

/* What the target multiplies: the first peer's figure, or 1. */
static double report_base(const struct row *row, const struct samples *series) {
    return row->peers[0].name ? report_peer(row, 0, series) : 1;
}

static bool report_met(const struct row *row, const struct samples *series) {
    double ours = report_ours(row, series), allowed = row->factor * report_base(row, series);
    return row->at_least ? ours >= allowed : ours <= allowed;
}

static const char *report_verdict(const struct row *row, const struct samples *series) {
    if (!row->factor || isnan(report_base(row, series))) return "";
    return report_met(row, series) ? "met" : "**missed**";
}

static void report_value(FILE *out, double value) {
    int digits = value == floor(value) || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    fprintf(out, "%.*f", digits, value);
}

static void report_peers(FILE *out, const struct row *row, const struct samples *series) {
    const char *separator = "";
    for (unsigned i = 0; i < 2; i++) {
        double figure = report_peer(row, i, series);
        if (isnan(figure)) continue;
        fprintf(out, "%s%s ", separator, row->peers[i].name);
        report_value(out, figure);
        separator = ", ";
    }
}

static void report_ratio(FILE *out, const struct row *row, const struct samples *series) {
    if (row->peers[0].name && !isnan(report_peer(row, 0, series)))
        fprintf(out, "%.2fx", report_ours(row, series) / report_peer(row, 0, series));
}

static void report_nodes(FILE *out, const struct samples *series) {
    fprintf(out, "| row | what | unit | Vigil | ± | others | ratio | wanted | |\n"
                 "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < ROWS; i++) {
        if (isnan(report_ours(&rows[i], series))) continue;
        fprintf(out, "| `%s` | %s | %s | ", rows[i].name, rows[i].what, rows[i].unit);
        report_value(out, report_ours(&rows[i], series));
        fprintf(out, " | ");
        double error = rows[i].tail ? NAN : report_error(&series[rows[i].ours]);
        if (!isnan(error)) fprintf(out, "%.1f %%", 100 * error);
        fprintf(out, " | ");
        report_peers(out, &rows[i], series);
        fprintf(out, " | ");
        report_ratio(out, &rows[i], series);
        fprintf(out, " | %s | %s |\n", rows[i].wanted, report_verdict(&rows[i], series));
    }
}

void report_markdown(FILE *out, const struct samples *all) {
    fprintf(out, "## Beyond one machine\n\n"
                 "On etcd, all nodes and clients on this one machine; the ratio is to the first of the others. ± is\n"
                 "how far Vigil's median may be from the true one, with 95 %% confidence; of the grants and the\n"
                 "memory, which have a figure a round, it is the greatest distance of five.\n");
    for (unsigned i = 0; i < 2; i++) {
        fprintf(out, "\nOn %s:\n\n", nodes_text[i]);
        report_nodes(out, all + i * SERIES);
    }
}

void report_table(FILE *out, const struct samples *all) {
    for (unsigned i = 0; i < 2; i++) {
        const struct samples *series = all + i * SERIES;
        fprintf(out, "%s\n", nodes_text[i]);
        for (size_t j = 0; j < ROWS; j++) {
            if (isnan(report_ours(&rows[j], series))) continue;
            fprintf(out, "  %-26s ", rows[j].name);
            report_value(out, report_ours(&rows[j], series));
            fprintf(out, "  ");
            report_peers(out, &rows[j], series);
            fprintf(out, "  ");
            report_ratio(out, &rows[j], series);
            fprintf(out, "  %s   (%s) %s\n", rows[j].unit, rows[j].wanted, report_verdict(&rows[j], series));
        }
    }
}

static void report_json_row(FILE *out, const struct row *row, const struct samples *series, int nodes) {
    const char *separator = "";
    fprintf(out, "{\"row\": \"%s\", \"nodes\": %d, \"unit\": \"%s\", \"vigil\": %g, \"peers\": {", row->name, nodes,
            row->unit, report_ours(row, series));
    for (unsigned i = 0; i < 2; i++) {
        double figure = report_peer(row, i, series);
        if (isnan(figure)) continue;
        fprintf(out, "%s\"%s\": %g", separator, row->peers[i].name, figure);
        separator = ", ";
    }
    fprintf(out, "}, \"samples\": %u", series[row->ours].count);
    double error = row->tail ? NAN : report_error(&series[row->ours]);
    if (!isnan(error)) fprintf(out, ", \"error\": %g", error);
    if (report_verdict(row, series)[0])
        fprintf(out, ", \"target\": \"%s\", \"met\": %s", row->wanted, report_met(row, series) ? "true" : "false");
    fprintf(out, ", \"what\": \"%s\"}", row->what);
}

void report_json(FILE *out, const struct samples *all) {
    const char *separator = "[\n";
    for (unsigned i = 0; i < 2; i++) {
        for (size_t j = 0; j < ROWS; j++) {
            if (isnan(report_ours(&rows[j], all + i * SERIES))) continue;
            fprintf(out, "%s", separator);
            report_json_row(out, &rows[j], all + i * SERIES, nodes_count[i]);
            separator = ",\n";
        }
    }
    fprintf(out, "\n]\n");
}
