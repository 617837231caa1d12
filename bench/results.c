/* SPDX-License-Identifier: MIT */
/* The samples of a run, and what they say about the targets. */
#include "bench.h"

#include <math.h>
#include <string.h>

enum { JOBS_MAX = 64 };

static struct {
    unsigned count;
    double values[ROUNDS_MAX];
} samples[JOBS_MAX][CONTESTANTS_MAX][FIGURES_MAX];

void result_add(size_t job, size_t contestant, const double figures[FIGURES_MAX]) {
    must(job < JOBS_MAX && contestant < CONTESTANTS_MAX);
    for (size_t i = 0; i < FIGURES_MAX; i++) {
        if (isnan(figures[i])) continue;
        must(samples[job][contestant][i].count < ROUNDS_MAX);
        samples[job][contestant][i].values[samples[job][contestant][i].count++] = figures[i];
    }
}

double result_median(size_t job, size_t contestant, size_t figure) {
    return median(samples[job][contestant][figure].values, samples[job][contestant][figure].count);
}

double result_of_row(const char *row, const char *contestant_name) {
    for (size_t job = 0; job < job_count; job++)
        for (size_t figure = 0; figure < FIGURES_MAX; figure++)
            if (jobs[job].rows[figure] != NULL && strcmp(jobs[job].rows[figure], row) == 0)
                for (size_t i = 0; i < contestant_count; i++)
                    if (strcmp(contestants[i]->name, contestant_name) == 0) return result_median(job, i, figure);
    return NAN;
}

double result_at(const char *job_name, uint64_t n, size_t figure, size_t contestant) {
    for (size_t job = 0; job < job_count; job++)
        if (strcmp(jobs[job].name, job_name) == 0 && jobs[job].n == n) return result_median(job, contestant, figure);
    return NAN;
}

static double best_of_peers(const char *row) {
    double best = NAN;
    for (size_t i = 1; i < contestant_count; i++) {
        double figure = result_of_row(row, contestants[i]->name);
        best = row_find(row)->higher_is_better ? fmax(best, figure) : fmin(best, figure); /* both skip a NAN */
    }
    return best;
}

double target_allows(const struct target *target) {
    if (target->whose == NULL) return target->factor;
    const char *row = target->whose_row != NULL ? target->whose_row : target->row;
    double unit = strcmp(target->whose, BEST_PEER) == 0 ? best_of_peers(row) : result_of_row(row, target->whose);
    return target->factor * unit;
}

bool target_met(const struct target *target, double allowed) {
    double ours = result_of_row(target->row, "vigil");
    return target->at_least ? ours >= allowed : ours <= allowed;
}
