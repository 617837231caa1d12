/* SPDX-License-Identifier: MIT */
/*
 * critical.h - critical sections, and the work that a signal handler that interrupts one defers.
 *
 * vigil_notify and vigil_sem_release may be called in a signal handler. The thread that the handler interrupts may
 * hold the lock that they need, or another one that is taken after it. So each thread counts how many critical
 * sections it is in (`depth`, the low bits of prim_thread.may_not_block). A handler runs on the interrupted thread
 * and sees that count:
 *
 *     depth == 0    the thread holds no lock that the handler could want: the handler does what any caller does
 *     depth != 0    the handler takes no lock. It puts the work into the thread's list of deferrals, and the thread
 *                   does it as soon as it has left its critical section
 *
 * These locks are counted: those of buckets, and the gate of recovery/guard.c, which may be taken inside of a bucket.
 * The two functions never take any other lock. A thread that holds one of these waits for no lock but another of
 * these. So a handler that interrupts a thread with any other lock (the lot's gate, the keeper's, that of
 * memory/segment.c) may wait for a bucket: its holder does not wait for that thread.
 *
 * NOTHING IS LOST
 *
 *     thread                                      handler, at any instruction of the thread's
 *     C1  depth + 1                               H1  load depth; zero: go on as any caller
 *     C2  take the lock, use it, unlock it        H2  else put the deferral into the list, by a CAS
 *     C3  depth - 1
 *     C4  load the list; if it is not empty: take all of it, C1, carry it out, C3, and C4 again
 *
 * The handler runs from H1 to H2 while the thread stands still. If H1 sees a depth that is not zero, the thread has
 * not done C3, so C4 is yet to come and finds the deferral. If it sees zero, the thread is before C1 or after C3, and
 * holds none of these locks. That needs C1 before the lock is tried and C3 after it has been unlocked, in program
 * order: the compiler must not reorder them, and the processor does not matter (prim_own_load and so on).
 *
 * A handler may be interrupted by another handler, which returns before the first goes on. So loading `depth` and
 * then storing it is correct: the other handler has restored it. The list is not restored, hence the CAS. Nothing is
 * taken out of the list while a handler reads it: at C4 the thread's depth is zero, so no handler that interrupts it
 * is at H2.
 *
 * Deferrals of the same work for the same address are one: their counts are added up. Deferrals come from a pool of
 * the process. When it is used up, the handler's call is refused (VIGIL_ELIMIT), and nothing has happened.
 */
#ifndef VIGIL_CRITICAL_H
#define VIGIL_CRITICAL_H

#include "prim.h"

#define CRITICAL_DEPTH 0xffffu /* the bits of `depth` in prim_thread.may_not_block */

/* The work. The memory at the address may have been freed meanwhile, unless a waiter is in line there. */
typedef void critical_work(const volatile void *address, int64_t count);

/* H2, in a critical section: returns VIGIL_OK or VIGIL_ELIMIT. */
int critical_defer(critical_work *work, const volatile void *address, int64_t count);

/* C4, when the list is not empty. */
void critical_settle(struct prim_thread *self);

/* In a critical section, still without the lock, which may take long to get: carry out the list, if that is safe. */
void critical_settle_meanwhile(void);

/* In the child of a fork: the other threads, and their lists, do not exist here. */
void critical_in_child(struct prim_thread *self);

/* H1: whether this is a signal handler that has interrupted a critical section. */
static inline bool critical_interrupted(void) {
    return PRIM_SIGNALS && (prim_own_load(&prim_self()->may_not_block) & CRITICAL_DEPTH);
}

/* C1 */
static inline void critical_enter(void) {
    struct prim_thread *self = prim_self();
    if (!PRIM_SIGNALS) return;
    uint32_t entered = prim_own_load(&self->may_not_block) + 1;
    prim_own_store(&self->may_not_block, entered);
}

/* C3 and C4 */
static inline void critical_leave(void) {
    struct prim_thread *self = prim_self();
    if (!PRIM_SIGNALS) return;
    uint32_t left = prim_own_load(&self->may_not_block) - 1;
    bool early = BUG(deferred_missed) && prim_own_load(&self->deferred);
    prim_own_store(&self->may_not_block, left);
    if (left & CRITICAL_DEPTH) return;
    if (BUG(deferred_missed) ? early : prim_own_load(&self->deferred) != 0) critical_settle(self);
}

#endif
