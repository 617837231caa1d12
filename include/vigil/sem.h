/* SPDX-License-Identifier: MIT */
/*
 * vigil/sem.h - a counting semaphore that threads and event loops share.
 *
 *     static vigil_sem seats = VIGIL_SEM_INIT(8);                 four bytes; all zero has no permits
 *
 *     a thread         vigil_sem_acquire(&seats, 2); ... vigil_sem_release(&seats, 2);
 *     an event loop    vigil_sem_acquire_async(agent, &request, &seats, 2, VIGIL_FOREVER, with_two_seats);
 *
 * A call that acquires n permits gets all of them at once or none. Permits have no owner: any thread may release
 * them, even permits that were never acquired, up to VIGIL_SEM_MAX in all.
 *
 * ORDER
 *
 * All waiters stand in one line, in the order in which they found too few permits, and are served in that order: a
 * small request waits behind a large one. But permits that are available go to the first caller that takes them, so a
 * newcomer may get them before the head of the line. No waiter starves: once in half a millisecond, a release gives a
 * head that has waited so long its turn, and from then on no newcomer gets permits before it, and released permits are
 * saved until there are enough for it. It is the same for event loops. A loop that is called but does not run does not
 * keep other waiters from the permits: after half a millisecond the next waiter is called. (vigil_sem_tryacquire, which
 * does not wait, may fail meanwhile although there are enough permits.)
 *
 * THE WORD
 *
 *     1  there may be waiters: a release looks at the line
 *     2  the permits are reserved for the waiters that have been called
 *     4  the permits are saved for the head of the line, which needs more than there are
 *     6  neither, but a thread that was called is on its way: a release that adds the only permit calls no other
 *     8  the permits are leased
 *     16 times the number of permits
 *
 * BETWEEN PROCESSES
 *
 * A semaphore in a segment (segment.h) is the same for all processes that have the segment open, and they wait in one
 * line. If a process dies that has acquired permits, they are lost: it is not known which process has them. If the
 * semaphore is initialised with VIGIL_SEM_LEASED(n), it is known: permits that a process has acquired, and has not
 * released when it dies or leaves the segment, come back, at most some 50 ms later. So a process can release only
 * what it has acquired, on any of its threads. Each process that has permits of such a semaphore counts as one waiter
 * of the segment: if there is no room for that the call returns VIGIL_ELIMIT, even after it has waited. In memory
 * that is not in a segment, leased permits are like others.
 */
#ifndef VIGIL_SEM_H
#define VIGIL_SEM_H

#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "request.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_sem {
    uint32_t word;
} vigil_sem;

#define VIGIL_SEM_MAX 0xfffffffu
#define VIGIL_SEM_INIT(permits)                                                                                        \
    { (uint32_t)(permits) << 4 }
#define VIGIL_SEM_LEASED(permits)                                                                                      \
    { (uint32_t)(permits) << 4 | 8u }

/*
 * vigil_sem_acquire - block until the caller has acquired `permits`: VIGIL_OK.
 *
 * The timed forms give up after `timeout_ns`, or when vigil_now_ns() reaches `deadline_ns` (VIGIL_TIMED_OUT);
 * vigil_sem_tryacquire does so at once. VIGIL_INTERRUPTED: see thread.h. VIGIL_CANCELLED if the memory is forgotten
 * meanwhile. Errors: VIGIL_EMAYNOTBLOCK if the call would have to wait on a thread that may not block; VIGIL_EINVAL
 * for zero permits and VIGIL_ERANGE for more than VIGIL_SEM_MAX; VIGIL_ENULL, VIGIL_EMISALIGNED; VIGIL_ENOMEM,
 * VIGIL_ELIMIT and VIGIL_ECOPIES as in vigil_wait32. After any of these nothing has been acquired.
 *
 * vigil_sem_release - VIGIL_OK. VIGIL_ERANGE if there would be more than VIGIL_SEM_MAX permits in all, VIGIL_ENOTHELD
 * if they are leased and this process has fewer: then nothing changes. VIGIL_EINVAL, VIGIL_ENULL, VIGIL_EMISALIGNED
 * as above.
 *
 * It may be called in a signal handler. If the handler has interrupted a call of the library (see wait.h), the
 * permits are available when it returns, and waiters are called a moment later; VIGIL_ELIMIT if that work cannot be
 * left to the interrupted call: then nothing changes. Leased permits of a segment are released a moment later as a
 * whole. In that case VIGIL_OK does not mean that this process has that many: if it has fewer than its handlers have
 * released meanwhile, none of these are released.
 *
 * Once the permits are available, vigil_sem_release does not touch the semaphore any more. So a thread that has
 * acquired them may free it, even if the release has not returned yet; all calls that waited for it must have
 * returned.
 *
 * vigil_sem_value - how many permits are available right now. For debugging and tests: it may be out of date when it
 * returns.
 *
 * If there are no waiters these functions are inline, and do not check that the address is aligned. The library
 * exports them as well, for other languages and for code that defines VIGIL_NO_INLINE.
 */
