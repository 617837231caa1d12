/* SPDX-License-Identifier: MIT */
/* The C library's condition variable and its semaphore. */
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static uint32_t balls[2];

static void signal_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) pthread_cond_signal(&arrived[0]);
}

static void cond_notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(signal_loop, job->n);
}

static void throw_ball(unsigned side, uint32_t ball) {
    pthread_mutex_lock(&mutex);
    balls[side] = ball;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&arrived[side]);
}

static void catch_ball(unsigned side, uint32_t ball) {
    pthread_mutex_lock(&mutex);
    while (balls[side] != ball) pthread_cond_wait(&arrived[side], &mutex);
    pthread_mutex_unlock(&mutex);
}

#include "pingpong.h"

static const struct skill cond_skills[] = {
    {"notify_nobody", cond_notify_nobody, false},
    {"pingpong_block", pingpong_block, false},
    {0},
};
extern const struct skill glibc_cond_shared[], glibc_sem_shared[];
const struct contestant contestant_glibc_cond = {.name = "glibc cond", .skills = {cond_skills, glibc_cond_shared}};

static sem_t to_pong, to_ping;

static bool sem_open_both(void) {
    return sem_init(&to_pong, 0, 0) == 0 && sem_init(&to_ping, 0, 0) == 0;
}

static void sem_close_both(void) {
    sem_destroy(&to_pong);
    sem_destroy(&to_ping);
}

static void sem_catch(sem_t *sem) {
    while (sem_wait(sem) != 0) must(errno == EINTR);
}

static void sem_ping(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        sem_post(&to_pong);
        sem_catch(&to_ping);
    }
}

static void sem_pong(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        sem_catch(&to_pong);
        sem_post(&to_ping);
    }
}

static void sem_pingpong_block(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(sem_ping, sem_pong, job->n);
}

static const struct skill sem_skills[] = {
    {"pingpong_block", sem_pingpong_block, false},
    {0},
};
const struct contestant contestant_glibc_sem = {
    .name = "glibc sem", .skills = {sem_skills, glibc_sem_shared}, .open = sem_open_both, .close = sem_close_both};
