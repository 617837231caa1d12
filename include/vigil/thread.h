/* SPDX-License-Identifier: MIT */
/*
 * vigil/thread.h - end a blocking call of a thread from another thread.
 *
 *     the thread itself       worker = vigil_thread_self();
 *                             while (vigil_sem_acquire(&jobs, 1) == VIGIL_OK) do_the_next_job();
 *
 *     another thread,         vigil_interrupt(worker);
 *     or a signal handler
 *
 * A thread that has called vigil_thread_self() can be interrupted. An interruption ends one blocking call: the
 * current call of the thread, or else the next call that would block. That call returns VIGIL_INTERRUPTED. For other
 * threads it is as if it had never waited: it has left the line, has consumed no notification, signal, permit or
 * lock, and has not arrived at the barrier. If the call was notified just before the interruption, or was called for
 * a lock that it then gets, it returns that outcome, and the interruption stays for the next call. Several
 * interruptions count as one until they have ended a call.
 *
 * All blocking calls can be interrupted: vigil_wait32 and vigil_wait64, and those of mutexes, conditions, semaphores,
 * read-write locks, barriers and onces, with a timeout or without. So a thread that can be interrupted must check
 * what vigil_mutex_lock returns. A wait for a condition returns VIGIL_INTERRUPTED with the mutex held, as it does
 * after its deadline (or VIGIL_OWNER_DIED, which hides it): taking the mutex again is not interrupted.
 * vigil_agent_run cannot be interrupted: use vigil_agent_wake or vigil_agent_stop (agent.h).
 */
#ifndef VIGIL_THREAD_H
#define VIGIL_THREAD_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Identifies a thread of this process. It is not reused: a thread that starts later has another one. */
typedef uint64_t vigil_thread;

/*
 * vigil_thread_self - the identifier of the calling thread. From the first call on, the thread can be interrupted.
 * Returns zero if there are too many such threads (16,383) or not enough memory.
 */
VIGIL_API vigil_thread vigil_thread_self(void);

/*
 * vigil_interrupt - end the current blocking call of the thread, or its next one. It may be called on any thread and
 * in signal handlers.
 *
 * VIGIL_OK; VIGIL_ENOTFOUND if the thread has ended or never existed. In the child of a fork, only the identifier of
 * the thread that forked stays valid.
 */
VIGIL_API int vigil_interrupt(vigil_thread thread);

#ifdef __cplusplus
}
#endif
#endif
