/* SPDX-License-Identifier: MIT */
/*
 * deadline.h - what a caller's timeout_ns means: inside the library everything is a deadline, on prim_now_ns().
 *
 * A public function converts its timeout once, when it is known that it may have to wait, and passes the deadline on.
 */
#ifndef VIGIL_DEADLINE_H
#define VIGIL_DEADLINE_H

#include "prim.h"
#include "vigil/wait.h"

#define DEADLINE_PASSED UINT64_C(0)

/* A timeout from vigil_until: the deadline is the distance from INT64_MIN. */
static inline bool timeout_is_deadline(int64_t timeout_ns) {
    return timeout_ns < INT64_MIN / 2;
}

/* DEADLINE_PASSED: the caller does not want to wait. PRIM_NEVER: for as long as it takes. */
static inline uint64_t deadline_of(int64_t timeout_ns) {
    if (timeout_ns == VIGIL_FOREVER) return PRIM_NEVER;
    if (timeout_ns > 0) return prim_now_ns() + (uint64_t)timeout_ns;
    if (!timeout_is_deadline(timeout_ns)) return DEADLINE_PASSED;
    uint64_t deadline_ns = (uint64_t)(timeout_ns - INT64_MIN);
    return prim_now_ns() < deadline_ns ? deadline_ns : DEADLINE_PASSED;
}

#endif
