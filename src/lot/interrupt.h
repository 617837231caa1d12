/* SPDX-License-Identifier: MIT */
/*
 * interrupt.h - ending the blocking calls of a thread from other threads.
 *
 * A thread that can be interrupted has a cell: 64 bits in the process's own memory, never unmapped.
 *
 *     bit 0         RAISED: an interruption that no call of the thread has used yet
 *     bits 32-63    generation: odd while a thread has the cell
 *
 *     to begin       CAS generation + 1, not RAISED                         by the thread
 *     I1  to raise   CAS RAISED, the generation being that of the name      by any thread or signal handler
 *     I2             wake the thread, if it sleeps on the cell
 *     to use         CAS not RAISED                                         by the thread
 *     to end         CAS generation + 1, not RAISED                         by the thread when it ends
 *
 * The thread sleeps on two words at once, its slot's `state` and the lower half of its cell, while the first is
 * ASLEEP and the second is not RAISED. The kernel compares both in the step that puts the thread to sleep, so an
 * interruption between the last load and the sleep is not missed. (Where the kernel can sleep on one word only, the
 * thread looks again every PRIM_SLICE_NS: prim_park_any.)
 *
 * A thread that heeds signals, as those of programs on pthread/ do in sem_wait, is also interrupted by a signal
 * handler that has run while it slept. The caller clears `signalled` before the call. Afterwards `signalled` says
 * whether a handler has run, also if the call has ended for another reason.
 *
 * An interruption does not decide an outcome. It makes the thread do what it does at its deadline: leave the line, if
 * it still is in it (lot_leave). Only then is the interruption used. So it cannot lose anything that the thread was
 * given.
 */
#ifndef VIGIL_SRC_INTERRUPT_H
#define VIGIL_SRC_INTERRUPT_H

#include "prim.h"

/* The second word on which this thread sleeps, zero while not RAISED; null: it cannot be interrupted now. */
uint32_t *interrupt_word(void);

/* Whether there is an interruption for this thread that is not held back. */
bool interrupt_raised(void);

/* The status when the thread has left the line by itself: VIGIL_INTERRUPTED, and the interruption is used; or
 * VIGIL_TIMED_OUT. */
int interrupt_or_timeout(void);

/* Between these two calls, which nest, the thread is not interrupted. */
void interrupt_hold_back(void);
void interrupt_allow(void);

/* The thread ends. */
void interrupt_thread_ends(struct prim_thread *self);
/* In the child of a fork. */
void interrupt_in_child(void);

#endif
