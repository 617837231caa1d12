/* SPDX-License-Identifier: MIT */
/* nsync's mutex and condition variable. */
#include "bench.h"

#include <nsync.h>

static nsync_mu mu;
static nsync_cv arrived[2];
static uint32_t balls[2];

static void signal_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) nsync_cv_signal(&arrived[0]);
}

static void notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(signal_loop, job->n);
}

static void throw_ball(unsigned side, uint32_t ball) {
    nsync_mu_lock(&mu);
    balls[side] = ball;
    nsync_mu_unlock(&mu);
    nsync_cv_signal(&arrived[side]);
}

static void catch_ball(unsigned side, uint32_t ball) {
    nsync_mu_lock(&mu);
    while (balls[side] != ball) nsync_cv_wait(&arrived[side], &mu);
    nsync_mu_unlock(&mu);
}

#include "pingpong.h"

static const struct skill skills[] = {
    {"notify_nobody", notify_nobody, false},
    {"pingpong_block", pingpong_block, false},
    {0},
};
extern const struct skill nsync_locks[];
const struct contestant contestant_nsync = {.name = "nsync", .skills = {skills, nsync_locks}};
