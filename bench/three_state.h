/* SPDX-License-Identifier: MIT */
/* three_state.h - the well-known three-state lock on the kernel's futex: 0 free, 1 held, 2 held and there may be
 * waiters. `scope` is FUTEX_PRIVATE_FLAG, or 0 if processes share the word. */
#ifndef BENCH_THREE_STATE_H
#define BENCH_THREE_STATE_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool three_state_change(uint32_t *word, uint32_t *seen, uint32_t to) {
    return __atomic_compare_exchange_n(word, seen, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The slow paths stay out of line, so that the compiler can inline the others into the loops. */
static __attribute__((noinline)) void three_state_lock_slowly(uint32_t *word, uint32_t seen, int scope) {
    do {
        if (seen == 2 || three_state_change(word, &seen, 2) || seen != 0)
            syscall(SYS_futex, word, FUTEX_WAIT | scope, 2, NULL, NULL, 0);
        seen = 0;
    } while (!three_state_change(word, &seen, 2));
}

static __attribute__((noinline)) void three_state_unlock_slowly(uint32_t *word, int scope) {
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE | scope, 1, NULL, NULL, 0);
}

static inline void three_state_lock(uint32_t *word, int scope) {
    uint32_t seen = 0;
    if (!three_state_change(word, &seen, 1)) three_state_lock_slowly(word, seen, scope);
}

static inline void three_state_unlock(uint32_t *word, int scope) {
    if (__atomic_fetch_sub(word, 1, __ATOMIC_RELEASE) != 1) three_state_unlock_slowly(word, scope);
}

#endif
