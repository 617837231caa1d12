/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <assert.h>
#include <stdlib.h>

#include "base/tuning.h"
#include "lot/arguments.h"
#include "tsan.h"

/* Rounds in which one dispatch follows up on what its own callbacks caused, before it returns to the loop. */
#define ROUNDS 16

bool agent_forked(const vigil_agent *agent) {
    return agent->generation != prim_generation;
}

int agent_check(const vigil_agent *agent) {
    if (!agent) return VIGIL_ENULL;
    if (agent_forked(agent)) return VIGIL_EFORKED;
    return prim_load_relaxed(&agent->thread) == prim_self() ? VIGIL_OK : VIGIL_EWRONGTHREAD;
}

/* Beginning. */

/* What an agent has from the system: VIGIL_OK, or an error, and it has nothing. */
static int agent_open(vigil_agent *agent, struct lot *lot) {
    if (!timers_open(&agent->timers)) return VIGIL_ENOMEM;
    int error = prim_bell_open(&agent->seat.bell) ? VIGIL_OK : VIGIL_ESYSTEM;
    if (!error) {
        agent->seat.number = seat_register(lot, &agent->seat);
        if (agent->seat.number) return VIGIL_OK;
        prim_bell_close(&agent->seat.bell);
        error = VIGIL_ELIMIT;
    }
    timers_close(&agent->timers);
    return error;
}

int agent_new(vigil_agent **result, unsigned flags) {
    if (!result) return VIGIL_ENULL;
    if (flags & ~VIGIL_AGENT_MAY_NOT_BLOCK) return VIGIL_EINVAL;
    struct lot *lot = lot_private();
    if (!lot) return lot_missing(NULL);
    vigil_agent *agent = calloc(1, sizeof *agent);
    if (!agent) return VIGIL_ENOMEM;
    int error = agent_open(agent, lot);
    if (error) {
        free(agent);
        return error;
    }
    agent->lot = lot;
    agent->generation = prim_generation;
    agent->flags = flags;
    agent->alarm_ns = PRIM_NEVER;
    *result = agent;
    return VIGIL_OK;
}

void agent_adopt(vigil_agent *agent) {
    prim_store_relaxed(&agent->thread, prim_self());
    agent->seat.thread_id = prim_thread_id();
    if (agent->flags & VIGIL_AGENT_MAY_NOT_BLOCK) prim_self()->may_not_block += PRIM_MAY_NOT_BLOCK;
}

int vigil_agent_create(vigil_agent **agent, unsigned flags) {
    int error = agent_new(agent, flags);
    if (!error) agent_adopt(*agent);
    return error;
}

/* Callbacks. Each may fork, and the child must not go on with the parent's mail: so check agent_forked after each. */

static void agent_complete(vigil_agent *agent, vigil_op *op, int status) {
    if (!(op->flags & OP_ENDS_ITSELF)) agent_end(agent, op);
    if (status == VIGIL_OK) tsan_acquire((void *)(uintptr_t)op->address);
    op->callback(op, status);
}

static void agent_deliver(vigil_agent *agent, uint32_t index) {
    struct slot *slot = &agent->lot->slots[index];
    if (slot->state == SLOT_POSTED) {
        vigil_function *function = (vigil_function *)(uintptr_t)slot->function;
        void *argument = (void *)(uintptr_t)slot->posted;
        slot_release(agent->lot, index);
        tsan_acquire(agent);
        function(agent, argument);
    } else if (slot->op == SLOT_OP_GONE) {
        agent_slot_release(agent, index);
        agent->pending--;
    } else {
        agent_complete(agent, (vigil_op *)(uintptr_t)slot->op, (int)slot->state);
    }
}

static int64_t agent_deliver_mail(vigil_agent *agent) {
    if (agent_forked(agent)) return 0;
    int64_t delivered = 0;
    uint32_t first = seat_collect(agent->lot, &agent->seat, &agent->woken);
    if (agent->woken) tsan_acquire(agent);
    for (uint32_t index = first, next; index && !agent_forked(agent); index = next, delivered++) {
        next = agent->lot->slots[index].next;
        agent_deliver(agent, index);
    }
    return delivered;
}

