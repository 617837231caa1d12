/* SPDX-License-Identifier: MIT */
/*
 * support.h - what the tests of waiting share. Include first.
 *
 * No test relies on a sleep being long enough: whether a thread is in line is read from the lot itself.
 */
#ifndef VIGIL_TEST_SUPPORT_H
#define VIGIL_TEST_SUPPORT_H

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../sanitizers.h"
#include "lot/shared.h"
#include "vigil/agent.h"
#include "vigil/wait.h"

#define MICROSECOND INT64_C(1000)
#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Waits until another thread has made it true. If that never happens, the test runner's time limit reports it. */
#define AWAIT(condition)                                                                                               \
    do {                                                                                                               \
        while (!(condition)) sched_yield();                                                                            \
    } while (0)

#define LOAD(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

/* Lets time pass: only time causes a lock to be reserved for the head of its line. */
static inline void let_pass(int64_t duration_ns) {
    for (int64_t until_ns = vigil_now_ns() + duration_ns; vigil_now_ns() < until_ns;) sched_yield();
}

static inline unsigned slots_in_line(const volatile void *address, uint32_t state) {
    struct lot *lot = lot_for_if_used(address);
    uint32_t bound = !lot ? 0 : is_shared(lot) ? lot->share->slots : slot_bound(lot);
    unsigned found = 0;
    for (uint32_t index = 1; index < bound; index++) {
        struct slot *slot = &lot->slots[index];
        if (prim_load_relaxed(&slot->key) != key_of(lot, address)) continue;
        if (!undecided(prim_load_relaxed(&slot->state))) continue;
        if (!state || (!prim_load_relaxed(&slot->seat) && prim_load_relaxed(&slot->state) == state)) found++;
    }
    return found;
}

/* How many waiters are in line for the address. */
static inline unsigned waiters_in_line(const volatile void *address) {
    return slots_in_line(address, 0);
}

/* How many of them are threads that have gone to sleep. */
static inline unsigned asleep(const volatile void *address) {
    return slots_in_line(address, SLOT_ASLEEP);
}

static inline uint32_t slots_ever_used(void) {
    struct lot *lot = lot_private();
    assert_non_null(lot);
    return slot_bound(lot);
}

/* A thread in line. */

#define UNDECIDED (-1000)

struct sleeper {
    pthread_t thread;
    const volatile void *address;
    uint64_t expected;
    int64_t timeout_ns;
    bool wide;
    int status; /* UNDECIDED until it has returned */
};

static inline void *sleeper_main(void *argument) {
    struct sleeper *sleeper = argument;
    int status = sleeper->wide ? vigil_wait64(sleeper->address, sleeper->expected, sleeper->timeout_ns)
                               : vigil_wait32(sleeper->address, (uint32_t)sleeper->expected, sleeper->timeout_ns);
    STORE(sleeper->status, status);
    return NULL;
}

static inline void sleeper_launch(struct sleeper *sleeper) {
    sleeper->status = UNDECIDED;
    assert_int_equal(pthread_create(&sleeper->thread, NULL, sleeper_main, sleeper), 0);
}

/* Starts the thread, which waits while the word is zero, without a deadline. Returns once it is in line. */
static inline void sleeper_start(struct sleeper *sleeper, const volatile void *address, bool wide) {
    unsigned before = waiters_in_line(address);
    *sleeper = (struct sleeper){.address = address, .timeout_ns = VIGIL_FOREVER, .wide = wide};
    sleeper_launch(sleeper);
    AWAIT(waiters_in_line(address) > before);
}

static inline bool sleeper_up(struct sleeper *sleeper) {
    return LOAD(sleeper->status) != UNDECIDED;
}

static inline int sleeper_join(struct sleeper *sleeper) {
    assert_int_equal(pthread_join(sleeper->thread, NULL), 0);
    return sleeper->status;
}

/* An asynchronous waiter that records how it ended. */

struct noted {
    vigil_op op; /* first, so that the op is the noted one */
    unsigned calls;
    int status;
    unsigned rank;    /* position of its callback among those of this thread */
    int64_t ended_ns; /* time of the callback */
};

static _Thread_local unsigned notes_taken;

static inline void note(vigil_op *op, int status) {
    struct noted *noted = (struct noted *)op;
    noted->status = status;
    noted->ended_ns = vigil_now_ns();
    noted->rank = ++notes_taken;
    __atomic_add_fetch(&noted->calls, 1, __ATOMIC_RELEASE);
}

static inline int noted_start(vigil_agent *agent, struct noted *noted, const volatile void *address,
                              int64_t timeout_ns) {
    return vigil_wait32_async(agent, &noted->op, address, 0, timeout_ns, note);
}

static inline void noted_pending(vigil_agent *agent, struct noted *noted, const volatile void *address) {
    assert_int_equal(noted_start(agent, noted, address, VIGIL_FOREVER), VIGIL_PENDING);
}

static inline vigil_agent *new_agent(unsigned flags) {
    vigil_agent *agent = NULL;
    assert_int_equal(vigil_agent_create(&agent, flags), VIGIL_OK);
    assert_non_null(agent);
    return agent;
}

static inline void end_agent(vigil_agent *agent) {
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_OK);
}

/* xorshift64: good enough for shuffling, and the same on every platform. */
static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

#endif
