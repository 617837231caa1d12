/* SPDX-License-Identifier: MIT */
/* The asynchronous half of wait.h. */
#include <assert.h>

#include "agent.h"
#include "base/deadline.h"
#include "lot/arguments.h"
#include "lot/shared.h"

void agent_begin(vigil_agent *agent, vigil_op *op) {
    op->flags = OP_PENDING | OP_REFERENCED;
    agent->pending++;
    agent->pending_referenced++;
    agent_note_alive(agent);
}

void agent_end(vigil_agent *agent, vigil_op *op) {
    assert(op->flags & OP_PENDING);
    if (op->timer_link) timers_remove(&agent->timers, op);
    if (op->slot) agent_slot_release(agent, op->slot);
    agent->pending--;
    if (op->flags & OP_REFERENCED) agent->pending_referenced--;
    op->flags = op->flags & OP_REFERENCED ? 0 : OP_UNREFERENCED;
    agent_note_alive(agent);
}

int agent_check_start(const vigil_agent *agent, const vigil_op *op, const struct word *word, vigil_callback *callback) {
    if (!agent || !op || !callback) return VIGIL_ENULL;
    int error = check_word(word);
    if (!error) error = agent_check(agent);
    if (error) return error;
    if (agent->closing) return VIGIL_ECLOSING;
    return op->flags & OP_PENDING ? VIGIL_EINUSE : VIGIL_OK;
}

uint32_t agent_slot_acquire(vigil_agent *agent, const volatile void *address) {
    struct lot *lot = lot_for(address);
    uint32_t index = lot ? slot_acquire(agent->lot) : 0;
    if (!index || lot == agent->lot) return index;
    uint32_t in_line = slot_acquire(lot);
    if (in_line) {
        struct slot *slot = &agent->lot->slots[index];
        slot->kind = SLOT_AWAY;
        slot->away = in_line;
        slot->away_lot = (uint64_t)(uintptr_t)lot;
        slot->state = SLOT_WAITING;
        lot->slots[in_line].row = segment_self(lot->share->segment);
        prim_store_release(&lot->slots[in_line].home, index); /* see recovery_own */
        return index;
    }
    slot_release(agent->lot, index);
    return 0;
}

struct agent_slot agent_slot(const vigil_agent *agent, uint32_t index) {
    const struct slot *slot = &agent->lot->slots[index];
    if (slot->kind != SLOT_AWAY) return (struct agent_slot){agent->lot, index};
    return (struct agent_slot){(struct lot *)(uintptr_t)slot->away_lot, (uint32_t)slot->away};
}

void agent_slot_release(vigil_agent *agent, uint32_t index) {
    struct agent_slot at = agent_slot(agent, index);
    agent->lot->slots[index].kind = SLOT_PLAIN;
    if (at.lot != agent->lot) slot_release(at.lot, at.slot);
    slot_release(agent->lot, index);
}

bool agent_leave(vigil_agent *agent, const vigil_op *op) {
    struct agent_slot at = agent_slot(agent, op->slot);
    return lot_leave(at.lot, at.slot, (const void *)(uintptr_t)op->address);
}

bool agent_join(vigil_agent *agent, vigil_op *op, uint32_t index, const struct word *word, enum slot_kind kind) {
    struct agent_slot at = agent_slot(agent, index);
    struct slot *slot = &at.lot->slots[at.slot], *own = &agent->lot->slots[index];
    own->op = (uint64_t)(uintptr_t)op;
    prim_store_relaxed(&own->seat, agent->seat.number);
    slot_begin(slot, kind);
    prim_store_relaxed(&slot->gift, 0);
    if (slot != own) {
        prim_store_relaxed(&slot->seat, agent->seat.number);
        prim_store_release(&slot->home, index);
    }
    return lot_join(at.lot, at.slot, word);
}

void agent_start_timer(vigil_agent *agent, vigil_op *op, uint64_t now_ns) {
    timers_add(&agent->timers, op, now_ns);
    agent_set_alarm(agent);
}

static void async_start_timer(vigil_agent *agent, vigil_op *op, uint64_t deadline_ns) {
    op->timer_link = NULL;
    op->deadline_ns = deadline_ns;
    if (deadline_ns != PRIM_NEVER) agent_start_timer(agent, op, prim_now_ns());
}

int agent_wait(vigil_agent *agent, vigil_op *op, const struct word *word, uint64_t deadline_ns,
               vigil_callback *callback, enum slot_kind kind) {
    if (word_differs(word)) return VIGIL_NOT_EQUAL;
    if (deadline_ns == DEADLINE_PASSED) return VIGIL_TIMED_OUT;
    uint32_t slot = agent_slot_acquire(agent, word->address);
    if (!slot) return lot_for(word->address) ? VIGIL_ELIMIT : lot_missing(word->address);
    if (!agent_join(agent, op, slot, word, kind)) {
        agent_slot_release(agent, slot);
        return VIGIL_NOT_EQUAL;
    }
    op->callback = callback;
    op->agent = agent;
    op->address = (uint64_t)(uintptr_t)word->address;
    op->slot = slot;
    async_start_timer(agent, op, deadline_ns);
    agent_begin(agent, op);
    return VIGIL_PENDING;
}

static int async_wait_async(vigil_agent *agent, vigil_op *op, const struct word *word, int64_t timeout_ns,
                            vigil_callback *callback) {
    int error = agent_check_start(agent, op, word, callback);
    return error ? error : agent_wait(agent, op, word, deadline_of(timeout_ns), callback, SLOT_PLAIN);
}

int vigil_wait32_async(vigil_agent *agent, vigil_op *op, const volatile void *address, uint32_t expected,
                       int64_t timeout_ns, vigil_callback *callback) {
    return async_wait_async(agent, op, &(struct word){address, expected, false}, timeout_ns, callback);
}

int vigil_wait64_async(vigil_agent *agent, vigil_op *op, const volatile void *address, uint64_t expected,
                       int64_t timeout_ns, vigil_callback *callback) {
    return async_wait_async(agent, op, &(struct word){address, expected, true}, timeout_ns, callback);
}

static int async_check_pending(const vigil_op *op) {
    if (!op) return VIGIL_ENULL;
    return op->flags & OP_PENDING ? agent_check(op->agent) : VIGIL_EIDLE;
}

int vigil_cancel(vigil_op *op) {
    int error = async_check_pending(op);
    if (error) return error;
    if (op->slot) {
        lot_leave_soon(op->agent->lot, op->slot);
        if (!agent_leave(op->agent, op) && !BUG(cancel_loses)) return VIGIL_ETOOLATE;
    }
    bool request = op->flags & OP_REQUEST;
    if (!(op->flags & OP_ENDS_ITSELF)) agent_end(op->agent, op);
    if (request) op->callback(op, OP_TAKEN_BACK);
    return op->flags & OP_PENDING ? VIGIL_ETOOLATE : VIGIL_OK;
}

int vigil_ref(vigil_op *op) {
    int error = async_check_pending(op);
    if (error) return error;
    if (!(op->flags & OP_REFERENCED)) op->agent->pending_referenced++;
    op->flags |= OP_REFERENCED;
    agent_note_alive(op->agent);
    return VIGIL_OK;
}

int vigil_unref(vigil_op *op) {
    int error = async_check_pending(op);
    if (error) return error;
    if (op->flags & OP_REFERENCED) op->agent->pending_referenced--;
    op->flags &= ~OP_REFERENCED;
    agent_note_alive(op->agent);
    return VIGIL_OK;
}
