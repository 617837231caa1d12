/* SPDX-License-Identifier: MIT */
/*
 * vigil/wait.h - wait on a word of memory, and notify the waiters.
 *
 * Each address has one line of waiters. Threads that block and event loops that must not block stand in that one
 * line, first come, first served:
 *
 *     static uint32_t word;                                  any aligned 32- or 64-bit integer will do
 *
 *     a thread                 vigil_wait32(&word, 0, VIGIL_FOREVER);
 *     an event loop            vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified);
 *     a notifier               __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST); vigil_notify(&word, 1);
 *
 * The word may be of any integer type of its size, plain, _Atomic or std::atomic. Change it by atomic operations
 * only.
 *
 * Guarantees:
 *
 * - Comparing the word and joining the line are one step with respect to vigil_notify: a thread that changes the word
 *   and then notifies cannot miss a waiter that saw the old value.
 * - A wait ends exactly once: by a notification (VIGIL_OK), by its deadline (VIGIL_TIMED_OUT), because the memory is
 *   forgotten or the agent is destroyed (VIGIL_CANCELLED), or, on a thread that can be interrupted, by
 *   vigil_interrupt (VIGIL_INTERRUPTED, see thread.h). It never ends spuriously. The number that vigil_notify returns
 *   is exactly the number of waits that return VIGIL_OK because of it.
 * - A deadline is on the monotonic clock and never early. A deadline that passes after the notification changes
 *   nothing: the wait returns VIGIL_OK. It can be given as a timeout or as a point in time: see vigil_until.
 * - Everything that a thread wrote before vigil_notify is visible to the waiters that the call woke.
 * - The line belongs to the address alone: 32- and 64-bit waiters on one address share it.
 *
 * Blocking waits and notifications allocate no heap memory, and neither do the locks: not even the first time, or on a
 * thread that has never waited before.
 *
 * FORK. In the child there are no waiters, and everything can be used; for agents and segments see agent.h and
 * segment.h. The library registers its fork handlers when it is loaded. So the handlers of the program may lock,
 * unlock and wait: pthread_atfork(lock, unlock, unlock) around a vigil_mutex works as with a pthread_mutex_t. (If the
 * library is loaded by dlopen, register them after that.)
 *
 * COPIES. A program and the shared objects that it loads may each contain a copy of the library: the static one, the
 * amalgamation, libvigil.so. The copies find each other when they are loaded, and a word has one line for all of them:
 * a notification by one copy reaches the waiters of all, and a lock may be taken through one copy and released through
 * another (except a robust mutex). All must be of one version: a copy of another version than the first refuses to
 * wait, to notify and to release a lock that has waiters, with VIGIL_ECOPIES. Agents, operations, buffers and the ids
 * of threads belong to the copy that made them. So do segments: an object in a segment must be used through a copy that
 * has opened it, at the address where it has; other copies return VIGIL_ECOPIES where they would have to look at its
 * line. An object that contains a copy stays loaded when it is closed by dlclose.
 *
 * Signals do not end a wait, and a blocked wait is not a cancellation point of pthread_cancel: see thread.h for how
 * to end a wait from another thread.
 *
 * SIGNAL HANDLERS
 *
 * These functions may be called in a signal handler, at whatever point it has interrupted the thread: vigil_notify,
 * vigil_sem_release, vigil_sem_value, vigil_interrupt, vigil_agent_wake and vigil_now_ns. They preserve errno, and
 * another handler that calls them may interrupt them. No other function of the library may be called there: one that
 * blocks would hang, or returns VIGIL_EMAYNOTBLOCK. The handler must return; it must not leave by longjmp.
 *
 * If the handler has interrupted a call of the library on the same thread, that call may hold a lock that is needed
 * here. In that case vigil_notify and vigil_sem_release leave their work to the interrupted call, and return. The
 * interrupted call does it as soon as it leaves its critical section, mostly after some ten instructions, and at the
 * latest when it returns. Nothing is lost or counted twice. VIGIL_ELIMIT: work for more than a thousand different
 * addresses, on all threads together, has been left to interrupted calls already, and there is no room for more; then
 * nothing has happened. A segment (segment.h) must not be closed before the interrupted call has returned.
 */
