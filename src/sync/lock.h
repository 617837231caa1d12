/* SPDX-License-Identifier: MIT */
/*
 * lock.h - what the locks have in common: one line of threads and event loops, and which of them can be relied upon.
 *
 * A lock is a 32-bit word that says whether it can be taken, and a line of waiters. A waiter stays in line until it is
 * called; then it tries to take the lock, and if another thread was faster it goes back to its place in the line. A
 * lock is never handed over: the new holder changes the word itself, so there is no grant that could be lost on its way
 * to a waiter that has just timed out, been cancelled or ended.
 *
 * THE LINE
 *
 * Threads and event loops wait in one line. A release calls the head of the line and no other waiter: one waiter is
 * woken, however many wait. (A read-write lock or a semaphore calls as many as can hold it together; a mutex calls up
 * to three of the threads that a condition has moved into its line.)
 *
 * A thread that is called comes: it runs sooner or later, and has nothing else to do. An event loop may not come: it
 * may be busy for a long time, or its thread may block, perhaps behind its own request. So a call to a loop is guarded
 * by the keeper, the library's own thread in that loop's process (recovery/guard.h): if others are in line, and the
 * lock is still not taken after half a millisecond, the keeper calls the next waiter in place of the loop.
 *
 * To keep lines short, an event loop has one place in the line of a lock, that of its oldest request; the others queue
 * up behind it on the agent's own side (request.c).
 *
 * NO WAITER IS FORGOTTEN
 *
 * If a waiter is in line and the lock is not held, then one of these is responsible: a thread that has been called and
 * has not come back yet, or the keeper that guards a loop. The thread either takes the lock, and then says in the word
 * that others wait (so that its release will call them); or finds it taken, says so in the word, and waits again; or
 * finds it reserved and guards the reservation: see below. The keeper calls the next waiter, for which the same is
 * true. In a segment a process may be killed: then recovery looks at the lines of all locks. Or it may be stopped, and
 * with it all that are responsible: then the keepers of the waiting processes notice at their next patrol
 * (recovery/keeper.c).
 *
 * RESERVED
 *
 * So that no waiter starves, a lock can be reserved when it is released. A newcomer must not take a reserved lock, nor
 * a waiter that was called beside another (SLOT_BESIDE); only a waiter that was called itself (SLOT_CALLED) may. That
 * may be an event loop that does not run. So a waiter that joins the line meanwhile guards the reservation: it looks at
 * the word after a while (`patience_ns`), without leaving the line. If the reservation is still the same, it declines
 * in place of the waiter that does not come: the lock is released once more, and the head of the line is called.
 *
 * It does not matter which called waiter takes a reserved lock. A waiter that was called earlier and comes late may
 * take what was reserved for another, which then goes back to the head of the line.
 *
 * FIRST COME, FIRST SERVED
 *
 * A fair lock is always reserved for the head of the line. A loop that does not come loses its turn after a second.
 */
#ifndef VIGIL_LOCK_H
#define VIGIL_LOCK_H

#include <stddef.h>

#include "agent/agent.h"
#include "base/deadline.h"
#include "base/tuning.h"
#include "probe.h"
#include "tsan.h"
#include "vigil/request.h"

/* Privilege of the caller, in increasing order. */
enum lock_privilege {
    NEWCOMER,
    BESIDE, /* called along with a waiter before it */
    CALLED, /* may take what is reserved */
};

