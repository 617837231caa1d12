/* SPDX-License-Identifier: MIT */
/*
 * lock.h - what the locks have in common: one line of threads and event loops, and who in it may be relied upon.
 *
 * A lock is a 32-bit word that says whether it is to be had, and the line of those who wait for that. They wait until
 * they are called; then they try, and if somebody else was faster they go back to their place in the line. Nobody is
 * handed anything: who takes the lock changes the word himself, so there is no grant that could be lost on its way to
 * somebody who has just timed out, been cancelled or ended.
 *
 * WHO STANDS IN LINE
 *
 * Threads and event loops, in one line. A release calls the head of the line and nobody else: one waiter is woken,
 * however many wait. (Of a read-write lock or a semaphore, as many as can have it together.)
 *
 * A thread that is called comes: it runs sooner or later, and has nothing else to do. An event loop may not: it may be
 * busy for a long time, or its thread may block, perhaps behind its own request. So a call to a loop is guarded by the
 * keeper, the library's own thread in that loop's process (recovery/guard.h): if others are in line, and the lock is
 * still not taken after half a millisecond, the keeper calls the next one in the loop's place.
 *
 * To keep lines short, an event loop has one place in the line of a lock, that of its oldest request; the others queue
 * up behind it on the agent's own side (request.c).
 *
 * NOBODY WAITS IN VAIN
 *
 * If a waiter is in line and nobody holds the lock, then somebody is responsible: a thread that has been called and not
 * yet come back, or the keeper that guards a loop. The thread either takes the lock, and then says in the word that
 * others wait (so that its release will call them); or finds it taken, says so in the word, and waits again; or finds
 * it reserved and guards that: see below. The keeper calls the next one, for which the same is true. In a segment a
 * process may be killed, and then recovery looks at the lines of all locks; or stopped, with everybody in it that is
 * responsible: then the keepers of those who wait notice when they look (recovery/keeper.c).
 *
 * RESERVED
 *
 * So that no waiter starves, a lock can be reserved when it is released: newcomers may not take it, nor those that have
 * been called beside another (SLOT_BESIDE), but only a waiter that has been called itself (SLOT_CALLED). That may be an
 * event loop that does not run. So whoever joins the line meanwhile guards the reservation: it looks at the word after
 * a while (`patience_ns`), without leaving the line, and if it still is reserved as it was it declines in place of the
 * one that does not come: the lock is released once more, and the head of the line is called.
 *
 * It is all the same who takes a reserved lock: a waiter called earlier, which comes late, may take what was reserved
 * for another. That one goes back to the head of the line.
 *
 * FIRST COME, FIRST SERVED
 *
 * A lock that is fair is always reserved for the head of the line. A loop that does not come loses its turn after a
 * second.
 */
#ifndef VIGIL_LOCK_H
#define VIGIL_LOCK_H

#include <stddef.h>

#include "agent/agent.h"
#include "base/deadline.h"
#include "probe.h"
#include "tsan.h"
#include "vigil/request.h"

/* How he stands who tries: the further down, the more he may. */
enum standing {
    NEWCOMER,
    BESIDE, /* called along with somebody before him */
    CALLED, /* may take what is reserved */
};

/* How long the head of the line waits before the lock may be reserved for it; and how long others then wait. */
#define PATIENCE_NS UINT64_C(500000)

struct lock_kind {
    enum slot_kind slot; /* what those in its line are */
    /*
     * Take it, if somebody of that standing may: VIGIL_OK, or VIGIL_OWNER_DIED. If not: VIGIL_PENDING; `seen` is what
     * the word says, which is reason enough to wait for as long as it says so, and whoever changes that will call those
     * in line. Or an error.
     */
    int (*take)(uint32_t *word, uint32_t argument, enum standing standing, uint32_t *seen);
    /* Whether it is reserved: who waits, having seen that, looks again after a while, and if it says the same then he
     * is to decline in place of somebody else. */
    bool (*reserved)(uint32_t seen);
    /* Null: while it is reserved he looks after PATIENCE_NS. Else so long, or PRIM_NEVER. */
    uint64_t (*patience_ns)(uint32_t seen);
    /* One in line, having seen that, has waited so long, and it is not reserved. */
    void (*waited)(uint32_t *word, uint32_t seen);
    /* Who has been called does not want it any more, or does not come: if it is reserved, go on to the next. */
    void (*decline)(uint32_t *word);
    /* On the agent's thread: the request, which is the caller's again, has got it. */
    void (*granted)(vigil_request *request, int status);
    /* The same: it will not get it. */
    void (*given_up)(vigil_request *request);
    /* Somebody has joined the line, having seen that, or has left it: others may have to be called. */
    void (*joined)(uint32_t *word, uint32_t seen);
    void (*left)(uint32_t *word);
    /* Whether turns are to be strictly in order, as far as the word says. */
    bool (*strict)(uint32_t seen);
    /* (The last four, patience_ns and waited may be null.) */
};