#ifndef VIGIL_WAIT_H
#define VIGIL_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a timeout: no timeout. As a count: all waiters. */
#define VIGIL_FOREVER INT64_MAX
#define VIGIL_ALL     INT64_MAX

/* The time in nanoseconds, on the clock of all deadlines: CLOCK_MONOTONIC. */
VIGIL_API int64_t vigil_now_ns(void);

/*
 * vigil_until - a deadline where a timeout is expected.
 *
 *     int64_t deadline_ns = vigil_now_ns() + 5000000000;
 *     vigil_wait32(&word, 0, vigil_until(deadline_ns));
 *     vigil_mutex_lock_async(agent, &request, &mutex, vigil_until(deadline_ns), granted);
 *
 * Every `timeout_ns` of the library, of blocking and of asynchronous calls, may be vigil_until(deadline_ns) instead
 * of a duration. The wait then ends when vigil_now_ns() reaches `deadline_ns`, however long it took to make the call.
 * A deadline that has passed is a timeout of zero; VIGIL_FOREVER means no deadline. The blocking calls also have
 * forms that take a deadline, such as vigil_mutex_lock_until, and do the same.
 *
 * The returned number means a deadline only where a timeout is expected. As a number it is below every negative
 * duration of less than 146 years. The function is inline, and exported as well.
 */

/*
 * vigil_wait32, vigil_wait64 - block this thread until it is notified.
 *
 * If the word at `address` is not `expected`, they return VIGIL_NOT_EQUAL at once, whatever the timeout. Otherwise
 * the thread joins the end of the line of the address and sleeps until it is notified (VIGIL_OK), until `timeout_ns`
 * nanoseconds have passed (VIGIL_TIMED_OUT; at once and without joining if `timeout_ns` is zero or less), until the
 * memory is forgotten (VIGIL_CANCELLED), or until it is interrupted (VIGIL_INTERRUPTED, see thread.h). The word is
 * read with sequential consistency. The forms with a deadline wait until vigil_now_ns() reaches `deadline_ns`
 * instead.
 *
 * Errors, checked in this order and before the word is read: VIGIL_ENULL, VIGIL_EMISALIGNED (4 or 8 bytes),
 * VIGIL_EMAYNOTBLOCK. After that: VIGIL_ELIMIT, if there are too many waiters; VIGIL_ENOMEM, if the process could not
 * map the memory for the lines at its first wait; all later waits return the same; and VIGIL_ECOPIES (see above).
 */
VIGIL_API int vigil_wait32(const volatile void *address, uint32_t expected, int64_t timeout_ns);
VIGIL_API int vigil_wait64(const volatile void *address, uint64_t expected, int64_t timeout_ns);
VIGIL_API int vigil_wait32_until(const volatile void *address, uint32_t expected, int64_t deadline_ns);
VIGIL_API int vigil_wait64_until(const volatile void *address, uint64_t expected, int64_t deadline_ns);

/*
 * vigil_notify - take the first `count` waiters out of the line and wake them, oldest first.
 *
 * Returns how many there were, or VIGIL_ENULL, VIGIL_EMISALIGNED (4 bytes), VIGIL_ECOUNT or VIGIL_ECOPIES. If the line
 * is empty it costs a fence and a few loads. The callback of an asynchronous waiter runs in the loop of its agent,
 * never inside this call. It may be called on any thread, in callbacks, and in signal handlers. While a very long line
 * is taken out, other threads cannot join it or a few other lines: some nanoseconds for each waiter. While the line is
 * empty it is inline; the library exports it as well.
 *
 * In a handler that has interrupted a call of the library, zero may also mean that the waiters will be taken out a
 * moment later (see above). Their number is not known then.
 */
VIGIL_API int64_t vigil__notify_slowly(const volatile void *address, int64_t count);

/*
 * vigil_store_and_notify32, vigil_store_and_notify64 - store the value and then notify, as above.
 *
 *     vigil_store_and_notify32(&word, 1, VIGIL_ALL);
 *
 * The store is sequentially consistent. Both in one call cost less than one after the other, where the instruction
 * that stores is a fence too, as on x86-64. Returns what vigil_notify does; after an error nothing has been stored. A
 * 64-bit word must be aligned to 8 bytes.
 */
