/* SPDX-License-Identifier: MIT */
/*
 * The once.
 *
 * CHANGES OF THE WORD
 *
 *     a caller                0 -> 1       becomes the runner, and calls the function
 *     a waiter                1 -> 2       and joins the line, as long as it is 2
 *     the runner              1, 2 -> 3    the function is done: never changed again
 *                             1, 2 -> 0    the function has failed
 *
 * NO WAITER IS FORGOTTEN
 *
 * A waiter has seen a 2. The runner replaces the word and learns that it was a 2 in one step, and after that notifies
 * all waiters in line (N1 to N3 in lot.h); all of them look at the word again. It may be new: then the first to look is
 * the next runner. All are told, not one: that one might be an event loop that does not run. A waiter that joins the
 * line after the change may be told too, for nothing, and just looks again.
 *
 * FORK
 *
 * The 1 and the 2 come with the generation (prim_generation) of the process that calls the function: zero in a process
 * that is not a fork's child. In a child, a 1 or 2 of another generation belongs to a thread that does not exist there.
 * So the first caller that looks puts its own generation there, leaves the 1 or 2 as it is, and calls the function. If
 * the function itself forks, its thread is the one that exists in the child; there it ends the once too, unless another
 * thread of the child has begun anew meanwhile.
 *
 * MEMORY ORDER
 *
 * The change to 3 or 0 releases what the function did. It pairs with the acquiring load of a caller that finds it done,
 * and with the acquiring CAS of the next runner, which thus sees what the failed runs before it did.
 *
 * IN A SEGMENT
 *
 * There the number of the process that calls the function takes the place of the generation. If that process is gone, a
 * caller that looks takes over in the same way. A waiter waits only while the word is exactly what it saw. The waiter
 * that joins the line and recovery both look, and cannot both miss a death, as with the mutex (M1 to M3 in mutex.c):
 * all in line are told to look again. They are also told if a process was killed between the change to 3 or 0 and the
 * notification, even if the next runner is calling the function already: unless the word is a 2 of a living process,
 * which will notify them (once_must_call).
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "vigil/once.h"

#include "lot/arguments.h"
#include "lock.h"
#include "calls.h"
#include "vigil/mutex.h" /* vigil__holder */

#define NEW     0u
#define RUNNING 1u
#define AWAITED 2u
#define DONE    3u
#define STATE   3u

enum turn {
    IT_IS_DONE,
    IT_IS_OURS, /* we must call the function, and then once_finish() */
    WE_WAIT,    /* while the word is what was seen, which is AWAITED */
};

/* What the word has besides RUNNING or AWAITED while we are the runner. */
static uint32_t once_mine(const uint32_t *word) {
    if (!segment_of(word)) return prim_generation * SEGMENT_HOLDER;
    return prim_load_relaxed(&vigil__holder) / SEGMENT_HOLDER * SEGMENT_HOLDER;
}

/* The runner does not exist any more: it died with its process, or is a thread of a fork's parent. */
static bool once_runner_is_gone(const uint32_t *word, uint32_t seen) {
    uint32_t state = seen & STATE, number = seen / SEGMENT_HOLDER;
    if (state != RUNNING && state != AWAITED) return false;
    const struct segment *segment = segment_of(word);
    if (!segment) return number * SEGMENT_HOLDER != once_mine(word);
    return number && !segment_find_member(segment, number) && !BUG(once_runner_kept);
}

static enum turn once_try(uint32_t *word, uint32_t *result) {
    for (;;) {
        uint32_t seen = prim_load_acquire(word), state = seen & STATE;
        tsan_acquire(word);
        if (state == DONE) return IT_IS_DONE;
        if (state == NEW || once_runner_is_gone(word, seen)) {
            uint32_t ours = (state == NEW ? RUNNING : state) | once_mine(word);
            if (prim_cas_acquire(word, &seen, ours)) return IT_IS_OURS;
            continue;
        }
        *result = (seen & ~STATE) | AWAITED;
        if (seen == *result || prim_cas_acquire(word, &seen, *result)) return WE_WAIT;
    }
}

