/* SPDX-License-Identifier: MIT */
/*
 * hold.h - which processes hold how much of a lock in a segment, where its word has no room to say so.
 *
 * A read lock may be held by many processes, and so may the permits of a semaphore. Each process that holds any has a
 * hold: a slot (SLOT_HOLDS) in the lock's line of holders. The key of that line is the lock's own key plus one, and
 * is in the same bucket. So the line is rebuilt like any other, and a dead process's hold is found like any other
 * slot.
 *
 *     claim       the process that owns the hold
 *     of          the kind of lock: the enum slot_kind of the waiters in its line
 *     signature   bits 0-31 its number, see STEALING; bits 32-63 since when, for display
 *     held        bits 0-30 how much the process holds, in units of the lock's own; bit 31 APPLYING; bits 32-63 the
 *                 value that the word is changed to
 *
 * The word and the hold change together. For that, every change of such a word, for whatever reason, happens under
 * the lock of its bucket:
 *
 *     H0  the hold, if there is none yet: join the line of holders, holding nothing
 *     H1  store held: what will be held, APPLYING, and the word       from here on it has happened
 *     H2  store the word
 *     H3  store held: what is held
 *     H4  if that is nothing: leave the line, and give the slot back
 *
 * A process that is killed in between holds the bucket's lock. The process that takes the lock over does H2 and H3 of
 * what is APPLYING. The rest is as for every dead process: what its hold says is given back, by the same steps
 * (recovery_call's give_back), and the waiters in the lock's line are called (recovery.h).
 *
 * A process that only holds is not woken when another process dies: the processes that want the lock look for the
 * dead.
 *
 * STEALING
 *
 * A lock may be taken away from its holders although they live (rwlock_steal). A hold belongs to a process, but a
 * holder that was robbed is one handle of perhaps many of its process: when it unlocks, the hold that it finds may be
 * that of another handle, which has taken the lock since. So each hold has a number, and a holder that can be robbed
 * unlocks the hold with the number that it got when it took the lock, or nothing.
 *
 * The number is 2 * steals + 1, from the segment's header, at the time when the hold became more than nothing. `steals`
 * rises before anything is taken away, and all of this is under the lock of the bucket:
 *
 *     T1  the thief's own new hold, of nothing (H0)
 *     T2  increment steals
 *     T3  each hold in the line, also one of the thief's own process: give it back as that of a dead process (H1 to
 *         H4). A writer's sets "owner died" for the moment
 *     T4  the thief takes the lock (H1 to H3), without that "owner died". The flag that there are waiters stays: they
 *         keep their places
 *
 * So a hold that is there after T3 has a number above those of the holds that were taken away, whatever process it
 * belongs to. If the thief is killed,
 *
 *     before T3   nothing has been taken away: the holders unlock as before
 *     in T3       what is APPLYING is done (hold_redo), also in the hold of a process that lives, and holds of nothing
 *                 are ended
 *     before T4   the lock is free, and says "owner died". The process that takes over the bucket calls the waiters
 *     after T4    as for every dead holder
 */
#ifndef VIGIL_HOLD_H
#define VIGIL_HOLD_H

#include "lot/shared.h"
#include "vigil/status.h"

/* For a read-write lock: the units that one reader holds. A writer holds 1. */
#define HOLD_READER 16u
#define HOLD_RWLOCK 0x0ffffff1u /* what the word of a read-write lock says about its holders */

struct hold {
    enum slot_kind kind;
    uint32_t given, taken; /* by our process: given back, and taken in addition */
    uint32_t number;       /* give back only if our hold has this number; 0: any */
};

/*
 * Change the word from *seen to `to`, and our process's hold with it. Returns VIGIL_OK; VIGIL_NOT_EQUAL if the word
 * has another value, which is in *seen then; VIGIL_ENOTHELD if our process does not hold what is given back, or has
 * been robbed of it;
 * VIGIL_ELIMIT if no slot is free for a hold.
 */
int hold_change(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold);

/* The same if the lock has holds; otherwise a compare-and-exchange, as the word says everything. */
static inline int hold_change_or_cas(bool has_holds, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold) {
    if (has_holds) return hold_change(lot_for(word), word, seen, to, hold);
    bool changed = hold.given ? prim_cas_release(word, seen, to) : prim_cas_acquire(word, seen, to);
    return changed ? VIGIL_OK : VIGIL_NOT_EQUAL;
}

/* The same for a caller that has locked the bucket, and has read the word under that lock. */
int hold_change_locked(struct lot *lot, uint32_t *word, uint32_t to, struct hold hold);

/*
 * T1 to T4: take `hold.taken` for our process, and from all others what they have. Of the word, the flags in `keep`
 * stay; one of them says that a holder died. VIGIL_OK, and the word before it in *seen, with that flag; or
 * VIGIL_ELIMIT.
 */
int hold_steal(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t keep, struct hold hold);

/* Whether our process has a hold with that number. */
bool hold_is_ours(struct lot *lot, const uint32_t *word, uint32_t number);

/* Under the lock of its bucket, which a dead process had locked: do H2 and H3 of a change that it had begun, if it had.
 * False: the hold is of nothing, and must be ended (H4). */
bool hold_redo(struct lot *lot, struct slot *hold);

/* Under the lock of its bucket: give back what the hold of a dead process says. */
void hold_give_back(struct lot *lot, struct slot *hold);

/*
 * To be called before reporting that something in a segment is not available: find processes that have died, and
 * recover what they have left, except in buckets that a stopped process has locked. True: it may be available now.
 */
bool hold_recovered(const volatile void *word);

/* For a lock in a segment: true if no waiter is in line for it, or has been called and is on its way. What the lock
 * keeps reserved is then reserved for no waiter. False for a lock outside of segments. */
bool hold_has_no_waiter(const volatile void *word);

/* No process has the segment open, and its lot is about to be emptied: give back everything that is held. */
void hold_settle(const struct segment *segment);

#endif
