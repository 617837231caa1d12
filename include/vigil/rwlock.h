/* SPDX-License-Identifier: MIT */
/*
 * vigil/rwlock.h - a lock for many readers or one writer, which threads and event loops share.
 *
 *     static vigil_rwlock lock;                                   four bytes; all zero is unlocked
 *
 *     a thread         vigil_rwlock_read_lock(&lock); ... vigil_rwlock_read_unlock(&lock);
 *     an event loop    vigil_rwlock_write_lock_async(agent, &request, &lock, VIGIL_FOREVER, with_the_lock_held);
 *
 * The lock belongs to whoever was granted it, not to a thread: what was locked on one thread may be unlocked on
 * another. It is not recursive: a thread that reads, and asks to read once more, may have to wait behind a writer that
 * waits for it, which is a deadlock. Compiled with VIGIL_CHECK, that is reported (check.h); where it is to be allowed,
 * let the readers pass, see below.
 *
 * WHO GETS IT NEXT
 *
 * All waiters stand in one line, by the moment at which they found the lock taken. An unlock calls the head of the line,
 * and readers that stand together at the head are called together. If the head is a thread that has not fallen asleep
 * yet the lock is reserved for it; if not, it goes to the first that takes it, and until the head has woken up others
 * may take it several times. New readers join those that read already, past a writer that waits: for half a millisecond. From
 * then on they wait behind the writer. No waiter starves: once the head has waited for half a millisecond the unlock
 * reserves the lock for it, and no newcomer can come in between. That goes for event loops as well; but a loop that is
 * called and does not run does not keep others from the lock: after half a millisecond it is the next one's turn. (The
 * trying forms, which do not wait, fail meanwhile.)
 *
 * A lock that begins as VIGIL_RWLOCK_READERS_PASS lets readers take it while it is read, even though writers wait, as
 * PTHREAD_RWLOCK_PREFER_READER_NP does: then a thread that reads can always read once more, and readers in line are let
 * in as soon as one reads, also from behind a writer. That goes for event loops too; only a request that is queued
 * behind another of the same loop's waits for that one. The price: writers starve for as long as the lock never stops
 * being read. Once it is not read, a writer that has waited for half a millisecond has, as a rule, its turn before
 * newcomers, as above.
 *
 * THE WORD
 *
 *     1   a writer holds it
 *     2   somebody may wait: who unlocks it looks at the line
 *     4   it is reserved for those in line who have been called
 *     8   a writer has waited long for the readers to leave: no new ones
 *     16  times the number of readers; those who only see that they have to wait are counted for a moment, too
 *     2^30  readers pass
 *     2^31  in a segment: a process died while it was writing
 *
 * BETWEEN PROCESSES
 *
 * A lock in a segment (segment.h) is the same for all the processes that have it open, and they wait in one line. If a
 * process dies, or leaves the segment, what it holds is given back, at most some 50 ms later. If it was writing, what
 * the lock protects may be half done, and from then on whoever takes the lock is told VIGIL_OWNER_DIED instead of
 * VIGIL_OK, readers and writers alike. They hold it then; one who writes is to make it good and say so,
 * vigil_rwlock_consistent. A process can only unlock what it, on any of its threads, has locked. Each process that
 * holds a lock, however often, counts as one who waits in the segment: if there is no room for that, VIGIL_ELIMIT, to
 * one who has waited as well.
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
 * vigil_rwlock_read_lock, vigil_rwlock_write_lock - block until the lock is ours, to share or alone: VIGIL_OK, or
 * VIGIL_OWNER_DIED, see above.
 *
 * The timed forms give up after `timeout_ns`, or when vigil_now_ns() reaches `deadline_ns` (VIGIL_TIMED_OUT), the
 * trying ones at once. VIGIL_CANCELLED if the memory is forgotten meanwhile; VIGIL_EMAYNOTBLOCK where it would have to
 * wait on a thread that may not block; VIGIL_ELIMIT beyond 33,554,432 readers; VIGIL_ENULL, VIGIL_EMISALIGNED;
 * VIGIL_ENOMEM and VIGIL_ELIMIT as in vigil_wait32.
 *
 * vigil_rwlock_read_unlock, vigil_rwlock_write_unlock - VIGIL_OK, or VIGIL_ENOTHELD if nobody, or in a segment nobody
 * of this process, holds it in that way: then nothing changes.
 *
 * Once others can have the lock these calls do not touch it any more. So the last one to hold it may free it when its
 * own unlock has returned, although another's has not; all that waited for it must have come back.
 *
 * vigil_rwlock_downgrade - from writing to reading, and no other writer comes in between: VIGIL_OK. Readers at the head
 * of the line are let in. VIGIL_ENOTHELD as above.
 *
 * vigil_rwlock_consistent - what it protects, and we hold to write, is in order again: VIGIL_OK. VIGIL_EINVAL if nobody
 * has died while writing, VIGIL_ENOTHELD as above.
 *
 * Where nobody waits they are inline, and the address is not checked. Other languages, and who defines
 * VIGIL_NO_INLINE, find them in the library too.
 */
