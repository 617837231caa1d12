/* SPDX-License-Identifier: MIT */
/*
 * recovery.h - what happens in a segment when a process has died.
 *
 * WHAT A DEAD PROCESS LEAVES BEHIND
 *
 *     its row                is struck off (shm/segment.h, D1 and D2). From then on its number and its claims are gone
 *     a bucket's lock        is taken over by a compare-and-exchange, and the bucket rebuilt from its slots (repair.c)
 *     a slot in line         leaves the line
 *     a gift                 that it was given and did not use is passed on (lot/gift.h)
 *     a hold                 is given back (hold.h)
 *     its other slots        are given back
 *     a lock                 that it held, was called for, guards, or was about to release: its line is looked at as if
 *                            the lock had just been released (recovery_calls). A waiter that is called tries again, so
 *                            one call too many does no harm
 *     a thread that it told  and did not wake: is woken; it looks at its slot and sleeps on, or returns
 *     a loop that it told    without putting its slot into the relay: the loop's keeper is poked, and looks for it
 *
 * One process does all of that, for all members: recovery_run. It may be killed midway. Then it is dead itself, and
 * the process that recovers from its death starts over: every step leaves alone what is already done. Two processes
 * may do it at once. `recovered` in the header says up to which death everything is done; it is stored last.
 *
 * ENTRY POINTS
 *
 *     caller                    when                                       how far
 *     a keeper                  the pulse of a member it watches ends      strikes it off, recovery_run
 *     a keeper                  it patrols, once a second for all keepers  strikes off what others missed, recovery_run
 *     a thread or loop          cannot take a lock                         recovery_now: the same
 *     a thread or loop          needs a slot, and none is free             recovery_now
 *     a thread or loop          needs a bucket locked by a dead process    recovery_repair, of this bucket alone
 *     a joining process         finds the row of a dead member             strikes it off; a keeper does the rest
 *     a joining process         finds no living member                     recovery_empty: trusts only the user's bytes
 *     vigil_segment_mend        is called                                  recovery_mend: every bucket, then a sweep
 *
 * A process that is stopped in a bucket keeps others from that bucket, but not from the rest: recovery has a deadline
 * for all buckets together, leaves out those it cannot lock, reports that, and is done again.
 */
#ifndef VIGIL_RECOVERY_H
#define VIGIL_RECOVERY_H

#include "lot/shared.h"

/* What to do in a line in which waiters have been called, and may not come. */
enum recovery_pass {
    PASS_NOW,   /* call the next waiter */
    PASS_LATER, /* the lock is reserved, and has not been for long enough */
};

/* What to do for a kind of lock that has waiters. All null for kinds that are not locks. */
struct recovery_call {
    const struct lot_release *call; /* with a context that is all zero */
    /* Whether a waiter that has been called may be passed now. Null: yes. */
    enum recovery_pass (*may_pass)(uint32_t *word, void *context); /* the same context */
    /* For locks with holds (hold.h): the word without what a dead process held. */
    uint32_t (*give_back)(uint32_t seen, uint32_t held);
};
#define RECOVERY_CALL_BYTES 128u                              /* for the context */
extern const struct recovery_call recovery_calls[SLOT_KINDS]; /* sync/calls.c */

/* Recover everything that dead members have left. False: something was left out. The caller has struck the dead
 * members off. */
bool recovery_run(struct lot *lot, uint64_t deadline_ns);

/* The same if any slot belongs to a dead member, whatever the counts of deaths say. */
bool recovery_run_by_slots(struct lot *lot, uint64_t deadline_ns);

/* If the line is a lock's: treat it as if the lock had just been released, as a waiter that was called may not come.
 * True: the caller must do this again in a while. */
bool recovery_pass_line(struct lot *lot, uint64_t key);
/* The same for all lines; those that must be looked at again are guarded (guard.h). */
void recovery_pass_all(struct lot *lot, uint64_t deadline_ns);

/* How many slots are in use. */
uint32_t recovery_count(const struct lot *lot);

/* Hand on to this process's event loops what they have been told and did not get by relay. False: a bucket was left
 * out. */
bool recovery_own(struct lot *lot, uint64_t deadline_ns);

/* Check every line, whatever the segment contains, and rebuild those that are damaged. Returns how much was wrong,
 * or an error. */
int64_t recovery_mend(struct lot *lot);

/* No other process has the segment open: reset the lot. */
void recovery_empty(struct segment *segment);

/* Internal to src/recovery: rebuild a bucket's lines from its slots, and call waiters of the locks among them. */
void repair_rebuild(struct lot *lot, struct bucket *bucket, struct wakes *wakes);
void repair_give_to_heir(struct lot *lot, uint32_t *line, uint64_t place, struct wakes *wakes);
void repair_call_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes);
bool repair_pass_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes);
void repair_call_lines(struct lot *lot, struct bucket *bucket, struct wakes *wakes);
/* P1 to P4 of lot/gift.h. `claim`: zero for a slot of our own, else that of the dead process that owned the slot when
 * the caller looked. */
bool gift_pass_on_of(struct lot *lot, uint32_t slot, uint32_t claim, uint64_t deadline_ns);
bool sweep_everything(struct lot *lot, uint64_t deadline_ns);

#endif
