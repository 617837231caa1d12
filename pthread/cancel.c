/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel, and pthread_join. Our waits are not glibc's, so glibc cannot end them: the canceller does. It ends all waits at that
 * condition or semaphore; a thread that is not cancelled waits on, or returns from a condition for no reason, as it may.
 */
#include "preload.h"

#define TRIES 50 /* of a millisecond */

static bool find(pthread_t thread, struct wait *wait, uint32_t *index) {
    bool more = true;
    for (*index = 0; more; ++*index) {
        if (!wait_copy(*index, wait, &more) || !pthread_equal(wait->handle, thread)) continue;
        if (wait->kind == WAIT_COND || wait->kind == WAIT_SEM) return true;
    }
    return false;
}

static int64_t count_at(const void *lock) {
    struct wait wait;
    int64_t count = 0;
    bool more = true;
    for (uint32_t index = 0; more; index++) count += wait_copy(index, &wait, &more) && wait.lock == lock;
    return count;
}

/* The seam for a call that ends the wait of one thread. Returns how many waits it has ended. */
static int64_t interrupt(const struct wait *wait) {
    if (wait->kind == WAIT_COND) return vigil_cond_broadcast((vigil_cond *)(uintptr_t)wait->lock);
    return vigil_forget(wait->lock, sizeof(uint32_t));
}

/*
 * The thread may be on its way into the line: so until as many were there as have an entry, or until that wait, of which
 * this is the turn, is over. Not for long: if it is on its way out it will find that it is cancelled, and what it is
 * waiting for then may be a mutex of ours.
 */
static void interrupt_until_seen(pthread_t thread) {
    struct wait wait, now;
    uint32_t index;
    bool more;
    if (!find(thread, &wait, &index)) return;
    for (int tries = 0; tries < TRIES; tries++) {
        int64_t count = count_at(wait.lock);
        if (interrupt(&wait) >= count) return;
        deadline_pause();
        if (!wait_copy(index, &now, &more) || now.turn != wait.turn) return;
    }
}

PRELOAD_API int pthread_cancel(pthread_t thread) {
    int error = REAL(pthread_cancel)(thread);
    if (!error && !pthread_equal(thread, pthread_self())) interrupt_until_seen(thread);
    return error;
}

/* As before, but seen to wait: a thread that joins one which waits for it is a deadlock, too. A cancellation point. */
PRELOAD_API int pthread_join(pthread_t thread, void **result) {
    __attribute__((cleanup(wait_end))) struct wait_place place;
    wait_begin(&place, WAIT_JOIN, (const void *)(uintptr_t)thread, CALLER);
    place.counts = false;
    return REAL(pthread_join)(thread, result);
}
