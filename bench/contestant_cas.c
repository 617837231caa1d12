/* SPDX-License-Identifier: MIT */
/* Not a contestant but a yardstick: the least that a lock and its unlock can do. */
#include "bench.h"

static struct word word;

static void pair_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        uint32_t unlocked = 0;
        must(__atomic_compare_exchange_n(&word.value, &unlocked, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
        must(__atomic_fetch_sub(&word.value, 1, __ATOMIC_RELEASE) == 1);
    }
}

static void mutex_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(pair_loop, job->n);
}

static const struct skill skills[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {0},
};
const struct contestant contestant_cas = {.name = "CAS pair", .skills = {skills}};
