/* SPDX-License-Identifier: MIT */
/*
 * Conditions.
 *
 * A waiter joins the condition's line while it holds the mutex, and then releases the mutex. A signaller that takes the
 * mutex after that comes after the joining, and finds the waiter in line. So does a signaller that has learned of the
 * waiter in any other way. A signaller that has not learned of the waiter may miss it, and owes it nothing.
 *
 * A signal takes the first waiter out of the condition's line:
 *
 *     a thread         is put at the end of the mutex's line, still asleep, with both lines locked: it cannot be in
 *                      neither or in both. From then on it waits for the mutex like any other waiter (lock.h), except
 *                      that it did not look at the word when it joined. So the signaller does, under the lock of the
 *                      mutex's bucket (mutex_recovery). If the mutex is held, the word says that it is contended (2)
 *                      or is made to say so, and its release will call. If it is free, the first in line are called
 *                      at once; a fair mutex is reserved for the head of the line in the same step. If it is reserved
 *                      for another waiter, the first in line are called beside that one; if it is fair, none is
 *                      called, and the keeper guards the reservation.
 *     an event loop    is told by mail, and requests the mutex when the mail arrives (request.c): it has one place in
 *                      the mutex's line, not one for each request. The request keeps the slot by which it was told,
 *                      its carrier, until it has the mutex: in a segment, that slot says that the signal is not used
 *                      yet (lot/gift.h).
 *
 * A deadline races with signals only: lot_leave, for the condition's line, decides. After a signal there is no
 * deadline.
 *
 * A wait that begins after its deadline does not join the condition's line, so it takes no signal from another waiter.
 * It goes where a signal would move it, to the end of the mutex's line, and then releases the mutex. So the waiters
 * before it get the mutex first: a caller that waits in a loop until its condition holds, with such a deadline, does
 * not keep the mutex from the thread that will make it hold.
 */
#ifndef VIGIL_NO_INLINE
#define VIGIL_NO_INLINE /* the mutex's own functions: see tsan.h */
#endif
#include "vigil/cond.h"

#include "lot/arguments.h"
#include "lot/gift.h"
#include "lot/interrupt.h"
#include "mutex.h"
#include "robust.h"
#include "shm/table.h"

static int cond_check_both(const vigil_cond *cond, const vigil_mutex *mutex) {
    int error = check_address(cond, sizeof cond->word);
    if (!error) error = check_address(mutex, sizeof mutex->word);
    if (error) return error;
    bool zero = prim_load_relaxed(&cond->word) == 0;
    bool together = segment_of(cond) == segment_of(mutex);
    return zero && together && (const void *)cond != (const void *)mutex ? VIGIL_OK : VIGIL_EINVAL;
}

static struct word cond_in_line_of(const vigil_cond *cond) {
    return (struct word){&cond->word, 0, false};
}

/* Threads. */

static const struct lock_kind retaking = {MUTEX_KIND};

/* In the mutex's line, into which the thread has been moved asleep, or on the way there. */
static int cond_wait_after_signal(struct lot *lot, uint32_t index, vigil_mutex *mutex) {
    interrupt_hold_back();
    int status = lock_wait(&retaking, lot, index, &mutex->word, prim_load_relaxed(&mutex->word), PRIM_NEVER);
    interrupt_allow();
    return status;
}

/* A thread behind as many others as there are processors does not spin: it has its turn after they have had the mutex,
 * and would keep them from running. */
typedef bool cond_sleep(struct lot *lot, uint32_t index, uint64_t deadline_ns);

static cond_sleep *cond_sleep_for(struct lot *lot, const vigil_cond *cond) {
    int64_t processors = spin_processors();
    if (processors > COND_COUNTED || !lot_occupied(lot, &cond->word)) return lot_sleep;
    return lot_count(lot, &cond->word, processors) < processors ? lot_sleep : lot_sleep_at_once;
}

/*
 * In the condition's line: until signalled (VIGIL_OK), with the privilege for the mutex that follows; or until the
 * deadline.
 */
static int cond_wait_for_signal(struct lot *lot, uint32_t index, const vigil_cond *cond, vigil_mutex *mutex,
                                uint64_t deadline_ns, cond_sleep *sleep, enum lock_privilege *privilege) {
    int status;
    if (sleep(lot, index, deadline_ns)) status = (int)lot->slots[index].state;
    else if (lot_leave(lot, index, &cond->word)) return interrupt_or_timeout();
    else status = cond_wait_after_signal(lot, index, mutex);
    if (status == VIGIL_OK && lot->slots[index].kind == SLOT_COND) return VIGIL_OK; /* not moved to the mutex's line */
    return lock_privilege_after(status, privilege) ? VIGIL_OK : status;
}