VIGIL_API int vigil_rwlock_downgrade(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_consistent(vigil_rwlock *lock);

VIGIL_API int vigil_rwlock_read_lock_slowly(vigil_rwlock *lock, int64_t timeout_ns);
/* The same for one who has been counted as a reader, but may not be one yet. */
VIGIL_API int vigil_rwlock_read_lock_miscounted(vigil_rwlock *lock, int64_t timeout_ns);
VIGIL_API int vigil_rwlock_read_unlock_slowly(vigil_rwlock *lock);
VIGIL_API int vigil_rwlock_write_lock_slowly(vigil_rwlock *lock, int64_t timeout_ns);
VIGIL_API int vigil_rwlock_write_unlock_slowly(vigil_rwlock *lock);

/*
 * vigil_rwlock_read_lock_async, vigil_rwlock_write_lock_async - the same without blocking, on the agent's thread.
 *
 * VIGIL_OK, VIGIL_OWNER_DIED: the lock is ours already, and the callback is never called. VIGIL_TIMED_OUT: it is not to
 * be had, and the timeout is not above zero. VIGIL_PENDING: callback(&request->op, status) is called once, from the
 * agent's dispatch: VIGIL_OK or VIGIL_OWNER_DIED, with the lock held, to be unlocked then or later, on any thread;
 * VIGIL_TIMED_OUT, VIGIL_CANCELLED or, in a segment, VIGIL_ELIMIT, without it. A pending request can be cancelled at
 * any time: vigil_cancel never comes too late. Errors as above and as in vigil_wait32_async.
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

/* The lock may be in a segment: there it is not for these to change it. */
static inline bool vigil_rwlock_may_be_shared(void) {
    return __atomic_load_n(&vigil_holder, __ATOMIC_RELAXED) != 1u;
}

static inline bool vigil_rwlock_change(vigil_rwlock *lock, uint32_t from, uint32_t to, int order) {
    if (!lock || vigil_rwlock_may_be_shared()) return false;
    return __atomic_compare_exchange_n(&lock->word, &from, to, false, order, __ATOMIC_RELAXED);
}

/* Counted first, then asked: among readers that never fails, however many come at once. Who only tries is not counted
 * in error, lest those who try again and again keep a writer out. */
static inline int vigil_rwlock_read_lock_for(vigil_rwlock *lock, int64_t timeout_ns) {
    const uint32_t not_now = 1u | 4u | 8u | 1u << 29;
    if (vigil_rwlock_may_be_shared()) return vigil_rwlock_read_lock_slowly(lock, timeout_ns);
    if (lock && !(__atomic_fetch_add(&lock->word, 16u, __ATOMIC_ACQUIRE) & not_now)) return VIGIL_OK;
    return vigil_rwlock_read_lock_miscounted(lock, timeout_ns);
}

static inline int vigil_rwlock_read_lock_until(vigil_rwlock *lock, int64_t deadline_ns) {
    return vigil_rwlock_read_lock_for(lock, vigil_until(deadline_ns));
}

static inline int vigil_rwlock_read_lock(vigil_rwlock *lock) {
    return vigil_rwlock_read_lock_for(lock, VIGIL_FOREVER);
}

static inline int vigil_rwlock_read_trylock(vigil_rwlock *lock) {
    return vigil_rwlock_read_lock_slowly(lock, 0);
}

static inline int vigil_rwlock_read_unlock(vigil_rwlock *lock) {
    bool simple = lock && !vigil_rwlock_may_be_shared();
    uint32_t seen = simple ? __atomic_load_n(&lock->word, __ATOMIC_RELAXED) : 0;
    while ((seen & 0x3ffffff0u) && !(seen & 2u)) {
        if (__atomic_compare_exchange_n(&lock->word, &seen, seen - 16u, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return VIGIL_OK;
    }
    return vigil_rwlock_read_unlock_slowly(lock);
}

static inline int vigil_rwlock_write_lock_for(vigil_rwlock *lock, int64_t timeout_ns) {
    if (vigil_rwlock_change(lock, 0, 1u, __ATOMIC_ACQUIRE)) return VIGIL_OK;
    return vigil_rwlock_write_lock_slowly(lock, timeout_ns);
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
    if (vigil_rwlock_change(lock, 1u, 0, __ATOMIC_RELEASE)) return VIGIL_OK;
    return vigil_rwlock_write_unlock_slowly(lock);
}
#endif

#ifdef __cplusplus
}
#endif

#ifdef VIGIL_CHECK /* see check.h */
#include "check.h"
#define vigil_rwlock_read_lock(lock)                  vigil_check_rwlock_read_lock((lock), VIGIL_FOREVER, VIGIL_HERE)
#define vigil_rwlock_read_lock_for(lock, timeout_ns)  vigil_check_rwlock_read_lock((lock), (timeout_ns), VIGIL_HERE)
#define vigil_rwlock_read_lock_until(lock, deadline_ns)                                                                \
    vigil_check_rwlock_read_lock((lock), vigil_until(deadline_ns), VIGIL_HERE)
#define vigil_rwlock_read_trylock(lock)               vigil_check_rwlock_read_lock((lock), 0, VIGIL_HERE)
#define vigil_rwlock_read_unlock(lock)                vigil_check_rwlock_read_unlock((lock), VIGIL_HERE)
#define vigil_rwlock_write_lock(lock)                 vigil_check_rwlock_write_lock((lock), VIGIL_FOREVER, VIGIL_HERE)
#define vigil_rwlock_write_lock_for(lock, timeout_ns) vigil_check_rwlock_write_lock((lock), (timeout_ns), VIGIL_HERE)
#define vigil_rwlock_write_lock_until(lock, deadline_ns)                                                               \
    vigil_check_rwlock_write_lock((lock), vigil_until(deadline_ns), VIGIL_HERE)
#define vigil_rwlock_write_trylock(lock)              vigil_check_rwlock_write_lock((lock), 0, VIGIL_HERE)
#define vigil_rwlock_write_unlock(lock)               vigil_check_rwlock_write_unlock((lock), VIGIL_HERE)
#define vigil_rwlock_downgrade(lock)                  vigil_check_rwlock_downgrade((lock), VIGIL_HERE)
#endif
#endif
