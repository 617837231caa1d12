/* SPDX-License-Identifier: MIT */
/*
 * vigil/once.h - something that is to be done once, by whoever needs it first.
 *
 *     static vigil_once once;                                     four bytes; all zero is new
 *
 *     static int open_it(void *argument) { ... return VIGIL_OK; }
 *
 *     a thread         vigil_once_call(&once, open_it, argument);
 *     an event loop    vigil_once_call_async(agent, &request, &once, open_it, argument, VIGIL_FOREVER, is_open);
 *
 * The first caller calls the function; those who come meanwhile wait, threads and event loops alike, until it has
 * returned. If it has answered VIGIL_OK it is done, for ever: everybody gets VIGIL_OK, from then on without delay, and
 * sees all that the function did.
 *
 * If it answers anything else it has failed. Its caller gets that number (make it a negative one: others have a meaning
 * here already), and the once is new again. Those who wait go on: one of them calls its own function, and the others
 * wait for that. It may be an event loop, in its dispatch, but nobody has to wait for an event loop to come.
 *
 * The function may block, if its thread may, and use the library as it likes; it may not call the same once, for which
 * it would wait forever, and it has to return.
 *
 * In the child of a fork, a function that another thread was calling has not been called: the once is new there,
 * whatever the function has done so far. If the function itself forks, it returns in both, and is done in both.
 *
 * In a segment (segment.h) callers are of any of its processes, each with a function of its own. If the process that is
 * calling the function is killed, or ends, then that counts as a failure: whatever the function has done so far is
 * there.
 *
 * The memory may be freed when every call has come back: has returned, or its callback has begun.
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
    uint32_t word; /* 0 new, 1 the function is running, 2 the same and others wait (and above bit 3: in segments, in which
                    * process; elsewhere, after how many forks), 3 done */
} vigil_once;

#define VIGIL_ONCE_INIT {0u}

typedef int vigil_once_function(void *argument);

/*
 * vigil_once_call - VIGIL_OK when it is done. Otherwise what function(argument) has answered, if it was called here.
 *
 * The timed forms do not wait for others longer than `timeout_ns`, or until vigil_now_ns() reaches `deadline_ns`
 * (VIGIL_TIMED_OUT; zero and less, or a deadline that has passed: not at all). The function itself may take as long as
 * it likes. VIGIL_CANCELLED if the memory is forgotten meanwhile; VIGIL_EMAYNOTBLOCK where it would have to wait on a
 * thread that may not block; VIGIL_ENULL, VIGIL_EMISALIGNED; VIGIL_ENOMEM and VIGIL_ELIMIT as in vigil_wait32.
 *
 * vigil_once_is_done - whether it is; if so, what the function did is seen.
 *
 * If it is done they are inline. Other languages, and who defines VIGIL_NO_INLINE, find them in the library too.
 */
VIGIL_API int vigil_once_call_slowly(vigil_once *once, vigil_once_function *function, void *argument,
                                     int64_t timeout_ns);

/*
 * vigil_once_call_async - the same without waiting, on the agent's thread.
 *
 * If nobody has begun, the function is called here and now, and its answer is the answer: the callback is never called.
 * VIGIL_OK, if it is done. VIGIL_PENDING, if somebody is at it: callback(&request->op, status) is called once, from the
 * agent's dispatch, with VIGIL_OK; with what the function answered, if others failed and it was called here; with
 * VIGIL_TIMED_OUT or VIGIL_CANCELLED. vigil_cancel answers VIGIL_ETOOLATE between the others' end, or a vigil_forget,
 * and the callback. Errors as of vigil_wait32_async.
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
    return vigil_once_call_slowly(once, function, argument, timeout_ns);
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