struct lock_kind {
    enum slot_kind slot; /* kind of the slots in its line */
    /*
     * Take the lock, if that privilege permits it: VIGIL_OK, or VIGIL_OWNER_DIED. If not: VIGIL_PENDING, and `seen` is
     * the word. While the word is `seen` it is right to wait, and the thread that changes it will call waiters in line.
     * Or an error.
     */
    int (*take)(uint32_t *word, uint32_t argument, enum lock_privilege privilege, uint32_t *seen);
    /* Whether it is reserved: a waiter that has seen that looks again after a while. If the word is still the same, the
     * waiter must decline in place of the waiter that was called. */
    bool (*reserved)(uint32_t seen);
    /* How long a waiter waits before it looks, or PRIM_NEVER. Null: PATIENCE_NS if it is reserved, else PRIM_NEVER. */
    uint64_t (*patience_ns)(uint32_t seen);
    /* A waiter in line, having seen that, has waited for patience_ns, and there is no reservation to decline. */
    void (*waited)(uint32_t *word, uint32_t seen);
    /* The called waiter no longer wants it, or does not come: if it is reserved, go on to the next waiter. */
    void (*decline)(uint32_t *word);
    /* On the agent's thread: the request has the lock, and belongs to the caller again. */
    void (*granted)(vigil_request *request, int status);
    /* The same, but it will not get the lock. */
    void (*given_up)(vigil_request *request);
    /* A waiter has joined the line, having seen that, or has left it: others may have to be called. */
    void (*joined)(uint32_t *word, uint32_t seen);
    void (*left)(uint32_t *word);
    /* Whether the holder may release it by a store: WF in lot/lot.h. Not in a segment. */
    bool (*stored)(uint32_t seen);
    /* Whether the word says that turns are strictly in order. */
    bool (*strict)(uint32_t seen);
    /* While it is held, spin for as long as a short critical section takes: for the request behind one of this kind,
     * which must have released the lock when `granted` returns. Else the holder may be the loop itself. */
    void (*spin)(uint32_t *word);
    /* For lock_slowly and request_start_again. Take it at once, or after spinning for a moment: VIGIL_OK or
     * VIGIL_OWNER_DIED; VIGIL_TIMED_OUT; or an error. */
    int (*try_once)(uint32_t *word, uint32_t argument);
    int (*spin_to_take)(uint32_t *word, uint32_t argument);
    /* Before the caller is told that it cannot be had: true if it may, after all. */
    bool (*recovered)(uint32_t *word);
    /* These may be null: given_up, joined, left, stored, strict, spin, patience_ns, waited; granted, if no request uses
     * this kind; the last three, if it is used by lock_block and request_start alone. */
};

/* Called by a thread that takes a lock, or has just taken it. */
static inline int lock_taken(uint32_t *word) {
    tsan_acquire(word);
    return VIGIL_OK;
}

static inline bool lock_is_ours(int status) {
    return status == VIGIL_OK || status == VIGIL_OWNER_DIED;
}

/* Join the line, in order, if the word is as the waiter has seen it. */
static inline bool lock_join(const struct lock_kind *kind, struct lot *lot, uint32_t slot, const uint32_t *word,
                             uint32_t seen, bool again) {
    bool stored = kind->stored && kind->stored(seen);
    return lot_join_in_order(lot, slot, &(struct word){word, seen, false}, stored, again);
}

static inline int lock_take(const struct lock_kind *kind, uint32_t *word, uint32_t argument,
                            enum lock_privilege privilege, uint32_t *seen) {
    int status = kind->take(word, argument, privilege, seen);
    if (lock_is_ours(status)) lock_taken(word);
    return status;
}

/*
 * Under the lock of the line: whether to reserve the lock for the head of the line now. Not too often: while a lock is
 * reserved no thread holds it, and in a long line every release would hand it to another thread.
 */
bool lock_may_reserve(const struct slot *head);

/* Whether the head of the line has waited for PATIENCE_NS. */
bool lock_has_waited(const struct slot *head);

/* Whether the thread itself has ended the wait. */
static inline bool lock_gave_up(int status) {
    return status == VIGIL_TIMED_OUT || status == VIGIL_INTERRUPTED;
}

/* Whether the lock may be available after all, if a process has died. */
static inline bool lock_is_refused(int status) {
    return status == VIGIL_TIMED_OUT || status == VIGIL_ELIMIT;
}