VIGIL_API int vigil__sem_acquire_slowly(vigil_sem *sem, uint32_t permits, int64_t timeout_ns);
VIGIL_API int vigil__sem_release_slowly(vigil_sem *sem, uint32_t permits);

/*
 * vigil_sem_acquire_async - the same without blocking. Call it on the thread of the agent.
 *
 * VIGIL_OK: the permits are acquired, and the callback is never called. VIGIL_TIMED_OUT: there are too few, and the
 * timeout is zero or less. VIGIL_PENDING: callback(&request->op, status) is called once, from the agent's dispatch:
 * with VIGIL_OK the permits are acquired, and can be released then or later, on any thread; with VIGIL_TIMED_OUT,
 * VIGIL_CANCELLED or, if they are leased, VIGIL_ELIMIT, they are not. A pending request can be cancelled at any time:
 * vigil_cancel never returns VIGIL_ETOOLATE. Errors as above and as in vigil_wait32_async.
 */
VIGIL_API int vigil_sem_acquire_async(vigil_agent *agent, vigil_request *request, vigil_sem *sem, uint32_t permits,
                                      int64_t timeout_ns, vigil_callback *callback);

#ifdef VIGIL_NO_INLINE
VIGIL_API int vigil_sem_acquire(vigil_sem *sem, uint32_t permits);
VIGIL_API int vigil_sem_acquire_for(vigil_sem *sem, uint32_t permits, int64_t timeout_ns);
VIGIL_API int vigil_sem_acquire_until(vigil_sem *sem, uint32_t permits, int64_t deadline_ns);
VIGIL_API int vigil_sem_tryacquire(vigil_sem *sem, uint32_t permits);
VIGIL_API int vigil_sem_release(vigil_sem *sem, uint32_t permits);
VIGIL_API uint32_t vigil_sem_value(const vigil_sem *sem);
#else

static inline bool vigil__sem_change(vigil_sem *sem, uint32_t from, uint32_t to, int order) {
    return __atomic_compare_exchange_n(&sem->word, &from, to, false, order, __ATOMIC_RELAXED);
}

static inline int vigil_sem_acquire_for(vigil_sem *sem, uint32_t permits, int64_t timeout_ns) {
    uint32_t seen = sem ? __atomic_load_n(&sem->word, __ATOMIC_RELAXED) : 0;
    bool enough = permits && permits <= seen >> 4 && !(seen & 14u);
    if (enough && vigil__sem_change(sem, seen, seen - (permits << 4), __ATOMIC_ACQUIRE)) return VIGIL_OK;
    return vigil__sem_acquire_slowly(sem, permits, timeout_ns);
}

static inline int vigil_sem_acquire_until(vigil_sem *sem, uint32_t permits, int64_t deadline_ns) {
    return vigil_sem_acquire_for(sem, permits, vigil_until(deadline_ns));
}

static inline int vigil_sem_acquire(vigil_sem *sem, uint32_t permits) {
    return vigil_sem_acquire_for(sem, permits, VIGIL_FOREVER);
}

static inline int vigil_sem_tryacquire(vigil_sem *sem, uint32_t permits) {
    return vigil_sem_acquire_for(sem, permits, 0);
}

static inline int vigil_sem_release(vigil_sem *sem, uint32_t permits) {
    uint32_t seen = sem ? __atomic_load_n(&sem->word, __ATOMIC_RELAXED) : 1u;
    bool simple = permits && permits <= VIGIL_SEM_MAX - (seen >> 4) && !(seen & 9u);
    if (simple && vigil__sem_change(sem, seen, seen + (permits << 4), __ATOMIC_RELEASE)) return VIGIL_OK;
    return vigil__sem_release_slowly(sem, permits);
}

static inline uint32_t vigil_sem_value(const vigil_sem *sem) {
    return sem ? __atomic_load_n(&sem->word, __ATOMIC_RELAXED) >> 4 : 0;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