/* Prefetch the next operation's slot while this one is completed. */
static void agent_prefetch_next(vigil_agent *agent) {
    vigil_op *next = timers_first(&agent->timers);
    if (next) lot_leave_soon(agent->lot, next->slot);
}

static int64_t agent_expire(vigil_agent *agent) {
    if (timers_next(&agent->timers) == PRIM_NEVER) return 0;
    int64_t expired = 0;
    uint64_t now_ns = prim_now_ns();
    for (vigil_op *op;
         !agent_forked(agent) && (op = timers_due(&agent->timers, now_ns + (BUG(early_deadline) ? 1 : 0)));) {
        agent_prefetch_next(agent);
        bool leaves = op->slot && !(op->flags & OP_ENDS_ITSELF);
        if (leaves && !agent_leave(agent, op)) continue; /* notified: that is in the mail */
        agent_complete(agent, op, VIGIL_TIMED_OUT);
        expired++;
    }
    return expired;
}

/* One round: what has arrived, then what has expired, then descriptors of others. The agent is awake. */
static int64_t agent_serve(vigil_agent *agent) {
    int64_t served = agent_deliver_mail(agent);
    if (!agent_forked(agent)) served += agent_expire(agent);
    return agent_has_watches(agent) && !agent_forked(agent) ? served + agent_serve_watches(agent) : served;
}

static void agent_set_alarm_to(vigil_agent *agent, uint64_t alarm_ns) {
    prim_bell_alarm(&agent->seat.bell, alarm_ns);
    agent->alarm_ns = alarm_ns;
}

/* An alarm that is too early does no harm, and most deadlines never pass: so this only sets it to an earlier time. */
void agent_set_alarm(vigil_agent *agent) {
    if (!agent->alarmed || agent->dispatching) return;
    uint64_t next_ns = timers_next(&agent->timers);
    if (next_ns < agent->alarm_ns) agent_set_alarm_to(agent, next_ns);
}

static bool agent_is_alive(const vigil_agent *agent) {
    return agent->references || agent->pending_referenced;
}

void agent_call_on_alive(vigil_agent *agent) {
    if (agent->alive == agent_is_alive(agent)) return;
    agent->alive = !agent->alive;
    agent->on_alive(agent, agent->on_alive_argument);
}

static int agent_begin_dispatch(vigil_agent *agent) {
    int error = agent_check(agent);
    if (error) return error;
    if (agent->dispatching) return VIGIL_EREENTRANT;
    agent->dispatching = true;
    seat_attend(&agent->seat);
    return VIGIL_OK;
}

static void agent_end_dispatch(vigil_agent *agent) {
    agent->dispatching = false;
    /* An alarm that has gone off must be set anew, or the descriptor would stay readable. */
    if (agent->alarm_ns != PRIM_NEVER && prim_now_ns() >= agent->alarm_ns)
        agent_set_alarm_to(agent, timers_next(&agent->timers));
    else agent_set_alarm(agent);
    agent_note_alive(agent);
}

/* In the child of a fork that a callback made: nothing of the agent may be used any more. */
static int agent_abandon_dispatch(vigil_agent *agent) {
    agent->dispatching = false;
    return VIGIL_EFORKED;
}

int64_t vigil_agent_dispatch(vigil_agent *agent) {
    int error = agent_begin_dispatch(agent);
    if (error) return error;
    int64_t served = 0;
    bool resting = false;
    for (int round = 0; round < ROUNDS && !resting; round++) {
        served += agent_serve(agent);
        if (agent_forked(agent)) return agent_abandon_dispatch(agent);
        resting = seat_rest(&agent->seat);
    }
    if (!resting) seat_rest_rung(&agent->seat);
    agent->woken = false;
    agent_end_dispatch(agent);
    return served;
}

