/* SPDX-License-Identifier: MIT */
/*
 * vigil/rwlock.h - a lock for many readers or one writer, which threads and event loops share.
 *
 *     static vigil_rwlock lock;                                   four bytes; all zero is unlocked
 *
 *     a thread         vigil_rwlock_read_lock(&lock); ... vigil_rwlock_read_unlock(&lock);
 *     an event loop    vigil_rwlock_write_lock_async(agent, &request, &lock, VIGIL_FOREVER, with_the_lock_held);
 *
 * The lock does not belong to a thread: what was locked on one thread may be unlocked on another. It is not
 * recursive: a thread that holds it to read and reads once more may have to wait behind a writer that waits for that
 * thread, which is a deadlock. Code that is compiled with VIGIL_CHECK reports that (check.h). Where reading again
 * must be allowed, let readers pass: see below.
 *
 * ORDER
 *
 * All waiters stand in one line, in the order in which they found the lock taken. An unlock calls the head of the
 * line, and readers that stand together at the head are called together. If the head is a thread that has not fallen
 * asleep yet, the lock is reserved for it (not in a segment). Otherwise the lock goes to the first that takes it, and
 * until the head has woken up others may take it several times. New readers join the readers that hold the lock, past
 * a writer that waits, for half a millisecond; from then on they wait behind the writer. No waiter starves: once in
 * half a millisecond, an unlock reserves the lock for a head that has waited so long, and no newcomer can take it in
 * between.
 * It is the same for event loops. A loop that is called but does not run does not keep other waiters from the lock:
 * after half a millisecond the next waiter is called. (The try forms, which do not wait, may fail meanwhile although
 * the lock is not held.)
 *
 * A lock that is initialised with VIGIL_RWLOCK_READERS_PASS lets readers take it while other readers hold it, even if
 * writers wait, as PTHREAD_RWLOCK_PREFER_READER_NP does. Then a thread that reads can always read once more, and
 * readers in line are let in as soon as one reads, even from behind a writer. It is the same for event loops, except
 * that a request that is queued behind another request of the same loop waits for that one. The price: writers starve
 * for as long as the lock is never free of readers. Once it is, a writer that has waited for half a millisecond has,
 * as a rule, its turn before newcomers, as above.
 *
 * THE WORD
 *
 *     1   a writer holds it
 *     2   there may be waiters: an unlock looks at the line
 *     4   it is reserved for the waiters that have been called
 *     8   a writer has waited long for the readers to leave: no new readers
 *     16  times the number of readers that are counted; callers that find that they have to wait are, for a moment, too
 *     2^28  several threads have read it at the same time, and readers are not counted here any more, but noted
 *         beside, each in a cache line of its thread
 *     2^29  added: a writer is about to count them
 *     2^30  readers pass
 *     2^31  a process died while it was writing (in a segment), or a writer was given up
 *
 * Do not free or reset a lock that is held: readers that are noted beside it would hold the next lock at that address.
 * In the child of a fork it may be reset, whichever threads of the parent held it, unless it is in memory that the
 * child shares with its parent. It must be if one did, or was just taking or leaving it: that thread does not exist
 * there, and can leave the lock taken.
 *
 * BETWEEN PROCESSES
 *
 * A lock in a segment (segment.h) is the same for all processes that have the segment open, and they wait in one
 * line. If a process dies, or leaves the segment, what it holds is given back, at most some 50 ms later. If it was
 * writing, the data that the lock protects may be half changed: from then on every call that takes the lock, to read
 * or to write, returns VIGIL_OWNER_DIED instead of VIGIL_OK. The lock is held then; a writer must repair the data and
 * then call vigil_rwlock_consistent. A process can unlock only what it has locked, on any of its threads. Each
 * process that holds a lock, however often, counts as one waiter of the segment: if there is no room for that the
 * call returns VIGIL_ELIMIT, even after it has waited.
 *
 * GIVING UP
 *
 * A holder may end while its process goes on: a thread, or the worker of a language runtime whose request was granted
 * the lock. The library does not notice that, in a segment or not. The code that does, on any thread, calls
 * vigil_rwlock_write_abandon in place of a writer, and from then on every call that takes the lock returns
 * VIGIL_OWNER_DIED, as above. A reader changes nothing: in its place, call vigil_rwlock_read_unlock.
 */
#ifndef VIGIL_RWLOCK_H
#define VIGIL_RWLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "request.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_rwlock {
    uint32_t word;
} vigil_rwlock;

#define VIGIL_RWLOCK_INIT                                                                                              \
    { 0u }
#define VIGIL_RWLOCK_READERS_PASS                                                                                      \
    { 0x40000000u }

