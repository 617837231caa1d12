/* SPDX-License-Identifier: MIT */
/*
 * vigil/request.h - a pending operation of an event loop on a lock.
 *
 * The asynchronous forms of the locks (mutex.h, cond.h, sem.h, rwlock.h, barrier.h, once.h) take a vigil_request. It
 * contains a vigil_op, and everything that wait.h says of operations is true of it: the caller owns it, must zero it
 * before its first use, and must not move or free it while it is pending. `request.op` can be used like any other
 * operation:
 *
 *     request.op.data = me;                                    the caller's
 *     vigil_mutex_lock_async(agent, &request, &mutex, VIGIL_FOREVER, granted);
 *     vigil_unref(&request.op);                                it need not keep vigil_agent_run going
 *     vigil_cancel(&request.op);                               the callback will not be called
 *
 * The callback gets the op; `(vigil_request *)op` is the request. If a request is cancelled or times out at the
 * moment at which it would have been granted, it does not hold the lock, and the lock is not lost: it goes to the
 * next waiter.
 *
 * A process with an agent that has waited for a lock has one thread of the library, its keeper, until all such agents
 * are destroyed. The keeper calls the next waiter if an event loop has been called and does not run. If that thread
 * cannot be started, a request that would have to wait is refused with VIGIL_ELIMIT.
 *
 * The memory of a lock may be freed when every call that waits for it has returned and every request for it has
 * ended. The call that released the lock to the thread that frees it need not have returned.
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