/*
 * Take the lock, or wait for it: try once; again if a process has died; spin; block. VIGIL_EMAYNOTBLOCK, or what
 * lock_block returns.
 */
int lock_slowly(const struct lock_kind *kind, uint32_t *word, uint32_t argument, int64_t timeout_ns);

typedef bool lock_spin_test(uint32_t seen);

/* For kind->spin_to_take: try for up to that many pauses, as long as `may_pay` is true of the word. */
static inline int lock_spin_to_take(const struct lock_kind *kind, uint32_t *word, uint32_t argument, unsigned spins,
                                    lock_spin_test *may_pay) {
    int status = VIGIL_TIMED_OUT;
    for (unsigned spun = 0; spun < spins && may_pay(prim_load_relaxed(word)); spun += spin_apart()) {
        status = kind->try_once(word, argument);
        if (status != VIGIL_TIMED_OUT) break;
    }
    return status;
}

/* Block until it is ours: VIGIL_OK, VIGIL_OWNER_DIED, VIGIL_TIMED_OUT, VIGIL_INTERRUPTED, VIGIL_CANCELLED,
 * VIGIL_ENOMEM, VIGIL_ELIMIT. */
int lock_block(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns);

/* The same for a caller that has a slot, not in line, and a privilege. Does not release the slot. */
int lock_block_in(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns,
                  struct lot *lot, uint32_t slot, enum lock_privilege privilege);

/* As kind->granted: only call the callback. */
void lock_granted(vigil_request *request, int status);

/* In line: wait until called, or until the deadline or an interruption. */
int lock_wait(const struct lock_kind *kind, struct lot *lot, uint32_t slot, uint32_t *word, uint32_t seen,
              uint64_t deadline_ns);

/* The privilege that follows from how a wait in line has ended. False: the wait is over, with that status. */
bool lock_privilege_after(int status, enum lock_privilege *privilege);

/* How long a waiter in line that has seen `seen` in the word sleeps before it looks at the word again; PRIM_NEVER: it
 * need not look. */
uint64_t lock_patience_ns(const struct lock_kind *kind, uint32_t seen);

/* That time is over. If the word is still reserved, and still `seen`: decline it, for a called waiter that does not
 * come. If not: kind->waited. Returns the word's value now. */
uint32_t lock_recheck(const struct lock_kind *kind, uint32_t *word, uint32_t seen);

/*
 * Before a caller is refused: true if the lock may be available after all, because its holder has died. `kept`: the
 * bits by which the word is kept for waiters in line, of which none may be left.
 */
bool lock_recovered(const struct lock_kind *kind, uint32_t *word, uint32_t kept);

/* The same in private memory. `kept`: the word is kept for a waiter, perhaps a thread that fork has not copied. */
bool lock_outlived_fork(const struct lock_kind *kind, uint32_t *word, bool kept);

static inline vigil_request *request_of_op(vigil_op *op) {
    return (vigil_request *)(void *)((char *)op - offsetof(vigil_request, op));
}

/*
 * The asynchronous form: VIGIL_OK, VIGIL_OWNER_DIED: it is ours. VIGIL_PENDING: kind->granted, or the callback with
 * another status, will be called. VIGIL_TIMED_OUT; or an error, as from vigil_wait32_async.
 */
int request_start(vigil_agent *agent, vigil_request *request, const struct lock_kind *kind, uint32_t *word,
                  uint32_t argument, int64_t timeout_ns, vigil_callback *callback);

/* The same, and once more if it was refused and a process has died. */
int request_start_again(vigil_agent *agent, vigil_request *request, const struct lock_kind *kind, uint32_t *word,
                        uint32_t argument, int64_t timeout_ns, vigil_callback *callback);

/* A plain wait by a request, as vigil_wait32_async, already checked. `told` is the op's own callback. */
int request_wait(vigil_agent *agent, vigil_request *request, const struct word *word, uint64_t deadline_ns,
                 vigil_callback *told, enum slot_kind kind);

#endif
