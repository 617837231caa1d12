/* SPDX-License-Identifier: MIT */
/*
 * vigil/thread.h - end a thread's blocking call from outside.
 *
 *     the thread itself       worker = vigil_thread_self();
 *                             while (vigil_sem_acquire(&jobs) == VIGIL_OK) do_the_next_job();
 *
 *     another thread,         vigil_interrupt(worker);
 *     or a signal handler
 *
 * A thread that has called vigil_thread_self() can be interrupted. An interruption ends one call that blocks: the one
 * in which the thread is, or else the next one that would block. That call returns VIGIL_INTERRUPTED. It has not
 * waited, as far as others are concerned: it has left the line, has taken no notification, no signal, no permit and no
 * lock with it, and has not arrived at the barrier. If the call has been notified, or called for a lock that it then
 * gets, just before the interruption, it returns that, and the interruption stays for the next call. Several
 * interruptions count as one until a call has been ended by them.
 *
 * All calls that block can be interrupted: vigil_wait32 and vigil_wait64, the locks, conditions, semaphores, barriers
 * and onces, with a timeout or without. So a thread that can be interrupted must look at what vigil_mutex_lock returns.
 * A wait for a condition returns VIGIL_INTERRUPTED with the mutex held, as it does after its deadline (or
 * VIGIL_OWNER_DIED, which hides it): taking the mutex again is not interrupted. A thread in vigil_agent_run is not
 * blocked, whatever it looks like: see agent.h for how to wake it up.
 */
#ifndef VIGIL_THREAD_H
#define VIGIL_THREAD_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names a thread of this process, for as long as the process lives: a thread that begins later has another name. */
typedef uint64_t vigil_thread;

/*
 * vigil_thread_self - the calling thread's name. From the first call on the thread can be interrupted. Zero: there are
 * too many such threads (16,383), or there is no memory.
 */
VIGIL_API vigil_thread vigil_thread_self(void);

/*
 * vigil_interrupt - end the thread's blocking call, or its next one. Callable from any thread and from signal handlers.
 *
 * VIGIL_OK; VIGIL_ENOTFOUND: that thread has ended, or there was none. In the child of a fork only the name of the
 * thread that has forked is still one.
 */
VIGIL_API int vigil_interrupt(vigil_thread thread);

#ifdef __cplusplus
}
#endif
#endif
