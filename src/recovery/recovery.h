/* SPDX-License-Identifier: MIT */
/*
 * recovery.h - what happens in a segment when a process has died.
 *
 * WHAT A DEAD PROCESS LEAVES BEHIND
 *
 *     its member record      is struck off (shm/segment.h, D1 and D2). From then on its number and its claims are gone
 *     a bucket's lock        is taken over by one compare-and-exchange, and the bucket rebuilt from its slots (repair.c)
 *     a slot in line         leaves the line
 *     a gift                 that it was given and did not use is passed on (lot/gift.h)
 *     a record of a share    is given back (hold.h)
 *     its other slots        are given back
 *     a lock                 that it held, was called for, guards, or was about to release: its line is looked at as if
 *                            the lock had just been released (recovery_calls). Who waits for a lock is called and tries
 *                            again, so one call too many does no harm
 *     a thread that it told  and did not wake: is woken; it looks at its slot and sleeps on, or returns
 *     a loop that it told    and whose slot it did not put into the mail: its keeper is poked, and looks for it
 *
 * One process does all of that, for all members: recovery_run. It may be killed in the middle. Then it is dead itself,
 * and whoever clears up after it does all of it again: every step leaves what is already done alone. Two may do it at
 * once. `recovered` in the header says up to which death everything is done; it is stored last.
 *
 * WHO ENTERS, AND WHEN
 *
 *     who                       when                                       how far
 *     a keeper                  the pulse of a member it watches ends      strikes it off, recovery_run
 *     a keeper                  it looks, once in a second for all         strikes off what others have missed, recovery_run
 *     who tries for a lock      and does not get it                        recovery_now: the same
 *     who needs a slot          and there is none                          recovery_now
 *     who needs a bucket        and its holder is gone                     recovery_repair, of this bucket alone
 *     who joins                 and finds the record of a dead member      strikes it off; a keeper does the rest
 *     who joins                 and finds nobody alive                     recovery_empty: nothing is believed
 *     vigil_segment_mend        is called                                  recovery_mend: every bucket, then recovery_run
 *
 * A process that is stopped in a bucket keeps others from that bucket, but not from the rest: recovery has a deadline
 * for all buckets together, leaves out what it cannot lock, says so, and is done again.
 */
#ifndef VIGIL_RECOVERY_H
#define VIGIL_RECOVERY_H

#include "lot/shared.h"

/* What is to be done in a line some of whose waiters have been called, and may not come. */
enum recovery_pass {
    PASS_NOW,   /* call the next one */
    PASS_LATER, /* it is reserved, and not for so long */
};

/* What is to be done for a kind of lock in whose line somebody stands. Of what is no lock: null. */
struct recovery_call {
    const struct lot_release *call; /* with a context that is all zero */
    /* Whether one that has been called may be passed by now. Null: yes. */
    enum recovery_pass (*may_pass)(uint32_t *word, void *context); /* the same context */
    /* Of locks with records (hold.h): what the word is to be without what somebody dead holds. */
    uint32_t (*give_back)(uint32_t seen, uint32_t held);
};
#define RECOVERY_CALL_BYTES 128u                              /* for the context */
extern const struct recovery_call recovery_calls[SLOT_KINDS]; /* sync/calls.c */

/* Everything that dead members have left: false if something was left out. Those that are to be struck off have been. */
bool recovery_run(struct lot *lot, uint64_t deadline_ns);

/* The same if there is anything of a dead member's, whatever has been counted. */
bool recovery_check(struct lot *lot, uint64_t deadline_ns);

/* A line, if it is a lock's, as if the lock had just been released: one that was called may not come. True: it is to be done
 * again in a while. */
bool recovery_pass_line(struct lot *lot, uint64_t key);
/* The same for all lines; what is to be done again is guarded (guard.h). */
void recovery_pass_all(struct lot *lot, uint64_t deadline_ns);

/* How many slots are taken. */
uint32_t recovery_count(const struct lot *lot);

/* This process's event loops that have been told and were not in its mail. */
bool recovery_own(struct lot *lot, uint64_t deadline_ns);

/* Whatever stands in the segment, look at every line, and build it anew if it is damaged: how much was wrong. */
int64_t recovery_mend(struct lot *lot);

/* Nobody else has the segment open: the lot begins anew. */
void recovery_empty(struct segment *segment);

/* For each other, in src/recovery: a bucket's lines from what its slots say, and calls for the locks among them. */
void repair_rebuild(struct lot *lot, struct bucket *bucket, struct wakes *wakes);
void repair_give_to_heir(struct lot *lot, uint32_t *line, uint64_t place, struct wakes *wakes);
void repair_call_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes);
bool repair_pass_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes);
void repair_call_lines(struct lot *lot, struct bucket *bucket, struct wakes *wakes);
bool sweep_everything(struct lot *lot, uint64_t deadline_ns);

#endif
