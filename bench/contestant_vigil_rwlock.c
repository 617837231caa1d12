/* SPDX-License-Identifier: MIT */
/* Our read-write lock. */
#include "bench.h"

#include <vigil/rwlock.h>

static struct { _Alignas(128) vigil_rwlock rwlock; } shared;

static void read_loop(uint64_t n, unsigned who) {
    (void)who;
    for (uint64_t i = 0; i < n; i++) {
        must(vigil_rwlock_read_lock(&shared.rwlock) == VIGIL_OK);
        must(vigil_rwlock_read_unlock(&shared.rwlock) == VIGIL_OK);
    }
}

static void rwlock_read(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_of_two_ns(read_loop, job->n);
}

static void read_lock(void) {
    must(vigil_rwlock_read_lock(&shared.rwlock) == VIGIL_OK);
}

static void read_unlock(void) {
    must(vigil_rwlock_read_unlock(&shared.rwlock) == VIGIL_OK);
}

static void write_lock(void) {
    must(vigil_rwlock_write_lock(&shared.rwlock) == VIGIL_OK);
}

static void write_unlock(void) {
    must(vigil_rwlock_write_unlock(&shared.rwlock) == VIGIL_OK);
}

static void rwlock_mixed(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_readers(job, (struct rwlock){read_lock, read_unlock, write_lock, write_unlock}, figures);
}

static void page_cache(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_pages(job, (struct rwlock){read_lock, read_unlock, write_lock, write_unlock}, figures);
}

const struct skill our_rwlock[] = {
    {"rwlock_read", rwlock_read, false},
    {"rwlock_mixed", rwlock_mixed, false},
    {"page_cache", page_cache, false},
    {0},
};
