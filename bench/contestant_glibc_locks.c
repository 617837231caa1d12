/* SPDX-License-Identifier: MIT */
/* The C library's locks. */
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

static struct {
    _Alignas(128) pthread_mutex_t mutex;
    _Alignas(128) pthread_cond_t cond;
    _Alignas(128) pthread_rwlock_t rwlock;
    _Alignas(128) pthread_barrier_t barrier;
    _Alignas(128) sem_t sem;
} locks = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER, .rwlock = PTHREAD_RWLOCK_INITIALIZER};

static bool open_locks(void) {
    return pthread_barrier_init(&locks.barrier, NULL, 2) == 0 && sem_init(&locks.sem, 0, 1) == 0;
}

static void close_locks(void) {
    pthread_barrier_destroy(&locks.barrier);
    sem_destroy(&locks.sem);
}

static void lock(void) {
    pthread_mutex_lock(&locks.mutex);
}

static void unlock(void) {
    pthread_mutex_unlock(&locks.mutex);
}

#include "mutex_skills.h"

typedef pthread_mutex_t slot_mutex;
#define SLOT_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

static void slot_lock(slot_mutex *mutex) {
    pthread_mutex_lock(mutex);
}

static void slot_unlock(slot_mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

#include "mutex_slots.h"

static void wait(void) {
    pthread_cond_wait(&locks.cond, &locks.mutex);
}

static void broadcast(void) {
    pthread_cond_broadcast(&locks.cond);
}

static void cond_broadcast(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_broadcast_us((struct monitor){{lock, unlock}, wait, broadcast}, (unsigned)job->n);
}

static void read_loop(uint64_t n, unsigned who) {
    (void)who;
    for (uint64_t i = 0; i < n; i++) {
        pthread_rwlock_rdlock(&locks.rwlock);
        pthread_rwlock_unlock(&locks.rwlock);
    }
}

static void rwlock_read(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_of_two_ns(read_loop, job->n);
}

static void read_lock(void) {
    pthread_rwlock_rdlock(&locks.rwlock);
}

static void read_unlock(void) {
    pthread_rwlock_unlock(&locks.rwlock);
}

static void write_lock(void) {
    pthread_rwlock_wrlock(&locks.rwlock);
}

static void write_unlock(void) {
    pthread_rwlock_unlock(&locks.rwlock);
}

static void rwlock_mixed(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_readers(job, (struct rwlock){read_lock, read_unlock, write_lock, write_unlock}, figures);
}

static void page_cache(const struct job *job, double figures[FIGURES_MAX]) {
    contest_of_pages(job, (struct rwlock){read_lock, read_unlock, write_lock, write_unlock}, figures);
}

static void sem_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        while (sem_wait(&locks.sem) != 0) must(errno == EINTR);
        sem_post(&locks.sem);
    }
}

static void sem_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(sem_loop, job->n);
}

static void meet_loop(uint64_t n, unsigned who) {
    (void)who;
    for (uint64_t i = 0; i < n; i++) pthread_barrier_wait(&locks.barrier);
}

static void barrier(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_of_two_ns(meet_loop, job->n);
}

static const struct skill skills[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {"mutex_contest", mutex_contest, false},
    {"mutex_waits", mutex_waits, false},
    {"mutex_random", mutex_random, false},
    {"cond_broadcast", cond_broadcast, false},
    {"rwlock_read", rwlock_read, false},
    {"rwlock_mixed", rwlock_mixed, false},
    {"page_cache", page_cache, false},
    {"sem_uncontended", sem_uncontended, false},
    {"barrier", barrier, false},
    {0},
};
extern const struct skill glibc_shared[];
const struct contestant contestant_glibc = {
    .name = "glibc", .skills = {skills, glibc_shared}, .open = open_locks, .close = close_locks};
