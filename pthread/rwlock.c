/* SPDX-License-Identifier: MIT */
/*
 * Read-write locks. In glibc's object, __readers is Vigil's word, __cur_writer the identity of the thread that writes,
 * and __pad2 the address that called to write. __shared and __flags mean what they mean to glibc. __writers is the
 * thread that has unlocked it last, while that is recorded.
 *
 * glibc prefers readers unless the lock's kind is PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP: a reader does not wait
 * while other threads read, even if a writer does. Programs rely on that when a thread reads that is reading already.
 * So the word of such a lock says PASS. Init makes it so; in a lock that a static initialiser has made, a thread that
 * wants the lock sets it first, or when it takes the lock. No thread holds the lock, or waits for it, without that bit.
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
#define READERS  0x0ffffff0u
#define TOO_MANY (1u << 27)
#define LANES    (1u << 28)
#define PASS     (1u << 30)

static vigil_rwlock *word_of(pthread_rwlock_t *lock) {
    return (vigil_rwlock *)(void *)&lock->__data.__readers;
}

static bool rwlock_is_foreign(const pthread_rwlock_t *lock) {
    return lock->__data.__shared;
}

/* The word while no thread has the lock, nor waits for it. */
static uint32_t idle_word(const pthread_rwlock_t *lock) {
    return lock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP ? 0 : PASS;
}

/* See above. True if this call has done it. */
static bool begin_to_pass(pthread_rwlock_t *lock) {
    uint32_t *word = &word_of(lock)->word, pass = idle_word(lock);
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & PASS) == pass) return false;
    return !(__atomic_fetch_or(word, pass, __ATOMIC_RELAXED) & PASS);
}

static bool writes_here(const pthread_rwlock_t *lock) {
    int writer = __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
    return writer && writer == (int)preload_self();
}

static void set_writer(pthread_rwlock_t *lock, uint32_t thread, const void *site) {
    __atomic_store_n(&lock->__data.__cur_writer, (int)thread, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->__data.__pad2, (unsigned long)(uintptr_t)site, __ATOMIC_RELAXED);
}

static int rwlock_result_of(int status, int64_t deadline_ns) {
    switch (status) {
    case VIGIL_OK: return 0;
    case VIGIL_TIMED_OUT: return deadline_ns == DEADLINE_TRY ? EBUSY : ETIMEDOUT;
    case VIGIL_EDEADLOCK: return EDEADLK;
    case VIGIL_ELIMIT: return EAGAIN;
    default: return EINVAL;
    }
}

/* Reading. */

/* If it need not wait. The few that could pass what is reserved find that out in take_to_read. */
static bool read_at_once(pthread_rwlock_t *lock) {
    uint32_t *word = &word_of(lock)->word, idle = idle_word(lock), seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (seen & LANES) return vigil__rwlock_read_lock_slowly(word_of(lock), 0) == VIGIL_OK;
    while (!(seen & (WRITER | RESERVED | SAVED | TOO_MANY))) {
        uint32_t to = (seen | idle) + READER;
        if (__atomic_compare_exchange_n(word, &seen, to, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
    }
    return false;
}

/* No memory for a waiter, that is, and not too many readers. */
static bool rwlock_needs_memory(const vigil_rwlock *word, int status) {
    bool limit = status == VIGIL_ELIMIT && !(__atomic_load_n(&word->word, __ATOMIC_RELAXED) & TOO_MANY);
    return limit || status == VIGIL_ENOMEM;
}

static int take_to_read(vigil_rwlock *word, int64_t deadline_ns, const void *site) {
    int status;
    do {
        if (preload.check && order_enter()) {
            status =
                vigil__check_rwlock_read_lock(word, deadline_timeout_ns(deadline_ns), ORDER_FILE, order_site(site));
            order_leave();
        } else {
            status = vigil__rwlock_read_lock_slowly(word, deadline_timeout_ns(deadline_ns));
        }
    } while (rwlock_needs_memory(word, status) && deadline_pause());
    return status;
}

/* A lock that is read again, while another is held, is not out of order: the check is not told of it. */
static bool passes(pthread_rwlock_t *lock) {
    return idle_word(lock) && (__atomic_load_n(&word_of(lock)->word, __ATOMIC_RELAXED) & (READERS | LANES));
}

static int read_lock(pthread_rwlock_t *lock, int64_t deadline_ns, const void *site) {
    vigil_rwlock *word = word_of(lock);
    if (writes_here(lock)) return deadline_ns == DEADLINE_TRY ? EBUSY : EDEADLK;
    if ((!preload.check || passes(lock)) && read_at_once(lock)) return 0;
    begin_to_pass(lock);
    if (deadline_ns == DEADLINE_TRY) return rwlock_result_of(take_to_read(word, deadline_ns, site), deadline_ns);
    struct wait_scope scope;
    wait_begin(&scope, WAIT_READ, word, site);
    scope.releaser = &lock->__data.__writers;
    scope.counts = !preload.check || __atomic_load_n(&word->word, __ATOMIC_RELAXED) & WRITER;
    int status = take_to_read(word, deadline_ns, site);
    scope.got = status == VIGIL_OK;
    wait_end(&scope);
    return rwlock_result_of(status, deadline_ns);
}

/* Writing. */

static int take_to_write(vigil_rwlock *word, int64_t deadline_ns, const void *site) {
    int status;
    do {
        if (preload.check && order_enter()) {
            status =
                vigil__check_rwlock_write_lock(word, deadline_timeout_ns(deadline_ns), ORDER_FILE, order_site(site));
            order_leave();
        } else {
            status = vigil__rwlock_write_lock_slowly(word, deadline_timeout_ns(deadline_ns));
        }
    } while ((status == VIGIL_ENOMEM || status == VIGIL_ELIMIT) && deadline_pause());
    return status;
}

static int write_and_wait(pthread_rwlock_t *lock, int64_t deadline_ns, const void *site) {
    vigil_rwlock *word = word_of(lock);
    if (deadline_ns == DEADLINE_TRY) return take_to_write(word, deadline_ns, site);
    struct wait_scope scope;
    wait_begin(&scope, WAIT_WRITE, word, site);
    scope.releaser = &lock->__data.__writers;
    scope.counts = !preload.check || (__atomic_load_n(&word->word, __ATOMIC_RELAXED) & ~PASS);
    int status = take_to_write(word, deadline_ns, site);
    scope.got = status == VIGIL_OK;
    wait_end(&scope);
    return status;
}

static bool write_at_once(pthread_rwlock_t *lock) {
    uint32_t idle = idle_word(lock);
    if (vigil__rwlock_change(word_of(lock), idle, idle | WRITER, __ATOMIC_ACQUIRE)) return true;
    return begin_to_pass(lock) && vigil__rwlock_change(word_of(lock), idle, idle | WRITER, __ATOMIC_ACQUIRE);
}

static int write_lock(pthread_rwlock_t *lock, int64_t deadline_ns, const void *site) {
    if (writes_here(lock)) return deadline_ns == DEADLINE_TRY ? EBUSY : EDEADLK;
    if (preload.check) begin_to_pass(lock);
    bool taken = !preload.check && write_at_once(lock);
    int status = taken ? VIGIL_OK : write_and_wait(lock, deadline_ns, site);
    if (status == VIGIL_OK) set_writer(lock, preload_self(), site);
    return rwlock_result_of(status, deadline_ns);
}

/* The calls. */

PRELOAD_API int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    return rwlock_is_foreign(lock) ? REAL(pthread_rwlock_rdlock)(lock) : read_lock(lock, DEADLINE_NEVER, CALLER);
}

PRELOAD_API int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    return rwlock_is_foreign(lock) ? REAL(pthread_rwlock_tryrdlock)(lock) : read_lock(lock, DEADLINE_TRY, CALLER);
}

