/* SPDX-License-Identifier: MIT */
/*
 * The once.
 *
 * WHO MAY CHANGE THE WORD
 *
 *     who finds it new        0 -> 1       and calls the function
 *     who must wait           1 -> 2       and joins the line, as long as it is 2
 *     who called it           1, 2 -> 3    it is done: never changed again
 *                             1, 2 -> 0    it has failed
 *
 * NOBODY WAITS IN VAIN
 *
 * Who waits has seen a 2. Whoever changes that takes it away in one step with learning of it, and notifies everybody in
 * line after that (N1 to N3 in lot.h); all of them look at the word again. It may be new: then the first to look is the
 * next to call the function. All are told, not one: that one might be an event loop that does not run. Who has come to
 * the line after the change may be told too, for nothing, and just looks again.
 *
 * MEMORY ORDER
 *
 * The change to 3 or 0 releases what the function did. It pairs with the acquiring load of who finds it done, and with
 * the acquiring CAS of who finds it new, and so follows those who failed before.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* this is where they are */
#endif
#include "vigil/once.h"

#include "check.h"
#include "lock.h"

#define NEW     0u
#define RUNNING 1u
#define AWAITED 2u
#define DONE    3u

enum turn {
    IT_IS_DONE,
    IT_IS_OURS, /* to call the function, and then to finish() */
    WE_WAIT,    /* while it is AWAITED */
};

static enum turn look(uint32_t *word) {
    for (;;) {
        uint32_t seen = prim_load_acquire(word);
        tsan_acquire(word);
        switch (seen) {
        case NEW:
            if (prim_cas_acquire(word, &seen, RUNNING)) return IT_IS_OURS;
            break;
        case RUNNING:
            if (prim_cas_acquire(word, &seen, AWAITED)) return WE_WAIT;
            break;
        case DONE: return IT_IS_DONE;
        default: return WE_WAIT;
        }
    }
}

static void finish(uint32_t *word, int status) {
    uint32_t next = status == VIGIL_OK ? DONE : NEW;
    tsan_release(word);
    if (BUG(awaited_missed) && prim_load_relaxed(word) == RUNNING) {
        prim_store_release(word, next);
        return;
    }
    uint32_t seen = BUG(once_unordered) ? prim_exchange_relaxed(word, next) : prim_exchange_acq_rel(word, next);
    if (seen == AWAITED) vigil_notify(word, BUG(once_relied_on_one) && next == NEW ? 1 : VIGIL_ALL);
}

static int call(uint32_t *word, vigil_once_function *function, void *argument) {
    int status = function(argument);
    finish(word, status);
    return status;
}

/* Blocking. */

static int64_t remaining_ns(uint64_t deadline_ns) {
    if (deadline_ns == PRIM_NEVER) return VIGIL_FOREVER;
    uint64_t now_ns = prim_now_ns();
    return deadline_ns > now_ns ? (int64_t)(deadline_ns - now_ns) : 0;
}

int vigil_once_call_slowly(vigil_once *once, vigil_once_function *function, void *argument, int64_t timeout_ns) {
    if (!function) return VIGIL_ENULL;
    int error = check_address(once, sizeof once->word);
    if (error) return error;
    uint32_t *word = &once->word;
    uint64_t deadline_ns =
        timeout_ns == VIGIL_FOREVER ? PRIM_NEVER : prim_now_ns() + (uint64_t)(timeout_ns > 0 ? timeout_ns : 0);
    for (;;) {
        switch (look(word)) {
        case IT_IS_DONE: return VIGIL_OK;
        case IT_IS_OURS: return call(word, function, argument);
        case WE_WAIT: break;
        }
        int status = vigil_wait32(word, AWAITED, remaining_ns(deadline_ns));
        if (status != VIGIL_OK && status != VIGIL_NOT_EQUAL) return status;
    }
}

/* The inline functions, for those who cannot inline them. */

