/* SPDX-License-Identifier: MIT */
/*
 * vigil/mutex.h - a lock that threads and event loops share.
 *
 *     static vigil_mutex mutex;                                   four bytes; all zero is unlocked
 *
 *     a thread         vigil_mutex_lock(&mutex); ... vigil_mutex_unlock(&mutex);
 *     an event loop    vigil_mutex_execute(agent, &request, &mutex, VIGIL_FOREVER, with_the_lock_held);
 *
 * Both wait in one line, that of the mutex (see wait.h). The lock does not belong to a thread: what was locked on one
 * thread may be unlocked on another, unless the mutex is robust. It is not recursive.
 *
 * ORDER
 *
 * An unlocked mutex goes to the first caller that takes it, so that a running thread need not wait for a waiter that
 * is still waking up. An unlock calls the head of the line, that is, it wakes that waiter, which then tries to take
 * the mutex; if a waiter that was called before is still on its way, no other is called. No waiter starves: once the
 * head has waited for half a millisecond, the next unlock that looks at the line reserves the mutex for it, and no
 * newcomer can take it in between. That happens at most once in half a millisecond. It is the same for event loops. A
 * loop that is called but does not run does not keep other waiters from the mutex: after half a millisecond the next
 * waiter is called. (vigil_mutex_trylock, which does not wait, may fail meanwhile although the mutex is not held.)
 *
 * A mutex that is initialised with VIGIL_MUTEX_FAIR is first come, first served: each unlock reserves it for the head
 * of the line. An event loop that does not run loses its turn to the next waiter after a second. The price is a
 * change of threads for each unlock while there are waiters.
 *
 * "First come" is by the clock: the moment at which the waiter found the mutex locked. An event loop has one place in
 * the line, that of its oldest request. When it is called it serves its requests in order: as long as it can take the
 * mutex, or, if that is fair, each in its turn.
 *
 * THE WORD
 *
 *     0  unlocked
 *     1  locked, and there are no waiters
 *     2  locked, and there may be waiters
 *     3  unlocked, and reserved for the head of the line
 *     4  added to these: fair
 *     8  added: in a segment, or if it is robust: its owner died; elsewhere: a waiter that has been called is on its
 *        way, so that an unlock need not call another
 *     16 to 2^28: the number of the process that holds it, if that has opened a segment (segment.h); while it is
 *        reserved, and fair or in a segment, since when and for which process; while a called waiter is on its way,
 *        how often it was passed by
 *     2^29  added: robust
 *     2^30  added: if it is robust, only the thread that has locked it may unlock it; else, to 2: its holder found no
 *        waiters, and may release it by a store
 *
 * Other code may change the word of a mutex that is neither fair nor robust where that takes no waiting: it may lock it
 * by changing 0 to 1, and unlock it by changing 1 to 0, each by one compare-and-exchange that acquires or releases. If
 * that fails, it calls the functions below. It must not wait by vigil_wait32: while no waiter is in line, a holder
 * releases the mutex by a store, and only a waiter that comes through these functions makes sure that the two do not
 * miss each other. A process that has opened a segment cannot share a word in this way: there the word is not 1, but
 * contains the number of the process.
 *
 * Of a robust mutex outside of segments, other code may do what takes no waiting. It may lock it by changing
 * 0x20000000 to 0x20000001, and unlock it by changing 0x20000001 to 0x20000000, each by one compare-and-exchange that
 * acquires or releases. If that fails, it calls the functions below: the word has another value whenever there is a
 * waiter to call, an owner that died, or a thread that holds it. What is locked in this way is held as by a request:
 * any thread may unlock it, in either way, and no end is noticed, except by vigil_mutex_abandon. It does not matter
 * whether the process has opened a segment.
 *
 * BETWEEN PROCESSES
 *
 * A mutex in a segment (segment.h) is the same for all processes that have the segment open, and they wait in one
 * line. If the process that holds it dies, or leaves the segment, the next waiter takes it at most some 50 ms later,
 * and the next call that takes it returns VIGIL_OWNER_DIED instead of VIGIL_OK. The mutex is held then. The data that
 * it protects may be half changed: the new holder must repair it and then call vigil_mutex_consistent. If it unlocks
 * the mutex without that call, the next holder gets VIGIL_OWNER_DIED too. Only the end of a process counts: the end
 * of a thread is not noticed, unless the mutex is robust. A process that is stopped keeps what it holds.
 *
 * ROBUST
 *
 * A mutex that is initialised with VIGIL_MUTEX_ROBUST, in a segment or not, belongs to the thread that has locked it
 * by a blocking call. If that thread ends without unlocking it, the next thread or event loop that takes it gets
 * VIGIL_OWNER_DIED, as above. While a thread holds it, no other thread can unlock it (VIGIL_ENOTHELD), and its memory
 * must not be freed. A thread ends when its start routine returns, or by pthread_exit or pthread_cancel; its mutexes
 * are unlocked along with its thread-specific data, the last one that it locked first. In the child of a fork,
 * mutexes that the forking thread holds, and that are not in a segment, stay locked, and any thread may unlock them.
 *
 * A lock that was granted to an event loop, by vigil_mutex_lock_async, vigil_mutex_execute or vigil_cond_wait_async,
 * belongs to the request: any thread may unlock it, and only the end of its process is noticed.
 *
 * The price: locking and unlocking are function calls, not inline, and each robust mutex that a thread holds counts
 * as one waiter (VIGIL_ELIMIT, VIGIL_ENOMEM).
 *
 * GIVING UP
 *
 * A holder that is not a thread may end while its process goes on: the worker of a language runtime, say, whose
 * request was granted the lock. Only the runtime knows that. It calls vigil_mutex_abandon in place of that holder, on
 * any thread, and the next to take the mutex gets VIGIL_OWNER_DIED, as above.
 *
 * DEBUGGING
 *
 * Code that is compiled with VIGIL_CHECK reports self-deadlocks, unlocks by a thread that does not hold the lock,
 * threads that end while they hold a lock, and locks that are taken in different orders: see check.h.
 * vigil_debug_dump shows which threads and event loops wait where, and for how long: see debug.h. A program that is
 * built with the thread sanitizer uses the same library, and gets reports only of its own races. If the library was
 * built on a system that has sys/sdt.h, tracing tools find the probes vigil:lock_contended, lock_granted,
 * lock_released and lock_reserved in it, each with the address of the lock.
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
    { 0x20000000u }

/*
 * vigil_mutex_lock - block until the caller holds the lock: VIGIL_OK, or VIGIL_OWNER_DIED (see above).
 *
 * The timed forms give up after `timeout_ns`, or when vigil_now_ns() reaches `deadline_ns` (VIGIL_TIMED_OUT);
 * vigil_mutex_trylock does so at once. VIGIL_INTERRUPTED: see thread.h. VIGIL_CANCELLED if the memory is forgotten
 * meanwhile. Errors: VIGIL_EMAYNOTBLOCK if the call would have to wait on a thread that may not block; VIGIL_ENULL,
 * VIGIL_EMISALIGNED; VIGIL_ENOMEM, VIGIL_ELIMIT and VIGIL_ECOPIES as in vigil_wait32. After any of these the caller
 * does not hold it.
 *
 * vigil_mutex_unlock - VIGIL_OK, or VIGIL_ENOTHELD if it is not held or, if it is robust, another thread holds it:
 * then nothing changes. (If two threads unlock at once what is locked once, both may return VIGIL_OK.) VIGIL_ENULL,
 * VIGIL_EMISALIGNED. Once another thread can take the mutex, this call does not touch it any more. So the last holder
 * may free it when its own unlock has returned, even if an earlier unlock of another thread has not returned yet; all
 * calls that waited for it must have returned.
 *
 * vigil_mutex_abandon - unlock it in place of a holder that has ended: VIGIL_OK, and the next call that takes it
 * returns VIGIL_OWNER_DIED. VIGIL_ENOTHELD if it is not held; in a segment, if another process holds it; if a thread
 * holds it that is not the caller, and it is robust. VIGIL_EINVAL if it is neither robust nor in a segment: the word
 * has no room to say that its owner died. After an error nothing has changed. The caller must know that the holder
 * has ended, or, for what it holds itself, that it leaves the data half changed. VIGIL_ENULL, VIGIL_EMISALIGNED.
 *
 * vigil_mutex_consistent - after VIGIL_OWNER_DIED, declare the data repaired: VIGIL_OK. VIGIL_EINVAL if its owner
 * has not died, VIGIL_ENOTHELD if it is not held. Only the holder may call it; that is not checked.
 *
 * vigil_mutex_is_locked - whether it is held right now. For debugging and tests: it may be out of date when it
 * returns.
 *
 * If there are no waiters these functions are inline, and do not check that the address is aligned. The library
 * exports them as well, for other languages and for code that defines VIGIL_NO_INLINE.
 */
