/* SPDX-License-Identifier: MIT */
/*
 * critical.h - critical sections, and what a signal handler that interrupts one leaves to be done.
 *
 * vigil_notify and vigil_sem_release may be called in a signal handler. The thread that the handler interrupts may hold
 * the lock that they need, or another one that comes after it. So each thread counts how many critical sections it is
 * in (`depth`, the low bits of prim_thread.may_not_block). A handler runs on the interrupted thread and sees that
 * count:
 *
 *     depth == 0    the thread holds no lock that the handler could want: the handler does what any caller does
 *     depth != 0    the handler takes no lock. It writes down what is to be done, in the thread's list of deferrals, and
 *                   the thread does that as soon as it is out of its critical section
 *
 * Which locks are counted: those of buckets, and the gate of recovery/guard.c, which is taken inside of a bucket. They
 * are all that the two functions ever take. A thread that holds one of them waits for no lock but another one of these;
 * so a handler that interrupts a thread with any other lock (the lot's gate, the keeper's, that of memory/segment.c)
 * may wait for a bucket: its holder does not wait for that thread.
 *
 * NOTHING IS LOST
 *
 *     thread                                      handler, at any instruction of the thread's
 *     C1  depth + 1                               H1  load depth; zero: go on as any caller
 *     C2  take the lock, use it, unlock it        H2  else put the deferral into the list, by a CAS
 *     C3  depth - 1
 *     C4  load the list; if there is any: take all of it, C1, carry it out, C3, and C4 again
 *
 * The handler runs from H1 to H2 while the thread stands still. If H1 sees a depth then the thread has not done C3, so
 * C4 is yet to come and finds the deferral. If it sees zero the thread is before C1 or after C3, and holds nothing.
 * That needs C1 before the lock is tried and C3 after it has been unlocked, in the order in which this thread does
 * them: for that the compiler must not reorder, and the processor does not matter (prim_own_load and so on).
 *
 * A handler may be interrupted by another one, which is out of it again before it goes on. So a count that is read and
 * then stored is right: the other one has restored it. The list is not restored, hence the CAS. Nothing is taken
 * out of the list while a handler looks at it: the thread at C4 has depth zero, and so has no handler at H2 above it.
 *
 * Deferrals of the same thing for the same address are one: their counts are added up. They come from a pool of the
 * process's. When that is used up the handler's call is refused (VIGIL_ELIMIT), and nothing has happened.
 */
#ifndef VIGIL_CRITICAL_H
#define VIGIL_CRITICAL_H

#include "prim.h"

#define CRITICAL_DEPTH 0xffffu /* the bits of it in prim_thread.may_not_block */

/* What is to be done. The address may be that of memory which has been freed meanwhile, unless a waiter is in line there. */
typedef void critical_work(const volatile void *address, int64_t count);

/* In a critical section: VIGIL_OK, or VIGIL_ELIMIT. */
int critical_defer(critical_work *work, const volatile void *address, int64_t count);

/* C4: there is something in the list. */
void critical_settle(struct prim_thread *self);

/* Having entered a critical section and holding no lock yet, for which the wait may be long: do what is in the list. */
void critical_settle_meanwhile(void);

/* In the child of a fork: the other threads, and their lists, do not exist here. */
void critical_in_child(struct prim_thread *self);

/* Whether this is a signal handler that has interrupted a critical section. */
static inline bool critical_interrupted(void) {
    return prim_own_load(&prim_self()->may_not_block) & CRITICAL_DEPTH;
}

/* C1 */
static inline void critical_enter(void) {
    struct prim_thread *self = prim_self();
    uint32_t entered = prim_own_load(&self->may_not_block) + 1;
    prim_own_store(&self->may_not_block, entered);
}

/* C3 and C4 */
static inline void critical_leave(void) {
    struct prim_thread *self = prim_self();
    uint32_t left = prim_own_load(&self->may_not_block) - 1;
    bool early = BUG(deferred_missed) && prim_own_load(&self->deferred);
    prim_own_store(&self->may_not_block, left);
    if (left & CRITICAL_DEPTH) return;
    if (BUG(deferred_missed) ? early : prim_own_load(&self->deferred) != 0) critical_settle(self);
}

#endif