/*
 * vigil_rwlock_read_lock, vigil_rwlock_write_lock - block until the caller holds the lock, shared or alone: VIGIL_OK,
 * or VIGIL_OWNER_DIED (see above).
 *
 * The timed forms give up after `timeout_ns`, or when vigil_now_ns() reaches `deadline_ns` (VIGIL_TIMED_OUT); the try
 * forms do so at once. VIGIL_INTERRUPTED: see thread.h. VIGIL_CANCELLED if the memory is forgotten meanwhile. Errors:
 * VIGIL_EMAYNOTBLOCK if the call would have to wait on a thread that may not block; VIGIL_ELIMIT beyond 8,388,608
 * readers; VIGIL_ENULL, VIGIL_EMISALIGNED; VIGIL_ENOMEM, VIGIL_ELIMIT and VIGIL_ECOPIES as in vigil_wait32. After any
 * of these the caller does not hold it.
 *
 * vigil_rwlock_read_unlock, vigil_rwlock_write_unlock - VIGIL_OK, or VIGIL_ENOTHELD if the lock is not held in that
 * way or, in a segment, not by this process: then nothing changes. VIGIL_ENULL, VIGIL_EMISALIGNED.
 *
 * Once another thread can take the lock, these calls do not touch it any more. So the last holder may free it when
 * its own unlock has returned, even if an earlier unlock of another thread has not returned yet; all calls that
 * waited for it must have returned.
 *
 * vigil_rwlock_downgrade - from writing to reading, without letting another writer in between: VIGIL_OK. Readers at
 * the head of the line are let in. VIGIL_ENOTHELD as above.
 *
 * vigil_rwlock_write_abandon - as vigil_rwlock_write_unlock, in place of a writer that has ended: the calls that take
 * the lock return VIGIL_OWNER_DIED until it is declared consistent. VIGIL_ENOTHELD as above.
 *
 * vigil_rwlock_consistent - after VIGIL_OWNER_DIED, with the lock held to write, declare the data repaired:
 * VIGIL_OK. VIGIL_EINVAL if no writer has died or been given up, VIGIL_ENOTHELD as above.
 *
 * If there are no waiters, and the process has no segment open, locking (but not vigil_rwlock_read_trylock) and
 * unlocking are inline, and do not check that the address is aligned. The library exports the functions as well, for
 * other languages and for code that defines VIGIL_NO_INLINE.
 */