int vigil_agent_fd(vigil_agent *agent) {
    int error = agent_check(agent);
    if (error) return error;
    int fd = prim_bell_fd(&agent->seat.bell);
    if (fd < 0) return VIGIL_ESYSTEM;
    agent->alarmed = true;
    agent_set_alarm(agent);
    return fd;
}

/* Running without an event loop of the caller. */

static void agent_sleep_until(vigil_agent *agent, uint64_t until_ns) {
    if (seat_spin(&agent->seat) || !seat_rest(&agent->seat)) return;
    /* With watches it sleeps on the descriptor, and would not while an alarm that has gone off makes that readable. */
    if (agent_has_watches(agent) && agent->alarm_ns != PRIM_NEVER) agent_set_alarm_to(agent, PRIM_NEVER);
    prim_bell_wait(&agent->seat.bell, until_ns);
    seat_attend(&agent->seat);
}

static bool agent_keeps_going(vigil_agent *agent) {
    return agent_is_alive(agent) || seat_has_mail(&agent->seat);
}

static int agent_run(vigil_agent *agent, uint64_t deadline_ns) {
    for (;;) {
        bool last = deadline_ns != PRIM_NEVER && prim_now_ns() >= deadline_ns; /* before serving what is due by then */
        agent_serve(agent);
        if (agent_forked(agent)) return agent_abandon_dispatch(agent);
        if (agent->stopping || agent->woken) return VIGIL_OK;
        if (!agent_keeps_going(agent)) return VIGIL_OK;
        if (last) return VIGIL_TIMED_OUT;
        if (seat_has_mail(&agent->seat)) continue;
        uint64_t next_ns = timers_next(&agent->timers);
        agent_sleep_until(agent, next_ns < deadline_ns ? next_ns : deadline_ns);
    }
}

int vigil_agent_run_until(vigil_agent *agent, int64_t deadline_ns) {
    int error = agent_begin_dispatch(agent);
    if (error) return error;
    int status = agent_run(agent, deadline_ns == INT64_MAX ? PRIM_NEVER : deadline_ns < 0 ? 0 : (uint64_t)deadline_ns);
    if (status == VIGIL_EFORKED) return status;
    agent->stopping = agent->woken = false;
    if (!seat_rest(&agent->seat)) seat_rest_rung(&agent->seat);
    agent_end_dispatch(agent);
    return status;
}

int vigil_agent_run(vigil_agent *agent) {
    return vigil_agent_run_until(agent, INT64_MAX);
}

int vigil_agent_post(vigil_agent *agent, vigil_function *function, void *argument) {
    if (!agent || !function) return VIGIL_ENULL;
    if (agent_forked(agent)) return VIGIL_EFORKED;
    if (prim_load_relaxed(&agent->thread) == prim_self() && agent->closing) return VIGIL_ECLOSING;
    struct lot *lot = agent->lot;
    uint32_t index = slot_acquire(lot);
    if (!index) return VIGIL_ELIMIT;
    struct slot *slot = &lot->slots[index];
    slot->function = (uint64_t)(uintptr_t)function;
    slot->posted = (uint64_t)(uintptr_t)argument;
    slot->state = SLOT_POSTED;
    tsan_release(agent);
    if (seat_push(lot, &agent->seat, index, index)) prim_bell_ring(&agent->seat.bell);
    return VIGIL_OK;
}

static void agent_stop(vigil_agent *agent, void *argument) {
    (void)argument;
    agent->stopping = true;
}

int vigil_agent_stop(vigil_agent *agent) {
    return vigil_agent_post(agent, agent_stop, NULL);
}

/* Also for signal handlers: nothing here takes a lock, or uses thread-local data. */
int vigil_agent_wake(vigil_agent *agent) {
    if (!agent) return VIGIL_ENULL;
    if (agent_forked(agent)) return VIGIL_EFORKED;
    tsan_release(agent);
    if (seat_wake(&agent->seat)) prim_bell_ring(&agent->seat.bell);
    return VIGIL_OK;
}

