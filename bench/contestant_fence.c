/* SPDX-License-Identifier: MIT */
/* Not a contestant but a yardstick: the least that a notify can do, a full fence and a load. */
#include "bench.h"

static struct word words[2];

static void notify_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        (void)*(volatile uint32_t *)&words[0].value;
    }
}

static void notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(notify_loop, job->n);
}

/* With a store before: the store and the fence are one instruction on x86-64. */
static void store_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        __atomic_exchange_n(&words[0].value, (uint32_t)i, __ATOMIC_SEQ_CST);
        (void)*(volatile uint32_t *)&words[1].value;
    }
}

static void store_and_notify(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(store_loop, job->n);
}

/* The best that this machine's two processors can do. */
static void own_words_loop(uint64_t n, unsigned who) {
    for (uint64_t i = 0; i < n; i++) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        (void)*(volatile uint32_t *)&words[who].value;
    }
}

static void notify_parallel(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = speedup_of_two(own_words_loop, job->n);
}

static const struct skill skills[] = {
    {"notify_nobody", notify_nobody, false},
    {"store_and_notify", store_and_notify, false},
    {"notify_parallel", notify_parallel, false},
    {0},
};
const struct contestant contestant_fence = {.name = "fence+load", .skills = {skills}};
