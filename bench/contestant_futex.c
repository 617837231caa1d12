/* SPDX-License-Identifier: MIT */
/* The kernel's futex, called directly. */
#include "bench.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct word words[2];
static uint32_t pinged, ponged;

static void futex_wait(uint32_t *word, uint32_t expected) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void notify_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) futex_wake(&words[0].value);
}

static void notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(notify_loop, job->n / 8 + 1);
}

static void wait_loop(uint64_t n) {
    uint32_t other = words[0].value + 1;
    for (uint64_t i = 0; i < n; i++) futex_wait(&words[0].value, other);
}

static void wait_not_equal(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(wait_loop, job->n / 8 + 1);
}

static void own_words_loop(uint64_t n, unsigned who) {
    uint32_t other = words[who].value + 1;
    for (uint64_t i = 0; i < n; i++) {
        futex_wake(&words[who].value);
        futex_wait(&words[who].value, other);
    }
}

static void notify_parallel(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = speedup_of_two(own_words_loop, job->n / 16 + 1);
}

static void throw_ball(uint32_t *word, uint32_t ball) {
    __atomic_store_n(word, ball, __ATOMIC_SEQ_CST);
    futex_wake(word);
}

static void catch_ball(uint32_t *word, uint32_t ball) {
    uint32_t seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) != ball) futex_wait(word, seen);
}

static void ping(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        throw_ball(&words[0].value, ++pinged);
        catch_ball(&words[1].value, pinged);
    }
}

static void pong(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        catch_ball(&words[0].value, ++ponged);
        throw_ball(&words[1].value, ponged);
    }
}

static void pingpong_block(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(ping, pong, job->n);
}

static const struct skill skills[] = {
    {"notify_nobody", notify_nobody, false},
    {"wait_not_equal", wait_not_equal, false},
    {"notify_parallel", notify_parallel, false},
    {"pingpong_block", pingpong_block, false},
    {0},
};
const struct contestant contestant_futex = {.name = "futex", .skills = {skills}};
