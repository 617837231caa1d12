/* SPDX-License-Identifier: MIT */
/*
 * shared_mutex_skills.h - what is measured of a mutex that processes share. To be included after the contestant's own
 * lock(), unlock() and `arena`.
 */
#ifndef BENCH_SHARED_MUTEX_SKILLS_H
#define BENCH_SHARED_MUTEX_SKILLS_H

#include "bench.h"

static void lock_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        lock();
        unlock();
    }
}

static void shared_mutex_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = shared_per_call_ns(&arena, lock_loop, job->n);
}

static void shared_mutex_contest(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_processes(job, &arena, (struct lock){lock, unlock}, figures);
}

#endif
