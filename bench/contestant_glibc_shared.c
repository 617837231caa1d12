/* SPDX-License-Identifier: MIT */
/* The C library's mutex and condition for processes. */
#include "bench.h"

#include <pthread.h>

struct side {
    _Alignas(128) pthread_cond_t arrived;
    uint32_t ball;
};

struct shared {
    _Alignas(128) pthread_mutex_t mutex;
    struct side sides[2];
};
static struct shared *shared;

static void open_arena(void) {
    shared = shared_memory(sizeof *shared);
    pthread_mutexattr_t for_mutex;
    pthread_mutexattr_init(&for_mutex);
    pthread_mutexattr_setpshared(&for_mutex, PTHREAD_PROCESS_SHARED);
    must(pthread_mutex_init(&shared->mutex, &for_mutex) == 0);
    pthread_mutexattr_destroy(&for_mutex);
    pthread_condattr_t for_cond;
    pthread_condattr_init(&for_cond);
    pthread_condattr_setpshared(&for_cond, PTHREAD_PROCESS_SHARED);
    for (unsigned i = 0; i < 2; i++) must(pthread_cond_init(&shared->sides[i].arrived, &for_cond) == 0);
    pthread_condattr_destroy(&for_cond);
}

static void close_arena(void) {
    shared_memory_free(shared, sizeof *shared);
}

static const struct arena arena = {.open = open_arena, .close = close_arena};

static void lock(void) {
    pthread_mutex_lock(&shared->mutex);
}

static void unlock(void) {
    pthread_mutex_unlock(&shared->mutex);
}

#include "shared_mutex_skills.h"

const struct skill glibc_shared[] = {
    {"shared_mutex_uncontended", shared_mutex_uncontended, false},
    {"shared_mutex_contest", shared_mutex_contest, false},
    {0},
};

static void signal_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) pthread_cond_signal(&shared->sides[0].arrived);
}

static void shared_notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = shared_per_call_ns(&arena, signal_loop, job->n);
}

static void throw_ball(unsigned side, uint32_t ball) {
    lock();
    shared->sides[side].ball = ball;
    unlock();
    pthread_cond_signal(&shared->sides[side].arrived);
}

static void catch_ball(unsigned side, uint32_t ball) {
    lock();
    while (shared->sides[side].ball != ball) pthread_cond_wait(&shared->sides[side].arrived, &shared->mutex);
    unlock();
}

#include "shared_pingpong.h"

const struct skill glibc_cond_shared[] = {
    {"shared_notify_nobody", shared_notify_nobody, false},
    {"shared_pingpong_block", shared_pingpong_block, false},
    {0},
};
