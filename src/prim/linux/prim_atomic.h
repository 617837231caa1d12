/* SPDX-License-Identifier: MIT */
/* The atomics of prim.h by the compiler's builtins, on x86-64 and aarch64. */
#ifndef VIGIL_PRIM_ATOMIC_H
#define VIGIL_PRIM_ATOMIC_H

#include <stdbool.h>

#define prim_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define prim_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define prim_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
/* Relaxed; the value only decides whether an event is recorded. Not a scheduling point in the simulator. */
#define prim_peek(p) __atomic_load_n((p), __ATOMIC_RELAXED)

#define prim_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define prim_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define prim_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)

#define prim_exchange_relaxed(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELAXED)
#define prim_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

#define prim_fetch_add_acq_rel(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define prim_fetch_or_acq_rel(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define prim_fetch_and_acq_rel(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)

#define PRIM_CAS(p, e, v, order)  __atomic_compare_exchange_n((p), (e), (v), false, (order), __ATOMIC_RELAXED)
#define prim_cas_acquire(p, e, v) PRIM_CAS(p, e, v, __ATOMIC_ACQUIRE)
#define prim_cas_release(p, e, v) PRIM_CAS(p, e, v, __ATOMIC_RELEASE)
#define prim_cas_acq_rel(p, e, v) PRIM_CAS(p, e, v, __ATOMIC_ACQ_REL)
#define prim_cas_seq_cst(p, e, v) PRIM_CAS(p, e, v, __ATOMIC_SEQ_CST)

#define PRIM_OWN(operation)                                                                                            \
    __extension__({                                                                                                    \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                                       \
        __auto_type prim_own = (operation);                                                                            \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                                       \
        prim_own;                                                                                                      \
    })
#define prim_own_load(p)      PRIM_OWN(prim_load_relaxed(p))
#define prim_own_store(p, v)  ((void)PRIM_OWN((prim_store_relaxed(p, v), 0)))
#define prim_own_cas(p, e, v) PRIM_OWN(PRIM_CAS(p, e, v, __ATOMIC_RELAXED))

#if defined(__x86_64__) /* some compilers use mfence, which takes many times as long */
#define prim_fence_seq_cst() __asm__ __volatile__("lock; orq $0, (%%rsp)" ::: "memory", "cc")
#else
#define prim_fence_seq_cst() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#if defined(__x86_64__) /* every locked instruction is a fence */
#define prim_exchange_and_fence(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#else
#define prim_exchange_and_fence(p, v)                                                                                  \
    __extension__({                                                                                                    \
        __auto_type prim_before = __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST);                                     \
        prim_fence_seq_cst();                                                                                          \
        prim_before;                                                                                                   \
    })
#endif
/* Orders what the compiler may not: for prim_fence_everywhere. */
#define prim_signal_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

static inline void prim_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}

#endif
