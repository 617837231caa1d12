/* SPDX-License-Identifier: MIT */
/* The samples of a run, and what they say about the targets. */
#include "bench.h"

#include <math.h>
#include <string.h>

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

/*
 * The true median lies outside of the `rank` lowest and highest samples' range with a chance of at most 5 %. As each
 * sample is below it with a chance of one half, how many are is binomially distributed. 0: too few samples for that.
 */
static unsigned rank_of_bounds(unsigned count) {
    unsigned rank = 0;
    double chance = pow(0.5, count), outside = 0;
    for (; rank < count / 2; rank++) {
        outside += 2 * chance;
        if (outside > 0.05) break;
        chance *= (double)(count - rank) / (rank + 1);
    }
    return rank;
}

static struct known known_of(size_t job, size_t contestant, size_t figure) {
    unsigned count = samples[job][contestant][figure].count, rank = rank_of_bounds(count);
    double *values = samples[job][contestant][figure].values;
    if (count == 0) return (struct known){NAN, NAN, NAN, 0};
    double middle = median(values, count); /* sorts them */
    return (struct known){middle, values[rank > 0 ? rank - 1 : 0], values[count - (rank > 0 ? rank : 1)], count};
}

double known_error(struct known known) {
    if (known.rounds < 2) return NAN;
    double distance = fmax(known.high - known.median, known.median - known.low);
    return distance == 0 ? 0 : distance / fabs(known.median);
}

struct known result_known(const char *row, const char *contestant_name) {
    for (size_t job = 0; job < job_count; job++)
        for (size_t figure = 0; figure < FIGURES_MAX; figure++)
            if (jobs[job].rows[figure] != NULL && strcmp(jobs[job].rows[figure], row) == 0)
                for (size_t i = 0; i < contestant_count; i++)
                    if (strcmp(contestants[i]->name, contestant_name) == 0) return known_of(job, i, figure);
    return (struct known){NAN, NAN, NAN, 0};
}

bool job_is_known(size_t job) {
    for (size_t i = 0; i < contestant_count; i++)
        for (size_t figure = 0; figure < FIGURES_MAX; figure++) {
            struct known known = known_of(job, i, figure);
            if (jobs[job].rows[figure] == NULL || known.rounds < 2) continue; /* or not measured, or just once */
            if (known.rounds < KNOWN_ROUNDS || known_error(known) > KNOWN_WELL) return false;
        }
    return true;
}

double result_of_row(const char *row, const char *contestant_name) {
    return result_known(row, contestant_name).median;
}

double result_at(const char *job_name, uint64_t n, size_t figure, size_t contestant) {
    for (size_t job = 0; job < job_count; job++)
        if (strcmp(jobs[job].name, job_name) == 0 && jobs[job].n == n) return known_of(job, contestant, figure).median;
    return NAN;
}

static struct known best_of_peers(const char *row) {
    struct known best = {NAN, NAN, NAN, 0};
    bool higher_is_better = row_find(row)->higher_is_better;
    for (size_t i = 1; i < contestant_count; i++) {
        struct known figure = result_known(row, contestants[i]->name);
        bool better = higher_is_better ? figure.median > best.median : figure.median < best.median;
        if (!isnan(figure.median) && (isnan(best.median) || better)) best = figure;
    }
    return best;
}

/* The figure that the target is a multiple of. */
static struct known target_measure(const struct target *target) {
    if (target->whose == NULL) return (struct known){1, 1, 1, 1};
    const char *row = target->whose_row != NULL ? target->whose_row : target->row;
    return strcmp(target->whose, BEST_PEER) == 0 ? best_of_peers(row) : result_known(row, target->whose);
}

double target_allows(const struct target *target) {
    return target->factor * target_measure(target).median;
}

bool target_met(const struct target *target, double allowed) {
    double ours = result_of_row(target->row, "vigil");
    return target->at_least ? ours >= allowed : ours <= allowed;
}

const char *target_verdict(const struct target *target, double allowed) {
    struct known ours = result_known(target->row, "vigil"), measure = target_measure(target);
    bool overlap = ours.high >= target->factor * measure.low && ours.low <= target->factor * measure.high;
    bool is_met = target_met(target, allowed), is_exact = ours.low == ours.high && measure.low == measure.high;
    if (overlap && !is_exact) return is_met ? "met, within the noise" : "missed, within the noise";
    return is_met ? "met" : "missed";
}
