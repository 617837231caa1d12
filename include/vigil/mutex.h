/* SPDX-License-Identifier: MIT */
/*
 * vigil/mutex.h - a lock that threads and event loops share.
 *
 *     static vigil_mutex mutex;                                   four bytes; all zero is unlocked
 *
 *     a thread         vigil_mutex_lock(&mutex); ... vigil_mutex_unlock(&mutex);
 *     an event loop    vigil_mutex_execute(agent, &request, &mutex, VIGIL_FOREVER, with_the_lock_held);
 *
 * Both wait in one line, the mutex's own (see wait.h). The lock belongs to whoever was granted it, not to a thread:
 * what was locked on one thread may be unlocked on another, unless the mutex is robust. It is not recursive.
 *
 * WHO GETS IT NEXT
 *
 * A mutex that is unlocked goes to whoever takes it first, so that a thread that is running need not wait for one that
 * is being woken. The head of the line is called when the mutex is unlocked, unless somebody who has been called is on
 * his way, and tries. Nobody starves: once the head has waited for half a millisecond, the next unlock that looks at
 * the line reserves the mutex for it, and no newcomer can come in between; that happens at most once in half a
 * millisecond. It goes for event loops as well. One that is called but does not run keeps nobody from the lock who
 * waits for it: after half a millisecond it is the next one's turn. (vigil_mutex_trylock, which does not wait, fails
 * meanwhile.)
 *
 * A mutex that begins as VIGIL_MUTEX_FAIR is first come, first served: each unlock reserves it for the head of the
 * line. An event loop that does not run, and so does not come for it, loses its turn to the next after a second.
 * It costs a change of threads for each unlock while somebody waits.
 *
 * "First come" is by the clock: the moment at which somebody found the mutex locked. An event loop has one place in
 * the line, that of its oldest request, and when it is called it serves its requests in order: as long as the mutex is
 * to be had, or, if it is fair, each in its turn.
 *
 * THE WORD
 *
 *     0  unlocked
 *     1  locked, and there are no waiters
 *     2  locked, and there may be waiters
 *     3  unlocked, and reserved for the head of the line
 *     4  added to these: fair
 *     8  added: in a segment, or if it is robust, that its owner died; elsewhere, that a waiter which has been called has
 *        yet to come, so that an unlock need not call another
 *     16 and above: the number of the process that holds it, if that has opened a segment (segment.h); while it is
 *        reserved, since when; while a waiter has yet to come, how often it has been passed by
 *     2^30  added: robust, and the thread that has locked it is to unlock it
 *     2^31  added: robust
 *
 * 0, 1 and 2 are the three states of the well-known futex lock. Others may use that lock on the same word, with
 * vigil_wait32 and vigil_notify, as long as they change it by compare-and-exchange, and not if it is fair or robust.
 * Where event loops wait as well they had better notify everybody: a loop that is the only one to be woken may not run
 * for a while. To such a lock a mutex that is reserved, or for which somebody is coming, is neither free nor 2: it
 * spins meanwhile. In a process that has opened a segment they cannot share a word: there it is not 1, or 2, but has
 * the number.
 *
 * BETWEEN PROCESSES
 *
 * A mutex in a segment (segment.h) is the same for all the processes that have it open, and they wait in one line. If
 * the process that holds it dies, or leaves the segment, the next one to take it is told VIGIL_OWNER_DIED instead of
 * VIGIL_OK, at most some 50 ms later, wherever it waits. It holds the mutex then: what that protects may be half done,
 * and it is for the new holder to make it good and say so, vigil_mutex_consistent. If it unlocks without having said so
 * the next one is told VIGIL_OWNER_DIED too. It is processes that count: the end of a thread is not noticed, unless the
 * mutex is robust. A process that is stopped keeps what it has.
 *
 * ROBUST
 *
 * A mutex that begins as VIGIL_MUTEX_ROBUST, in a segment or not, belongs to the thread that has locked it by a
 * blocking call. When that thread ends without having unlocked it, the next one to take it is told VIGIL_OWNER_DIED, as
 * above, be it a thread or an event loop. No other thread can unlock it meanwhile (VIGIL_ENOTHELD), nor may its memory
 * be freed. A thread ends when its start routine returns, or by pthread_exit or pthread_cancel; its mutexes are
 * unlocked along with its thread-specific data, the last one that it locked first. In the child of a fork, the mutexes
 * that the forking thread holds, and that are not in a segment, stay locked, and any thread may unlock them.
 *
 * What an event loop was granted, by vigil_mutex_lock_async, vigil_mutex_execute and vigil_cond_wait_async, belongs to
 * the request: any thread may unlock it, and only the end of its process is noticed.
 *
 * The price: locking and unlocking are calls of the library, and each mutex that a thread holds counts as one waiter
 * (VIGIL_ELIMIT, VIGIL_ENOMEM).
 *
 * WHEN SOMETHING IS WRONG
 *
 * Compiled with VIGIL_CHECK, your code is told of self-deadlocks, of unlocks by strangers, of threads that end while
 * they hold a lock and of locks that are taken in different orders: check.h. vigil_debug_dump shows who waits where,
 * and for how long: debug.h. A program that is built with the thread sanitizer uses the same library, and is told of
 * its own races only. Tracing tools find the probes vigil:lock_contended, lock_granted, lock_released and lock_reserved
 * in it, each with the address of the lock, if it was built on a system that has sys/sdt.h.
 */
