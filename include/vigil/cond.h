/* SPDX-License-Identifier: MIT */
/*
 * vigil/cond.h - a condition: wait, with a mutex released meanwhile, until somebody says that something has changed.
 *
 *     static vigil_mutex mutex;
 *     static vigil_cond not_empty;                                four bytes; all zero is ready for use
 *
 *     a thread         vigil_mutex_lock(&mutex);
 *                      while (!count) vigil_cond_wait(&not_empty, &mutex);
 *                      count--;
 *                      vigil_mutex_unlock(&mutex);
 *
 *     an event loop    vigil_cond_wait_async(agent, &request, &not_empty, &mutex, VIGIL_FOREVER, look_again);
 *
 *     somebody else    vigil_mutex_lock(&mutex);
 *                      count++;
 *                      vigil_cond_signal(&not_empty);
 *                      vigil_mutex_unlock(&mutex);
 *
 * Threads and event loops wait in one line, first come, first served. A wait ends by a signal or by its deadline, never
 * spuriously; but somebody else may have been at the mutex first, so look at your condition again.
 *
 * Who signals need not hold the mutex. A thread that is signalled while the mutex is locked is not woken: it is moved
 * to the mutex's line, and sleeps on until its turn comes there. So a broadcast wakes no herd.
 */
#ifndef VIGIL_COND_H
#define VIGIL_COND_H

#include <stdint.h>

#include "mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_cond {
    uint32_t word; /* always zero: its address is what counts */
} vigil_cond;

#define VIGIL_COND_INIT {0u}

/*
 * vigil_cond_wait - release the mutex, wait for a signal, and take the mutex again: VIGIL_OK.
 *
 * Joining the condition's line and releasing the mutex are one step for whoever takes the mutex next and signals. The
 * timed forms return VIGIL_TIMED_OUT when `timeout_ns` has passed, or vigil_now_ns() has reached `deadline_ns`, without
 * a signal, also with the mutex held, whenever that is to be had: the timeout is for the signal alone. With a timeout
 * of zero or less, or a deadline that has passed, they do not wait for a signal, but release the mutex and take it
 * again as always: if there are waiters in the mutex's line, those get it first. So the usual loop, `while (!ready)
 * vigil_cond_wait_until(...)`, lets others in also when its deadline has passed.
 *
 * VIGIL_OWNER_DIED: the same as VIGIL_OK or VIGIL_TIMED_OUT, and the mutex's previous holder, a process or the thread
 * of a robust mutex, has ended while it held it (mutex.h): the mutex is held; repair what it guards, then call
 * vigil_mutex_consistent. This masks whether the wait was signalled or timed out: look at your condition, as after
 * VIGIL_OK.
 *
 * VIGIL_CANCELLED: the memory of the condition or of the mutex has been forgotten; the mutex is not held. The following
 * change nothing, and the mutex stays held: VIGIL_ENULL, VIGIL_EMISALIGNED, VIGIL_EINVAL (the condition is not zero),
 * VIGIL_EMAYNOTBLOCK, VIGIL_ENOTHELD (nobody holds the mutex, or it is robust and another thread holds it),
 * VIGIL_ENOMEM, VIGIL_ELIMIT.
 */
VIGIL_API int vigil_cond_wait(vigil_cond *cond, vigil_mutex *mutex);
VIGIL_API int vigil_cond_wait_for(vigil_cond *cond, vigil_mutex *mutex, int64_t timeout_ns);
VIGIL_API int vigil_cond_wait_until(vigil_cond *cond, vigil_mutex *mutex, int64_t deadline_ns);

/*
 * vigil_cond_wait_async - the same without blocking, on the agent's thread, by whoever holds the mutex.
 *
 * VIGIL_PENDING: the mutex has been released, and callback(&request->op, status) is called once, from the agent's
 * dispatch: VIGIL_OK, VIGIL_TIMED_OUT or VIGIL_OWNER_DIED with the mutex held, to be released by vigil_mutex_unlock;
 * VIGIL_CANCELLED, or VIGIL_ELIMIT when every place to wait for the mutex was taken, without it. That goes for a
 * timeout of zero or less as well. Any other answer: nothing has happened, the mutex is still held.
 *
 * vigil_cancel(&request->op) may answer VIGIL_ETOOLATE between the signal and the callback. A signal that came to a
 * request which is cancelled after that, or whose agent ends, goes on to the next in line.
 */
VIGIL_API int vigil_cond_wait_async(vigil_agent *agent, vigil_request *request, vigil_cond *cond, vigil_mutex *mutex,
                                    int64_t timeout_ns, vigil_callback *callback);

/*
 * vigil_cond_signal, vigil_cond_broadcast - the first in line, or all of them, may go on: how many there were, or
 * VIGIL_ENULL, VIGIL_EMISALIGNED. With nobody in line it costs a fence and a load. In a segment, a signal that a
 * process has been given and not used when it is killed goes to the next in line. They do not touch the condition once
 * a waiter can go on. So a waiter that has returned may free it, although the signal has not; all that waited must have
 * come back.
 */
VIGIL_API int64_t vigil_cond_signal(vigil_cond *cond);
VIGIL_API int64_t vigil_cond_broadcast(vigil_cond *cond);

#ifdef __cplusplus
}
#endif

#ifdef VIGIL_CHECK /* see check.h */
#define vigil_cond_wait(cond, mutex) vigil_check_cond_wait((cond), (mutex), VIGIL_FOREVER, VIGIL_HERE)
#define vigil_cond_wait_for(cond, mutex, timeout_ns) vigil_check_cond_wait((cond), (mutex), (timeout_ns), VIGIL_HERE)
#define vigil_cond_wait_until(cond, mutex, deadline_ns)                                                                \
    vigil_check_cond_wait((cond), (mutex), vigil_until(deadline_ns), VIGIL_HERE)
#define vigil_cond_wait_async(agent, request, cond, mutex, timeout_ns, callback)                                       \
    vigil_check_cond_wait_async((agent), (request), (cond), (mutex), (timeout_ns), (callback), VIGIL_HERE)
#endif
#endif
