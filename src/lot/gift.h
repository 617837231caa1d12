/* SPDX-License-Identifier: MIT */
/*
 * gift.h - what a waiter has been given and has not used yet.
 *
 * A gift is a notification or a condition's signal: it is counted, so it must reach exactly one waiter, whichever
 * process dies. From the moment it is given until it is used it stands in one field, `gift` of the waiter's slot, for
 * threads and event loops alike. (In the process's own lot, only for waiters at a condition.) The field is a tag, in
 * the upper two bits, and below it a key divided by four, of which every key is a multiple:
 *
 *     0                nothing
 *     MOVES | M        waits at a condition; a signal moves it to the mutex's line, of key M
 *     GIVEN | C        has been given what was given in line C, and has not used it
 *     PASSING | C      the same, and is being passed on to the waiter in line C that has the place `began_ns`
 *
 *     G1  store gift = GIVEN | C      the gift is given. By a notifier or signaller, under the lock of C's bucket
 *     G2  store state, or key = M     the waiter is told, or moved to the mutex's line. Killed between G1 and G2: the
 *                                     bucket's repair finds a slot in line C that has been given C's gift, and tells it
 *     G3  store gift = 0              the gift is used: by its own waiter, which is about to return (for a condition:
 *                                     with the mutex held; for an event loop: right before its callback)
 *
 * In between the slot may leave and join the mutex's line as often as needed: key and state change, `gift` does not.
 *
 * To pass a gift on, on behalf of a dead waiter or by a living waiter that gives up, under the lock of C's bucket:
 *
 *     P1  store began_ns = the place of the head of line C (or GIFT_NO_HEIR)  the slot itself is in no line any more
 *     P2  store gift = PASSING | C                                            from here on the heir is decided
 *     P3  G1 and G2 for the waiter in line C that has this place, if there is one
 *     P4  store gift = 0
 *
 * If no waiter is in line C, the gift has no heir. It is lost, like a notification or signal that comes while no
 * waiter is in line; the segment's header counts these (heirless).
 *
 * Killed before P2: the next process that passes it on decides anew. Killed later: the bucket is locked by a dead
 * process, and before any other process can look at line C, the bucket's repair does what is left of P3 and P4. It
 * finds the heir by `began_ns`; if no waiter in line C has this place, P3 has been done. No two waiters of a line
 * ever have the same place, and no waiter can leave the line in between. So one waiter gets the gift, whichever
 * process is killed and whichever cleans up.
 *
 * WHAT ELSE CAN BE GIVEN, and why it needs no such field:
 *
 *     a call for a lock        is a hint to try; nothing is lost if another waiter is called as well. After a death
 *                              all lines of locks are looked at as if the lock had just been released (recovery.h)
 *     a lock, a share, a       are never handed over: the acquirer takes them, and its number or its hold (hold.h)
 *     leased permit            says so from that step on until they are given back
 *     an arrival at a barrier  is the slot in line; the end of a round is one store of the word, and the repair tells
 *                              the waiters that are left in line after it
 *     a turn of a once         is the runner's number in the word: the next caller takes a dead runner's turn
 *
 * The table of the steps at which a process is killed, with the scenario of the simulator and the planted bug that show
 * each, is in test/sim/gifts.c.
 */
#ifndef VIGIL_GIFT_H
#define VIGIL_GIFT_H

#include "lot.h"

#define GIFT_TAG     (UINT64_C(3) << 62)
#define GIFT_MOVES   (UINT64_C(1) << 62)
#define GIFT_GIVEN   (UINT64_C(2) << 62)
#define GIFT_PASSING (UINT64_C(3) << 62)
#define GIFT_NO_HEIR UINT64_MAX /* as a place: line C has no waiter */
#define GIFT_KEYS    4u         /* keys are multiples of this */

static inline uint64_t gift_of(uint64_t tag, uint64_t key) {
    return tag | key / GIFT_KEYS;
}

static inline uint64_t gift_key(uint64_t gift) {
    return (gift & ~GIFT_TAG) * GIFT_KEYS;
}

/* Only waiters have this field; a SLOT_HOLDS uses its bits for `held`. */
static inline uint64_t gift_field(const struct slot *slot) {
    return prim_load_relaxed(&slot->kind) == SLOT_HOLDS ? 0 : prim_load_relaxed(&slot->gift);
}

/* Whether it has a gift that it has not used. */
static inline bool gift_is_given(const struct slot *slot) {
    return gift_field(slot) >= GIFT_GIVEN;
}

/* The key of the line in which it was given. */
static inline uint64_t gift_line(const struct slot *slot) {
    return gift_key(gift_field(slot));
}

/* The key of the mutex's line to which a signal moves the slot; zero: a signal tells it instead. */
static inline uint64_t gift_destination(const struct slot *slot) {
    uint64_t gift = gift_field(slot);
    return (gift & GIFT_TAG) == GIFT_MOVES ? gift_key(gift) : 0;
}

/* G1 */
static inline void gift_give(struct slot *slot, uint64_t line) {
    prim_store_release(&slot->gift, gift_of(GIFT_GIVEN, line));
}

/* G3. */
static inline void gift_use(struct slot *slot) {
    prim_store_release(&slot->gift, UINT64_C(0));
}

/* P1 to P4, for a slot in no line that has been given something and does not use it. False: until the deadline a
 * living process had the bucket locked, and nothing has happened. */
bool gift_pass_on(struct lot *lot, uint32_t slot, uint64_t deadline_ns);

#endif