static int cond_release_and_wait(struct lot *lot, uint32_t index, vigil_cond *cond, vigil_mutex *mutex,
                                 uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    struct word word = cond_in_line_of(cond);
    slot_begin(slot, SLOT_COND);
    prim_store_relaxed(&slot->gift, gift_of(GIFT_MOVES, key_of(lot, &mutex->word)));
    cond_sleep *sleep = cond_sleep_for(lot, cond);
    if (BUG(released_before_joining)) vigil_mutex_unlock(mutex);
    lot_join(lot, index, &word);
    if (!BUG(released_before_joining)) vigil_mutex_unlock(mutex);
    enum lock_privilege privilege = NEWCOMER;
    int status = cond_wait_for_signal(lot, index, cond, mutex, deadline_ns, sleep, &privilege);
    if (status == VIGIL_CANCELLED) return status;
    if (privilege == NEWCOMER) slot->began_ns = prim_now_ns(); /* its old place was in the condition's line */
    if (BUG(heir_starts_anew)) prim_store_relaxed(&slot->gift, 0);
    interrupt_hold_back();
    int taken = lock_block_in(&retaking, &mutex->word, 0, PRIM_NEVER, lot, index, privilege);
    interrupt_allow();
    return taken ? taken : status;
}

/* Join the mutex's line while holding the mutex: VIGIL_PENDING. (If it is not held, the status of taking it.) */
static int cond_join_mutex(struct lot *lot, uint32_t index, uint32_t *word, uint32_t *seen) {
    int status;
    do {
        slot_begin(&lot->slots[index], SLOT_MUTEX);
        status = mutex_take(word, 0, NEWCOMER, seen);
    } while (status == VIGIL_PENDING && !lock_join(&retaking, lot, index, word, *seen, false));
    return status;
}

/* The deadline passed before the wait began. */
static int cond_wait_late(struct lot *lot, uint32_t index, vigil_mutex *mutex) {
    struct slot *slot = &lot->slots[index];
    uint32_t *word = &mutex->word, seen;
    if (BUG(late_waiter_keeps)) return VIGIL_TIMED_OUT;
    if (BUG(late_waiter_barges)) return vigil_mutex_unlock(mutex), vigil_mutex_lock(mutex), VIGIL_TIMED_OUT;
    slot->began_ns = prim_now_ns();
    prim_store_relaxed(&slot->gift, 0);
    int status = cond_join_mutex(lot, index, word, &seen);
    if (status == VIGIL_PENDING) {
        enum lock_privilege privilege = NEWCOMER;
        vigil_mutex_unlock(mutex);
        if (!BUG(late_waiter_interrupted)) interrupt_hold_back();
        status = lock_wait(&retaking, lot, index, word, seen, PRIM_NEVER);
        if (lock_privilege_after(status, &privilege))
            status = lock_block_in(&retaking, word, 0, PRIM_NEVER, lot, index, privilege);
        if (!BUG(late_waiter_interrupted)) interrupt_allow();
    }
    return status ? status : VIGIL_TIMED_OUT;
}

int vigil_cond_wait_for(vigil_cond *cond, vigil_mutex *mutex, int64_t timeout_ns) {
    int error = cond_check_both(cond, mutex);
    if (error) return error;
    if (prim_self()->may_not_block) return VIGIL_EMAYNOTBLOCK;
    if (!mutex_may_be_unlocked(&mutex->word)) return VIGIL_ENOTHELD;
    struct lot *lot = lot_for(cond);
    if (!lot) return lot_missing(cond);
    uint32_t slot = slot_acquire(lot);
    if (!slot) return VIGIL_ELIMIT;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    uint32_t note = robust_remove(&mutex->word); /* of a robust mutex: reused when it is taken again */
    if (note) mutex_disown(&mutex->word);
    int status = deadline_ns == DEADLINE_PASSED ? cond_wait_late(lot, slot, mutex)
                                                : cond_release_and_wait(lot, slot, cond, mutex, deadline_ns);
    if (note && status == VIGIL_CANCELLED) robust_end(note);
    else if (note) mutex_held_by_thread(&mutex->word, note);
    slot_release(lot, slot);
    return status;
}

int vigil_cond_wait_until(vigil_cond *cond, vigil_mutex *mutex, int64_t deadline_ns) {
    return vigil_cond_wait_for(cond, mutex, vigil_until(deadline_ns));
}

int vigil_cond_wait(vigil_cond *cond, vigil_mutex *mutex) {
    return vigil_cond_wait_for(cond, mutex, VIGIL_FOREVER);
}

/* Event loops: first in the condition's line, then requesting the mutex, with the status to report at the end. */

/* The signal has been used: release the carrier. */
static void cond_release_carrier(vigil_request *request) {
    if (request->carrier) agent_slot_release(request->op.agent, request->carrier);
    request->carrier = 0;
}

