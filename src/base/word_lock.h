/* SPDX-License-Identifier: MIT */
/*
 * word_lock.h - a lock in one 32-bit word, which also tells a notifier whether the bucket of that lock has waiters.
 *
 *     bit 0      LOCKED
 *     bit 1      SLEEPERS   a thread may sleep until it is unlocked. Set only while LOCKED is, and cleared with it
 *     bit 2      OCCUPIED   a waiter is in line. Changed only by the holder, in the step that unlocks
 *     bits 4-31  in a segment, the number of the process that holds it: see lot/shared.h
 *
 * Taking it is a seq_cst CAS: it announces a waiter, see lot/lot.h.
 */
#ifndef VIGIL_WORD_LOCK_H
#define VIGIL_WORD_LOCK_H

#include "prim.h"

#define WORD_LOCKED   1u
#define WORD_SLEEPERS 2u
#define WORD_OCCUPIED 4u
#define WORD_HOLDER   16u /* times the number of the process */
#define WORD_NUMBER   0xfffffff0u

void word_lock_contended(uint32_t *word);

static inline bool word_trylock(uint32_t *word, uint32_t number) {
    uint32_t seen = prim_load_relaxed(word);
    return !(seen & WORD_LOCKED) && prim_cas_seq_cst(word, &seen, seen | WORD_LOCKED | number * WORD_HOLDER);
}

static inline void word_lock(uint32_t *word) {
    if (!word_trylock(word, 0)) word_lock_contended(word);
}

/* True: the caller must wake a thread that sleeps on it. */
static inline bool word_unlock_only(uint32_t *word, bool occupied) {
    return prim_exchange_acq_rel(word, occupied ? WORD_OCCUPIED : 0) & WORD_SLEEPERS;
}

static inline void word_unlock(uint32_t *word, bool occupied) {
    if (word_unlock_only(word, occupied)) prim_wake(word);
}

#endif
