/* SPDX-License-Identifier: MIT */
/*
 * lockers.h - threads and requests that want a mutex; two mutexes and an agent of this thread, made anew for each
 * test. Include after support.h.
 */
#ifndef VIGIL_TEST_LOCKERS_H
#define VIGIL_TEST_LOCKERS_H

#include "base/tuning.h"
#include "vigil/mutex.h"

#define UNLOCKED        0u
#define LOCKED          1u
#define CONTENDED       2u
#define RESERVED        3u
#define FAIR            4u
#define STATE_OF(mutex) (__atomic_load_n(&(mutex)->word, __ATOMIC_ACQUIRE) % FAIR)

/* Signed, to be calculated with. */
#define PATIENCE      ((int64_t)PATIENCE_NS)
#define FAIR_PATIENCE ((int64_t)FAIR_PATIENCE_NS)

static vigil_mutex mutex, fair;
static vigil_mutex *const both[] = {&mutex, &fair};
static vigil_agent *agent;
static unsigned served; /* how many lockers and requesters have held a mutex: only touched while it is held */

static int set_up(void **state) {
    (void)state;
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    fair = (vigil_mutex)VIGIL_MUTEX_FAIR;
    served = 0;
    return vigil_agent_create(&agent, 0) != VIGIL_OK;
}

static int tear_down(void **state) {
    (void)state;
    if (vigil_agent_destroy(agent) != VIGIL_OK) return 1;
    return vigil_waiters(&mutex) != 0 || vigil_waiters(&fair) != 0;
}

static inline void lock(vigil_mutex *which) {
    assert_int_equal(vigil_mutex_lock(which), VIGIL_OK);
}

static inline void unlock(vigil_mutex *which) {
    assert_int_equal(vigil_mutex_unlock(which), VIGIL_OK);
}

/* A thread that locks, records its rank, and unlocks. */
struct locker {
    pthread_t thread;
    vigil_mutex *mutex;
    int64_t timeout_ns, ended_ns;
    unsigned rank;
    int status; /* UNDECIDED until it has returned */
};

static inline void *locker_main(void *argument) {
    struct locker *me = argument;
    int status = vigil_mutex_lock_for(me->mutex, me->timeout_ns);
    me->ended_ns = vigil_now_ns();
    if (status == VIGIL_OK) {
        me->rank = ++served;
        status = vigil_mutex_unlock(me->mutex);
    }
    STORE(me->status, status);
    return NULL;
}

static inline void locker_launch(struct locker *locker, vigil_mutex *which, int64_t timeout_ns) {
    *locker = (struct locker){.mutex = which, .timeout_ns = timeout_ns, .status = UNDECIDED};
    assert_int_equal(pthread_create(&locker->thread, NULL, locker_main, locker), 0);
}

/* For a mutex that is held: returns once the thread is in line. */
static inline void locker_start(struct locker *locker, vigil_mutex *which) {
    int64_t before = vigil_waiters(which);
    locker_launch(locker, which, VIGIL_FOREVER);
    AWAIT(vigil_waiters(which) > before);
}

static inline bool locker_through(struct locker *locker) {
    return LOAD(locker->status) != UNDECIDED;
}

static inline int locker_join(struct locker *locker) {
    assert_int_equal(pthread_join(locker->thread, NULL), 0);
    return locker->status;
}

/* A request that records how it ended. */
struct requester {
    vigil_request request; /* first, so that the op is the requester */
    vigil_mutex *mutex;
    unsigned calls, rank;
    int status;
    int64_t ended_ns;
};

static inline void answer(vigil_op *op, int status) {
    struct requester *me = (struct requester *)op;
    me->calls++;
    me->status = status;
    me->ended_ns = vigil_now_ns();
    if (status == VIGIL_OK) me->rank = ++served;
}

static inline void answer_and_unlock(vigil_op *op, int status) {
    vigil_mutex *held = ((struct requester *)op)->mutex;
    answer(op, status);
    if (status == VIGIL_OK) unlock(held);
}

static inline void ask_pending(struct requester *requester, vigil_mutex *which, int64_t timeout_ns,
                               vigil_callback *callback) {
    *requester = (struct requester){.mutex = which};
    assert_int_equal(vigil_mutex_lock_async(agent, &requester->request, which, timeout_ns, callback), VIGIL_PENDING);
}

static inline void execute_pending(struct requester *requester, vigil_mutex *which) {
    *requester = (struct requester){.mutex = which};
    assert_int_equal(vigil_mutex_execute(agent, &requester->request, which, VIGIL_FOREVER, answer), VIGIL_PENDING);
}

static inline int cancel(struct requester *requester) {
    return vigil_cancel(&requester->request.op);
}

static inline void dispatch(void) {
    assert_true(vigil_agent_dispatch(agent) >= 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
