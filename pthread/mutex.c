/* SPDX-License-Identifier: MIT */
/*
 * Mutexes. In glibc's object, __lock is Vigil's word; __count, __owner and __kind mean what they mean to glibc, and
 * __list.__prev is the address that called lock. __nusers is the thread that has unlocked it last, while that is
 * recorded.
 */
#include "preload.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "record.h"

_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "the word comes first");

#define TYPE      3    /* of __kind: normal, recursive, errorcheck, adaptive */
#define DESTROYED (-1) /* as __kind, as glibc has it */

static bool is_ours(const pthread_mutex_t *mutex) {
    return (__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) ^ (int)preload_self()) == 0;
}

static void set_holder(pthread_mutex_t *mutex, uint32_t thread, const void *site) {
    __atomic_store_n(&mutex->__data.__owner, (int)thread, __ATOMIC_RELAXED);
    __atomic_store_n(&mutex->__data.__list.__prev, (void *)(uintptr_t)site, __ATOMIC_RELAXED);
}

static int mutex_result_of(int status, int64_t deadline_ns) {
    switch (status) {
    case VIGIL_OK: return 0;
    case VIGIL_TIMED_OUT: return deadline_ns == DEADLINE_TRY ? EBUSY : ETIMEDOUT;
    case VIGIL_EDEADLOCK: return EDEADLK;
    default: return EINVAL;
    }
}

static bool mutex_needs_memory(int status) {
    return status == VIGIL_ENOMEM || status == VIGIL_ELIMIT;
}

static int take_slowly(vigil_mutex *word, int64_t deadline_ns, const void *site) {
    int status;
    do {
        if (preload.check && order_enter()) {
            status = vigil__check_mutex_lock(word, deadline_timeout_ns(deadline_ns), ORDER_FILE, order_site(site));
            order_leave();
        } else {
            status = vigil__mutex_lock_slowly(word, deadline_timeout_ns(deadline_ns));
        }
    } while (mutex_needs_memory(status) && deadline_pause());
    return status;
}

/* The lock itself, whatever the kind of mutex. */
static int take(pthread_mutex_t *mutex, int64_t deadline_ns, const void *site) {
    vigil_mutex *word = mutex_word(mutex);
    if (!preload.check && vigil_mutex_trylock(word) == VIGIL_OK)
        return VIGIL_OK; /* free, though it says more than that */
    if (deadline_ns == DEADLINE_TRY) return take_slowly(word, deadline_ns, site);
    struct wait_scope scope;
    wait_begin(&scope, WAIT_MUTEX, word, site);
    scope.releaser = &mutex->__data.__nusers;
    scope.counts = !preload.check || vigil_mutex_is_locked(word);
    int status = take_slowly(word, deadline_ns, site);
    scope.got = status == VIGIL_OK;
    wait_end(&scope);
    return status;
}

/* Of those kinds that know their holder: zero if the caller is it and that is fine, else as of lock; -1: it is not. */
static int take_again(pthread_mutex_t *mutex, int64_t deadline_ns) {
    int type = mutex->__data.__kind & TYPE;
    bool knows = type == PTHREAD_MUTEX_RECURSIVE_NP || type == PTHREAD_MUTEX_ERRORCHECK_NP;
    if (!knows || !is_ours(mutex)) return -1;
    if (type == PTHREAD_MUTEX_ERRORCHECK_NP) return deadline_ns == DEADLINE_TRY ? EBUSY : EDEADLK;
    if (mutex->__data.__count == UINT_MAX) return EAGAIN;
    mutex->__data.__count++;
    return 0;
}

static int lock(pthread_mutex_t *mutex, int64_t deadline_ns, const void *site) {
    int again = take_again(mutex, deadline_ns);
    if (again >= 0) return again;
    int result = mutex_result_of(take(mutex, deadline_ns, site), deadline_ns);
    if (result) return result;
    set_holder(mutex, preload_self(), site);
    mutex->__data.__count = 1;
    return 0;
}

/* Locking. */

/* The usual case, which takes no more than this: a free mutex of a kind that does not store its holder. */
static bool is_simple(const pthread_mutex_t *mutex) {
    int kind = mutex->__data.__kind;
    return (kind == PTHREAD_MUTEX_TIMED_NP || kind == PTHREAD_MUTEX_ADAPTIVE_NP) && !preload.check;
}

static bool lock_at_once(pthread_mutex_t *mutex, const void *site) {
    if (!is_simple(mutex)) return false;
    if (!vigil__mutex_change(mutex_word(mutex), 0, vigil__mutex_ours(), __ATOMIC_ACQUIRE)) return false;
    set_holder(mutex, preload_self(), site);
    return true;
}

PRELOAD_API int pthread_mutex_lock(pthread_mutex_t *mutex) {
    if (lock_at_once(mutex, CALLER)) return 0;
    if (!mutex_is_foreign(mutex)) return lock(mutex, DEADLINE_NEVER, CALLER);
    return mutex->__data.__kind == DESTROYED ? EINVAL : REAL(pthread_mutex_lock)(mutex);
}

PRELOAD_API int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    if (lock_at_once(mutex, CALLER)) return 0;
    if (!mutex_is_foreign(mutex)) return lock(mutex, DEADLINE_TRY, CALLER);
    return mutex->__data.__kind == DESTROYED ? EINVAL : REAL(pthread_mutex_trylock)(mutex);
}

