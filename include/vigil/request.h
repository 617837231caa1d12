/* SPDX-License-Identifier: MIT */
/*
 * vigil/request.h - an operation on a lock that an event loop has under way.
 *
 * The asynchronous forms of the locks (mutex.h, cond.h, sem.h, rwlock.h, barrier.h, once.h) take a vigil_request. It is
 * a vigil_op with more room, and everything that wait.h says of those goes for it: it is yours, zero it before its
 * first use, and while it is pending it must stay where it is. What an op can do, `request.op` can:
 *
 *     request.op.data = me;                                    yours
 *     vigil_mutex_lock_async(agent, &request, &mutex, VIGIL_FOREVER, granted);
 *     vigil_unref(&request.op);                                it need not keep vigil_agent_run going
 *     vigil_cancel(&request.op);                               the callback will not be called
 *
 * The callback gets the op, `(vigil_request *)op` is the request. A request that is cancelled or times out just when
 * it would have been granted neither loses the lock nor holds it: it goes on to the next in line. An agent that has
 * waited for a lock has a thread of the library's beside it until it is destroyed, one for all agents of the process:
 * it passes by an event loop that has been called and does not run. If that thread cannot be started, a request that
 * would have to wait is refused with VIGIL_ELIMIT.
 *
 * The memory of a lock may be freed when every call that waits for it has returned and every request for it has come
 * back. The call that releases it to the thread that frees it need not have returned.
 */
#ifndef VIGIL_REQUEST_H
#define VIGIL_REQUEST_H

#include <stdint.h>

#include "agent.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_request vigil_request;
struct vigil_request {
    vigil_op op;

    /* The library's. */
    vigil_op place;
    vigil_callback *callback;
    const void *kind;
    void *object, *second;
    uint64_t began_ns;
    struct vigil_request *next, *previous, *next_queue;
    uint32_t argument, seen, status, carrier;
};

#ifdef __cplusplus
}
#endif
#endif
