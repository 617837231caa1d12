/* SPDX-License-Identifier: MIT */
/* What the contestants share: the clock, and the loops around what is measured. */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

_Noreturn void die(const char *what) {
    fprintf(stderr, "bench: this should hold and does not: %s\n", what);
    exit(1);
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t count) {
    if (count == 0) return NAN;
    qsort(values, count, sizeof *values, compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double clock_cost_ns(void) {
    static double cost = -1;
    if (cost < 0) {
        double samples[1001];
        for (size_t i = 0; i < 1001; i++) {
            uint64_t start = now_ns();
            samples[i] = (double)(now_ns() - start);
        }
        cost = median(samples, 1001);
    }
    return cost;
}

double per_call_ns(void (*loop)(uint64_t n), uint64_t n) {
    loop(n / 10 + 1);
    uint64_t start = now_ns();
    loop(n);
    return (double)(now_ns() - start) / (double)n;
}

struct player {
    void (*play)(uint64_t n);
    uint64_t n;
};

static void *player_main(void *argument) {
    struct player *player = argument;
    player->play(player->n);
    return NULL;
}

double per_round_trip_ns(void (*ping)(uint64_t n), void (*pong)(uint64_t n), uint64_t n) {
    uint64_t warm_up = n / 10 + 1;
    struct player player = {pong, warm_up + n};
    pthread_t thread;
    must(pthread_create(&thread, NULL, player_main, &player) == 0);
    ping(warm_up);
    uint64_t start = now_ns();
    ping(n);
    double elapsed_ns = (double)(now_ns() - start);
    pthread_join(thread, NULL);
    return elapsed_ns / (double)n;
}

enum { SLICES = 11 };

struct second {
    void (*loop)(uint64_t n, unsigned who);
    uint64_t n;
    pthread_t thread;
    pthread_barrier_t start, end;
    unsigned ready;
};

/* A barrier wakes its threads microseconds apart: this brings them together to within a cache miss. */
static void set_off_together(unsigned *ready) {
    __atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < 2)
        ;
}

static void *second_main(void *argument) {
    struct second *second = argument;
    for (unsigned i = 0; i < SLICES; i++) {
        pthread_barrier_wait(&second->start);
        set_off_together(&second->ready);
        second->loop(second->n, 1);
        pthread_barrier_wait(&second->end);
    }
    return NULL;
}

static void second_begin(struct second *second) {
    pthread_barrier_init(&second->start, NULL, 2);
    pthread_barrier_init(&second->end, NULL, 2);
    must(pthread_create(&second->thread, NULL, second_main, second) == 0);
}

static void second_end(struct second *second) {
    pthread_join(second->thread, NULL);
    pthread_barrier_destroy(&second->start);
    pthread_barrier_destroy(&second->end);
}

/* Meanwhile the second thread sleeps in the barrier. */
static double slice_alone_ns(struct second *second) {
    uint64_t start = now_ns();
    second->loop(second->n, 0);
    return (double)(now_ns() - start);
}

static double slice_together_ns(struct second *second) {
    second->ready = 0;
    pthread_barrier_wait(&second->start);
    set_off_together(&second->ready);
    uint64_t start = now_ns();
    second->loop(second->n, 0);
    pthread_barrier_wait(&second->end);
    return (double)(now_ns() - start);
}

/* Short slices of one thread and of two in turn: their median ignores another program that takes a core for a
 * moment. */
double speedup_of_two(void (*loop)(uint64_t n, unsigned who), uint64_t n) {
    struct second second = {.loop = loop, .n = n / SLICES + 1};
    double speedups[SLICES];
    second_begin(&second);
    loop(second.n, 0);
    for (unsigned i = 0; i < SLICES; i++) {
        double alone_ns = slice_alone_ns(&second);
        speedups[i] = 2 * alone_ns / slice_together_ns(&second);
    }
    second_end(&second);
    return median(speedups, SLICES);
}

double per_call_of_two_ns(void (*loop)(uint64_t n, unsigned who), uint64_t n) {
    struct second second = {.loop = loop, .n = n / SLICES + 1};
    double costs[SLICES];
    second_begin(&second);
    for (unsigned i = 0; i < SLICES; i++) costs[i] = slice_together_ns(&second) / (double)second.n;
    second_end(&second);
    return median(costs, SLICES);
}