/* As in glibc, the time is checked only if the thread has to wait. */
static int lock_until(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at, const void *site) {
    int result = lock(mutex, DEADLINE_TRY, site);
    if (result != EBUSY) return result;
    if ((mutex->__data.__kind & TYPE) == PTHREAD_MUTEX_ERRORCHECK_NP && is_ours(mutex)) return EDEADLK;
    if (!deadline_is_valid(clock, at)) return EINVAL;
    return lock(mutex, deadline_of(clock, at), site);
}

PRELOAD_API int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at) {
    if (mutex_is_foreign(mutex)) return REAL(pthread_mutex_timedlock)(mutex, at);
    return lock_until(mutex, CLOCK_REALTIME, at, CALLER);
}

PRELOAD_API int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at) {
    if (mutex_is_foreign(mutex)) return REAL(pthread_mutex_clocklock)(mutex, clock, at);
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
    return lock_until(mutex, clock, at, CALLER);
}

/* Unlocking. */

/* Before it is unlocked: afterwards it may be gone. */
static void record_unlock(pthread_mutex_t *mutex) {
    record_release(WAIT_MUTEX, mutex, &mutex->__data.__nusers);
}

static void unlock_word(pthread_mutex_t *mutex, const void *site) {
    vigil_mutex *word = mutex_word(mutex);
    if (preload.check && order_enter()) {
        vigil__check_mutex_unlock(word, ORDER_FILE, order_site(site));
        order_leave();
    } else {
        vigil_mutex_unlock(word);
    }
}

static __attribute__((noinline)) int unlock(pthread_mutex_t *mutex, const void *site) {
    if (mutex_is_foreign(mutex)) return REAL(pthread_mutex_unlock)(mutex);
    int type = mutex->__data.__kind & TYPE;
    if (type == PTHREAD_MUTEX_RECURSIVE_NP || type == PTHREAD_MUTEX_ERRORCHECK_NP) {
        if (!is_ours(mutex)) return EPERM;
        if (type == PTHREAD_MUTEX_RECURSIVE_NP && --mutex->__data.__count) return 0;
    }
    if (is_recorded()) record_unlock(mutex);
    set_holder(mutex, 0, NULL);
    unlock_word(mutex, site);
    return 0;
}

PRELOAD_API int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    if (!is_simple(mutex) || is_recorded()) return unlock(mutex, CALLER);
    set_holder(mutex, 0, NULL);
    vigil_mutex_unlock(mutex_word(mutex));
    return 0;
}

/* For conditions. */

int mutex_release_state(pthread_mutex_t *mutex, struct mutex_state *state) {
    if (!vigil_mutex_is_locked(mutex_word(mutex))) return EPERM;
    if ((mutex->__data.__kind & TYPE) == PTHREAD_MUTEX_ERRORCHECK_NP && !is_ours(mutex)) return EPERM;
    if ((mutex->__data.__kind & TYPE) == PTHREAD_MUTEX_RECURSIVE_NP && !is_ours(mutex)) return EPERM;
    *state = (struct mutex_state){mutex->__data.__count, mutex->__data.__list.__prev};
    mutex->__data.__count = 0;
    if (is_recorded()) record_unlock(mutex);
    set_holder(mutex, 0, NULL);
    return 0;
}

void mutex_restore_state(pthread_mutex_t *mutex, const struct mutex_state *state) {
    set_holder(mutex, preload_self(), state->site);
    mutex->__data.__count = state->count;
}

void mutex_leave(pthread_mutex_t *mutex, const void *site) {
    unlock_word(mutex, site);
}

void mutex_retake(pthread_mutex_t *mutex, const void *site) {
    take(mutex, DEADLINE_NEVER, site);
}

/* Making and ending. */

/* What only glibc has. */
static bool is_for_glibc(const pthread_mutexattr_t *attributes) {
    int shared = 0, robust = 0, protocol = 0;
    pthread_mutexattr_getpshared(attributes, &shared);
    pthread_mutexattr_getrobust(attributes, &robust);
    pthread_mutexattr_getprotocol(attributes, &protocol);
    return shared != PTHREAD_PROCESS_PRIVATE || robust != PTHREAD_MUTEX_STALLED || protocol != PTHREAD_PRIO_NONE;
}

PRELOAD_API int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
    int type = PTHREAD_MUTEX_DEFAULT;
    if (attributes && is_for_glibc(attributes)) return REAL(pthread_mutex_init)(mutex, attributes);
    if (attributes) pthread_mutexattr_gettype(attributes, &type);
    memset(mutex, 0, sizeof *mutex);
    mutex->__data.__kind = type & TYPE;
    if (preload.check) order_forget(mutex, sizeof *mutex);
    return 0;
}

PRELOAD_API int pthread_mutex_destroy(pthread_mutex_t *mutex) {
    if (mutex_is_foreign(mutex)) return REAL(pthread_mutex_destroy)(mutex);
    if (vigil_mutex_is_locked(mutex_word(mutex))) return EBUSY;
    mutex->__data.__kind = DESTROYED;
    if (preload.check) order_forget(mutex, sizeof *mutex);
    return 0;
}