static void once_finish(uint32_t *word, int status) {
    uint32_t next = status == VIGIL_OK ? DONE : NEW;
    tsan_release(word);
    if (BUG(awaited_missed) && prim_load_relaxed(word) == RUNNING) {
        prim_store_release(word, next);
        return;
    }
    uint32_t seen = BUG(once_unordered) ? prim_exchange_relaxed(word, next) : prim_exchange_acq_rel(word, next);
    if ((seen & STATE) == AWAITED) vigil_notify(word, BUG(once_relied_on_one) && next == NEW ? 1 : VIGIL_ALL);
}

/* The function has forked, and this is the child: the once is ours until another thread here has taken it over. */
static void once_finish_in_child(uint32_t *word, int status, uint32_t ours) {
    uint32_t next = status == VIGIL_OK ? DONE : NEW, seen = prim_load_relaxed(word);
    while ((seen & ~STATE) == ours && !prim_cas_acq_rel(word, &seen, next)) {
    }
}

static int once_call(uint32_t *word, vigil_once_function *function, void *argument) {
    bool shared = segment_of(word);
    uint32_t ours = once_mine(word);
    int status = function(argument);
    if (once_mine(word) == ours) once_finish(word, status);
    else if (!shared) once_finish_in_child(word, status, ours); /* a segment belongs to the parent */
    return status;
}

/* The waiters in line, when a process is gone. */

static bool once_must_call(uint32_t *word, const struct slot *head, void *context) {
    (void)head, (void)context;
    uint32_t seen = prim_load_relaxed(word);
    return (seen & STATE) != AWAITED || once_runner_is_gone(word, seen);
}

static uint32_t once_outcome(const struct slot *slot, void *context) {
    (void)slot, (void)context;
    return VIGIL_OK;
}

const struct lot_release once_recovery = {once_must_call, once_outcome, NULL, NULL};

static void once_joined(const struct word *word) { /* M1 */
    uint32_t *once = (uint32_t *)(uintptr_t)word->address;
    if (!segment_of(once)) return;
    prim_fence_seq_cst();                                                                      /* M2 */
    if (once_must_call(once, NULL, NULL)) lot_call(lot_for(once), once, &once_recovery, NULL); /* M3, of the word now */
}

/* Before a caller is refused: true if the runner is dead, and the caller may take over. Asks the kernel. */
static bool once_recovered(const uint32_t *word) {
    struct segment *segment = segment_of(word);
    uint32_t seen = prim_load_relaxed(word), number = seen / SEGMENT_HOLDER;
    return segment && number && !segment_member_lives(segment, number);
}

/* Whether to look again after a wait has ended so. (After VIGIL_CANCELLED the memory must not be touched.) */
static bool once_should_retry(const uint32_t *word, int status) {
    if (status == VIGIL_OK || status == VIGIL_NOT_EQUAL) return true;
    return status != VIGIL_CANCELLED && status != VIGIL_INTERRUPTED && once_recovered(word);
}

/* Blocking. */

int vigil__once_call_slowly(vigil_once *once, vigil_once_function *function, void *argument, int64_t timeout_ns) {
    if (!function) return VIGIL_ENULL;
    int error = check_address(once, sizeof once->word);
    if (error) return error;
    error = lot_refused(once); /* not later, when callers that wait could not be notified */
    if (error) return vigil_once_is_done(once) ? VIGIL_OK : error;
    uint32_t *word = &once->word;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    for (;;) {
        uint32_t seen;
        switch (once_try(word, &seen)) {
        case IT_IS_DONE: return VIGIL_OK;
        case IT_IS_OURS: return once_call(word, function, argument);
        case WE_WAIT: break;
        }
        int status = lot_wait(&(struct word){word, seen, false}, deadline_ns, SLOT_ONCE, once_joined);
        if (!once_should_retry(word, status)) return status;
    }
}

/* The inline functions, for callers that cannot inline them. */

bool vigil_once_is_done(const vigil_once *once) {
    return once && prim_load_acquire(&once->word) == DONE;
}

int vigil_once_call_for(vigil_once *once, vigil_once_function *function, void *argument, int64_t timeout_ns) {
    return vigil__once_call_slowly(once, function, argument, timeout_ns);
}

