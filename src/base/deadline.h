/* SPDX-License-Identifier: MIT */
/*
 * deadline.h - the meaning of a caller's timeout_ns. Inside the library there are only deadlines, on prim_now_ns().
 *
 * A public function converts its timeout once, when it knows that it may have to wait, and passes the deadline on.
 */
#ifndef VIGIL_DEADLINE_H
#define VIGIL_DEADLINE_H

#include "prim.h"
#include "vigil/wait.h"

#define DEADLINE_PASSED UINT64_C(0)

/* A timeout made by vigil_until: the deadline is its distance from INT64_MIN. */
static inline bool timeout_is_deadline(int64_t timeout_ns) {
    return timeout_ns < INT64_MIN / 2;
}

/* DEADLINE_PASSED: do not wait. PRIM_NEVER: wait without a deadline. */
static inline uint64_t deadline_of(int64_t timeout_ns) {
    if (timeout_ns == VIGIL_FOREVER) return PRIM_NEVER;
    if (timeout_ns > 0) return prim_now_ns() + (uint64_t)timeout_ns;
    if (!timeout_is_deadline(timeout_ns)) return DEADLINE_PASSED;
    uint64_t deadline_ns = (uint64_t)(timeout_ns - INT64_MIN);
    return prim_now_ns() < deadline_ns ? deadline_ns : DEADLINE_PASSED;
}

#endif
