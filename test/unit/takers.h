/* SPDX-License-Identifier: MIT */
/*
 * takers.h - threads and requests that want something of a lock: a number of permits of a semaphore, or one of the two
 * shares of a read-write lock. Include after requesters.h.
 */
#ifndef VIGIL_TEST_TAKERS_H
#define VIGIL_TEST_TAKERS_H

/* Defined by the test. */
static int take(uint32_t wanted, int64_t timeout_ns);
static int ask(struct requester *requester, uint32_t wanted, int64_t timeout_ns);

/* A thread that takes what it wants, and keeps it. */
struct taker {
    pthread_t thread;
    uint32_t wanted;
    int64_t timeout_ns;
    int status; /* UNDECIDED until it has returned */
};

static inline void *taker_main(void *argument) {
    struct taker *me = argument;
    STORE(me->status, take(me->wanted, me->timeout_ns));
    return NULL;
}

static inline void taker_launch(struct taker *taker, uint32_t wanted, int64_t timeout_ns) {
    *taker = (struct taker){.wanted = wanted, .timeout_ns = timeout_ns, .status = UNDECIDED};
    assert_int_equal(pthread_create(&taker->thread, NULL, taker_main, taker), 0);
}

/* While it is not available: returns once the thread is in line. */
static inline void taker_start(struct taker *taker, uint32_t wanted) {
    int64_t before = vigil_waiters(lock_address);
    taker_launch(taker, wanted, VIGIL_FOREVER);
    AWAIT(vigil_waiters(lock_address) > before);
}

static inline bool taker_through(struct taker *taker) {
    return LOAD(taker->status) != UNDECIDED;
}

static inline int taker_join(struct taker *taker) {
    assert_int_equal(pthread_join(taker->thread, NULL), 0);
    return taker->status;
}

static inline void ask_pending(struct requester *requester, uint32_t wanted, int64_t timeout_ns) {
    *requester = (struct requester){0};
    assert_int_equal(ask(requester, wanted, timeout_ns), VIGIL_PENDING);
}

/* How a request ends that has not been served. */
enum { AT_ITS_DEADLINE, CANCELLED, WITH_ITS_AGENT, WAYS_TO_GO };

static inline void requester_goes(struct requester *requester, int how) {
    if (how == AT_ITS_DEADLINE) until_answered(requester, VIGIL_TIMED_OUT);
    if (how == CANCELLED) assert_int_equal(vigil_cancel(&requester->request.op), VIGIL_OK);
    if (how == WITH_ITS_AGENT) {
        end_agent(agent);
        agent = new_agent(0);
        assert_answered(requester, VIGIL_CANCELLED);
    }
}

/* For tests in which threads, each with its own seed, and the event loop use a lock at the same time. A thread returns
 * null, or a text that says what has failed. */

static inline void launch_all(pthread_t *threads, size_t count, void *(*thread_main)(void *seed)) {
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread_main, (void *)(uintptr_t)(i + 1)), 0);
}

static inline void join_all(pthread_t *threads, size_t count) {
    for (size_t i = 0; i < count; i++) {
        void *failed = NULL;
        AWAIT(vigil_agent_dispatch(agent) >= 0 && pthread_tryjoin_np(threads[i], &failed) == 0);
        assert_null(failed);
    }
    dispatch();
}

#endif
