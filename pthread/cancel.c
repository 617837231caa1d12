/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel, and pthread_join. Our waits are not glibc's, so glibc cannot end them: the canceller does, by
 * vigil_interrupt, and the thread finds that it is cancelled.
 *
 *     thread                                       canceller
 *     T1  enter the wait into the table            C1  the real pthread_cancel
 *     T2  pthread_testcancel                       C2  look for waits of the thread at a condition or semaphore
 *     T3  wait                                     C3  interrupt it
 *
 * There is a seq_cst fence at the end of T1 (T2 reads with no order at all), and one at the beginning of C2: if C2 does
 * not find the wait then T2 comes after C1. An interruption that comes too late for the wait ends another one of the
 * thread's, or is ignored: a condition may return for no reason, and all others wait again.
 *
 * A thread that finds no room in the table, or has no name to be interrupted by, cannot be found: it waits in slices
 * (wait_slice), and tests between them. At a condition, where a signal may come between two slices, the end of a slice
 * is a return for no reason.
 *
 * A thread of type PTHREAD_CANCEL_ASYNCHRONOUS is of the other type during these waits: glibc would end it by a signal,
 * and it would stay in line.
 */
#include "preload.h"

static void interrupt_waits(pthread_t thread) {
    struct wait wait;
    bool more = true;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t index = 0; more; index++) {
        if (!wait_copy(index, &wait, &more) || wait.handle != (uintptr_t)thread) continue;
        if (wait.name) vigil_interrupt(wait.name);
    }
}

int cancel_defer(void) {
    int type = PTHREAD_CANCEL_DEFERRED;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    return type;
}

void cancel_as_before(int type) {
    if (type != PTHREAD_CANCEL_DEFERRED) pthread_setcanceltype(type, NULL); /* and be cancelled, perhaps */
}

PRELOAD_API int pthread_cancel(pthread_t thread) {
    int error = REAL(pthread_cancel)(thread);
    if (!error && !pthread_equal(thread, pthread_self())) interrupt_waits(thread);
    return error;
}

/* As before, but seen to wait: a thread that joins one which waits for it is a deadlock, too. A cancellation point. */
PRELOAD_API int pthread_join(pthread_t thread, void **result) {
    __attribute__((cleanup(wait_end))) struct wait_scope scope;
    wait_begin(&scope, WAIT_JOIN, (const void *)(uintptr_t)thread, CALLER);
    scope.counts = false;
    int error = REAL(pthread_join)(thread, result);
    scope.got = !error;
    return error;
}
