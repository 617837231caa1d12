/* SPDX-License-Identifier: MIT */
/*
 * Read-write locks. In glibc's object, __readers is Vigil's word, __cur_writer the identity of the thread that writes,
 * and __pad2 the address that called to write. __shared and __flags mean what they mean to glibc. __writers is the thread
 * that has unlocked it last, while that is recorded.
 *
 * glibc prefers readers unless the lock's kind is PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP: a reader that comes
 * while other threads read does not wait, even if a writer does. Programs rely on that when a thread reads that is
 * reading already. So such a reader counts itself here, where Vigil would let it wait behind the writer.
 */
#include "preload.h"

#include <errno.h>
#include <string.h>

#include "record.h"

_Static_assert(offsetof(pthread_rwlock_t, __data.__readers) == 0, "the word comes first");

/* As vigil/rwlock.h has it. */
#define WRITER   1u
#define RESERVED 4u
#define SAVED    8u
#define READER   16u
#define READERS  0x3ffffff0u
#define TOO_MANY (1u << 29)

static vigil_rwlock *word_of(pthread_rwlock_t *lock) {
    return (vigil_rwlock *)(void *)&lock->__data.__readers;
}

static bool is_foreign(const pthread_rwlock_t *lock) {
    return lock->__data.__shared;
}

static bool writes_here(const pthread_rwlock_t *lock) {
    int writer = __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
    return writer && writer == (int)preload_self();
}

static void set_writer(pthread_rwlock_t *lock, uint32_t thread, const void *site) {
    __atomic_store_n(&lock->__data.__cur_writer, (int)thread, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->__data.__pad2, (unsigned long)(uintptr_t)site, __ATOMIC_RELAXED);
}

static int result_of(int status, int64_t deadline_ns) {
    switch (status) {
    case VIGIL_OK: return 0;
    case VIGIL_TIMED_OUT: return deadline_ns == DEADLINE_TRY ? EBUSY : ETIMEDOUT;
    case VIGIL_EDEADLOCK: return EDEADLK;
    case VIGIL_ELIMIT: return EAGAIN;
    default: return EINVAL;
    }
}

/* Reading. */

/* If it need not wait. It passes by a waiting writer: the word's rules allow that to a reader that has been called. */
static bool read_at_once(vigil_rwlock *word, bool in_order) {
    uint32_t seen = __atomic_load_n(&word->word, __ATOMIC_RELAXED);
    for (;;) {
        bool passes = (seen & READERS) && !in_order;
        if (seen & (WRITER | TOO_MANY | (passes ? 0 : RESERVED | SAVED))) return false;
        if (__atomic_compare_exchange_n(&word->word, &seen, seen + READER, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
}

static int take_to_read(vigil_rwlock *word, int64_t deadline_ns, const void *site) {
    int status;
    do {
        if (preload.check && order_enter()) {
            status = vigil_check_rwlock_read_lock(word, deadline_timeout_ns(deadline_ns), ORDER_FILE, order_site(site));
            order_leave();
        } else {
            status = vigil_rwlock_read_lock_slowly(word, deadline_timeout_ns(deadline_ns));
        }
    } while (status == VIGIL_INTERRUPTED || (status == VIGIL_ENOMEM && deadline_pause()));
    return status;
}

static int read_lock(pthread_rwlock_t *lock, int64_t deadline_ns, const void *site) {
    vigil_rwlock *word = word_of(lock);
    if (writes_here(lock)) return deadline_ns == DEADLINE_TRY ? EBUSY : EDEADLK;
    bool in_order = lock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
    /* To read again is a mistake to the check, and none to glibc: so the check is not told of it. */
    bool passes = !in_order && (__atomic_load_n(&word->word, __ATOMIC_RELAXED) & READERS);
    if ((passes || !preload.check) && read_at_once(word, in_order)) return 0;
    if (deadline_ns == DEADLINE_TRY) return result_of(take_to_read(word, deadline_ns, site), deadline_ns);
    struct wait_place place;
    wait_begin(&place, WAIT_READ, word, site);
    place.releaser = &lock->__data.__writers;
    place.counts = !preload.check || __atomic_load_n(&word->word, __ATOMIC_RELAXED) & WRITER;
    int status = take_to_read(word, deadline_ns, site);
    place.got = status == VIGIL_OK;
    wait_end(&place);
    return result_of(status, deadline_ns);
}

/* Writing. */

static int take_to_write(vigil_rwlock *word, int64_t deadline_ns, const void *site) {
    int status;
    do {
        if (preload.check && order_enter()) {
            status =
                vigil_check_rwlock_write_lock(word, deadline_timeout_ns(deadline_ns), ORDER_FILE, order_site(site));
            order_leave();
        } else {
            status = vigil_rwlock_write_lock_slowly(word, deadline_timeout_ns(deadline_ns));
        }
    } while (status == VIGIL_INTERRUPTED || ((status == VIGIL_ENOMEM || status == VIGIL_ELIMIT) && deadline_pause()));
    return status;
}

static int write_and_wait(pthread_rwlock_t *lock, int64_t deadline_ns, const void *site) {
    vigil_rwlock *word = word_of(lock);
    if (deadline_ns == DEADLINE_TRY) return take_to_write(word, deadline_ns, site);
    struct wait_place place;
    wait_begin(&place, WAIT_WRITE, word, site);
    place.releaser = &lock->__data.__writers;
    place.counts = !preload.check || __atomic_load_n(&word->word, __ATOMIC_RELAXED);
    int status = take_to_write(word, deadline_ns, site);
    place.got = status == VIGIL_OK;
    wait_end(&place);
    return status;
}

static int write_lock(pthread_rwlock_t *lock, int64_t deadline_ns, const void *site) {
    vigil_rwlock *word = word_of(lock);
    if (writes_here(lock)) return deadline_ns == DEADLINE_TRY ? EBUSY : EDEADLK;
    bool taken = !preload.check && vigil_rwlock_change(word, 0, WRITER, __ATOMIC_ACQUIRE);
    int status = taken ? VIGIL_OK : write_and_wait(lock, deadline_ns, site);
    if (status == VIGIL_OK) set_writer(lock, preload_self(), site);
    return result_of(status, deadline_ns);
}

/* The calls. */

PRELOAD_API int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    return is_foreign(lock) ? REAL(pthread_rwlock_rdlock)(lock) : read_lock(lock, DEADLINE_NEVER, CALLER);
}

PRELOAD_API int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    return is_foreign(lock) ? REAL(pthread_rwlock_tryrdlock)(lock) : read_lock(lock, DEADLINE_TRY, CALLER);
}

PRELOAD_API int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *at) {
    if (is_foreign(lock)) return REAL(pthread_rwlock_timedrdlock)(lock, at);
    if (!deadline_is_valid(CLOCK_REALTIME, at)) return EINVAL;
    return read_lock(lock, deadline_of(CLOCK_REALTIME, at), CALLER);
}

