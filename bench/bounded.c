/* SPDX-License-Identifier: MIT */
/* Items that pass through a bounded queue, from threads to a loop and back. */
#include "bounded.h"

#include <pthread.h>

enum { BOUNDED_THREADS = 2 };

struct hand {
    pthread_t thread;
    const struct bounded *queue;
    uint64_t n, sum;
};

static _Thread_local uint64_t sum_used;

uint64_t bounded_make(uint64_t item) {
    work_outside();
    return item;
}

void bounded_use(uint64_t item) {
    work_outside();
    sum_used += item;
}

static void *hand_puts(void *argument) {
    struct hand *hand = argument;
    for (uint64_t i = 1; i <= hand->n; i++) hand->queue->put(bounded_make(i));
    return NULL;
}

static void *hand_takes(void *argument) {
    struct hand *hand = argument;
    sum_used = 0;
    for (uint64_t i = 0; i < hand->n; i++) bounded_use(hand->queue->take());
    hand->sum = sum_used;
    return NULL;
}

/* Returns the million items per second, and in `sum` the sum of those that the threads took. */
static double pass(const struct bounded *queue, void *(*main)(void *), void (*loop)(uint64_t), uint64_t n,
                   uint64_t *sum) {
    struct hand hands[BOUNDED_THREADS];
    queue->open();
    *sum = sum_used = 0;
    uint64_t start_ns = now_ns();
    for (unsigned i = 0; i < BOUNDED_THREADS; i++) {
        hands[i] = (struct hand){.queue = queue, .n = n};
        must(pthread_create(&hands[i].thread, NULL, main, &hands[i]) == 0);
    }
    loop(BOUNDED_THREADS * n);
    for (unsigned i = 0; i < BOUNDED_THREADS; i++) {
        pthread_join(hands[i].thread, NULL);
        *sum += hands[i].sum;
    }
    double elapsed_us = (double)(now_ns() - start_ns) / 1e3;
    queue->close();
    return (double)(BOUNDED_THREADS * n) / elapsed_us;
}

void bounded_both_ways(const struct job *job, const struct bounded *queue, double figures[FIGURES_MAX]) {
    uint64_t each = job->n / BOUNDED_THREADS, all = each * BOUNDED_THREADS, sum;
    figures[0] = pass(queue, hand_puts, queue->loop_take, each, &sum);
    must(sum_used == BOUNDED_THREADS * each * (each + 1) / 2);
    figures[1] = pass(queue, hand_takes, queue->loop_put, each, &sum);
    must(sum == all * (all + 1) / 2);
}
