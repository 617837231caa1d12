/* SPDX-License-Identifier: MIT */
/*
 * bell_word.h - a bell (prim.h) that is one word, for systems whose only means to get a thread's attention is to wake a
 * sleeper on a word.
 *
 *     bit 0        RUNG: there is a ring that has not been taken
 *     bits 1-31    how many rings there have been
 *
 *     to ring    B1  fetch_add 3: RUNG is set, as it was clear, and the count is one higher
 *                B2  wake all sleepers on the word
 *     to take    T1  fetch_and ~RUNG; there was a ring if it was set
 *     to wait    L1  load; RUNG: there is a ring
 *                L2  sleep while the word is what L1 has seen
 *     to close   C1  wake all sleepers on the word
 *
 * If L2 falls asleep, the word is what L1 has seen: RUNG is clear, so each ring before has been taken. The B1 of the
 * next ring comes later, and its B2 wakes the sleeper. That needs no count.
 *
 * The count is for a loop that does not look at RUNG: it loads the word (acquire, so that it takes a ring that it has
 * seen), dispatches, and sleeps on what it has loaded. Taking changes the word, and each ring changes it to a value
 * that it has not had: so the loop sleeps only if nothing was rung or taken since. With RUNG alone, the next ring after
 * the one taken would bring the old value back. And two words, a flag and a count, cannot be compared in one step.
 *
 * B2 wakes all sleepers because there may be two, both of the agent's thread: an asynchronous one, left by its event
 * loop, and the thread itself, which blocks now (vigil_agent_run; or vigil_agent_destroy, while a ring is on its way).
 * The first cannot do anything before the second has returned.
 *
 * After B1 the ring can be taken, and the bell may be gone: B2 uses the address alone. C1 is for an asynchronous
 * sleeper, which must not outlive the bell.
 *
 * B1 is a release, T1 an acquire: what was done before the ring is visible after it is taken.
 */
#ifndef VIGIL_BELL_WORD_H
#define VIGIL_BELL_WORD_H

#include <assert.h>

#include "prim.h"

#define BELL_RUNG  1u
#define BELL_COUNT 2u

/* Defined by the prim that includes this header. As prim_wake, but wakes all sleepers on the word. */
void prim_wake_all(uint32_t *word);

/* B1 */
static inline void bell_word_set(uint32_t *word) {
    if (BUG(bell_without_count)) {
        prim_fetch_or_acq_rel(word, BELL_RUNG);
    } else if (BUG(bell_in_two_words)) {
        prim_fetch_add_acq_rel(word, BELL_COUNT);
        prim_fetch_or_acq_rel(word + 1, BELL_RUNG);
    } else {
        uint32_t before = prim_fetch_add_acq_rel(word, BELL_RUNG + BELL_COUNT);
        assert(!(before & BELL_RUNG));
        (void)before;
    }
}

static inline void bell_word_ring(uint32_t *word) {
    if (BUG(bell_wakes_first)) prim_wake_all(word);
    bell_word_set(word); /* B1 */
    if (BUG(bell_wakes_one)) prim_wake(word);
    else if (!BUG(bell_wakes_first)) prim_wake_all(word); /* B2 */
}

static inline bool bell_word_take(uint32_t *word) {
    if (BUG(bell_in_two_words)) word++;
    if (BUG(bell_taken_by_store)) {
        uint32_t seen = prim_load_acquire(word);
        prim_store_relaxed(word, seen & ~BELL_RUNG);
        return seen & BELL_RUNG;
    }
    return prim_fetch_and_acq_rel(word, ~BELL_RUNG) & BELL_RUNG; /* T1 */
}

/* Also for an event loop, which goes on to sleep asynchronously on what was `seen`. */
static inline bool bell_word_rung(uint32_t *word, uint32_t *seen) {
    *seen = prim_load_relaxed(word); /* L1 */
    return (BUG(bell_in_two_words) ? prim_load_relaxed(word + 1) : *seen) & BELL_RUNG;
}

static inline void bell_word_wait(uint32_t *word, uint64_t deadline_ns) {
    uint32_t seen;
    if (!bell_word_rung(word, &seen)) prim_park(word, seen, deadline_ns); /* L2 */
}

static inline void bell_word_close(uint32_t *word) {
    if (!BUG(bell_left_asleep)) prim_wake_all(word); /* C1 */
}

#endif
