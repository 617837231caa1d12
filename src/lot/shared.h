/* SPDX-License-Identifier: MIT */
/*
 * shared.h - the lot of a segment: any process that uses it may be killed at any instruction.
 *
 * Everything in a segment that belongs to a process carries that process's number (shm/segment.h): the lock of a
 * bucket, in its word; a slot, in its claim. A number that no member has is that of a process that has died or left,
 * and any process that finds it may repair what it left.
 *
 * WHAT IS TRUE, AND WHAT IS DERIVED
 *
 *     claims[n]    the claim of the process that has slot n; 0: free. Taken by a CAS, given back by a store
 *     key, state   in line for `key` while that is not zero and `state` is undecided
 *     began_ns     the order in a line
 *
 * These change in single stores, each of which is the whole of what it means:
 *
 *     to join      store key       under the bucket's lock; all else has been filled in
 *     to leave     store key = 0   the same; by its own waiter, or on behalf of a dead waiter
 *     to tell      store state     the same; what it is told. The key stays, until the waiter has used what it was told
 *     to move      store key       under the locks of both buckets
 *     used         store key = 0   by its own waiter, which then waits for something else or gives the slot back
 *
 * All else is derived: next, prev, tail, next_line, the bucket's `line` and OCCUPIED. So a bucket with a dead holder
 * can be rebuilt from the slots, as it was before the holder's next store or after it. The process that takes over the
 * lock rebuilds the bucket first. If it dies midway, the next one starts over.
 *
 * What happens when a process has died is in recovery/recovery.h.
 *
 * RELAY
 *
 * An agent of another process is told by relay: its slot is pushed into the relay of that process's member row, and
 * the keeper there (recovery/keeper.h) hands it on. The relay is a word:
 *
 *     bits 32-63   the member's number: no slot is pushed into the relay of a row that has another member now
 *     bits 1-31    the slot pushed last, which names the slot pushed before it by `next`
 *     bit 0        SEGMENT_RESTING: the keeper sleeps on the word; a process that pushes clears it and wakes the keeper
 *
 * An agent that waits in a segment has two slots: the segment's slot, which is in line, and its own slot (SLOT_AWAY)
 * in the process's own lot, by which it is told. The own slot names the segment's slot in `away` and the segment's
 * lot in `away_lot`. The segment's slot names the own slot in `home` until it has been handed on. The key of the
 * segment's slot stays longer, as a thread's does: until the agent is about to call back.
 */
#ifndef VIGIL_SHARED_H
#define VIGIL_SHARED_H

#include "base/tuning.h"
#include "lot.h"
#include "shm/backing.h"
#include "shm/member.h"
#include "shm/segment.h"
#include "shm/table.h"

/* The keeper's state for a segment: see recovery/watch.c. */
struct keeping {
    uint32_t attended;  /* atomic: the keeper knows of it */
    uint32_t idle;      /* atomic: it does not patrol, because this process does not wait */
    uint64_t patrol_ns; /* when it patrols next */
    uint64_t poll_ns;   /* when it asks the kernel next about members without a pulse */
    uint64_t pause_ns;  /* the time between two such questions; zero: it asks at once */
    uint32_t patrols;   /* patrols that it left out because it was the turn of another keeper */
    uint32_t unneeded;  /* patrols in a row at which the process did not wait */
    uint32_t deaths;    /* the header's `deaths` when it last read it */
    uint32_t recovered; /* the header's `recovered` when it last looked after its own event loops */
    uint32_t relayed;   /* iterations with slots in the relay, in a row */
    bool unfinished;    /* something could not be recovered */
};

struct lot_share {
    struct segment *segment;
    uint32_t *claims;
    uint32_t slots;              /* atomic: slots below this index have memory; index 0 is no slot. See shared_slots */
    uint32_t hint;               /* atomic: the index of a slot that may be free */
    uint32_t claimed;            /* atomic: how many slots this process has got by shared_acquire */
    struct segment_member *self; /* our row */
    uint32_t deaths_recovered;   /* atomic: deaths in this segment whose recovery by recovery_now is complete */
    struct keeping keeping;      /* the keeper's */
};

/* The segment's lot, made at the first call, which is when the segment is opened; null: out of memory. */
struct lot *lot_in(struct segment *segment);

/* Lock a bucket that was found locked. The caller has entered a critical section (critical.h). False: at the deadline
 * it is still locked by a process that lives, but may be stopped. */
bool shared_lock_until(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns);

/* Lock a bucket, and enter the critical section. False: as above, and no section has been entered. */
bool shared_trylock(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns);

/* As slot_decide in line.h. */
struct wakes;
void shared_decide(struct lot *lot, struct wakes *wakes, uint32_t slot, uint32_t outcome);

/* How many slots may be touched by now, with number 0, which is none. */
static inline uint32_t shared_slots(const struct lot *lot) {
    uint32_t backed = backing_slots(lot->share->segment), seen = prim_load_relaxed(&lot->share->slots);
    while (seen < backed && !prim_cas_acquire(&lot->share->slots, &seen, backed)) {
    }
    return seen < backed ? backed : seen;
}

uint32_t shared_acquire(struct lot *lot);
void shared_release(struct lot *lot, uint32_t slot);
/* The same for a slot that no waiter will use: it neither needs the keeper nor keeps us from leaving the segment. */
uint32_t shared_claim(struct lot *lot);
/* No slot was free, and the caller has no bucket locked: recover those of dead processes, if the caller has not had
 * that done before, or back more. True: try again. */
bool shared_find_slots(struct lot *lot, bool *recovered);
void shared_disclaim(struct lot *lot, uint32_t slot);

/* Whether the member with that number has been struck off or has left. Does not ask the kernel. */
static inline bool is_gone(const struct lot *lot, uint32_t number) {
    return number != lot->number && (!segment_find_member(lot->share->segment, number) || BUG(number_not_checked));
}

/* The same for the process that has claimed a slot. */
static inline bool is_claimant_gone(const struct lot *lot, uint32_t claim) {
    return claim != lot->claim && (!segment_has_claimant(lot->share->segment, claim) || BUG(number_not_checked));
}

/* Hand all slots of the relay on to the agents; true if there was any. */
bool lot_deliver(struct lot *lot);
/* Tell the agent, by its slot in the process's own lot. */
void lot_hand_on(struct lot *lot, uint32_t slot);

/*
 * What src/recovery does for the lot.
 *
 * Rebuild a bucket whose lock has been taken over from a dead process. The caller has the lock.
 */
void recovery_repair(struct lot *lot, struct bucket *bucket);
/* Something was not available: recover what dead members held. False: no member has died since that was last done
 * completely. True: it may be available now. */
bool recovery_now(struct lot *lot);
/* Make sure that a keeper runs, and that it patrols while this process waits. False: there is none. */
bool keeper_attend(struct lot *lot);
/* The keeper does not touch the lot any more. */
void keeper_leave(struct lot *lot);

#endif
