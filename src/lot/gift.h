/* SPDX-License-Identifier: MIT */
/*
 * gift.h - what has been given to a waiter in a segment and is not used yet.
 *
 * A gift is a notification or a condition's signal: it is counted, so it must reach exactly one waiter, whoever dies.
 * From the moment it is given until it is used it stands in one field, `gift` of the waiter's slot, for threads and
 * event loops alike. The field is a tag, in the upper two bits, and a key, which is a multiple of four:
 *
 *     0                nothing
 *     MOVES | M        waits at a condition; a signal moves it to the line of the mutex whose key is M
 *     GIVEN | C        has been given what was given in line C, and has not used it
 *     PASSING | C      the same, and it is being passed on to the waiter in line C whose place is this slot's `began_ns`
 *
 *     G1  store gift = GIVEN | C      the gift is given. By a notifier or signaller, under the lock of C's bucket
 *     G2  store state, or key = M     the waiter is told, or moved to the mutex's line. Killed between G1 and G2: the
 *                                     bucket's repair finds a slot in line C that has been given C's gift, and tells it
 *     G3  store gift = 0              the gift is used: by its own waiter, which is about to return (for a condition: with
 *                                     the mutex held; for an event loop: right before its callback)
 *
 * In between the slot may leave and join the mutex's line as often as it takes: key and state change, `gift` does not.
 *
 * To pass a gift on, in the place of a dead waiter or by a living one that gives up, under the lock of C's bucket:
 *
 *     P1  store began_ns = the place of the first in line C (or NOBODY)       the slot itself is in no line any more
 *     P2  store gift = PASSING | C                                            from here on it is decided who gets it
 *     P3  G1 and G2 for the waiter in line C that has this place, if there is one
 *     P4  store gift = 0
 *
 * If no waiter is in line C, the gift has no heir. It is gone, as one is that is given while no waiter is in line; the
 * segment's header counts these (heirless).
 *
 * Killed before P2: it is decided anew by the next process that passes it on. Killed later: the bucket is locked by a
 * dead process, and before anybody else can look at line C its repair does what is left of P3 and P4. It knows from
 * `began_ns` whose the gift is; if no waiter in line C has this place, P3 has been done. No two waiters of a line ever
 * have the same place, and nobody can leave the line in between. So whoever is killed, and whoever else clears up, one
 * waiter gets it.
 *
 * WHAT ELSE CAN BE GIVEN, and why it needs no such field:
 *
 *     a call for a lock        is a hint to try; nothing is lost if another waiter is called as well. After a death all
 *                              lines of locks are looked at as if the lock had just been released (recovery.h)
 *     a lock, a share, a       are never handed over: the acquirer takes them, and its number or its record (hold.h) says
 *     leased permit            so from that step on until they are given back
 *     an arrival at a barrier  is the slot in line; the end of a round is one store of the word, and whoever is left in
 *                              line after it is told by the repair
 *     a turn of a once         is the runner's number in the word: a dead runner's turn goes to whoever looks next
 *
 * The table of who is killed where, and which scenario of the simulator and which planted bug shows it, is in
 * test/sim/gifts.c.
 */
#ifndef VIGIL_GIFT_H
#define VIGIL_GIFT_H

#include "lot.h"

#define GIFT_TAG     (UINT64_C(3) << 62)
#define GIFT_MOVES   (UINT64_C(1) << 62)
#define GIFT_GIVEN   (UINT64_C(2) << 62)
#define GIFT_PASSING (UINT64_C(3) << 62)
#define GIFT_NOBODY  UINT64_MAX /* as a place */
#define GIFT_KEYS    4u         /* keys are multiples of this */

static inline uint64_t gift_of(uint64_t tag, uint64_t key) {
    return tag | key / GIFT_KEYS;
}

static inline uint64_t gift_key(uint64_t gift) {
    return (gift & ~GIFT_TAG) * GIFT_KEYS;
}

/* The field belongs to waiters; a record of what a process holds has other things there. */
static inline uint64_t gift_field(const struct slot *slot) {
    return prim_load_relaxed(&slot->kind) == SLOT_HOLDS ? 0 : prim_load_relaxed(&slot->gift);
}

/* Whether it has a gift that it has not used. */
static inline bool gift_is_given(const struct slot *slot) {
    return gift_field(slot) >= GIFT_GIVEN;
}

/* The line in which that was given. */
static inline uint64_t gift_line(const struct slot *slot) {
    return gift_key(gift_field(slot));
}

/* The key of the mutex to which a signal moves it; zero: it is told instead. */
static inline uint64_t gift_destination(const struct slot *slot) {
    uint64_t gift = gift_field(slot);
    return (gift & GIFT_TAG) == GIFT_MOVES ? gift_key(gift) : 0;
}

/* G1 */
static inline void gift_give(struct slot *slot, uint64_t line) {
    prim_store_release(&slot->gift, gift_of(GIFT_GIVEN, line));
}

/* G3. The waiter is back, and the gift with it. */
static inline void gift_use(struct slot *slot) {
    prim_store_release(&slot->gift, UINT64_C(0));
}

/* The slot, which is in no line, has been given something and does not use it: P1 to P4. False: until the deadline the
 * bucket was locked by a process that lives, and nothing has happened. */
bool gift_pass_on(struct lot *lot, uint32_t slot, uint64_t deadline_ns);

#endif