#ifndef VIGIL_MUTEX_H
#define VIGIL_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "memory.h"
#include "request.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_mutex {
    uint32_t word;
} vigil_mutex;

#define VIGIL_MUTEX_INIT                                                                                               \
    { 0u }
#define VIGIL_MUTEX_FAIR                                                                                               \
    { 4u }
#define VIGIL_MUTEX_ROBUST                                                                                             \
    { 0x80000000u }

/*
 * vigil_mutex_lock - block until the lock is ours: VIGIL_OK, or VIGIL_OWNER_DIED, see above.
 *
 * The timed forms give up after `timeout_ns`, or when vigil_now_ns() reaches `deadline_ns` (VIGIL_TIMED_OUT), the
 * trying one at once. VIGIL_CANCELLED if the memory is forgotten meanwhile; VIGIL_EMAYNOTBLOCK where it would have to
 * wait on a thread that may not block; VIGIL_ENULL, VIGIL_EMISALIGNED; VIGIL_ENOMEM and VIGIL_ELIMIT as in
 * vigil_wait32.
 *
 * vigil_mutex_unlock - VIGIL_OK, or VIGIL_ENOTHELD if nobody holds it or, if it is robust, another thread does: then
 * nothing changes. Once another thread can have the mutex this call does not touch it any more. So the last one to hold
 * it may free it when its own unlock has returned, although another's has not; all that waited for it must have come
 * back.
 *
 * vigil_mutex_consistent - what it protects is in order again: VIGIL_OK. VIGIL_EINVAL if its owner has not died,
 * VIGIL_ENOTHELD if nobody holds it.
 *
 * vigil_mutex_is_locked - whether somebody holds it right now. To look at.
 *
 * Where nobody waits they are inline, and the address is not checked. Other languages, and who defines
 * VIGIL_NO_INLINE, find them in the library too.
 */
VIGIL_API int vigil_mutex_lock_slowly(vigil_mutex *mutex, int64_t timeout_ns);
VIGIL_API int vigil_mutex_unlock_slowly(vigil_mutex *mutex);
VIGIL_API int vigil_mutex_consistent(vigil_mutex *mutex);
VIGIL_API int vigil_mutex_execute_slowly(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex,
                                         int64_t timeout_ns, vigil_callback *callback);

/*
 * vigil_mutex_lock_async - the same without blocking, on the agent's thread.
 *
 * VIGIL_OK, VIGIL_OWNER_DIED: the lock is ours already, and the callback is never called. VIGIL_TIMED_OUT: it is not
 * free, and the timeout is not above zero. VIGIL_PENDING: callback(&request->op, status) is called once, from the
 * agent's dispatch: VIGIL_OK or VIGIL_OWNER_DIED, with the lock held, to be released by vigil_mutex_unlock then or
 * later, on any thread; VIGIL_TIMED_OUT or VIGIL_CANCELLED, without it. A pending request can be cancelled at any time:
 * vigil_cancel never comes too late. Errors as in vigil_wait32_async.
 */
VIGIL_API int vigil_mutex_lock_async(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                                     vigil_callback *callback);

/*
 * vigil_mutex_execute - call callback(&request->op, VIGIL_OK), or with VIGIL_OWNER_DIED, with the lock held, and unlock
 * when it has returned. If
 * the mutex is free that happens here and now, and the answer is VIGIL_OK (on a free mutex nothing else matters, the
 * agent is not even looked at); if not, VIGIL_PENDING, and it happens in the agent's dispatch. After VIGIL_PENDING the
 * callback may also be called with VIGIL_TIMED_OUT or VIGIL_CANCELLED, without the lock. Other answers as of
 * vigil_mutex_lock_async.
 *
 * vigil_mutex_execute_later - the same for a callback that is not done when it returns: it, or what it has begun, calls
 * vigil_mutex_unlock in the end, on any thread.
 */
VIGIL_API int vigil_mutex_execute_later(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex,
                                        int64_t timeout_ns, vigil_callback *callback);

