/* SPDX-License-Identifier: MIT */
/*
 * word_lock.h - a lock and a count in one 32-bit word; the three states of a futex lock in its low bits.
 *
 *     bit 0      LOCKED
 *     bit 1      SLEEPERS   somebody may sleep until it is unlocked. Only set while LOCKED is, and cleared with it
 *     bits 2-31  the count  changed only by the holder, in the step that unlocks
 *
 * Taking it is a seq_cst CAS: a waiter's announcement, see lot.h.
 */
#ifndef VIGIL_WORD_LOCK_H
#define VIGIL_WORD_LOCK_H

#include "prim.h"

#define WORD_LOCKED   1u
#define WORD_SLEEPERS 2u
#define WORD_ONE      4u

void word_lock_contended(uint32_t *word);

static inline void word_lock(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if ((seen & WORD_LOCKED) || !prim_cas_seq_cst(word, &seen, seen | WORD_LOCKED)) word_lock_contended(word);
}

/* Unlock, and add to the count. */
static inline void word_unlock(uint32_t *word, int32_t add) {
    uint32_t seen = prim_load_relaxed(word), unlocked;
    do {
        unlocked = (seen & ~(WORD_LOCKED | WORD_SLEEPERS)) + (uint32_t)add * WORD_ONE;
    } while (!prim_cas_release(word, &seen, unlocked));
    if (seen & WORD_SLEEPERS) prim_wake(word);
}

#endif
