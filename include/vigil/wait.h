/* SPDX-License-Identifier: MIT */
/*
 * vigil/wait.h - wait on a word of memory, and notify those who wait.
 *
 * Each address has one line of waiters. Threads that block and event loops that must not block stand in
 * that one line, first come, first served:
 *
 *     static uint32_t word;                                  any aligned 32- or 64-bit integer will do
 *
 *     a thread                 vigil_wait32(&word, 0, VIGIL_FOREVER);
 *     an event loop            vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified);
 *     somebody else            __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST); vigil_notify(&word, 1);
 *
 * The word may be of any integer type of its size, plain, _Atomic or std::atomic; change it by atomic operations only.
 *
 * What holds:
 *
 * - Comparing the word and joining the line are one step as far as vigil_notify is concerned: whoever
 *   changes the word and then notifies cannot miss a waiter that still saw the old value.
 * - A wait ends by a notification (VIGIL_OK), by its deadline (VIGIL_TIMED_OUT) or because the memory is
 *   forgotten or the agent ends (VIGIL_CANCELLED): never spuriously, never two of them. (Of a thread that
 *   can be interrupted also by that, VIGIL_INTERRUPTED: see thread.h.) The number
 *   that vigil_notify answers is exactly the number of waits that answer VIGIL_OK because of it.
 * - A deadline is on the monotonic clock and never early. One that passes after the notification
 *   changes nothing: the wait returns VIGIL_OK. It can be given as a timeout or as a moment: see vigil_until.
 * - Everything a thread wrote before vigil_notify is visible to those it woke.
 * - The line belongs to the address alone: 32- and 64-bit waiters on one address share it.
 *
 * Blocking waits and notifications allocate no memory, and neither do the locks: not even the first time, and on a
 * thread that has never waited before.
 *
 * FORK. In the child there are no waiters, and everything can be used; what is special about agents and segments is said in
 * agent.h and segment.h. The library's handlers of forks are registered when it is loaded. So the program's own may
 * lock, unlock and wait: pthread_atfork(lock, unlock, unlock) around a vigil_mutex works as with a pthread_mutex_t. (If
 * the library is loaded by dlopen, register them after that.)
 *
 * Signals do not end a wait, and a blocked wait is not a cancellation point of pthread_cancel: see thread.h for how to
 * end one from outside.
 *
 * SIGNAL HANDLERS
 *
 * These functions may be called in a signal handler, whatever it has interrupted: vigil_notify, vigil_sem_release,
 * vigil_sem_value, vigil_interrupt, vigil_agent_wake and vigil_now_ns. They leave errno as it was, and may be
 * interrupted by another handler that calls them. No other function of the library may: one that blocks would hang, or
 * returns VIGIL_EMAYNOTBLOCK. A handler returns; it must not leave by longjmp.
 *
 * If the handler has interrupted a call of the library on the same thread, then that call may hold a lock that is
 * needed here. In that case vigil_notify and vigil_sem_release leave what is to be done to the interrupted call, and
 * return. It is done as soon as that call is out of its critical section, some ten instructions mostly, and at the
 * latest when it returns. Nothing is lost or counted twice. VIGIL_ELIMIT: so much has been left to interrupted calls
 * already, on all threads together, for more than a thousand different addresses, that there is no room for this one.
 * Nothing has happened. A segment (segment.h) is not to be closed before the interrupted call has returned.
 */
#ifndef VIGIL_WAIT_H
#define VIGIL_WAIT_H

#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a timeout: never. As a count: everybody. */
#define VIGIL_FOREVER INT64_MAX
#define VIGIL_ALL     INT64_MAX

/* The monotonic clock on which all deadlines are, CLOCK_MONOTONIC, in nanoseconds. */
VIGIL_API int64_t vigil_now_ns(void);

/*
 * vigil_until - a deadline where a timeout is expected.
 *
 *     int64_t deadline_ns = vigil_now_ns() + 5000000000;
 *     vigil_wait32(&word, 0, vigil_until(deadline_ns));
 *     vigil_mutex_lock_async(agent, &request, &mutex, vigil_until(deadline_ns), granted);
 *
 * Every `timeout_ns` of the library, of blocking and of asynchronous calls, may be vigil_until(deadline_ns) instead of
 * a duration: the wait then ends when vigil_now_ns() reaches `deadline_ns`, at exactly that moment of the clock,
 * however long it took to make the call. A deadline that has passed is a timeout of zero; VIGIL_FOREVER is never. The
 * blocking calls have forms with a deadline of their own, vigil_mutex_lock_until and the like, which do the same.
 *
 * The returned number means a deadline only as a timeout: it is below every negative duration of less than 146 years.
 * Where it is inline it is also exported.
 */

/*
 * vigil_wait32, vigil_wait64 - block this thread until it is notified.
 *
 * If the word at `address` is not `expected`: VIGIL_NOT_EQUAL, at once, whatever the timeout. Otherwise
 * the thread joins the end of the address's line and sleeps until it is notified (VIGIL_OK), `timeout_ns`
 * nanoseconds have passed (VIGIL_TIMED_OUT; zero and less: at once, without joining) or the memory is
 * forgotten (VIGIL_CANCELLED). The word is read sequentially consistent. The forms with a deadline wait until
 * vigil_now_ns() reaches `deadline_ns` instead.
 *
 * Errors, checked in this order and before the word is read: VIGIL_ENULL, VIGIL_EMISALIGNED (4 or 8 bytes),
 * VIGIL_EMAYNOTBLOCK. Then VIGIL_ELIMIT, when every place to wait is taken, and VIGIL_ENOMEM, when the process had no
 * memory for the lines at the first wait: that stays so.
 */
