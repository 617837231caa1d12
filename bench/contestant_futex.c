/* SPDX-License-Identifier: MIT */
/* The kernel's futex, called directly. */
#include "bench.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct word words[2];

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

static void store_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        __atomic_store_n(&words[0].value, (uint32_t)i, __ATOMIC_RELEASE);
        futex_wake(&words[0].value);
    }
}

static void store_and_notify(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(store_loop, job->n / 8 + 1);
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

static void throw_ball(unsigned side, uint32_t ball) {
    __atomic_store_n(&words[side].value, ball, __ATOMIC_SEQ_CST);
    futex_wake(&words[side].value);
}

static void catch_ball(unsigned side, uint32_t ball) {
    uint32_t *word = &words[side].value, seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) != ball) futex_wait(word, seen);
}

#include "pingpong.h"

static const struct skill skills[] = {
    {"notify_nobody", notify_nobody, false},
    {"store_and_notify", store_and_notify, false},
    {"wait_not_equal", wait_not_equal, false},
    {"notify_parallel", notify_parallel, false},
    {"pingpong_block", pingpong_block, false},
    {0},
};
extern const struct skill futex_shared[];
const struct contestant contestant_futex = {.name = "futex", .skills = {skills, futex_shared}};
