/* SPDX-License-Identifier: MIT */
/*
 * shared.h - the lot of a segment: lines of which any member may be killed at any instruction.
 *
 * Everything in a segment that is somebody's says whose, by the number of the process (shm/segment.h): the lock of a
 * bucket, in its word; a slot, in its claim. A number that no member has is a dead one's, and whoever comes across it
 * may put things right.
 *
 * WHAT IS TRUE, AND WHAT IS DERIVED
 *
 *     claims[n]    whose slot n is; 0: free. Taken by a CAS, given back by a store
 *     key, state   in line for `key` while that is not zero and `state` is undecided
 *     began_ns     the order in a line
 *
 * These change in single stores, each of which is the whole of what it means:
 *
 *     to join      store key       under the bucket's lock; all else has been filled in
 *     to leave     store key = 0   the same; by its own waiter, or in the place of a dead one
 *     to tell      store state     the same; what it is told. The key stays, until the waiter has used what it was told
 *     to move      store key       under the locks of both buckets
 *     used         store key = 0   by its own waiter, then it waits for something else or gives the slot back
 *
 * All else is derived: next, prev, tail, next_line, the bucket's `line` and OCCUPIED. So a bucket whose holder is dead can
 * be rebuilt from the slots, as it was before that one's next store or after it. Who takes such a lock over does that
 * first, being the holder now; if he is killed, the next one does it again.
 *
 * WHO HAS BEEN TOLD, BY ONE WHO DIED
 *
 *     a thread         sees it in `state`. Only the wake after it may be missing, so after each death every process wakes
 *                      all its sleepers in the segment: they look, and sleep again.
 *     an agent's       of another process is also put into the mail of that member's record. Only that may be missing: so
 *                      after each death every process looks for slots of its own agents that have been told and were
 *                      not in its mail. It does so under the lock of the slot's bucket, under which both are done.
 *
 * WHAT A DEAD PROCESS LEAVES BEHIND, once it has been struck off: see lot_sweep, which is done by whoever finds it so
 *
 *     a bucket's lock    is taken over, and the bucket repaired
 *     a slot in line     leaves it
 *     a slot that was    told VIGIL_OK, and did not use it: whoever is the first in that line by now is told in its stead.
 *                        (Not only who was in line when it was told: those may have been told by others since, and then
 *                        their notifications are for him.) Whom it is to be is
 *                        written down in the dead slot, by his began_ns, before it is done; so whoever is killed
 *                        while he does that, the next one knows whether it has been done: if nobody in line has that
 *                        began_ns. Nothing is passed on twice, or not at all.
 *     the other slots    are given back
 *     a record           of what it holds of a lock: that is given back, see hold.h
 *     a lock             that it holds, was called for, guards, or was about to release: see revival, below
 *
 * REVIVAL
 *
 * Who waits for a lock is called and tries again (sync/lock.h), and one call too many does no harm. So after each death
 * every process looks at all the lines of locks in which its own stand, as if the lock had just been released: it is
 * given up in the place of a holder that is dead, or else somebody in line is called again if it is free. The same is
 * done for the lines of a bucket that has been repaired. And it is done now and then anyway: a process may be stopped
 * that has been called for a lock, and then it is not dead but does not come either.
 *
 * THE WATCHER
 *
 * Somebody must notice that a member is dead while all the others sleep. In each process that has ever waited in a
 * segment that is a thread of the library's, the watcher. While anybody of its process waits there it wakes up every
 * 20 ms. One of the watchers then looks at the members and sweeps, and tells the others if somebody has died: see watch.c.
 * It is also the one that gets the mail and hands it on to the agents. The mail is a word of the member's record:
 *
 *     bits 32-63   the member's number: what is for a dead one is not pushed into the mail of the next
 *     bits 1-31    the slot that came last, which names the one before it by `next`
 *     bit 0        RESTING: the watcher sleeps on the word; who pushes clears it and wakes it
 *
 * An agent that waits in a segment has a slot there, which is in line, and one in the process's own lot (SLOT_AWAY), by
 * which it is told: that one names the other in `argument`, and its lot in began_ns; the other one names it in `outcome`
 * until it has been handed on. Its key stays longer, as a thread's does: until the agent is about to call back.
 */