PRELOAD_API int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at) {
    if (is_foreign(lock)) return REAL(pthread_rwlock_clockrdlock)(lock, clock, at);
    if (!deadline_is_valid(clock, at)) return EINVAL;
    return read_lock(lock, deadline_of(clock, at), CALLER);
}

PRELOAD_API int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    return is_foreign(lock) ? REAL(pthread_rwlock_wrlock)(lock) : write_lock(lock, DEADLINE_NEVER, CALLER);
}

PRELOAD_API int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
    return is_foreign(lock) ? REAL(pthread_rwlock_trywrlock)(lock) : write_lock(lock, DEADLINE_TRY, CALLER);
}

PRELOAD_API int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *at) {
    if (is_foreign(lock)) return REAL(pthread_rwlock_timedwrlock)(lock, at);
    if (!deadline_is_valid(CLOCK_REALTIME, at)) return EINVAL;
    return write_lock(lock, deadline_of(CLOCK_REALTIME, at), CALLER);
}

PRELOAD_API int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at) {
    if (is_foreign(lock)) return REAL(pthread_rwlock_clockwrlock)(lock, clock, at);
    if (!deadline_is_valid(clock, at)) return EINVAL;
    return write_lock(lock, deadline_of(clock, at), CALLER);
}

static int unlock(vigil_rwlock *word, bool writes, const void *site) {
    if (preload.check && order_enter()) {
        int status = (writes ? vigil_check_rwlock_write_unlock : vigil_check_rwlock_read_unlock)(word, ORDER_FILE,
                                                                                                 order_site(site));
        order_leave();
        return status;
    }
    return writes ? vigil_rwlock_write_unlock(word) : vigil_rwlock_read_unlock(word);
}

PRELOAD_API int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    if (is_foreign(lock)) return REAL(pthread_rwlock_unlock)(lock);
    vigil_rwlock *word = word_of(lock);
    bool writes = __atomic_load_n(&word->word, __ATOMIC_RELAXED) & WRITER;
    if (is_recorded()) record_release(writes ? WAIT_WRITE : WAIT_READ, word, &lock->__data.__writers);
    if (writes) set_writer(lock, 0, NULL);
    unlock(word, writes, CALLER);
    return 0;
}

PRELOAD_API int pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes) {
    int shared = PTHREAD_PROCESS_PRIVATE, kind = PTHREAD_RWLOCK_DEFAULT_NP;
    if (attributes) {
        pthread_rwlockattr_getpshared(attributes, &shared);
        pthread_rwlockattr_getkind_np(attributes, &kind);
    }
    if (shared != PTHREAD_PROCESS_PRIVATE) return REAL(pthread_rwlock_init)(lock, attributes);
    memset(lock, 0, sizeof *lock);
    lock->__data.__flags = (unsigned)kind;
    if (preload.check) order_forget(lock, sizeof *lock);
    return 0;
}

PRELOAD_API int pthread_rwlock_destroy(pthread_rwlock_t *lock) {
    if (is_foreign(lock)) return REAL(pthread_rwlock_destroy)(lock);
    if (preload.check) order_forget(lock, sizeof *lock);
    return 0;
}
