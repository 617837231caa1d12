/* SPDX-License-Identifier: MIT */
/* nsync's locks. */
#include "bench.h"

#include <nsync.h>

static struct {
    _Alignas(128) nsync_mu mu;
    _Alignas(128) nsync_cv cv;
} locks;

static void lock(void) {
    nsync_mu_lock(&locks.mu);
}

static void unlock(void) {
    nsync_mu_unlock(&locks.mu);
}

#include "mutex_skills.h"

typedef nsync_mu slot_mutex;
#define SLOT_MUTEX_INIT NSYNC_MU_INIT

static void slot_lock(slot_mutex *mutex) {
    nsync_mu_lock(mutex);
}

static void slot_unlock(slot_mutex *mutex) {
    nsync_mu_unlock(mutex);
}

#include "mutex_slots.h"

static void wait(void) {
    nsync_cv_wait(&locks.cv, &locks.mu);
}

static void broadcast(void) {
    nsync_cv_broadcast(&locks.cv);
}

static void cond_broadcast(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_broadcast_us((struct monitor){{lock, unlock}, wait, broadcast}, (unsigned)job->n);
}

static void read_loop(uint64_t n, unsigned who) {
    (void)who;
    for (uint64_t i = 0; i < n; i++) {
        nsync_mu_rlock(&locks.mu);
        nsync_mu_runlock(&locks.mu);
    }
}

static void rwlock_read(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_of_two_ns(read_loop, job->n);
}

static void read_lock(void) {
    nsync_mu_rlock(&locks.mu);
}

static void read_unlock(void) {
    nsync_mu_runlock(&locks.mu);
}

static void rwlock_mixed(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_readers(job, (struct rwlock){read_lock, read_unlock, lock, unlock}, figures);
}

static void page_cache(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_pages(job, (struct rwlock){read_lock, read_unlock, lock, unlock}, figures);
}

const struct skill nsync_locks[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {"mutex_contest", mutex_contest, false},
    {"mutex_waits", mutex_waits, false},
    {"mutex_random", mutex_random, false},
    {"cond_broadcast", cond_broadcast, false},
    {"rwlock_read", rwlock_read, false},
    {"rwlock_mixed", rwlock_mixed, false},
    {"page_cache", page_cache, false},
    {0},
};
