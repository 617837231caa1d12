/* SPDX-License-Identifier: MIT */
/* check.h - what callers may get wrong, and deadlines. */
#ifndef VIGIL_CHECK_H
#define VIGIL_CHECK_H

#include "lot/lot.h"
#include "vigil/status.h"

static inline int check_address(const volatile void *address, uint64_t size) {
    if (!address) return VIGIL_ENULL;
    return (uintptr_t)address % size ? VIGIL_EMISALIGNED : VIGIL_OK;
}

static inline int check_word(const struct word *word) {
    return check_address(word->address, word->wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

/* For a timeout above zero. */
static inline uint64_t deadline_after(int64_t timeout_ns) {
    return timeout_ns == INT64_MAX ? PRIM_NEVER : prim_now_ns() + (uint64_t)timeout_ns;
}

#endif
