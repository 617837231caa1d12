/* SPDX-License-Identifier: MIT */
/* V8 through node: v8.mjs does the same jobs with Atomics, as a coprocess that takes its turn with the others. */
#include "bench.h"

static const char *const node[] = {"node",          "--expose-gc", "--no-warnings", "--max-old-space-size=6144",
                                   BENCH_V8_SCRIPT, NULL};
static struct coprocess v8;

static bool v8_open(void) {
    char version[64];
    if (!coprocess_start(&v8, node)) return false;
    if (!coprocess_ask(&v8, "version", version, sizeof version)) {
        coprocess_stop(&v8);
        return false;
    }
    fprintf(people(), "V8: %s\n", version);
    return true;
}

static void v8_close(void) {
    coprocess_stop(&v8);
}

static void measure(const struct job *job, double figures[FIGURES_MAX]) {
    coprocess_measure(&v8, job, figures);
}

static void measure_afresh(const struct job *job, double figures[FIGURES_MAX]) {
    struct coprocess fresh;
    must(coprocess_start(&fresh, node));
    coprocess_measure(&fresh, job, figures);
    coprocess_stop(&fresh);
}

static const struct skill skills[] = {
    {"notify_nobody", measure, false},
    {"wait_not_equal", measure, false},
    {"notify_parallel", measure, false},
    {"line", measure, false},
    {"lines", measure, false},
    {"bytes", measure_afresh, true},
    {"bytes_distinct", measure_afresh, true},
    {"timeouts", measure_afresh, true},
    {"pingpong_block", measure, false},
    {"pingpong_async", measure, false},
    {0},
};
const struct contestant contestant_v8 = {.name = "V8", .skills = {skills}, .open = v8_open, .close = v8_close};
