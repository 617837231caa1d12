/* SPDX-License-Identifier: MIT */
/*
 * hold.h - who holds what of a lock in a segment, if its word has no room to say so.
 *
 * A read lock may be held by many processes, and so may the permits of a semaphore. For each process that holds any
 * there is a record: a slot (SLOT_HOLDS) in the lock's line of holders, which is that of the key behind the lock's own,
 * in the same bucket. So it is rebuilt like any other line, and a dead process's record is found like any other slot.
 *
 *     claim       whose it is
 *     of          what kind of lock: which enum slot_kind stands in its line
 *     held        bits 0-30 how much the process holds, in units of the lock's own; bit 31 APPLYING; bits 32-63 what
 *                 the word is to be
 *
 * The word and the record change together. For that all changes of such a word, whatever they are, happen under the
 * lock of its bucket:
 *
 *     H0  the record, if there is none yet: join the line of holders, holding nothing
 *     H1  store held: what will be held, APPLYING, and the word       from here on it has happened
 *     H2  store the word
 *     H3  store held: what is held
 *     H4  if that is nothing: leave the line, and give the slot back
 *
 * Whoever is killed in between holds the bucket's lock. Who takes that over does H2 and H3 of what is APPLYING; the
 * rest is as for every dead process: what its record says is given back, by the same steps (recovery_call's give_back),
 * and those in the lock's line are called (recovery.h).
 *
 * A process that only holds is not woken for the dead: it is who wants the lock that looks.
 */
#ifndef VIGIL_HOLD_H
#define VIGIL_HOLD_H

#include "lot/shared.h"

/* Of a read-write lock: what a reader holds. A writer holds 1. */
#define HOLD_READER 16u
#define HOLD_RWLOCK 0x3ffffff1u /* what the word of a read-write lock says about its holders */

struct hold {
    enum slot_kind kind;
    uint32_t given, taken; /* by our process: back, and more */
};

/*
 * Change the word from what was seen: VIGIL_OK. VIGIL_NOT_EQUAL: it is another one, see there. VIGIL_ENOTHELD: our
 * process does not have what is given back. VIGIL_ELIMIT: there is no slot for a record.
 */
int hold_change(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold);

/* The same if it is recorded who holds what; else, where words say all there is to say, a compare-and-exchange. */
int hold_change_or_cas(bool recorded, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold);

/* The same for who has the lock of the bucket, and has seen the word under it. */
int hold_change_locked(struct lot *lot, uint32_t *word, uint32_t to, struct hold hold);

/* Under the lock of its bucket: H2 and H3 of what a dead one was about to do, if it was. */
void hold_redo(struct lot *lot, struct slot *record);

/* Under the lock of its bucket: give back what the record, of a dead one, says. */
void hold_give_back(struct lot *lot, struct slot *record);

/*
 * Before it is said that something in a segment is not to be had now: look whether anybody has died, and deal with what
 * he has left, but for what is in a bucket in which somebody is stopped. True: it may be had, after all.
 */
bool hold_recovered(const volatile void *word);

/* In a segment: whether nobody is in line for it, or on his way having been called. What it keeps is for nobody. */
bool hold_forsaken(const volatile void *word);

/* Nobody has the segment open, and its lot is about to be emptied: give all back that is held. */
void hold_settle(const struct segment *segment);

#endif
