/* SPDX-License-Identifier: MIT */
/*
 * interrupt.h - threads whose blocking calls can be ended from outside.
 *
 * Such a thread has a record: 64 bits, which lie in the process's own memory and are never unmapped.
 *
 *     bit 0         RAISED: an interruption that no call has used yet
 *     bits 32-63    generation: odd while a thread has the record
 *
 *     to begin       CAS generation + 1, not RAISED                         by the thread
 *     I1  to raise   CAS RAISED, the generation being that of the name      by anyone, also a signal handler
 *     I2             wake the thread, if it sleeps on the record
 *     to use         CAS not RAISED                                         by the thread
 *     to end         store generation + 1, not RAISED                       by the thread when it ends
 *
 * The thread sleeps on two words at once, that of its slot and the lower half of its record, while the first is ASLEEP
 * and the second is not RAISED. The system compares both in the step that falls asleep: so an interruption between the
 * last look and the sleep is not missed.
 *
 * A thread that heeds signals, as those of programs on pthread/ do in sem_wait, is interrupted as well by a signal
 * handler that has run while it slept.
 *
 * An interruption does not decide anything. It makes the thread do what it does at its deadline: leave the line, if it
 * still is in it (lot_leave). Only then is the interruption used. So nothing that the thread was given can be lost by
 * it.
 */
#ifndef VIGIL_SRC_INTERRUPT_H
#define VIGIL_SRC_INTERRUPT_H

#include "prim.h"

/* The word on which this thread sleeps as well, and what it is while there is no interruption; null: none. */
uint32_t *interrupt_word(void);

/* Whether an interruption is there for this thread, and is not held back. */
bool interrupt_raised(void);

/* What the thread returns that has left a line by itself: VIGIL_INTERRUPTED, and the interruption is used; or
 * VIGIL_TIMED_OUT. */
int interrupt_or_timeout(void);

/* From the one to the other nothing is interrupted. */
void interrupt_hold_back(void);
void interrupt_let(void);

/* The thread ends. */
void interrupt_thread_ends(struct prim_thread *self);
/* In the child of a fork. */
void interrupt_in_child(void);

#endif