VIGIL_API int vigil__mutex_lock_slowly(vigil_mutex *mutex, int64_t timeout_ns);
VIGIL_API int vigil__mutex_unlock_slowly(vigil_mutex *mutex);
/* The mutex has been unlocked by a store, and a waiter may be in line. */
VIGIL_API int vigil__mutex_unlocked(vigil_mutex *mutex);
VIGIL_API int vigil_mutex_abandon(vigil_mutex *mutex);
VIGIL_API int vigil_mutex_consistent(vigil_mutex *mutex);
VIGIL_API int vigil__mutex_execute_slowly(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex,
                                         int64_t timeout_ns, vigil_callback *callback);

/*
 * vigil_mutex_lock_async - the same without blocking. Call it on the thread of the agent.
 *
 * VIGIL_OK, VIGIL_OWNER_DIED: the lock is held, and the callback is never called. VIGIL_TIMED_OUT: it is not
 * available, and the timeout is zero or less. VIGIL_PENDING: callback(&request->op, status) is called once, from the
 * agent's dispatch: with VIGIL_OK or VIGIL_OWNER_DIED the lock is held, until vigil_mutex_unlock, then or later and
 * on any thread; with VIGIL_TIMED_OUT or VIGIL_CANCELLED it is not. A pending request can be cancelled at any time:
 * vigil_cancel never returns VIGIL_ETOOLATE. Errors as in vigil_wait32_async.
 */
