/* SPDX-License-Identifier: MIT */
/*
 * vigil/sem.h - a counting semaphore that threads and event loops share.
 *
 *     static vigil_sem seats = VIGIL_SEM_INIT(8);                 four bytes; all zero has no permits
 *
 *     a thread         vigil_sem_acquire(&seats, 2); ... vigil_sem_release(&seats, 2);
 *     an event loop    vigil_sem_acquire_async(agent, &request, &seats, 2, VIGIL_FOREVER, with_two_seats);
 *
 * Whoever acquires n permits gets all of them at once or none. A permit belongs to nobody: who releases it need not be
 * who acquired it, and one may release what nobody has acquired, up to VIGIL_SEM_MAX permits in all.
 *
 * WHO GETS THEM NEXT
 *
 * All who wait stand in one line, by the moment at which they found too few permits. They are served in that order: a
 * small request waits behind a large one. Permits that are there go to whoever takes them first, though, so a newcomer
 * may be faster than the head of the line. Nobody starves: once the head has waited for half a millisecond, from the
 * next release on no newcomer gets anything before it, and what is released is saved until there is enough for it. That
 * goes for event loops as well; but one that is called and does not run keeps nobody from the permits who waits for
 * them: after half a millisecond it is the next one's turn. (vigil_sem_tryacquire, which does not wait, fails
 * meanwhile.)
 *
 * THE WORD
 *
 *     1  somebody may wait: who releases permits looks at the line
 *     2  the permits are reserved for those in line who have been called
 *     4  the permits are saved for the head of the line, which needs more than there are
 *     8  the permits are leased
 *     16 times the number of permits
 *
 * BETWEEN PROCESSES
 *
 * A semaphore in a segment (segment.h) is the same for all the processes that have it open, and they wait in one line.
 * If a process dies that has acquired permits, they are gone with it: nobody knows whose they were. Unless the
 * semaphore begins as VIGIL_SEM_LEASED(n): then permits that a process has acquired and not released when it dies, or
 * leaves the segment, come back, at most some 50 ms later. So a process can only release what it, on any of its
 * threads, has acquired. Each process that has any permits of such a semaphore counts as one who waits in the segment:
 * if there is no room for that, VIGIL_ELIMIT, to one who has waited as well. In memory that is not a segment's, leased
 * permits are like others.
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
 * vigil_sem_acquire - block until `permits` are ours: VIGIL_OK.
 *
 * The timed forms give up after `timeout_ns`, or when vigil_now_ns() reaches `deadline_ns` (VIGIL_TIMED_OUT), the
 * trying one at once. VIGIL_CANCELLED if the memory is forgotten meanwhile; VIGIL_EMAYNOTBLOCK where it would have to
 * wait on a thread that may not block; VIGIL_EINVAL for no permits at all and VIGIL_ERANGE for more than VIGIL_SEM_MAX;
 * VIGIL_ENULL, VIGIL_EMISALIGNED; VIGIL_ENOMEM and VIGIL_ELIMIT as in vigil_wait32.
 *
 * vigil_sem_release - VIGIL_OK. VIGIL_ERANGE if that would be more than VIGIL_SEM_MAX in all: then nothing changes.
 * VIGIL_ENOTHELD if they are leased and this process has fewer: the same. VIGIL_EINVAL, VIGIL_ENULL, VIGIL_EMISALIGNED
 * as above. It may be called in a signal handler. If that has interrupted a call of the library (see wait.h) the
 * permits are there when it returns, and the waiters are called a moment later; VIGIL_ELIMIT if that cannot be left to
 * the interrupted call: then nothing changes. Leased permits of a segment are released a moment later as a whole:
 * VIGIL_OK then does not say that this process has so many, and if it has fewer than handlers have released meanwhile,
 * none of these are.
 *
 * Once the permits can be had, vigil_sem_release does not touch the semaphore any more. So a thread that has acquired
 * them may free it, although the release has not returned; all that waited for it must have come back.
 *
 * vigil_sem_value - how many permits there are right now. To look at.
 *
 * Where nobody waits they are inline, and the address is not checked. Other languages, and who defines
 * VIGIL_NO_INLINE, find them in the library too.
 */
VIGIL_API int vigil_sem_acquire_slowly(vigil_sem *sem, uint32_t permits, int64_t timeout_ns);
VIGIL_API int vigil_sem_release_slowly(vigil_sem *sem, uint32_t permits);

/*
 * vigil_sem_acquire_async - the same without blocking, on the agent's thread.
 *
 * VIGIL_OK: the permits are ours already, and the callback is never called. VIGIL_TIMED_OUT: there are too few, and the
 * timeout is not above zero. VIGIL_PENDING: callback(&request->op, status) is called once, from the agent's dispatch:
 * VIGIL_OK, with the permits, to be released then or later, on any thread; VIGIL_TIMED_OUT, VIGIL_CANCELLED or, if they
 * are leased, VIGIL_ELIMIT, without them. A pending request can be cancelled at any time: vigil_cancel never comes too
 * late. Errors as above and as in vigil_wait32_async.
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

static inline bool vigil_sem_change(vigil_sem *sem, uint32_t from, uint32_t to, int order) {
    return __atomic_compare_exchange_n(&sem->word, &from, to, false, order, __ATOMIC_RELAXED);
}

static inline int vigil_sem_acquire_for(vigil_sem *sem, uint32_t permits, int64_t timeout_ns) {
    uint32_t seen = sem ? __atomic_load_n(&sem->word, __ATOMIC_RELAXED) : 0;
    bool enough = permits && permits <= seen >> 4 && !(seen & 14u);
    if (enough && vigil_sem_change(sem, seen, seen - (permits << 4), __ATOMIC_ACQUIRE)) return VIGIL_OK;
    return vigil_sem_acquire_slowly(sem, permits, timeout_ns);
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
    if (simple && vigil_sem_change(sem, seen, seen + (permits << 4), __ATOMIC_RELEASE)) return VIGIL_OK;
    return vigil_sem_release_slowly(sem, permits);
}

static inline uint32_t vigil_sem_value(const vigil_sem *sem) {
    return sem ? __atomic_load_n(&sem->word, __ATOMIC_RELAXED) >> 4 : 0;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