int vigil_once_call_until(vigil_once *once, vigil_once_function *function, void *argument, int64_t deadline_ns) {
    return vigil__once_call_slowly(once, function, argument, vigil_until(deadline_ns));
}

int vigil_once_call(vigil_once *once, vigil_once_function *function, void *argument) {
    return vigil__once_call_slowly(once, function, argument, VIGIL_FOREVER);
}

/* Asynchronous. The request belongs to the library, and is pending, until it ends: also while its function runs. */

static vigil_once_function *once_function_of(const vigil_request *request) {
    return (vigil_once_function *)(uintptr_t)request->kind;
}

static void once_end(vigil_op *op, int status) {
    agent_end(op->agent, op);
    if (status != OP_TAKEN_BACK) request_of_op(op)->callback(op, status);
}

static void once_call_and_end(vigil_request *request) {
    vigil_agent *agent = request->op.agent;
    int status = once_call(request->object, once_function_of(request), request->second);
    if (!agent_forked(agent)) once_end(&request->op, status); /* else the function has forked, and this is the child */
}

static bool once_passed(uint64_t deadline_ns) {
    return deadline_ns != PRIM_NEVER && prim_now_ns() >= deadline_ns;
}

/* The request has left the line: call the function, end or wait again. */
static void once_retry(vigil_request *request) {
    vigil_op *op = &request->op;
    struct word word = {request->object, 0, false};
    do {
        uint32_t seen;
        switch (once_try(request->object, &seen)) {
        case IT_IS_DONE: once_end(op, VIGIL_OK); return;
        case IT_IS_OURS: once_call_and_end(request); return;
        case WE_WAIT: word.expected = seen; break;
        }
        if (once_passed(op->deadline_ns) && !BUG(deadline_forgotten)) {
            once_end(op, VIGIL_TIMED_OUT);
            return;
        }
    } while (!agent_join(op->agent, op, op->slot, &word, SLOT_ONCE));
    once_joined(&word);
}

/* The agent ends: do not call the function, but report it if it is done. */
static void once_on_told_last(vigil_request *request) {
    bool done = prim_load_acquire((uint32_t *)request->object) == DONE;
    once_end(&request->op, done ? VIGIL_OK : VIGIL_CANCELLED);
}

/* The request is in line at its deadline, and out of it in all other cases. */
static void once_on_told(vigil_op *op, int status) {
    if (status == VIGIL_TIMED_OUT && !agent_leave(op->agent, op)) return; /* told: that is in the mail */
    if (status != VIGIL_OK || BUG(failure_taken_as_done)) once_end(op, status);
    else if (op->agent->closing) once_on_told_last(request_of_op(op));
    else once_retry(request_of_op(op));
}

static int once_wait_async(vigil_agent *agent, vigil_request *request, const struct word *word, uint64_t deadline_ns) {
    int status = request_wait(agent, request, word, deadline_ns, once_on_told, SLOT_ONCE);
    if (status != VIGIL_PENDING) return status;
    request->op.flags |= OP_ENDS_ITSELF;
    once_joined(word);
    return VIGIL_PENDING;
}

int vigil_once_call_async(vigil_agent *agent, vigil_request *request, vigil_once *once, vigil_once_function *function,
                          void *argument, int64_t timeout_ns, vigil_callback *callback) {
    if (!function) return VIGIL_ENULL;
    int error = agent_check_start(agent, request ? &request->op : NULL, &(struct word){once, 0, false}, callback);
    if (!error) error = lot_refused(once);
    if (error) return error;
    uint32_t *word = &once->word;
    request->callback = callback;
    request->kind = (const void *)(uintptr_t)function;
    request->object = word;
    request->second = argument;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    for (;;) {
        uint32_t seen;
        switch (once_try(word, &seen)) {
        case IT_IS_DONE: return VIGIL_OK;
        case IT_IS_OURS: return once_call(word, function, argument);
        case WE_WAIT: break;
        }
        int status = once_wait_async(agent, request, &(struct word){word, seen, false}, deadline_ns);
        if (status == VIGIL_PENDING || !once_should_retry(word, status)) return status;
    }
}
