/* SPDX-License-Identifier: MIT */
/* program.h - what the programs here share. */
#ifndef VIGIL_TEST_TSAN_PROGRAM_H
#define VIGIL_TEST_TSAN_PROGRAM_H

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>

#define must(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Waits, without anything that the sanitizer could take for an order between the threads. */
static inline void await_waiters(const void *address, int64_t count) {
    while (vigil_waiters(address) < count) sched_yield();
}

/* With the lock held: now and then waits until another thread wants it, so that the release is contended. */
static inline void let_others_come(const void *lock, int round) {
    for (int turns = 0; round % 10 == 0 && turns < 1000 && vigil_waiters(lock) < 1; turns++) sched_yield();
}

#endif
