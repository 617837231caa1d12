/* SPDX-License-Identifier: MIT */
#include "word_lock.h"

/*
 * A thread that has slept takes the lock with SLEEPERS set: the unlock that woke it cleared the bit, and other
 * threads may still sleep.
 */
void word_lock_contended(uint32_t *word) {
    uint32_t mine = WORD_LOCKED;
    unsigned spins_left = PRIM_SPIN_LOCK;
    for (;;) {
        uint32_t seen = prim_load_relaxed(word);
        if (!(seen & WORD_LOCKED)) {
            if (prim_cas_seq_cst(word, &seen, seen | mine)) return;
        } else if (spins_left) {
            spins_left--;
            prim_pause();
        } else if ((seen & WORD_SLEEPERS) || prim_cas_acquire(word, &seen, seen | WORD_SLEEPERS)) {
            prim_park(word, seen | WORD_SLEEPERS, PRIM_NEVER);
            mine = WORD_LOCKED | WORD_SLEEPERS;
            if (BUG(park_taken_as_wake)) {
                prim_fetch_or_acq_rel(word, mine);
                return;
            }
        }
    }
}