VIGIL_API int64_t vigil__store_and_notify32_slowly(volatile void *address, uint32_t value, int64_t count);
VIGIL_API int64_t vigil__store_and_notify64_slowly(volatile void *address, uint64_t value, int64_t count);

/*
 * vigil_waiters - the number of waiters in the line, or VIGIL_ENULL, VIGIL_EMISALIGNED (4 bytes) or VIGIL_ECOPIES. For
 * demonstrations, tests and debuggers: it counts the waiters one by one, and the number may be out of date when it
 * returns.
 */
VIGIL_API int64_t vigil_waiters(const volatile void *address);

/*
 * vigil_forget - the memory [address, address + length) is about to be freed or reused.
 *
 * It takes every waiter out of every line in that memory and ends their waits with VIGIL_CANCELLED. Returns how many
 * there were (an event loop that waits for a lock with several requests counts once), or VIGIL_ENULL, VIGIL_ECOPIES,
 * or VIGIL_ERANGE for a range beyond the end of the address space. No thread may start a new wait there meanwhile.
 * Waiters that have already been woken are not reached: they may still have to read the word of a lock. So the memory
 * of a lock may be freed only when every call that waits for it has returned and every request for it has ended.
 */
VIGIL_API int64_t vigil_forget(const volatile void *address, uint64_t length);

/*
 * vigil_op - one asynchronous operation. The caller owns it: embed it where you like, and zero it before its first
 * use. From a start that returns VIGIL_PENDING until its callback begins, or until vigil_cancel returns VIGIL_OK, it
 * belongs to the library and must not be moved or freed. After that it is the caller's again; the callback may start
 * it anew, or free it. A callback must return: it must not leave by longjmp, by an exception or by ending its thread.
 */
typedef struct vigil_op vigil_op;
typedef void vigil_callback(vigil_op *op, int status);
struct vigil_agent;

