/* SPDX-License-Identifier: MIT */
/*
 * vigil/once.h - something that must be done once, by the caller that needs it first.
 *
 *     static vigil_once once;                                     four bytes; all zero is new
 *
 *     static int open_it(void *argument) { ... return VIGIL_OK; }
 *
 *     a thread         vigil_once_call(&once, open_it, argument);
 *     an event loop    vigil_once_call_async(agent, &request, &once, open_it, argument, VIGIL_FOREVER, is_open);
 *
 * The first caller calls the function. Callers that come meanwhile, threads and event loops alike, wait until it has
 * returned. If it returns VIGIL_OK the once is done, forever: all callers get VIGIL_OK, from then on without delay,
 * and see everything that the function did.
 *
 * If it returns anything else it has failed. Its caller gets that number (make it negative: other numbers have a
 * meaning here already), and the once is new again. The waiters go on: one of them calls its own function, and the
 * others wait for that. It may be an event loop, in its dispatch, but no waiter has to wait for an event loop to run.
 *
 * The function may block, if its thread may, and may use the library. It must not call the same once, which would
 * wait forever, and it must return.
 *
 * In the child of a fork, a function that another thread was calling counts as not called: the once is new
 * there, whatever the function has done so far. If the function itself forks, it returns in both processes, and the
 * once is done in both.
 *
 * In a segment (segment.h) the callers may be in any of its processes, each with a function of its own. If the
 * process that is calling the function ends or is killed, that counts as a failure; what the function has done so far
 * is not undone.
 *
 * The memory may be freed when every call has returned and the callback of every request has begun.
 */
#ifndef VIGIL_ONCE_H
#define VIGIL_ONCE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "request.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_once {
    uint32_t word; /* bits 0 and 1: 0 new, 1 the function is running, 2 it is running and there are waiters, 3 done.
                    * From bit 4 on, while it is running: in a segment, the number of the process that runs it;
                    * elsewhere, how often the process had been forked, to notice a runner that fork has not copied */
} vigil_once;

#define VIGIL_ONCE_INIT {0u}

typedef int vigil_once_function(void *argument);

/*
 * vigil_once_call - VIGIL_OK when it is done. If this call has called function(argument), and that has failed: the
 * number that it returned.
 *
 * The timed forms do not wait for other callers longer than `timeout_ns`, or until vigil_now_ns() reaches
 * `deadline_ns` (VIGIL_TIMED_OUT; with zero or less, or a deadline that has passed, not at all). The function itself
 * may take any time. VIGIL_INTERRUPTED: see thread.h. VIGIL_CANCELLED if the memory is forgotten meanwhile. Errors:
 * VIGIL_EMAYNOTBLOCK if another caller is calling the function and this thread may not block, whatever the timeout;
 * VIGIL_ENULL, VIGIL_EMISALIGNED; VIGIL_ENOMEM, VIGIL_ELIMIT and VIGIL_ECOPIES as in vigil_wait32.
 *
 * vigil_once_is_done - whether it is done; if so, the caller sees what the function did.
 *
 * If it is done these functions are inline. The library exports them as well, for other languages and for code that
 * defines VIGIL_NO_INLINE.
 */
VIGIL_API int vigil__once_call_slowly(vigil_once *once, vigil_once_function *function, void *argument,
                                     int64_t timeout_ns);

/*
 * vigil_once_call_async - the same without waiting. Call it on the thread of the agent.
 *
 * If the once is new, the function is called before this call returns, and what it returns is returned; the callback
 * is never called. VIGIL_OK: it is done. VIGIL_TIMED_OUT: another caller is calling the function, and the timeout is
 * zero or less. VIGIL_PENDING: another caller is calling it, and callback(&request->op, status) is called once, from
 * the agent's dispatch: with VIGIL_OK; with what the function returned, if the other callers failed and it was called
 * here; or with VIGIL_TIMED_OUT or VIGIL_CANCELLED. vigil_cancel returns VIGIL_ETOOLATE from the end of the other
 * call, or a vigil_forget, until the callback. Errors as in vigil_wait32_async.
 */
VIGIL_API int vigil_once_call_async(vigil_agent *agent, vigil_request *request, vigil_once *once,
                                    vigil_once_function *function, void *argument, int64_t timeout_ns,
                                    vigil_callback *callback);

#ifdef VIGIL_NO_INLINE
VIGIL_API bool vigil_once_is_done(const vigil_once *once);
VIGIL_API int vigil_once_call(vigil_once *once, vigil_once_function *function, void *argument);
VIGIL_API int vigil_once_call_for(vigil_once *once, vigil_once_function *function, void *argument, int64_t timeout_ns);
VIGIL_API int vigil_once_call_until(vigil_once *once, vigil_once_function *function, void *argument,
                                    int64_t deadline_ns);
#else

static inline bool vigil_once_is_done(const vigil_once *once) {
    return once && __atomic_load_n(&once->word, __ATOMIC_ACQUIRE) == 3;
}

static inline int vigil_once_call_for(vigil_once *once, vigil_once_function *function, void *argument,
                                      int64_t timeout_ns) {
    if (vigil_once_is_done(once)) return VIGIL_OK;
    return vigil__once_call_slowly(once, function, argument, timeout_ns);
}

static inline int vigil_once_call_until(vigil_once *once, vigil_once_function *function, void *argument,
                                        int64_t deadline_ns) {
    return vigil_once_call_for(once, function, argument, vigil_until(deadline_ns));
}

static inline int vigil_once_call(vigil_once *once, vigil_once_function *function, void *argument) {
    return vigil_once_call_for(once, function, argument, VIGIL_FOREVER);
}
#endif

#ifdef __cplusplus
}
#endif
#endif
