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
 * All else is derived: next, prev, tail, next_line, the bucket's `line` and OCCUPIED. So a bucket whose holder is dead
 * can be rebuilt from the slots, as it was before that one's next store or after it. Who takes such a lock over does
 * that first, being the holder now; if he is killed, the next one does it again.
 *
 * What happens when a process has died is in recovery/recovery.h.
 *
 * MAIL
 *
 * An agent of another process is told by mail: its slot is pushed into the mail of that process's member record, and
 * the keeper there (recovery/keeper.h) hands it on. The mail is a word:
 *
 *     bits 32-63   the member's number: what is for a dead one is not pushed into the mail of the next
 *     bits 1-31    the slot that came last, which names the one before it by `next`
 *     bit 0        SEGMENT_RESTING: the keeper sleeps on the word; a process that pushes clears it and wakes the keeper
 *
 * An agent that waits in a segment has a slot there, which is in line, and one in the process's own lot (SLOT_AWAY), by
 * which it is told: that one names the other in `away`, and its lot in began_ns; the other one names it in `home`
 * until it has been handed on. Its key stays longer, as a thread's does: until the agent is about to call back.
 */
#ifndef VIGIL_SHARED_H
#define VIGIL_SHARED_H

#include "lot.h"
#include "shm/member.h"
#include "shm/segment.h"
#include "shm/table.h"

/* So long a bucket may be locked before a waiter looks whether its holder lives. */
#define SHARED_LOOK_NS UINT64_C(20000000)
/* Mostly it is by the holder's pulse that this is known. Every so many times the kernel is asked whatever that says. */
#define SHARED_ASK_LOOKS 50u

/* What the keeper has to do for a segment: see recovery/keeper.c. */
struct keeping {
    uint32_t attended;  /* atomic: the keeper knows of it */
    uint32_t idle;      /* atomic: it does not look from time to time, because nobody waits */
    uint64_t look_ns;   /* when it looks next */
    uint64_t poll_ns;   /* when it asks the kernel next about members without a pulse */
    uint64_t pause_ns;  /* and how long it waits then */
    uint32_t looks;     /* for which it had no turn */
    uint32_t unneeded;  /* looks in a row at which the process did not wait */
    uint32_t deaths;    /* that it has heard of */
    uint32_t recovered; /* up to which death its own have been looked after */
    uint32_t letters;   /* turns with mail, in a row */
    bool unfinished;    /* something could not be recovered */
};

struct lot_share {
    struct segment *segment;
    uint32_t *claims;
    uint32_t slots;              /* how many there are, with number 0, which is none */
    uint32_t hint;               /* atomic: a slot that may be free */
    uint32_t claimed;            /* atomic: how many are ours */
    struct segment_member *self; /* our record */
    uint32_t deaths_seen;        /* atomic: how many there had been when we last tried, see recovery_now */
    struct keeping keeping;      /* the keeper's */
};

/* The segment's lot; null when there is no memory for what we need to use it. When it is opened it is asked for. */
struct lot *lot_in(struct segment *segment);

/* Lock a bucket that is locked already; the caller has entered a critical section (critical.h). False: until the deadline
 * a process has held it that lives, but may be stopped. */
bool shared_lock_until(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns);

/* Lock a bucket, as long as the deadline is not over. */
bool shared_trylock(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns);

/* As `tell` in line.h. */
struct wakes;
void shared_tell(struct lot *lot, struct wakes *wakes, uint32_t slot, uint32_t outcome);

uint32_t shared_acquire(struct lot *lot);
void shared_release(struct lot *lot, uint32_t slot);
/* The same for a slot with which nobody will wait: it neither needs the keeper nor keeps us from leaving. */
uint32_t shared_claim(struct lot *lot);
void shared_disclaim(struct lot *lot, uint32_t slot);

/* Whether the member with that number has been struck off or has left. Without asking the kernel. */
static inline bool is_gone(const struct lot *lot, uint32_t number) {
    return number != lot->number && (!segment_find_member(lot->share->segment, number) || BUG(number_not_checked));
}

/* The same for the process that has claimed a slot. */
static inline bool is_claimant_gone(const struct lot *lot, uint32_t claim) {
    return claim != lot->claim && (!segment_has_claimant(lot->share->segment, claim) || BUG(number_not_checked));
}

/* Hand all mail on to the agents; true if there was any. */
bool lot_deliver(struct lot *lot);
/* The agent is told, by its slot in the process's own lot. */
void lot_hand_on(struct lot *lot, uint32_t slot);

/*
 * What src/recovery does for the lot.
 *
 * Rebuild a bucket whose lock has been taken over from a dead process. The caller has the lock.
 */
void recovery_repair(struct lot *lot, struct bucket *bucket);
/* Something could not be had: whether somebody has died since this was last asked, so that it may be had now. */
bool recovery_now(struct lot *lot);
/* See to it that there is a keeper, and that it looks from time to time while this process waits: false if there is none. */
bool keeper_attend(struct lot *lot);
/* The keeper does not touch the lot any more. */
void keeper_leave(struct lot *lot);

#endif
