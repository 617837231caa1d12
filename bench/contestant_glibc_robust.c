/* SPDX-License-Identifier: MIT */
/* The C library's robust mutex for processes. */
#include "bench.h"

#include <errno.h>
#include <pthread.h>

struct shared {
    _Alignas(128) pthread_mutex_t mutex;
};
static struct shared *shared;

static void open_arena(void) {
    shared = shared_memory(sizeof *shared);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    must(pthread_mutex_init(&shared->mutex, &attributes) == 0);
    pthread_mutexattr_destroy(&attributes);
}

static void close_arena(void) {
    shared_memory_free(shared, sizeof *shared);
}

static const struct arena arena = {.open = open_arena, .close = close_arena};

static void lock(void) {
    must(pthread_mutex_lock(&shared->mutex) == 0);
}

static void unlock(void) {
    must(pthread_mutex_unlock(&shared->mutex) == 0);
}

#include "shared_mutex_skills.h"

static void inherit(void) {
    must(pthread_mutex_lock(&shared->mutex) == EOWNERDEAD);
}

static void repair(void) {
    must(pthread_mutex_consistent(&shared->mutex) == 0);
    unlock();
}

static void measure_owner_death(const struct job *job, double figures[FIGURES_MAX]) {
    owner_death(job, &arena, (struct robust_lock){lock, inherit, repair}, figures);
}

static const struct skill skills[] = {
    {"shared_mutex_uncontended", shared_mutex_uncontended, false},
    {"shared_mutex_contest", shared_mutex_contest, false},
    {"owner_death", measure_owner_death, false},
    {0},
};
const struct contestant contestant_glibc_robust = {.name = "glibc robust", .skills = {skills}};
