/* SPDX-License-Identifier: MIT */
/*
 * Conditions. In glibc's object (48 bytes), the first word is Vigil's, and stays zero. __wrefs has what init has said.
 *
 * A mutex that stays glibc's may be used with a condition of ours. Vigil cannot release it in one step with joining the
 * line, so the condition has a mutex of its own for that, `inner`: a waiter takes it before it releases glibc's, and
 * gives it back by joining the line. From then on a thread that signals takes it, too, and so finds that waiter in
 * line. For a condition that stays glibc's with a mutex of ours there is bridge.c.
 */
#include "preload.h"

#include "lot/interrupt.h"

#include <errno.h>
#include <string.h>

#include "record.h"

#define SHARED    1u /* glibc's: the object is, too */
#define MONOTONIC 2u /* glibc's */
#define HAS_INNER 4u

struct condition {
    vigil_cond word;
    vigil_mutex inner;
    uint32_t inside; /* how many are in wait_foreign */
    uint32_t unused[6];
    uint32_t flags;
};
_Static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "it must fit");
_Static_assert(offsetof(struct condition, flags) == offsetof(pthread_cond_t, __data.__wrefs), "as glibc has it");

static struct condition *condition_of(pthread_cond_t *cond) {
    return (struct condition *)(void *)cond;
}

static bool cond_is_foreign(pthread_cond_t *cond) {
    return __atomic_load_n(&condition_of(cond)->flags, __ATOMIC_RELAXED) & SHARED;
}

static clockid_t clock_of(pthread_cond_t *cond) {
    return __atomic_load_n(&condition_of(cond)->flags, __ATOMIC_RELAXED) & MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* Signals. */

/* There was no memory for a waiter, and nothing has changed: true, after a while, for the caller to try again. */
static bool must_repeat(int status) {
    return (status == VIGIL_ENOMEM || status == VIGIL_ELIMIT) && deadline_pause();
}

/* An interruption by pthread_cancel is for the wait that follows. */
static void lock_inner(struct condition *condition) {
    int status;
    interrupt_hold_back();
    do status = vigil_mutex_lock(&condition->inner);
    while (must_repeat(status));
    interrupt_allow();
}

static int64_t signal_some(struct condition *condition, int64_t (*signal)(vigil_cond *)) {
    if (!(__atomic_load_n(&condition->flags, __ATOMIC_RELAXED) & HAS_INNER)) return signal(&condition->word);
    lock_inner(condition);
    int64_t signalled = signal(&condition->word);
    vigil_mutex_unlock(&condition->inner);
    return signalled;
}

/* Whether there was a thread to call is known afterwards, when it runs already. */
static void call_some(struct condition *condition, int64_t (*signal)(vigil_cond *)) {
    int64_t at_ns = is_recorded() ? vigil_now_ns() : 0;
    int64_t signalled = signal_some(condition, signal);
    if (at_ns && signalled > 0) record_event(SERVE_CALLS, WAIT_COND, condition, 0, at_ns);
}

PRELOAD_API int pthread_cond_signal(pthread_cond_t *cond) {
    if (cond_is_foreign(cond)) return bridge_signal(cond, REAL(pthread_cond_signal));
    call_some(condition_of(cond), vigil_cond_signal);
    return 0;
}

PRELOAD_API int pthread_cond_broadcast(pthread_cond_t *cond) {
    if (cond_is_foreign(cond)) return bridge_signal(cond, REAL(pthread_cond_broadcast));
    call_some(condition_of(cond), vigil_cond_broadcast);
    return 0;
}

/* Waiting. */

/* EINTR: it returns for no reason, and has consumed no signal. */
static int cond_result_of(int status) {
    switch (status) {
    case VIGIL_OK: return 0;
    case VIGIL_TIMED_OUT: return ETIMEDOUT;
    case VIGIL_INTERRUPTED: return EINTR;
    default: return EINVAL;
    }
}

static int wait_inside(struct condition *condition, int64_t deadline_ns) {
    int status;
    do status = vigil_cond_wait_for(&condition->word, &condition->inner, deadline_timeout_ns(deadline_ns));
    while (must_repeat(status)); /* with `inner` still held */
    return status;
}

/* With glibc's mutex. */
static int wait_foreign(struct condition *condition, pthread_mutex_t *mutex, int64_t deadline_ns) {
    __atomic_fetch_or(&condition->flags, HAS_INNER, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&condition->inside, 1, __ATOMIC_RELAXED);
    lock_inner(condition);
    int result = REAL(pthread_mutex_unlock)(mutex), status = VIGIL_OK;
    if (!result) status = wait_inside(condition, deadline_ns);
    vigil_mutex_unlock(&condition->inner);
    if (__atomic_sub_fetch(&condition->inside, 1, __ATOMIC_RELEASE) == 0) vigil_notify(&condition->inside, VIGIL_ALL);
    if (result) return result;
    result = REAL(pthread_mutex_lock)(mutex);
    return result ? result : cond_result_of(status);
}

static int wait_in_line(struct condition *condition, pthread_mutex_t *mutex, int64_t deadline_ns, const void *site) {
    vigil_mutex *word = mutex_word(mutex);
    int64_t timeout_ns = deadline_timeout_ns(deadline_ns);
    if (!preload.check || !order_enter()) return vigil_cond_wait_for(&condition->word, word, timeout_ns);
    int status = vigil__check_cond_wait(&condition->word, word, timeout_ns, ORDER_FILE, order_site(site));
    order_leave();
    return status;
}

static int wait_ours(struct condition *condition, pthread_mutex_t *mutex, int64_t deadline_ns, const void *site) {
    struct mutex_state state;
    int result = mutex_release_state(mutex, &state), status;
    if (result) return result;
    do status = wait_in_line(condition, mutex, deadline_ns, site);
    while (must_repeat(status)); /* with the mutex still held */
    mutex_restore_state(mutex, &state);
    return cond_result_of(status);
}

/*
 * A cancellation point, with the mutex held. A waiter that has been signalled does not act on a cancellation here: the
 * signal would be lost, and the condition may be gone by now, so it cannot be passed on. The request stays pending.
 */
static int cond_wait_deferred(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns, const void *site) {
    struct condition *condition = condition_of(cond);
    __attribute__((cleanup(wait_end))) struct wait_scope scope; /* also when the thread is cancelled */
    wait_begin(&scope, WAIT_COND, condition, site);
    pthread_testcancel();
    int64_t end_ns = wait_slice(&scope, deadline_ns);
    int result =
        mutex_is_foreign(mutex) ? wait_foreign(condition, mutex, end_ns) : wait_ours(condition, mutex, end_ns, site);
    scope.got = result == 0;
    scope.retaken = mutex_is_foreign(mutex) ? NULL : mutex;
    if (result == ETIMEDOUT && end_ns < deadline_ns) result = EINTR; /* a slice only: see cancel.c */
    if (result == EINTR || result == ETIMEDOUT) pthread_testcancel();
    return result == EINTR ? 0 : result;
}

static int cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns, const void *site) {
    int type = cancel_defer();
    int result = cond_wait_deferred(cond, mutex, deadline_ns, site);
    cancel_as_before(type);
    return result;
}