static void cond_granted(vigil_request *request, int taken) {
    cond_release_carrier(request);
    request->callback(&request->op, taken ? taken : (int)request->status);
}

/* The request has been signalled and no longer wants the signal: pass it to the next in line, in one step. */
static void cond_pass_signal_on(vigil_request *request) {
    if (!request->carrier) return;
    struct agent_slot at = agent_slot(request->op.agent, request->carrier);
    if (!BUG(signal_dropped)) gift_pass_on(at.lot, at.slot, PRIM_NEVER);
    cond_release_carrier(request);
}

static const struct lock_kind asking = {MUTEX_KIND, .granted = cond_granted, .given_up = cond_pass_signal_on};

static void cond_ask_for_mutex(vigil_request *request, int status) {
    vigil_op *op = &request->op;
    bool unreferenced = op->flags & OP_UNREFERENCED;
    vigil_mutex *mutex = request->object;
    request->status = (uint32_t)status;
    int started = request_start(op->agent, request, &asking, &mutex->word, 0, VIGIL_FOREVER, request->callback);
    if (started == VIGIL_PENDING) {
        if (unreferenced) vigil_unref(op);
    } else if (lock_is_ours(started)) {
        cond_granted(request, started);
    } else {
        cond_pass_signal_on(request);
        request->callback(op, started == VIGIL_ECLOSING ? VIGIL_CANCELLED : started);
    }
}

/* Signalled: the slot stays, as the carrier, but no longer leads to the request. */
static void cond_keep_carrier(vigil_request *request) {
    vigil_op *op = &request->op;
    op->agent->lot->slots[op->slot].op = SLOT_OP_GONE;
    request->carrier = op->slot;
    op->slot = 0;
}

/* The request is in line at its deadline, and out of it in all other cases. */
static void cond_on_signal(vigil_op *op, int status) {
    vigil_request *request = request_of_op(op);
    if (status == VIGIL_TIMED_OUT && !agent_leave(op->agent, op)) return; /* signalled: that is in the mail */
    if (status == VIGIL_OK && !BUG(carrier_dropped)) cond_keep_carrier(request);
    agent_end(op->agent, op);
    if (status == VIGIL_CANCELLED) request->callback(op, status);
    else if (status != OP_TAKEN_BACK) cond_ask_for_mutex(request, status);
}

/* The deadline has passed. Join the mutex's line before the release, so that nothing can fail after that. */
static int cond_wait_late_async(vigil_agent *agent, vigil_request *request, vigil_mutex *mutex,
                                vigil_callback *callback) {
    request->status = VIGIL_TIMED_OUT;
    request->carrier = 0;
    int status = request_start(agent, request, &asking, &mutex->word, 0, VIGIL_FOREVER, callback);
    if (status == VIGIL_PENDING && !BUG(late_loop_keeps)) vigil_mutex_unlock(mutex);
    return status;
}

int vigil_cond_wait_async(vigil_agent *agent, vigil_request *request, vigil_cond *cond, vigil_mutex *mutex,
                          int64_t timeout_ns, vigil_callback *callback) {
    int error = cond_check_both(cond, mutex);
    if (error) return error;
    if (!request || !callback) return VIGIL_ENULL;
    struct word word = cond_in_line_of(cond);
    error = agent_check_start(agent, &request->op, &word, callback);
    if (error) return error;
    if (!mutex_may_be_unlocked(&mutex->word)) return VIGIL_ENOTHELD;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    if (deadline_ns == DEADLINE_PASSED) return cond_wait_late_async(agent, request, mutex, callback);
    int status = request_wait(agent, request, &word, deadline_ns, cond_on_signal, SLOT_COND);
    if (status != VIGIL_PENDING) return status;
    request->op.flags |= OP_ENDS_ITSELF;
    request->callback = callback;
    request->object = mutex;
    request->carrier = 0;
    vigil_mutex_unlock(mutex);
    return VIGIL_PENDING;
}

/* Signals. */

static int64_t cond_signal(vigil_cond *cond, int64_t most) {
    int error = check_address(cond, sizeof cond->word);
    if (error) return error;
    prim_fence_seq_cst(); /* as N2 in lot.h */
    struct lot *lot = lot_for_if_used(cond);
    if (!lot) return lot_refused(cond);
    if (!lot_occupied(lot, cond)) return 0;
    struct mutex_release release = {0};
    return lot_move(lot, cond, most, &mutex_recovery, &release);
}

int64_t vigil_cond_signal(vigil_cond *cond) {
    return cond_signal(cond, 1);
}

int64_t vigil_cond_broadcast(vigil_cond *cond) {
    return cond_signal(cond, INT64_MAX);
}