VIGIL_API int vigil_wait32(const volatile void *address, uint32_t expected, int64_t timeout_ns);
VIGIL_API int vigil_wait64(const volatile void *address, uint64_t expected, int64_t timeout_ns);
VIGIL_API int vigil_wait32_until(const volatile void *address, uint32_t expected, int64_t deadline_ns);
VIGIL_API int vigil_wait64_until(const volatile void *address, uint64_t expected, int64_t deadline_ns);

/*
 * vigil_notify - take the first `count` waiters out of the line and wake them, oldest first.
 *
 * Answers how many there were, or VIGIL_ENULL, VIGIL_EMISALIGNED (4 bytes) or VIGIL_ECOUNT. With nobody in
 * line it costs a fence and a load. An asynchronous waiter's callback runs on its own agent's loop, never
 * inside this call. Callable from any thread, from callbacks, and in signal handlers. Taking a very long line out keeps
 * others from joining it, and a few other lines, for some nanoseconds a waiter.
 *
 * In a handler that has interrupted a call of the library, zero may also mean that the waiters are taken out a moment
 * later (see above): then their number is not known.
 */
VIGIL_API int64_t vigil_notify(const volatile void *address, int64_t count);

/*
 * vigil_waiters - how many stand in line right now, or VIGIL_ENULL or VIGIL_EMISALIGNED. To look at, in demonstrations,
 * tests and debuggers: it counts them one by one, and by the time it answers it may be different.
 */
VIGIL_API int64_t vigil_waiters(const volatile void *address);

/*
 * vigil_forget - the memory [address, address + length) is about to be freed or reused.
 *
 * Takes every waiter out of every line in it and ends their waits with VIGIL_CANCELLED. Answers how many there were (an
 * event loop that waits for a lock with several requests counts once), or VIGIL_ENULL, or VIGIL_ERANGE for a range
 * beyond the end of the address space. Nobody may start a new wait there meanwhile. It does not reach those who have
 * been woken and are on their way, to look at a lock's word once more, say: so the memory of a lock may be freed when
 * every call that waits for it has returned and every request for it has come back.
 */
VIGIL_API int64_t vigil_forget(const volatile void *address, uint64_t length);

/*
 * vigil_op - one asynchronous operation. It is yours: embed it where you like and zero it before its
 * first use. From a start that answers VIGIL_PENDING until its callback begins, or until vigil_cancel
 * answers VIGIL_OK, it belongs to the library and must stay where it is. After that it is yours again;
 * the callback may start it anew, or free it. Callbacks return: they must not leave by longjmp, an exception or the end
 * of their thread.
 */
typedef struct vigil_op vigil_op;
typedef void vigil_callback(vigil_op *op, int status);
struct vigil_agent;

struct vigil_op {
    void *data; /* yours, never touched */

    /* The library's. */
    vigil_callback *callback;
    struct vigil_agent *agent;
    uint64_t address;
    uint64_t deadline_ns;
    struct vigil_op *timer_next;
    struct vigil_op **timer_link;
    uint32_t slot;
    uint32_t flags;
};

/*
 * vigil_wait32_async, vigil_wait64_async - the same wait without blocking. To be called on the agent's
 * own thread.
 *
 * Answers at once: VIGIL_NOT_EQUAL; VIGIL_TIMED_OUT for a timeout of zero or less, without having joined;
 * or VIGIL_PENDING, and then `callback(op, status)` is called exactly once, from the agent's dispatch,
 * with VIGIL_OK, VIGIL_TIMED_OUT or VIGIL_CANCELLED. On any other answer the callback is never called.
 *
 * Errors: VIGIL_ENULL, VIGIL_EMISALIGNED, VIGIL_EFORKED, VIGIL_EWRONGTHREAD, VIGIL_ECLOSING, VIGIL_EINUSE (the
 * operation is pending already), VIGIL_ELIMIT.
 */
VIGIL_API int vigil_wait32_async(struct vigil_agent *agent, vigil_op *op, const volatile void *address,
                                 uint32_t expected, int64_t timeout_ns, vigil_callback *callback);
VIGIL_API int vigil_wait64_async(struct vigil_agent *agent, vigil_op *op, const volatile void *address,
                                 uint64_t expected, int64_t timeout_ns, vigil_callback *callback);

/*
 * vigil_cancel - take a pending operation out of its line. To be called on its agent's thread.
 *
 * VIGIL_OK: it was still in line; it is gone from there, its callback will not be called, and `op` is yours
 * again. VIGIL_ETOOLATE: it has been notified (or forgotten) already, and its callback will be called:
 * a notification is never lost by cancelling. VIGIL_EIDLE: it was not pending. VIGIL_ENULL, VIGIL_EWRONGTHREAD,
 * VIGIL_EFORKED.
 */
VIGIL_API int vigil_cancel(vigil_op *op);

/*
 * vigil_ref, vigil_unref - whether this pending operation keeps vigil_agent_run going. Each operation does
 * when it is started; an unref lasts until the operation ends. Errors as of vigil_cancel.
 */
VIGIL_API int vigil_ref(vigil_op *op);
VIGIL_API int vigil_unref(vigil_op *op);

#ifdef VIGIL_NO_INLINE
VIGIL_API int64_t vigil_until(int64_t deadline_ns);
#else

static inline int64_t vigil_until(int64_t deadline_ns) {
    if (deadline_ns > INT64_MAX / 2) return VIGIL_FOREVER;
    return INT64_MIN + (deadline_ns > 0 ? deadline_ns : 0);
}
#endif

#ifdef __cplusplus
}
#endif
#endif