/* Whoever takes a lock, or has just taken one, says so here. */
static inline int lock_taken(uint32_t *word) {
    tsan_acquire(word);
    return VIGIL_OK;
}

static inline bool lock_is_ours(int status) {
    return status == VIGIL_OK || status == VIGIL_OWNER_DIED;
}

static inline int lock_take(const struct lock_kind *kind, uint32_t *word, uint32_t argument, enum standing standing,
                            uint32_t *seen) {
    int status = kind->take(word, argument, standing, seen);
    if (lock_is_ours(status)) lock_taken(word);
    return status;
}

/*
 * Under the lock of the line: whether the lock is to be reserved for the head of the line now. Only so often, or a long
 * line would have everybody change places all the time; and while a lock is reserved nobody has it.
 */
bool lock_may_reserve(const struct slot *head);

/* Whether a wait has ended because its thread did not want it any more. */
static inline bool lock_gave_up(int status) {
    return status == VIGIL_TIMED_OUT || status == VIGIL_INTERRUPTED;
}

/* Block until it is ours: VIGIL_OK, VIGIL_OWNER_DIED, VIGIL_TIMED_OUT, VIGIL_INTERRUPTED, VIGIL_CANCELLED, VIGIL_ENOMEM, VIGIL_ELIMIT. */
int lock_block(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns);

/* The same for one who has a slot that is not in line, and a standing: it does not release the slot. */
int lock_block_in(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns,
                  struct lot *lot, uint32_t slot, enum standing standing);

/* As kind->granted: tell the caller, and that is all. */
void lock_granted(vigil_request *request, int status);

/* Being in line: wait until called, or until the deadline. */
int lock_wait(const struct lock_kind *kind, struct lot *lot, uint32_t slot, uint32_t *word, uint32_t seen,
              uint64_t deadline_ns);

/* What a wait in the line of a lock has ended with, as a standing. False: the wait is over, with that status. */
bool standing_after(int status, enum standing *standing);

/* How long one in line, who has seen that, is patient; PRIM_NEVER: he need not look again. */
uint64_t lock_patience_ns(const struct lock_kind *kind, uint32_t seen);

/* The patience of one in line, who has seen that, has come to an end. Answers what he sees now. */
uint32_t lock_look(const struct lock_kind *kind, uint32_t *word, uint32_t seen);

/*
 * Before it is said that the lock cannot be had: true if it may, after all, because its holder has died.
 * `kept`: what the word says while it is kept for those in line, of whom there may be none left.
 */
bool lock_recovered(const struct lock_kind *kind, uint32_t *word, uint32_t kept);

/* The same in private memory, and the word says that it is kept: perhaps for a thread that fork has not copied. */
bool lock_outlived_fork(const struct lock_kind *kind, uint32_t *word, bool kept);

static inline vigil_request *request_of_op(vigil_op *op) {
    return (vigil_request *)(void *)((char *)op - offsetof(vigil_request, op));
}

/*
 * The asynchronous form: VIGIL_OK, VIGIL_OWNER_DIED, it is ours; VIGIL_PENDING, and kind->granted or the callback (with
 * another status) will be called; VIGIL_TIMED_OUT; or an error, as of vigil_wait32_async.
 */
int request_start(vigil_agent *agent, vigil_request *request, const struct lock_kind *kind, uint32_t *word,
                  uint32_t argument, int64_t timeout_ns, vigil_callback *callback);

/* A plain wait of a request's, as vigil_wait32_async's, which has been checked: `told` is the op's own callback. */
int request_wait(vigil_agent *agent, vigil_request *request, const struct word *word, uint64_t deadline_ns,
                 vigil_callback *told, enum slot_kind kind);

#endif