VIGIL_API int vigil_mutex_lock_async(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex, int64_t timeout_ns,
                                     vigil_callback *callback);

/*
 * vigil_mutex_execute - call callback(&request->op, status) with the lock held, and unlock it when the callback has
 * returned. The status is VIGIL_OK or VIGIL_OWNER_DIED.
 *
 * If the mutex is free, the callback is called before this call returns, and its status is returned. (In that case
 * the agent is not used, and not checked.) Otherwise VIGIL_PENDING is returned, and the callback is called in the
 * agent's dispatch. It may then also be called with VIGIL_TIMED_OUT or VIGIL_CANCELLED, without the lock. Errors, and
 * VIGIL_TIMED_OUT, as in vigil_mutex_lock_async.
 *
 * vigil_mutex_execute_later - the same for work that goes on after the callback has returned: the lock stays held
 * until vigil_mutex_unlock is called, on any thread. The agent is always checked.
 */
VIGIL_API int vigil_mutex_execute_later(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex,
                                        int64_t timeout_ns, vigil_callback *callback);

/* The mutex on an element of a view of VIGIL_I32 or VIGIL_U32: VIGIL_OK. VIGIL_ENULL, VIGIL_ETYPE, VIGIL_ERANGE,
 * VIGIL_EFORKED. */
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

static inline bool vigil__mutex_change(vigil_mutex *mutex, uint32_t from, uint32_t to, int order) {
    return mutex && __atomic_compare_exchange_n(&mutex->word, &from, to, false, order, __ATOMIC_RELAXED);
}