VIGIL_API int vigil_rwlock_downgrade(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_write_abandon(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_consistent(vigil_rwlock *lock);

VIGIL_API int vigil__rwlock_read_lock_slowly(vigil_rwlock *lock, int64_t timeout_ns);
/* The same for a caller that has been counted as a reader, but may not read yet. */
VIGIL_API int vigil__rwlock_read_lock_miscounted(vigil_rwlock *lock, int64_t timeout_ns);
VIGIL_API int vigil__rwlock_read_unlock_slowly(vigil_rwlock *lock);
VIGIL_API int vigil__rwlock_write_lock_slowly(vigil_rwlock *lock, int64_t timeout_ns);
VIGIL_API int vigil__rwlock_write_unlock_slowly(vigil_rwlock *lock);

/*
 * vigil_rwlock_read_lock_async, vigil_rwlock_write_lock_async - the same without blocking. Call them on the thread of
 * the agent.
 *
 * VIGIL_OK, VIGIL_OWNER_DIED: the lock is held, and the callback is never called. VIGIL_TIMED_OUT: it is not
 * available, and the timeout is zero or less. VIGIL_PENDING: callback(&request->op, status) is called once, from the
 * agent's dispatch: with VIGIL_OK or VIGIL_OWNER_DIED the lock is held, until it is unlocked, then or later and on
 * any thread; with VIGIL_TIMED_OUT, VIGIL_CANCELLED or, in a segment, VIGIL_ELIMIT, it is not. A pending request can
 * be cancelled at any time: vigil_cancel never returns VIGIL_ETOOLATE. Errors as above and as in vigil_wait32_async.
 */
VIGIL_API int vigil_rwlock_read_lock_async(vigil_agent *agent, vigil_request *request, vigil_rwlock *lock,
                                           int64_t timeout_ns, vigil_callback *callback);
VIGIL_API int vigil_rwlock_write_lock_async(vigil_agent *agent, vigil_request *request, vigil_rwlock *lock,
                                            int64_t timeout_ns, vigil_callback *callback);

#ifdef VIGIL_NO_INLINE
VIGIL_API int vigil_rwlock_read_lock(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_read_lock_for(vigil_rwlock *lock, int64_t timeout_ns);
VIGIL_API int vigil_rwlock_read_lock_until(vigil_rwlock *lock, int64_t deadline_ns);
VIGIL_API int vigil_rwlock_read_trylock(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_read_unlock(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_write_lock(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_write_lock_for(vigil_rwlock *lock, int64_t timeout_ns);
VIGIL_API int vigil_rwlock_write_lock_until(vigil_rwlock *lock, int64_t deadline_ns);
VIGIL_API int vigil_rwlock_write_trylock(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_write_unlock(vigil_rwlock *lock);
#else

/* The lock may be in a segment, where the inline functions must not change it. */
static inline bool vigil__rwlock_may_be_shared(void) {
    return __atomic_load_n(&vigil__holder, __ATOMIC_RELAXED) != 1u;
}

static inline bool vigil__rwlock_change(vigil_rwlock *lock, uint32_t from, uint32_t to, int order) {
    if (!lock || vigil__rwlock_may_be_shared()) return false;
    return __atomic_compare_exchange_n(&lock->word, &from, to, false, order, __ATOMIC_RELAXED);
}

/*
 * The reader is counted first and checked after that: among readers alone this never fails, however many come at
 * once. vigil_rwlock_read_trylock does not count first, because callers that try again and again would keep a writer
 * out.
 */
static inline int vigil_rwlock_read_lock_for(vigil_rwlock *lock, int64_t timeout_ns) {
    const uint32_t not_now = 1u | 4u | 8u | 1u << 27 | 1u << 31; /* the last: the reader must be told */
    if (vigil__rwlock_may_be_shared() || !lock || (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) & 1u << 28))
        return vigil__rwlock_read_lock_slowly(lock, timeout_ns);
    if (!(__atomic_fetch_add(&lock->word, 16u, __ATOMIC_ACQUIRE) & not_now)) return VIGIL_OK;
    return vigil__rwlock_read_lock_miscounted(lock, timeout_ns);
}

static inline int vigil_rwlock_read_lock_until(vigil_rwlock *lock, int64_t deadline_ns) {
    return vigil_rwlock_read_lock_for(lock, vigil_until(deadline_ns));
}

static inline int vigil_rwlock_read_lock(vigil_rwlock *lock) {
    return vigil_rwlock_read_lock_for(lock, VIGIL_FOREVER);
}

static inline int vigil_rwlock_read_trylock(vigil_rwlock *lock) {
    return vigil__rwlock_read_lock_slowly(lock, 0);
}

/* If another reader comes in between, the lock is read by several threads: see 2^28. */
static inline int vigil_rwlock_read_unlock(vigil_rwlock *lock) {
    bool simple = lock && !vigil__rwlock_may_be_shared();
    uint32_t seen = simple ? __atomic_load_n(&lock->word, __ATOMIC_RELAXED) : 0;
    bool counted = (seen & 0x0ffffff0u) && !(seen & (2u | 1u << 28));
    if (counted && vigil__rwlock_change(lock, seen, seen - 16u, __ATOMIC_RELEASE)) return VIGIL_OK;
    return vigil__rwlock_read_unlock_slowly(lock);
}

static inline int vigil_rwlock_write_lock_for(vigil_rwlock *lock, int64_t timeout_ns) {
    if (vigil__rwlock_change(lock, 0, 1u, __ATOMIC_ACQUIRE)) return VIGIL_OK;
    return vigil__rwlock_write_lock_slowly(lock, timeout_ns);
}

static inline int vigil_rwlock_write_lock_until(vigil_rwlock *lock, int64_t deadline_ns) {
    return vigil_rwlock_write_lock_for(lock, vigil_until(deadline_ns));
}

static inline int vigil_rwlock_write_lock(vigil_rwlock *lock) {
    return vigil_rwlock_write_lock_for(lock, VIGIL_FOREVER);
}

static inline int vigil_rwlock_write_trylock(vigil_rwlock *lock) {
    return vigil_rwlock_write_lock_for(lock, 0);
}

static inline int vigil_rwlock_write_unlock(vigil_rwlock *lock) {
    if (vigil__rwlock_change(lock, 1u, 0, __ATOMIC_RELEASE)) return VIGIL_OK;
    return vigil__rwlock_write_unlock_slowly(lock);
}
#endif

#ifdef __cplusplus
}
#endif

#ifdef VIGIL_CHECK /* see check.h */
#include "check.h"
#define vigil_rwlock_read_lock(lock)                 vigil__check_rwlock_read_lock((lock), VIGIL_FOREVER, VIGIL__HERE)
#define vigil_rwlock_read_lock_for(lock, timeout_ns) vigil__check_rwlock_read_lock((lock), (timeout_ns), VIGIL__HERE)
#define vigil_rwlock_read_lock_until(lock, deadline_ns)                                                                \
    vigil__check_rwlock_read_lock((lock), vigil_until(deadline_ns), VIGIL__HERE)
#define vigil_rwlock_read_trylock(lock)               vigil__check_rwlock_read_lock((lock), 0, VIGIL__HERE)
#define vigil_rwlock_read_unlock(lock)                vigil__check_rwlock_read_unlock((lock), VIGIL__HERE)
#define vigil_rwlock_write_lock(lock)                 vigil__check_rwlock_write_lock((lock), VIGIL_FOREVER, VIGIL__HERE)
#define vigil_rwlock_write_lock_for(lock, timeout_ns) vigil__check_rwlock_write_lock((lock), (timeout_ns), VIGIL__HERE)
#define vigil_rwlock_write_lock_until(lock, deadline_ns)                                                               \
    vigil__check_rwlock_write_lock((lock), vigil_until(deadline_ns), VIGIL__HERE)
#define vigil_rwlock_write_trylock(lock)              vigil__check_rwlock_write_lock((lock), 0, VIGIL__HERE)
#define vigil_rwlock_write_unlock(lock)               vigil__check_rwlock_write_unlock((lock), VIGIL__HERE)
#define vigil_rwlock_write_abandon(lock)              vigil__check_rwlock_write_abandon(lock)
#define vigil_rwlock_downgrade(lock)                  vigil__check_rwlock_downgrade((lock), VIGIL__HERE)
#endif
#endif