PRELOAD_API int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    if (cond_is_foreign(cond) && !mutex_is_foreign(mutex)) return bridge_wait(cond, mutex, NULL, NULL, CALLER);
    if (cond_is_foreign(cond)) return REAL(pthread_cond_wait)(cond, mutex);
    return cond_wait_for(cond, mutex, DEADLINE_NEVER, CALLER);
}

PRELOAD_API int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at) {
    if (cond_is_foreign(cond) && !mutex_is_foreign(mutex)) return bridge_wait(cond, mutex, NULL, at, CALLER);
    if (cond_is_foreign(cond)) return REAL(pthread_cond_timedwait)(cond, mutex, at);
    clockid_t clock = clock_of(cond);
    if (!deadline_is_valid(clock, at)) return EINVAL;
    return cond_wait_for(cond, mutex, deadline_of(clock, at), CALLER);
}

PRELOAD_API int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                       const struct timespec *at) {
    if (cond_is_foreign(cond) && !mutex_is_foreign(mutex)) return bridge_wait(cond, mutex, &clock, at, CALLER);
    if (cond_is_foreign(cond)) return REAL(pthread_cond_clockwait)(cond, mutex, clock, at);
    if (!deadline_is_valid(clock, at)) return EINVAL;
    return cond_wait_for(cond, mutex, deadline_of(clock, at), CALLER);
}

/* Making and ending. */

PRELOAD_API int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    clockid_t clock = CLOCK_REALTIME;
    if (attributes) {
        pthread_condattr_getpshared(attributes, &shared);
        pthread_condattr_getclock(attributes, &clock);
    }
    if (shared != PTHREAD_PROCESS_PRIVATE) return REAL(pthread_cond_init)(cond, attributes);
    memset(cond, 0, sizeof *cond);
    condition_of(cond)->flags = clock == CLOCK_MONOTONIC ? MONOTONIC : 0;
    return 0;
}

/* A waiter that has been signalled does not touch the condition any more; with glibc's mutex it may, for a moment. */
PRELOAD_API int pthread_cond_destroy(pthread_cond_t *cond) {
    if (cond_is_foreign(cond)) return REAL(pthread_cond_destroy)(cond);
    uint32_t *inside = &condition_of(cond)->inside, seen;
    while ((seen = __atomic_load_n(inside, __ATOMIC_ACQUIRE))) vigil_wait32(inside, seen, VIGIL_FOREVER);
    return 0;
}
