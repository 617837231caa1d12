/* SPDX-License-Identifier: MIT */
/*
 * requesters.h - a lock and an agent of this thread, made anew for each test; and requests that record how they ended.
 * Include after support.h.
 */
#ifndef VIGIL_TEST_REQUESTERS_H
#define VIGIL_TEST_REQUESTERS_H

#include "vigil/request.h"

/* Defined by the test: makes a lock and returns its address. Where loops are called for it, an address that no earlier
 * test has used: the keeper may still guard such a call (recovery/guard.h), and then calls the next in line as well. */
static const void *new_lock(void);

static const void *lock_address;
static vigil_agent *agent;

static int set_up(void **state) {
    (void)state;
    lock_address = new_lock();
    return vigil_agent_create(&agent, 0) != VIGIL_OK;
}

static int tear_down(void **state) {
    (void)state;
    return vigil_agent_destroy(agent) != VIGIL_OK || vigil_waiters(lock_address) != 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static inline int64_t dispatch(void) {
    int64_t ended = vigil_agent_dispatch(agent);
    assert_true(ended >= 0);
    return ended;
}

/* A request that records how it ended. */
struct requester {
    vigil_request request; /* first, so that the op is the requester */
    unsigned calls;
    int status;
};

static inline void answer(vigil_op *op, int status) {
    struct requester *me = (struct requester *)op;
    me->calls++;
    me->status = status;
}

static inline void assert_answered(const struct requester *requester, int status) {
    assert_int_equal(requester->calls, 1);
    assert_int_equal(requester->status, status);
}

static inline void until_answered(struct requester *requester, int status) {
    while (!requester->calls) assert_true(vigil_agent_run_until(agent, vigil_now_ns() + SECOND) >= 0);
    assert_answered(requester, status);
}

#endif
