/* SPDX-License-Identifier: MIT */
/* The C library's semaphore for processes, also as a lock. */
#include "bench.h"

#include <errno.h>
#include <semaphore.h>

struct side {
    _Alignas(128) sem_t sem;
};

struct shared {
    struct side lock, arrived[2];
};
static struct shared *shared;

static void open_arena(void) {
    shared = shared_memory(sizeof *shared);
    must(sem_init(&shared->lock.sem, 1, 1) == 0);
    for (unsigned i = 0; i < 2; i++) must(sem_init(&shared->arrived[i].sem, 1, 0) == 0);
}

static void close_arena(void) {
    shared_memory_free(shared, sizeof *shared);
}

static const struct arena arena = {.open = open_arena, .close = close_arena};

static void lock(void) {
    while (sem_wait(&shared->lock.sem) != 0) must(errno == EINTR);
}

static void unlock(void) {
    sem_post(&shared->lock.sem);
}

#include "shared_mutex_skills.h"

static void throw_ball(unsigned side, uint32_t ball) {
    (void)ball;
    sem_post(&shared->arrived[side].sem);
}

static void catch_ball(unsigned side, uint32_t ball) {
    (void)ball;
    while (sem_wait(&shared->arrived[side].sem) != 0) must(errno == EINTR);
}

#include "shared_pingpong.h"

const struct skill glibc_sem_shared[] = {
    {"shared_mutex_uncontended", shared_mutex_uncontended, false},
    {"shared_mutex_contest", shared_mutex_contest, false},
    {"shared_pingpong_block", shared_pingpong_block, false},
    {0},
};
