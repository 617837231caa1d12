/* SPDX-License-Identifier: MIT */
/*
 * A condition that stays glibc's, with a mutex of ours. glibc cannot release that, so a waiter waits with a mutex of
 * glibc's instead, the bridge:
 *
 *     waiter                                        thread that signals
 *     W1  count itself as on the bridge             S1  take our mutex, change what the waiter waits for; release it
 *     W2  lock the bridge                               now or later
 *     W3  release our mutex                         S2  no waiter is on the bridge: signal
 *     W4  wait at the condition, with the bridge    S3  otherwise lock the bridge, signal, and unlock the bridge
 *     W5  unlock the bridge, take our mutex
 *
 * If S1 comes after W3 then S2 comes after W1, and finds the waiter counted. The waiter keeps the bridge from W2 until
 * glibc has it among the condition's waiters: so S3 signals after that. A thread that wants the bridge may hold our
 * mutex, but the waiter does not hold the bridge when it takes that.
 *
 * A mutex of ours is for one process, and so are the threads that wait and signal with it: one bridge for all such
 * conditions of the process is enough.
 */
#include "preload.h"

static pthread_mutex_t bridge = PTHREAD_MUTEX_INITIALIZER; /* glibc's: for its own functions only */
static uint32_t on_bridge;

int bridge_signal(pthread_cond_t *cond, int (*signal)(pthread_cond_t *)) {
    if (!__atomic_load_n(&on_bridge, __ATOMIC_RELAXED)) return signal(cond);
    REAL(pthread_mutex_lock)(&bridge);
    int result = signal(cond);
    REAL(pthread_mutex_unlock)(&bridge);
    return result;
}

struct crossing {
    pthread_mutex_t *mutex;
    struct mutex_state state;
    const void *site;
};

/* Zero, or EPERM: as mutex_release_state. */
static int go(struct crossing *crossing) {
    int result = mutex_release_state(crossing->mutex, &crossing->state);
    if (result) return result;
    __atomic_fetch_add(&on_bridge, 1, __ATOMIC_RELAXED);
    REAL(pthread_mutex_lock)(&bridge);
    mutex_leave(crossing->mutex, crossing->site);
    return 0;
}

static void come_back(const struct crossing *crossing) {
    REAL(pthread_mutex_unlock)(&bridge);
    __atomic_fetch_sub(&on_bridge, 1, __ATOMIC_RELAXED);
    mutex_retake(crossing->mutex, crossing->site);
    mutex_restore_state(crossing->mutex, &crossing->state);
}

static int wait_with_bridge(pthread_cond_t *cond, const clockid_t *clock, const struct timespec *at) {
    if (!at) return REAL(pthread_cond_wait)(cond, &bridge);
    return clock ? REAL(pthread_cond_clockwait)(cond, &bridge, *clock, at)
                 : REAL(pthread_cond_timedwait)(cond, &bridge, at);
}

int bridge_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const clockid_t *clock, const struct timespec *at,
                const void *site) {
    struct crossing begun = {.mutex = mutex, .site = site};
    int result = go(&begun);
    if (result) return result;
    __attribute__((cleanup(come_back))) struct crossing crossing = begun; /* also when the thread is cancelled */
    (void)crossing;
    return wait_with_bridge(cond, clock, at);
}

/* Another thread may have held it. */
void bridge_in_child(void) {
    bridge = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    on_bridge = 0;
}
