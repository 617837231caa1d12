/* SPDX-License-Identifier: MIT */
/*
 * inline.h - the first header of each file of sim_inline: there the scenarios call the inline functions of the public
 * headers, as programs do, and the atomics in these are the simulator's.
 */
#ifndef VIGIL_TEST_INLINE_H
#define VIGIL_TEST_INLINE_H

/* All that the scenarios include of the system: it must not see what is defined below. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prim.h"

#define VIGIL__LINE_BITS PRIM_BUCKET_BITS
#undef __x86_64__ /* no instructions of a processor: a fence is an atomic, too */

static inline enum sim_order inline_order(int order) {
    switch (order) {
    case __ATOMIC_RELAXED: return SIM_RELAXED;
    case __ATOMIC_ACQUIRE: return SIM_ACQUIRE;
    case __ATOMIC_RELEASE: return BUG(inline_unordered) ? SIM_RELAXED : SIM_RELEASE;
    case __ATOMIC_ACQ_REL: return SIM_ACQ_REL;
    default: return SIM_SEQ_CST;
    }
}

/* Only the words of lines are loaded through such a pointer. */
#define INLINE_IS_LINE(p) __builtin_types_compatible_p(__typeof__(p), const uint32_t *)

#define __atomic_load_n(p, order)                                                                                      \
    (INLINE_IS_LINE(p) && BUG(inline_line_unseen) ? 0 : SIM_LOAD(p, inline_order(order), "inline load"))
#define __atomic_store_n(p, v, order)        SIM_STORE(p, v, inline_order(order), "inline store")
#define __atomic_exchange_n(p, v, order)     SIM_UPDATE(p, SIM_EXCHANGE, v, inline_order(order), "inline exchange")
#define __atomic_fetch_add(p, v, order)      SIM_UPDATE(p, SIM_ADD, v, inline_order(order), "inline add")
#define __atomic_compare_exchange_n(p, e, v, weak, order, failure)                                                     \
    SIM_CAS(p, e, v, inline_order(order), "inline cas")
#define __atomic_thread_fence(order) (BUG(inline_unfenced) ? (void)0 : prim_fence_seq_cst())
#define __atomic_signal_fence(order) prim_signal_fence()

#endif