PRELOAD_API int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *at) {
    if (rwlock_is_foreign(lock)) return REAL(pthread_rwlock_timedrdlock)(lock, at);
    if (!deadline_is_valid(CLOCK_REALTIME, at)) return EINVAL;
    return read_lock(lock, deadline_of(CLOCK_REALTIME, at), CALLER);
}

PRELOAD_API int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at) {
    if (rwlock_is_foreign(lock)) return REAL(pthread_rwlock_clockrdlock)(lock, clock, at);
    if (!deadline_is_valid(clock, at)) return EINVAL;
    return read_lock(lock, deadline_of(clock, at), CALLER);
}

PRELOAD_API int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    return rwlock_is_foreign(lock) ? REAL(pthread_rwlock_wrlock)(lock) : write_lock(lock, DEADLINE_NEVER, CALLER);
}

PRELOAD_API int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
    return rwlock_is_foreign(lock) ? REAL(pthread_rwlock_trywrlock)(lock) : write_lock(lock, DEADLINE_TRY, CALLER);
}

PRELOAD_API int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *at) {
    if (rwlock_is_foreign(lock)) return REAL(pthread_rwlock_timedwrlock)(lock, at);
    if (!deadline_is_valid(CLOCK_REALTIME, at)) return EINVAL;
    return write_lock(lock, deadline_of(CLOCK_REALTIME, at), CALLER);
}

PRELOAD_API int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at) {
    if (rwlock_is_foreign(lock)) return REAL(pthread_rwlock_clockwrlock)(lock, clock, at);
    if (!deadline_is_valid(clock, at)) return EINVAL;
    return write_lock(lock, deadline_of(clock, at), CALLER);
}

static int unlock(vigil_rwlock *word, bool writes, const void *site) {
    if (preload.check && order_enter()) {
        int status = (writes ? vigil__check_rwlock_write_unlock : vigil__check_rwlock_read_unlock)(word, ORDER_FILE,
                                                                                                   order_site(site));
        order_leave();
        return status;
    }
    return writes ? vigil_rwlock_write_unlock(word) : vigil_rwlock_read_unlock(word);
}

PRELOAD_API int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    if (rwlock_is_foreign(lock)) return REAL(pthread_rwlock_unlock)(lock);
    vigil_rwlock *word = word_of(lock);
    bool writes = __atomic_load_n(&word->word, __ATOMIC_RELAXED) & WRITER;
    uint32_t idle = idle_word(lock); /* before others can have the lock, and free it */
    if (is_recorded()) record_release(writes ? WAIT_WRITE : WAIT_READ, word, &lock->__data.__writers);
    if (writes) set_writer(lock, 0, NULL);
    bool done = writes && !preload.check && vigil__rwlock_change(word, idle | WRITER, idle, __ATOMIC_RELEASE);
    if (!done) unlock(word, writes, CALLER);
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
    word_of(lock)->word = idle_word(lock);
    if (preload.check) order_forget(lock, sizeof *lock);
    return 0;
}

PRELOAD_API int pthread_rwlock_destroy(pthread_rwlock_t *lock) {
    if (rwlock_is_foreign(lock)) return REAL(pthread_rwlock_destroy)(lock);
    if (preload.check) order_forget(lock, sizeof *lock);
    return 0;
}
