/* SPDX-License-Identifier: MIT */
/* Tests of results.c: how well a median is known, and what that means for a target. With a plan of its own. */
#include "bench.h"

#include <math.h>
#include <string.h>

enum { VARIED, STEADY, ROUGH, SHORT, ALL };

const struct job jobs[] = {
    [VARIED] = {"varied", 1, 2, {"varied"}},
    [STEADY] = {"steady", 1, 2, {"steady"}},
    [ROUGH] = {"rough", 1, 2, {"rough"}},
    [SHORT] = {"short", 1, 2, {"short"}},
};
const size_t job_count = ALL;

const struct row rows[] = {
    {LOCKS, "varied", "ns", "", false},
    {LOCKS, "steady", "ns", "", false},
    {LOCKS, "rough", "ns", "", false},
    {LOCKS, "short", "ns", "", false},
};
const size_t row_count = ALL;

static const struct contestant ours = {.name = "vigil"}, peer = {.name = "peer"}, worse = {.name = "worse"};
const struct contestant *const contestants[] = {&ours, &peer, &worse};
const size_t contestant_count = 3;

const struct row *row_find(const char *name) {
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

static void add(size_t job, size_t contestant, double value) {
    result_add(job, contestant, (double[FIGURES_MAX]){value, NAN, NAN});
}

/* The samples 1 to `count`, in another order, so that a bound is its own rank. The ranks are those of tables of
 * binomial confidence intervals of the median. */
static void test_bounds(void) {
    static const struct {
        unsigned count, low, high;
    } expected[] = {{5, 1, 5},   {6, 1, 6},   {10, 2, 9},   {15, 4, 12},
                    {20, 6, 15}, {25, 8, 18}, {30, 10, 21}, {50, 18, 33}};
    unsigned added = 0;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        /* They come from the middle outwards, so that the samples so far are consecutive numbers. */
        for (; added < expected[i].count; added++) add(VARIED, 0, added % 2 ? 100 - added / 2 - 1 : 100 + added / 2);
        struct known known = result_known("varied", "vigil");
        double least = 100 - added / 2;
        must(known.rounds == added);
        must(known.low == least + expected[i].low - 1 && known.high == least + expected[i].high - 1);
        must(known.median == least + (added - 1) / 2.0);
    }
}

static void test_known(void) {
    must(job_is_known(STEADY)); /* nothing was measured, so there is nothing to know */
    for (unsigned i = 0; i < 5; i++) add(STEADY, 0, 0);
    must(!job_is_known(STEADY) && known_error(result_known("steady", "vigil")) == 0);
    add(STEADY, 0, 0);
    must(job_is_known(STEADY));
    add(STEADY, 2, 7); /* once: what cannot be repeated does not keep a job going */
    must(job_is_known(STEADY) && isnan(known_error(result_known("steady", "worse"))));
    for (unsigned i = 0; i < 6; i++) add(STEADY, 1, 100 + i);
    must(!job_is_known(STEADY));
    must(isnan(result_of_row("steady", "nobody")) && isnan(result_of_row("no such row", "vigil")));
}

/* Ours: 90 to 95. The peers: 94 to 99, and far away. */
static void test_verdicts(void) {
    const struct target level = {"rough", false, 1, BEST_PEER, NULL, ""};
    const struct target half = {"rough", false, 0.5, "peer", NULL, ""};
    const struct target easy = {"rough", false, 1, "worse", NULL, ""};
    const struct target most = {"rough", true, 93, NULL, NULL, ""};
    for (unsigned i = 0; i < 6; i++) {
        add(ROUGH, 0, 90 + i);
        add(ROUGH, 1, 94 + i);
        add(ROUGH, 2, 1000 + i);
    }
    must(target_allows(&level) == 96.5 && target_allows(&half) == 48.25);
    must(strcmp(target_verdict(&level, 96.5), "met, within the noise") == 0);
    must(strcmp(target_verdict(&half, 48.25), "missed") == 0);
    must(strcmp(target_verdict(&easy, target_allows(&easy)), "met") == 0);
    must(strcmp(target_verdict(&most, 93), "missed, within the noise") == 0);
}

static void test_exact_verdict(void) {
    const struct target none = {"short", false, 0, NULL, NULL, ""};
    add(SHORT, 0, 0);
    must(strcmp(target_verdict(&none, 0), "met") == 0);
}

int main(void) {
    test_bounds();
    test_known();
    test_verdicts();
    test_exact_verdict();
    return 0;
}