bool vigil_once_is_done(const vigil_once *once) {
    return once && prim_load_acquire(&once->word) == DONE;
}

int vigil_once_call_for(vigil_once *once, vigil_once_function *function, void *argument, int64_t timeout_ns) {
    return vigil_once_call_slowly(once, function, argument, timeout_ns);
}

int vigil_once_call(vigil_once *once, vigil_once_function *function, void *argument) {
    return vigil_once_call_slowly(once, function, argument, VIGIL_FOREVER);
}

/* Asynchronous. The request is the library's, and pending, until its end: also while its function is running. */

static vigil_once_function *function_of(const vigil_request *request) {
    return (vigil_once_function *)(uintptr_t)request->kind;
}

static void end(vigil_op *op, int status) {
    agent_end(op->agent, op);
    if (status != OP_TAKEN_BACK) request_of_op(op)->callback(op, status);
}

static void call_and_end(vigil_request *request) {
    vigil_agent *agent = request->op.agent;
    int status = call(request->object, function_of(request), request->second);
    if (!agent_forked(agent)) end(&request->op, status); /* else the function has, and this is the child */
}

static bool passed(uint64_t deadline_ns) {
    return deadline_ns != PRIM_NEVER && prim_now_ns() >= deadline_ns;
}

/* Out of the line, and not to stay there: call, end or wait again. */
static void look_again(vigil_request *request) {
    vigil_op *op = &request->op;
    struct word word = {request->object, AWAITED, false};
    do {
        switch (look(request->object)) {
        case IT_IS_DONE: end(op, VIGIL_OK); return;
        case IT_IS_OURS: call_and_end(request); return;
        case WE_WAIT: break;
        }
        if (passed(op->deadline_ns) && !BUG(deadline_forgotten)) {
            end(op, VIGIL_TIMED_OUT);
            return;
        }
    } while (!agent_join(op->agent, op, op->slot, &word));
}

/* The agent ends: nothing new is begun, but what is done is done. */
static void on_told_last(vigil_request *request) {
    bool done = prim_load_acquire((uint32_t *)request->object) == DONE;
    end(&request->op, done ? VIGIL_OK : VIGIL_CANCELLED);
}

/* It is in line at its deadline, and out of it in all other cases. */
static void on_told(vigil_op *op, int status) {
    if (status == VIGIL_TIMED_OUT && !lot_leave(op->agent->lot, op->slot, op->address)) return; /* in the mail */
    if (status != VIGIL_OK || BUG(failure_taken_as_done)) end(op, status);
    else if (op->agent->closing) on_told_last(request_of_op(op));
    else look_again(request_of_op(op));
}

static int wait_async(vigil_agent *agent, vigil_request *request, uint32_t *word, int64_t timeout_ns) {
    request->op.deadline_ns = PRIM_NEVER; /* unless it gets one */
    int status = request_wait(agent, request, &(struct word){word, AWAITED, false}, timeout_ns, on_told);
    if (status == VIGIL_PENDING) request->op.flags |= OP_PLACE;
    return status;
}

int vigil_once_call_async(vigil_agent *agent, vigil_request *request, vigil_once *once, vigil_once_function *function,
                          void *argument, int64_t timeout_ns, vigil_callback *callback) {
    if (!function) return VIGIL_ENULL;
    int error = agent_check_start(agent, request ? &request->op : NULL, &(struct word){once, 0, false}, callback);
    if (error) return error;
    uint32_t *word = &once->word;
    request->callback = callback;
    request->kind = (const void *)(uintptr_t)function;
    request->object = word;
    request->second = argument;
    for (;;) {
        switch (look(word)) {
        case IT_IS_DONE: return VIGIL_OK;
        case IT_IS_OURS: return call(word, function, argument);
        case WE_WAIT: break;
        }
        int status = wait_async(agent, request, word, timeout_ns);
        if (status != VIGIL_NOT_EQUAL) return status;
    }
}