/* The mutex on an element of a view of VIGIL_I32 or VIGIL_U32. VIGIL_ENULL, VIGIL_ETYPE, VIGIL_ERANGE, VIGIL_EFORKED. */
VIGIL_API int vigil_mutex_in(vigil_view view, uint64_t index, vigil_mutex **mutex);

#ifdef VIGIL_NO_INLINE
VIGIL_API int vigil_mutex_lock(vigil_mutex *mutex);
VIGIL_API int vigil_mutex_lock_for(vigil_mutex *mutex, int64_t timeout_ns);
VIGIL_API int vigil_mutex_lock_until(vigil_mutex *mutex, int64_t deadline_ns);
VIGIL_API int vigil_mutex_trylock(vigil_mutex *mutex);
VIGIL_API int vigil_mutex_unlock(vigil_mutex *mutex);
VIGIL_API bool vigil_mutex_is_locked(const vigil_mutex *mutex);
VIGIL_API int vigil_mutex_execute(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                                  vigil_callback *callback);
#else

static inline bool vigil_mutex_change(vigil_mutex *mutex, uint32_t from, uint32_t to, int order) {
    return mutex && __atomic_compare_exchange_n(&mutex->word, &from, to, false, order, __ATOMIC_RELAXED);
}

static inline uint32_t vigil_mutex_ours(void) {
    return __atomic_load_n(&vigil_holder, __ATOMIC_RELAXED);
}

static inline int vigil_mutex_lock_for(vigil_mutex *mutex, int64_t timeout_ns) {
    if (vigil_mutex_change(mutex, 0, vigil_mutex_ours(), __ATOMIC_ACQUIRE)) return VIGIL_OK;
    return vigil_mutex_lock_slowly(mutex, timeout_ns);
}

static inline int vigil_mutex_lock_until(vigil_mutex *mutex, int64_t deadline_ns) {
    return vigil_mutex_lock_for(mutex, vigil_until(deadline_ns));
}

static inline int vigil_mutex_lock(vigil_mutex *mutex) {
    return vigil_mutex_lock_for(mutex, VIGIL_FOREVER);
}

static inline int vigil_mutex_trylock(vigil_mutex *mutex) {
    return vigil_mutex_lock_for(mutex, 0);
}

static inline int vigil_mutex_unlock(vigil_mutex *mutex) {
    if (vigil_mutex_change(mutex, vigil_mutex_ours(), 0, __ATOMIC_RELEASE)) return VIGIL_OK;
    return vigil_mutex_unlock_slowly(mutex);
}

static inline bool vigil_mutex_is_locked(const vigil_mutex *mutex) {
    uint32_t state = mutex ? __atomic_load_n(&mutex->word, __ATOMIC_RELAXED) & 3u : 0;
    return state == 1 || state == 2;
}

static inline int vigil_mutex_execute(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex,
                                      int64_t timeout_ns, vigil_callback *callback) {
    bool idle = request && callback && !(request->op.flags & 1u);
    if (!idle || !vigil_mutex_change(mutex, 0, vigil_mutex_ours(), __ATOMIC_ACQUIRE))
        return vigil_mutex_execute_slowly(agent, request, mutex, timeout_ns, callback);
    callback(&request->op, VIGIL_OK);
    vigil_mutex_unlock(mutex);
    return VIGIL_OK;
}
#endif

#ifdef __cplusplus
}
#endif

#ifdef VIGIL_CHECK /* see check.h */
#include "check.h"
#define vigil_mutex_lock(mutex)                 vigil_check_mutex_lock((mutex), VIGIL_FOREVER, VIGIL_HERE)
#define vigil_mutex_lock_for(mutex, timeout_ns) vigil_check_mutex_lock((mutex), (timeout_ns), VIGIL_HERE)
#define vigil_mutex_lock_until(mutex, deadline_ns)                                                                     \
    vigil_check_mutex_lock((mutex), vigil_until(deadline_ns), VIGIL_HERE)
#define vigil_mutex_trylock(mutex)              vigil_check_mutex_lock((mutex), 0, VIGIL_HERE)
#define vigil_mutex_unlock(mutex)               vigil_check_mutex_unlock((mutex), VIGIL_HERE)
#define vigil_mutex_lock_async(agent, request, mutex, timeout_ns, callback)                                            \
    vigil_check_mutex_lock_async((agent), (request), (mutex), (timeout_ns), (callback), VIGIL_HERE)
#define vigil_mutex_execute(agent, request, mutex, timeout_ns, callback)                                               \
    vigil_check_mutex_execute((agent), (request), (mutex), (timeout_ns), (callback), VIGIL_HERE)
#define vigil_mutex_execute_later(agent, request, mutex, timeout_ns, callback)                                         \
    vigil_check_mutex_execute_later((agent), (request), (mutex), (timeout_ns), (callback), VIGIL_HERE)
#endif
#endif
