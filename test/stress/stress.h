/* SPDX-License-Identifier: MIT */
/*
 * stress.h - what the stress tests share: random numbers, failures, threads, and rounds that are played until the time
 * is up. Include first.
 *
 * Each round has a seed of its own, which decides what is played in it: `--rounds 1 --seed S` plays it again. A round
 * that hangs is ended by an alarm, which names it.
 */
#ifndef VIGIL_TEST_STRESS_H
#define VIGIL_TEST_STRESS_H

#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vigil/vigil.h"

#define MICROSECOND INT64_C(1000)
#define MILLISECOND INT64_C(1000000)
#define SECOND      INT64_C(1000000000)
#define HANG_S      120

static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static inline uint64_t random_below(uint64_t *state, uint64_t bound) {
    return (random_next(state) >> 11) % bound;
}

static inline bool one_in(uint64_t *state, uint64_t chances) {
    return random_below(state, chances) == 0;
}

/* Failures: the first few are printed, all are counted. */

static unsigned failures;

#define FAIL_UNLESS(condition, ...)                                                                                    \
    do {                                                                                                               \
        if (!(condition) && __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 10) {                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                            \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
        }                                                                                                              \
    } while (0)

static inline pthread_t start_thread(void *(*main)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, main, argument) != 0) {
        fprintf(stderr, "no thread could be started\n");
        exit(2);
    }
    return thread;
}

static inline bool load_flag(const bool *flag) {
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static inline void raise_flag(bool *flag) {
    __atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

/* Rounds. */

struct kind {
    const char *name;
    void (*play)(uint64_t seed);
};

struct run {
    uint64_t seconds, rounds, seed; /* from the options; if `rounds` is not zero it counts */
    uint64_t passed, failed;
};

static char playing[80]; /* for the alarm */

static inline void on_alarm(int signal_number) {
    (void)signal_number;
    ssize_t written = write(STDERR_FILENO, playing, strlen(playing));
    (void)written;
    _exit(3);
}

static inline bool play(const struct kind *kind, uint64_t seed) {
    unsigned before = failures;
    snprintf(playing, sizeof playing, "hangs: %s, --rounds 1 --seed %" PRIu64 "\n", kind->name, seed);
    alarm(HANG_S);
    kind->play(seed * UINT64_C(0x9E3779B97F4A7C15) | 1);
    alarm(0);
    if (failures == before) return true;
    fprintf(stderr, "failed: %s, --rounds 1 --seed %" PRIu64 "\n", kind->name, seed);
    return false;
}

static inline bool read_option(char **argv, const char *name, uint64_t *value) {
    if (strcmp(argv[0], name) != 0 || !argv[1]) return false;
    char *end;
    *value = strtoull(argv[1], &end, 10);
    return *argv[1] && !*end;
}

static inline bool read_options(int argc, char **argv, struct run *run) {
    for (int i = 1; i < argc; i += 2) {
        if (read_option(argv + i, "--seconds", &run->seconds) || read_option(argv + i, "--rounds", &run->rounds) ||
            read_option(argv + i, "--seed", &run->seed)) {
            continue;
        }
        fprintf(stderr, "usage: %s [--seconds N | --rounds N] [--seed S]\n", argv[0]);
        return false;
    }
    return true;
}

static inline void play_rounds(struct run *run, const struct kind *kinds, size_t kind_count) {
    signal(SIGALRM, on_alarm);
    int64_t begin_ns = vigil_now_ns(), printed_ns = begin_ns, now_ns = begin_ns;
    int64_t end_ns = begin_ns + (int64_t)run->seconds * SECOND;
    for (uint64_t round = 0; run->rounds ? round < run->rounds : now_ns < end_ns; round++) {
        uint64_t seed = run->seed + round;
        if (play(&kinds[seed % kind_count], seed)) run->passed++;
        else run->failed++;
        now_ns = vigil_now_ns();
        if (now_ns - printed_ns < 10 * SECOND) continue;
        printf("%" PRIu64 " rounds, %" PRIu64 " failed, seed %" PRIu64 "\n", round + 1, run->failed, run->seed);
        fflush(stdout);
        printed_ns = now_ns;
    }
}

static inline void print_end(const struct run *run) {
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", run->passed, run->failed);
}

#endif