struct vigil_op {
    void *data; /* the caller's; the library does not touch it */

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
 * vigil_wait32_async, vigil_wait64_async - the same wait without blocking. Call it on the thread of the agent.
 *
 * Returns at once: VIGIL_NOT_EQUAL; VIGIL_TIMED_OUT for a timeout of zero or less, without having joined; or
 * VIGIL_PENDING, and then `callback(op, status)` is called exactly once, from the agent's dispatch, with VIGIL_OK,
 * VIGIL_TIMED_OUT or VIGIL_CANCELLED. If anything but VIGIL_PENDING is returned, the callback is never called.
 *
 * Errors: VIGIL_ENULL, VIGIL_EMISALIGNED, VIGIL_EFORKED, VIGIL_EWRONGTHREAD, VIGIL_ECLOSING, VIGIL_EINUSE (the
 * operation is already pending), VIGIL_ELIMIT, VIGIL_ECOPIES.
 */
VIGIL_API int vigil_wait32_async(struct vigil_agent *agent, vigil_op *op, const volatile void *address,
                                 uint32_t expected, int64_t timeout_ns, vigil_callback *callback);
VIGIL_API int vigil_wait64_async(struct vigil_agent *agent, vigil_op *op, const volatile void *address,
                                 uint64_t expected, int64_t timeout_ns, vigil_callback *callback);

/*
 * vigil_cancel - take a pending operation out of its line. Call it on the thread of its agent.
 *
 * VIGIL_OK: it was still in line; now it is not, its callback will not be called, and `op` is the caller's again.
 * VIGIL_ETOOLATE: it has already been notified (or forgotten), and its callback will be called. So cancelling never
 * loses a notification. VIGIL_EIDLE: it was not pending. Errors: VIGIL_ENULL, VIGIL_EWRONGTHREAD, VIGIL_EFORKED.
 */
VIGIL_API int vigil_cancel(vigil_op *op);

/*
 * vigil_ref, vigil_unref - whether this pending operation keeps vigil_agent_run going. Every operation does when it
 * is started; an unref lasts until the operation ends. They return VIGIL_OK, VIGIL_EIDLE if the operation is not
 * pending, and the errors of vigil_cancel.
 */
VIGIL_API int vigil_ref(vigil_op *op);
VIGIL_API int vigil_unref(vigil_op *op);

#ifdef VIGIL_NO_INLINE
VIGIL_API int64_t vigil_until(int64_t deadline_ns);
VIGIL_API int64_t vigil_notify(const volatile void *address, int64_t count);
VIGIL_API int64_t vigil_store_and_notify32(volatile void *address, uint32_t value, int64_t count);
VIGIL_API int64_t vigil_store_and_notify64(volatile void *address, uint64_t value, int64_t count);
#else

/* The lines of this process's own memory, while every address is in it; else null. See status.h. */
static inline const uint32_t *const *vigil__own_lines(void) {
    bool may_be_shared = __atomic_load_n(&vigil__holder, __ATOMIC_RELAXED) != 1u;
    return may_be_shared ? NULL : __atomic_load_n(&vigil__lines, __ATOMIC_RELAXED);
}

/* The word that says whether a waiter is in line at that address; null: no thread has waited yet. */
#ifndef VIGIL__LINE_BITS /* as in the library; that of the simulator has fewer lines */
#define VIGIL__LINE_BITS 21
#endif
static inline const uint32_t *vigil__line_of(const uint32_t *const *lines, const volatile void *address) {
    const uint32_t *pairs = __atomic_load_n(lines, __ATOMIC_ACQUIRE);
    uint64_t key = (uint64_t)(uintptr_t)address;
    uint32_t scattered = (uint32_t)((key >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - VIGIL__LINE_BITS));
    uint32_t number = (scattered ^ ((uint32_t)(key >> 2) & 15u)) & ((1u << VIGIL__LINE_BITS) - 1);
    return pairs ? &pairs[2 * (size_t)number] : NULL;
}

/* Whether no waiter is in line at that address. If not, there may be one. */
static inline bool vigil__line_is_empty(const uint32_t *const *lines, const volatile void *address) {
    const uint32_t *line = vigil__line_of(lines, address);
    return !line || !__atomic_load_n(line, __ATOMIC_RELAXED);
}

static inline void vigil__fence(void) {
#if defined(__x86_64__) /* some compilers use mfence, which takes many times as long */
    __asm__ __volatile__("lock; orq $0, (%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* After a locked instruction, which is a fence on x86-64. */
static inline void vigil__fence_after_exchange(void) {
#if !defined(__x86_64__)
    vigil__fence();
#endif
}

static inline bool vigil__may_notify(const volatile void *address, size_t size, int64_t count) {
    return address && (uintptr_t)address % size == 0 && count > 0;
}

static inline int64_t vigil_notify(const volatile void *address, int64_t count) {
    const uint32_t *const *lines = vigil__own_lines();
    if (!lines || !vigil__may_notify(address, 4, count)) return vigil__notify_slowly(address, count);
    vigil__fence();
    return vigil__line_is_empty(lines, address) ? 0 : vigil__notify_slowly(address, count);
}

static inline int64_t vigil_store_and_notify32(volatile void *address, uint32_t value, int64_t count) {
    const uint32_t *const *lines = vigil__own_lines();
    if (!lines || !vigil__may_notify(address, sizeof value, count))
        return vigil__store_and_notify32_slowly(address, value, count);
    __atomic_exchange_n((volatile uint32_t *)address, value, __ATOMIC_SEQ_CST);
    vigil__fence_after_exchange();
    return vigil__line_is_empty(lines, address) ? 0 : vigil__notify_slowly(address, count);
}

static inline int64_t vigil_store_and_notify64(volatile void *address, uint64_t value, int64_t count) {
    const uint32_t *const *lines = vigil__own_lines();
    if (!lines || !vigil__may_notify(address, sizeof value, count))
        return vigil__store_and_notify64_slowly(address, value, count);
    __atomic_exchange_n((volatile uint64_t *)address, value, __ATOMIC_SEQ_CST);
    vigil__fence_after_exchange();
    return vigil__line_is_empty(lines, address) ? 0 : vigil__notify_slowly(address, count);
}

static inline int64_t vigil_until(int64_t deadline_ns) {
    if (deadline_ns > INT64_MAX / 2) return VIGIL_FOREVER;
    return INT64_MIN + (deadline_ns > 0 ? deadline_ns : 0);
}
#endif

#ifdef __cplusplus
}
#endif
#endif
