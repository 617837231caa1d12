/* SPDX-License-Identifier: MIT */
/* The asynchronous half of wait.h. */
#include <assert.h>

#include "agent.h"
#include "check.h"

void agent_begin(vigil_agent *agent, vigil_op *op) {
    op->flags = OP_PENDING | OP_REFERENCED;
    agent->pending++;
    agent->pending_referenced++;
}

void agent_end(vigil_agent *agent, vigil_op *op) {
    assert(op->flags & OP_PENDING);
    if (op->timer_link) timers_remove(&agent->timers, op);
    if (op->slot) slot_release(agent->lot, op->slot);
    agent->pending--;
    if (op->flags & OP_REFERENCED) agent->pending_referenced--;
    op->flags = op->flags & OP_REFERENCED ? 0 : OP_UNREFERENCED;
}

int agent_check_start(const vigil_agent *agent, const vigil_op *op, const struct word *word, vigil_callback *callback) {
    if (!agent || !op || !callback) return VIGIL_ENULL;
    int error = check_word(word);
    if (!error) error = agent_check(agent);
    if (error) return error;
    if (agent->closing) return VIGIL_ECLOSING;
    return op->flags & OP_PENDING ? VIGIL_EINUSE : VIGIL_OK;
}

bool agent_join(vigil_agent *agent, vigil_op *op, uint32_t index, const struct word *word) {
    struct slot *slot = &agent->lot->slots[index];
    slot->owner = (uint64_t)(uintptr_t)op;
    slot->began_ns = slot->argument = 0;
    slot->state = SLOT_WAITING;
    prim_store_relaxed(&slot->seat, agent->seat.number);
    return lot_join(agent->lot, index, word);
}

void agent_start_timer(vigil_agent *agent, vigil_op *op, uint64_t now_ns) {
    timers_add(&agent->timers, op, now_ns);
    agent_set_alarm(agent);
}

static void start_timer(vigil_agent *agent, vigil_op *op, int64_t timeout_ns) {
    op->timer_link = NULL;
    if (timeout_ns == VIGIL_FOREVER) return;
    uint64_t now_ns = prim_now_ns();
    op->deadline_ns = now_ns + (uint64_t)timeout_ns;
    agent_start_timer(agent, op, now_ns);
}

int agent_wait(vigil_agent *agent, vigil_op *op, const struct word *word, int64_t timeout_ns,
               vigil_callback *callback) {
    if (word_differs(word)) return VIGIL_NOT_EQUAL;
    if (timeout_ns <= 0) return VIGIL_TIMED_OUT;
    uint32_t slot = slot_acquire(agent->lot);
    if (!slot) return VIGIL_ELIMIT;
    if (!agent_join(agent, op, slot, word)) {
        slot_release(agent->lot, slot);
        return VIGIL_NOT_EQUAL;
    }
    op->callback = callback;
    op->agent = agent;
    op->address = key_of(word->address);
    op->slot = slot;
    start_timer(agent, op, timeout_ns);
    agent_begin(agent, op);
    return VIGIL_PENDING;
}

static int wait_async(vigil_agent *agent, vigil_op *op, const struct word *word, int64_t timeout_ns,
                      vigil_callback *callback) {
    int error = agent_check_start(agent, op, word, callback);
    return error ? error : agent_wait(agent, op, word, timeout_ns, callback);
}

int vigil_wait32_async(vigil_agent *agent, vigil_op *op, const volatile void *address, uint32_t expected,
                       int64_t timeout_ns, vigil_callback *callback) {
    return wait_async(agent, op, &(struct word){address, expected, false}, timeout_ns, callback);
}

int vigil_wait64_async(vigil_agent *agent, vigil_op *op, const volatile void *address, uint64_t expected,
                       int64_t timeout_ns, vigil_callback *callback) {
    return wait_async(agent, op, &(struct word){address, expected, true}, timeout_ns, callback);
}

static int check_pending(const vigil_op *op) {
    if (!op) return VIGIL_ENULL;
    return op->flags & OP_PENDING ? agent_check(op->agent) : VIGIL_EIDLE;
}

int vigil_cancel(vigil_op *op) {
    int error = check_pending(op);
    if (error) return error;
    if (op->slot) {
        lot_leave_soon(op->agent->lot, op->slot);
        if (!lot_leave(op->agent->lot, op->slot, op->address) && !BUG(cancel_loses)) return VIGIL_ETOOLATE;
    }
    bool request = op->flags & OP_REQUEST;
    if (!(op->flags & OP_PLACE)) agent_end(op->agent, op);
    if (request) op->callback(op, OP_TAKEN_BACK);
    return op->flags & OP_PENDING ? VIGIL_ETOOLATE : VIGIL_OK;
}

int vigil_ref(vigil_op *op) {
    int error = check_pending(op);
    if (error) return error;
    if (!(op->flags & OP_REFERENCED)) op->agent->pending_referenced++;
    op->flags |= OP_REFERENCED;
    return VIGIL_OK;
}

int vigil_unref(vigil_op *op) {
    int error = check_pending(op);
    if (error) return error;
    if (op->flags & OP_REFERENCED) op->agent->pending_referenced--;
    op->flags &= ~OP_REFERENCED;
    return VIGIL_OK;
}
