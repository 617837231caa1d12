/* SPDX-License-Identifier: MIT */
/*
 * vigil/cond.h - a condition: release a mutex and wait, in one step, until another thread signals a change.
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
 *     a signaller      vigil_mutex_lock(&mutex);
 *                      count++;
 *                      vigil_cond_signal(&not_empty);
 *                      vigil_mutex_unlock(&mutex);
 *
 * Threads and event loops wait in one line, first come, first served. A wait ends by a signal or by its deadline,
 * never spuriously. But another thread may have taken the mutex in between, so check the condition again.
 *
 * The signaller need not hold the mutex. A thread that is signalled while the mutex is locked is not woken: it is
 * moved to the line of the mutex, and sleeps until its turn comes there. So a broadcast does not wake all waiters at
 * once.
 */
#ifndef VIGIL_COND_H
#define VIGIL_COND_H

#include <stdint.h>

#include "mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_cond {
    uint32_t word; /* always zero: only its address matters */
} vigil_cond;

#define VIGIL_COND_INIT {0u}

/*
 * vigil_cond_wait - release the mutex, wait for a signal, and take the mutex again: VIGIL_OK.
 *
 * Joining the line of the condition and releasing the mutex are one step for a thread that takes the mutex next and
 * signals. The timed forms return VIGIL_TIMED_OUT if no signal has come when `timeout_ns` has passed, or when
 * vigil_now_ns() has reached `deadline_ns`. Then too the mutex is held, however long it takes to get it: the timeout
 * is for the signal alone. With a timeout of zero or less, or a deadline that has passed, they do not wait for a
 * signal, but release the mutex and take it again as always: waiters in the line of the mutex get it first. So the
 * usual loop, `while (!ready) vigil_cond_wait_until(...)`, lets other threads in even when its deadline has passed.
 * VIGIL_INTERRUPTED (thread.h) is like VIGIL_TIMED_OUT: the mutex is held.
 *
 * VIGIL_OWNER_DIED: the same as VIGIL_OK, VIGIL_TIMED_OUT or VIGIL_INTERRUPTED, and the previous holder of the mutex,
 * a process or the thread of a robust mutex, ended while it held it (mutex.h). The mutex is held: repair the data,
 * then call vigil_mutex_consistent. This hides whether the wait was signalled: check the condition, as after
 * VIGIL_OK.
 *
 * VIGIL_CANCELLED: the memory of the condition or of the mutex was forgotten; the mutex is not held.
 *
 * Errors, which change nothing; a mutex that was held stays held: VIGIL_ENULL, VIGIL_EMISALIGNED, VIGIL_EINVAL (the
 * condition is not zero, is the mutex itself, or is not in the same segment as the mutex), VIGIL_EMAYNOTBLOCK,
 * VIGIL_ENOTHELD (the mutex is not held, or it is robust and another thread holds it), VIGIL_ENOMEM, VIGIL_ELIMIT,
 * VIGIL_ECOPIES.
 */
VIGIL_API int vigil_cond_wait(vigil_cond *cond, vigil_mutex *mutex);
VIGIL_API int vigil_cond_wait_for(vigil_cond *cond, vigil_mutex *mutex, int64_t timeout_ns);
VIGIL_API int vigil_cond_wait_until(vigil_cond *cond, vigil_mutex *mutex, int64_t deadline_ns);

/*
 * vigil_cond_wait_async - the same without blocking. Call it on the thread of the agent, with the mutex held.
 *
 * VIGIL_PENDING: the mutex has been released, and callback(&request->op, status) is called once, from the agent's
 * dispatch. With VIGIL_OK, VIGIL_TIMED_OUT or VIGIL_OWNER_DIED the mutex is held, and the callback, or what it
 * starts, must release it by vigil_mutex_unlock. With VIGIL_CANCELLED, or VIGIL_ELIMIT if there were too many waiters
 * to wait for the mutex, it is not. It is the same with a timeout of zero or less. If anything else is returned
 * nothing has happened, and the mutex is still held.
 *
 * Between the signal and the callback vigil_cancel(&request->op) may return VIGIL_ETOOLATE. If a request that has
 * been signalled is cancelled after all, or its agent ends, the signal goes to the next waiter in line.
 */
VIGIL_API int vigil_cond_wait_async(vigil_agent *agent, vigil_request *request, vigil_cond *cond, vigil_mutex *mutex,
                                    int64_t timeout_ns, vigil_callback *callback);

/*
 * vigil_cond_signal, vigil_cond_broadcast - let the first waiter in line, or all of them, go on. They return how many
 * there were, or VIGIL_ENULL, VIGIL_EMISALIGNED. If the line is empty they cost a fence and a load. In a segment, a
 * signal that was given to a process that is killed before it has used it goes to the next waiter in line.
 *
 * They do not touch the condition once a waiter can go on. So a waiter that has returned may free it, even if the
 * signal has not returned yet; all calls that waited for it must have returned.
 */
VIGIL_API int64_t vigil_cond_signal(vigil_cond *cond);
VIGIL_API int64_t vigil_cond_broadcast(vigil_cond *cond);

#ifdef __cplusplus
}
#endif

#ifdef VIGIL_CHECK /* see check.h */
#define vigil_cond_wait(cond, mutex)                 vigil__check_cond_wait((cond), (mutex), VIGIL_FOREVER, VIGIL__HERE)
#define vigil_cond_wait_for(cond, mutex, timeout_ns) vigil__check_cond_wait((cond), (mutex), (timeout_ns), VIGIL__HERE)
#define vigil_cond_wait_until(cond, mutex, deadline_ns)                                                                \
    vigil__check_cond_wait((cond), (mutex), vigil_until(deadline_ns), VIGIL__HERE)
#define vigil_cond_wait_async(agent, request, cond, mutex, timeout_ns, callback)                                       \
    vigil__check_cond_wait_async((agent), (request), (cond), (mutex), (timeout_ns), (callback), VIGIL__HERE)
#endif
#endif
