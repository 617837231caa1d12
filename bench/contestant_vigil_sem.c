/* SPDX-License-Identifier: MIT */
/* Our semaphore. */
#include "bench.h"

#include <vigil/sem.h>

static struct { _Alignas(128) vigil_sem sem; } alone;

static void sem_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        must(vigil_sem_acquire(&alone.sem, 1) == VIGIL_OK);
        must(vigil_sem_release(&alone.sem, 1) == VIGIL_OK);
    }
}

static void sem_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    must(vigil_sem_release(&alone.sem, 1) == VIGIL_OK);
    figures[0] = per_call_ns(sem_loop, job->n);
    must(vigil_sem_acquire(&alone.sem, 1) == VIGIL_OK);
}

const struct skill our_sem[] = {
    {"sem_uncontended", sem_uncontended, false},
    {0},
};