#ifndef VIGIL_SHARED_H
#define VIGIL_SHARED_H

#include "lot.h"
#include "shm/member.h"
#include "shm/segment.h"
#include "shm/table.h"

#define SHARED_RESTING 1u

/* How often the living are counted. */
#define SHARED_LOOK_NS UINT64_C(20000000)

struct lot_share {
    struct segment *segment;
    uint32_t *claims;
    uint32_t slots;              /* how many there are, with number 0, which is none */
    uint32_t hint;               /* atomic: a slot that may be free */
    uint32_t claimed;            /* atomic: how many are ours */
    struct segment_member *self; /* our record */
    uint32_t departures;         /* atomic: how many there had been when we last looked, see hold_recovered */

    /* The watcher's: see watch.c */
    struct prim_handle *thread;
    uint32_t gate;     /* of who starts it */
    uint32_t watched;  /* atomic: whether there is one */
    uint32_t stopping; /* atomic */
    uint32_t idle;     /* atomic: it may sleep until somebody waits */
    uint64_t looked_ns, tended_ns;
    bool unfinished; /* something could not be tended */
    uint32_t looks;  /* how often, modulo 2^32 */
    uint32_t deaths; /* that it has heard of */
};

/* What is to be done for a kind of lock in whose line somebody stands: as lot_move does. Of none: null. */
struct lot_revival {
    lot_must_call *must_call;
    lot_caller *caller;
    /* Of locks with records (hold.h): what the word is to be without what somebody dead holds. */
    uint32_t (*give_back)(uint32_t seen, uint32_t held);
};
#define LOT_REVIVAL_BYTES 128u                            /* for the context */
extern const struct lot_revival lot_revivals[SLOT_KINDS]; /* sync/revivals.c */

/* The segment's lot; null when there is no memory for what we need to use it. When it is opened it is asked for. */
struct lot *lot_in(struct segment *segment);

/* Nobody else has the segment open: begin anew. */
void lot_empty(struct segment *segment);

/* Lock a bucket that is locked already. False: until the deadline somebody has had it, who lives but may be stopped. */
bool shared_lock_until(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns);

/* As `tell` in line.h. */
struct wakes;
void shared_tell(struct lot *lot, struct wakes *wakes, uint32_t slot, uint32_t outcome);

uint32_t shared_acquire(struct lot *lot);
void shared_release(struct lot *lot, uint32_t slot);
/* The same for a slot with which nobody will wait: it neither needs the watcher nor keeps us from leaving. */
uint32_t shared_claim(struct lot *lot);
void shared_disclaim(struct lot *lot, uint32_t slot);

/* Whether the member with that number has been struck off or has left. Without asking the kernel. */
static inline bool is_gone(const struct lot *lot, uint32_t number) {
    return number != lot->number && (!segment_find_member(lot->share->segment, number) || BUG(number_not_checked));
}

/*
 * Who looks after others does not wait for ever for one that is stopped in the middle of a bucket: whatever is in there
 * has to wait, but nobody else. So there is a deadline, for all buckets together. False: something was left out, and is to
 * be done later.
 *
 * Somebody has gone: deal with all that belongs to numbers that no member has.
 */
bool lot_sweep(struct lot *lot, uint64_t deadline_ns);
/* And with all that is ours, and in which he may have had a part; or, if nobody has, with our places in lines of locks. */
bool lot_tend(struct lot *lot, bool somebody_died, uint64_t deadline_ns);

/* The same, and look at every line, whoever stands there, and build it anew if it is damaged: how much was wrong. */
int64_t lot_mend(struct lot *lot);

/* The watcher: hand all mail on; true if there was any. */
bool lot_deliver(struct lot *lot);
/* See to it that there is one, and that it is awake while we wait: false if there is none to be had. */
bool watch_begin(struct lot *lot);
void watch_end(struct lot *lot);

#endif
