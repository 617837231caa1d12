/* SPDX-License-Identifier: MIT */
/* The kernel's futex on words that processes share. */
#include "bench.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct word *words;

static void open_arena(void) {
    words = shared_memory(2 * sizeof *words);
}

static void close_arena(void) {
    shared_memory_free(words, 2 * sizeof *words);
}

static const struct arena arena = {.open = open_arena, .close = close_arena};

static void futex_wait(uint32_t *word, uint32_t expected) {
    syscall(SYS_futex, word, FUTEX_WAIT, expected, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void notify_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) futex_wake(&words[0].value);
}

static void shared_notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = shared_per_call_ns(&arena, notify_loop, job->n / 8 + 1);
}

static void throw_ball(unsigned side, uint32_t ball) {
    __atomic_store_n(&words[side].value, ball, __ATOMIC_SEQ_CST);
    futex_wake(&words[side].value);
}

static void catch_ball(unsigned side, uint32_t ball) {
    uint32_t *word = &words[side].value, seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) != ball) futex_wait(word, seen);
}

#include "shared_pingpong.h"

const struct skill futex_shared[] = {
    {"shared_notify_nobody", shared_notify_nobody, false},
    {"shared_pingpong_block", shared_pingpong_block, false},
    {0},
};