int vigil_agent_ref(vigil_agent *agent) {
    int error = agent_check(agent);
    if (error) return error;
    agent->references++;
    agent_note_alive(agent);
    return VIGIL_OK;
}

int vigil_agent_unref(vigil_agent *agent) {
    int error = agent_check(agent);
    if (error) return error;
    if (!agent->references) return VIGIL_EINVAL;
    agent->references--;
    agent_note_alive(agent);
    return VIGIL_OK;
}

bool vigil_agent_alive(const vigil_agent *agent) {
    return !agent_check(agent) && agent_is_alive(agent);
}

int vigil_agent_on_alive(vigil_agent *agent, vigil_function *function, void *argument) {
    int error = agent_check(agent);
    if (error) return error;
    agent->alive = agent_is_alive(agent);
    agent->on_alive = function;
    agent->on_alive_argument = argument;
    return VIGIL_OK;
}

int64_t vigil_now_ns(void) {
    return (int64_t)prim_now_ns();
}

/* End. */

/* The operation that has this slot; null: none of ours. */
static vigil_op *agent_op_at(const vigil_agent *agent, uint32_t index) {
    const struct slot *slot = &agent->lot->slots[index];
    if (prim_load_relaxed(&slot->seat) != agent->seat.number || slot->op == SLOT_OP_GONE) return NULL;
    return (vigil_op *)(uintptr_t)slot->op;
}

/* Scan all slots for ours, so that an operation costs nothing extra to be found here. */
static void agent_cancel_pending(vigil_agent *agent) {
    struct lot *lot = agent->lot;
    for (uint32_t index = 1; agent->pending && !agent_forked(agent) && index < slot_bound(lot); index++) {
        if (index + CANCEL_AHEAD < slot_bound(lot)) __builtin_prefetch(agent_op_at(agent, index + CANCEL_AHEAD), 1);
        vigil_op *op = agent_op_at(agent, index);
        if (op && agent_leave(agent, op)) agent_complete(agent, op, VIGIL_CANCELLED);
    }
}

int agent_close(vigil_agent *agent) {
    int error = agent_begin_dispatch(agent);
    if (error) return error;
    agent->closing = true;
    do {
        agent_deliver_mail(agent);
        agent_cancel_pending(agent); /* those not in line any more are in the mail */
    } while (agent->pending && !agent_forked(agent));
    if (agent_has_watches(agent)) agent_end_watches(agent);
    agent_deliver_mail(agent); /* and what has been posted meanwhile */
    if (agent_forked(agent)) return agent_abandon_dispatch(agent);
    if (agent->flags & VIGIL_AGENT_MAY_NOT_BLOCK) prim_self()->may_not_block -= PRIM_MAY_NOT_BLOCK;
    return VIGIL_OK;
}

static void agent_discard_mail(vigil_agent *agent) {
    for (uint32_t index = seat_collect(agent->lot, &agent->seat, &agent->woken), next; index; index = next) {
        next = agent->lot->slots[index].next;
        slot_release(agent->lot, index);
    }
}

void agent_free(vigil_agent *agent) {
    if (!agent_forked(agent)) {
        seat_attend(&agent->seat);
        seat_await_ring(&agent->seat);
        agent_discard_mail(agent);
        seat_unregister(agent->lot, agent->seat.number);
        if (agent->kept) keeper_unready();
    }
    prim_bell_close(&agent->seat.bell);
    timers_close(&agent->timers);
    free(agent);
}

int vigil_agent_destroy(vigil_agent *agent) {
    if (!agent) return VIGIL_ENULL;
    if (prim_load_relaxed(&agent->thread) == prim_self() && agent->dispatching) return VIGIL_EREENTRANT;
    if (!agent_forked(agent)) {
        int error = agent_close(agent);
        if (error) return error; /* forked in a callback: the child may destroy it once the callback has returned */
    }
    agent_free(agent);
    return VIGIL_OK;
}
