/* SPDX-License-Identifier: MIT */
/*
 * bell_word.h - a bell (prim.h) that is one word, for systems whose only means to get a thread's attention is to wake a
 * sleeper on a word.
 *
 *     bit 0        RUNG: there is a ring that has not been taken
 *     bits 1-31    how many rings there have been
 *
 *     to ring    B1  fetch_add 3: RUNG is set, as it was clear, and the count is one higher
 *                B2  wake all sleepers on the word: the agent's thread may sleep on it in a blocking call, while its
 *                    event loop waits for it as well
 *     to take    T1  fetch_and ~RUNG; there was a ring if it was set
 *     to wait    L1  load; RUNG: return
 *                L2  sleep while the word is what L1 has seen
 *
 * If L2 falls asleep, B1 comes later, and B2 wakes it; else the word differs from what L1 has seen, because
 * each ring makes the count higher, also one that has been taken since. With RUNG alone that would not be so: the loop
 * of an agent that takes a ring early, in a call of its own, and then sleeps on what it had seen before, would miss the
 * next one. And two words, a flag and a count, cannot be compared in one step.
 *
 * After B1 the ring can be taken, and the bell may be gone: B2 uses the address alone.
 *
 * B1 is a release, T1 an acquire: what was done before the ring is visible after it is taken.
 */
#ifndef VIGIL_BELL_WORD_H
#define VIGIL_BELL_WORD_H

#include "prim.h"

#define BELL_RUNG  1u
#define BELL_COUNT 2u

/* Defined by the prim that uses this: wakes all sleepers. */
static void bell_word_wake(uint32_t *word);

static inline void bell_word_ring(uint32_t *word) {
    prim_fetch_add_acq_rel(word, BELL_RUNG + BELL_COUNT); /* B1 */
    bell_word_wake(word);                                 /* B2 */
}

static inline bool bell_word_take(uint32_t *word) {
    return prim_fetch_and_acq_rel(word, ~BELL_RUNG) & BELL_RUNG; /* T1 */
}

static inline void bell_word_wait(uint32_t *word, uint64_t deadline_ns) {
    uint32_t seen = prim_load_relaxed(word);                          /* L1 */
    if (!(seen & BELL_RUNG)) prim_park(word, seen, deadline_ns); /* L2 */
}

#endif