static inline uint32_t vigil__mutex_ours(void) {
    return __atomic_load_n(&vigil__holder, __ATOMIC_RELAXED);
}

static inline int vigil_mutex_lock_for(vigil_mutex *mutex, int64_t timeout_ns) {
    if (vigil__mutex_change(mutex, 0, vigil__mutex_ours(), __ATOMIC_ACQUIRE)) return VIGIL_OK;
    return vigil__mutex_lock_slowly(mutex, timeout_ns);
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

/*
 * As long as no waiter is in line, the holder of a mutex whose word is 1 stores 0. A waiter that has just made the word
 * 2 is in line, or will see the 0: it has a fence for both (U1 and U2 in src/lot/lot.h).
 */
static inline int vigil_mutex_unlock(vigil_mutex *mutex) {
    uint32_t ours = vigil__mutex_ours(); /* may change meanwhile: loaded once */
    if (!mutex || __atomic_load_n(&mutex->word, __ATOMIC_RELAXED) != ours) return vigil__mutex_unlock_slowly(mutex);
    const uint32_t *const *lines = ours == 1 ? __atomic_load_n(&vigil__lines, __ATOMIC_RELAXED) : NULL;
    const uint32_t *line = lines ? vigil__line_of(lines, mutex) : NULL;
    if (lines && (!line || !__atomic_load_n(line, __ATOMIC_RELAXED))) {
        __atomic_store_n(&mutex->word, 0, __ATOMIC_RELEASE);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (!line) line = vigil__line_of(lines, mutex);
        return line && __atomic_load_n(line, __ATOMIC_RELAXED) ? vigil__mutex_unlocked(mutex) : VIGIL_OK;
    }
    if (vigil__mutex_change(mutex, ours, 0, __ATOMIC_RELEASE)) return VIGIL_OK;
    return vigil__mutex_unlock_slowly(mutex);
}

static inline bool vigil_mutex_is_locked(const vigil_mutex *mutex) {
    uint32_t state = mutex ? __atomic_load_n(&mutex->word, __ATOMIC_RELAXED) & 3u : 0;
    return state == 1 || state == 2;
}

static inline int vigil_mutex_execute(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex,
                                      int64_t timeout_ns, vigil_callback *callback) {
    bool idle = request && callback && !(request->op.flags & 1u);
    if (!idle || !vigil__mutex_change(mutex, 0, vigil__mutex_ours(), __ATOMIC_ACQUIRE))
        return vigil__mutex_execute_slowly(agent, request, mutex, timeout_ns, callback);
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
#define vigil_mutex_lock(mutex)                 vigil__check_mutex_lock((mutex), VIGIL_FOREVER, VIGIL__HERE)
#define vigil_mutex_lock_for(mutex, timeout_ns) vigil__check_mutex_lock((mutex), (timeout_ns), VIGIL__HERE)
#define vigil_mutex_lock_until(mutex, deadline_ns)                                                                     \
    vigil__check_mutex_lock((mutex), vigil_until(deadline_ns), VIGIL__HERE)
#define vigil_mutex_trylock(mutex)              vigil__check_mutex_lock((mutex), 0, VIGIL__HERE)
#define vigil_mutex_unlock(mutex)               vigil__check_mutex_unlock((mutex), VIGIL__HERE)
#define vigil_mutex_abandon(mutex)              vigil__check_mutex_abandon(mutex)
#define vigil_mutex_lock_async(agent, request, mutex, timeout_ns, callback)                                            \
    vigil__check_mutex_lock_async((agent), (request), (mutex), (timeout_ns), (callback), VIGIL__HERE)
#define vigil_mutex_execute(agent, request, mutex, timeout_ns, callback)                                               \
    vigil__check_mutex_execute((agent), (request), (mutex), (timeout_ns), (callback), VIGIL__HERE)
#define vigil_mutex_execute_later(agent, request, mutex, timeout_ns, callback)                                         \
    vigil__check_mutex_execute_later((agent), (request), (mutex), (timeout_ns), (callback), VIGIL__HERE)
#endif
#endif
