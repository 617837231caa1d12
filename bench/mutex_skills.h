/* SPDX-License-Identifier: MIT */
/*
 * mutex_skills.h - what is measured of any mutex. To be included after the contestant's own lock() and unlock(): in
 * the same file, the compiler can inline them into the loop.
 */
#ifndef BENCH_MUTEX_SKILLS_H
#define BENCH_MUTEX_SKILLS_H

#include "bench.h"

static void lock_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        lock();
        unlock();
    }
}

static void mutex_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(lock_loop, job->n);
}

static void mutex_contest(const struct job *job, double figures[FIGURES_MAX]) {
    contest_throughput(job, (struct lock){lock, unlock}, figures);
}

static void mutex_waits(const struct job *job, double figures[FIGURES_MAX]) {
    contest_longest_wait(job, (struct lock){lock, unlock}, figures);
}

#endif
