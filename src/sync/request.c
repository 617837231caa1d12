/* SPDX-License-Identifier: MIT */
/*
 * Event loops that wait for a lock: see lock.h. All of this runs on the agent's thread.
 *
 * An agent's requests for one lock are a queue, oldest first, and the queue has one place in the lock's line. The agent
 * finds the queue by the lock's word. The queue is linked there by its first request, which also has the place and,
 * when it leaves, leaves the place to the next request. The place is
 *
 *     pending    in line, or taken out of it and in the agent's mail: request_on_call will run
 *     at rest    request_on_call works on the queue, until the place is pending again or the queue is empty
 *
 * A queue that becomes empty gives up its place. If the place is in the mail already, the queue declines at once, for
 * the lock may have been reserved for it. The slot in the mail is then SLOT_OP_GONE, and is dropped.
 */
#include <assert.h>
#include <stddef.h>

#include "lot/arguments.h"
#include "lock.h"

/* Requests granted in a row before the agent attends to other things. */
#define GRANTS_IN_A_ROW 64

static void request_on_call(vigil_op *place, int status);

static vigil_request *request_of_place(vigil_op *place) {
    return (vigil_request *)(void *)((char *)place - offsetof(vigil_request, place));
}

static const struct lock_kind *request_kind_of(const vigil_request *request) {
    return request->kind;
}

/* Queues. */

static uint32_t request_queue_number(const void *word) {
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)((uintptr_t)word * golden >> 58) % AGENT_QUEUES;
}

/* The link to the first request for that lock; if there is none, the null link at the end of the list. */
static vigil_request **request_queue_link(vigil_agent *agent, const void *word) {
    vigil_request **link = &agent->queues[request_queue_number(word)];
    while (*link && (*link)->object != word) link = &(*link)->next_queue;
    return link;
}

static void request_queue_append(vigil_request **link, vigil_request *request) {
    vigil_request *first = *link;
    request->next = NULL;
    if (first) {
        request->previous = first->previous; /* the first request's `previous` is the last request */
        request->previous->next = request;
        first->previous = request;
    } else {
        request->previous = request;
        request->next_queue = NULL;
        request->place = (vigil_op){0};
        *link = request;
    }
}

static void request_left_line(const vigil_request *request) {
    if (request_kind_of(request)->left) request_kind_of(request)->left(request->object);
}

/* The place, if it is still in line, moves back to where the later request belongs. */
static void request_inherit_place(vigil_agent *agent, vigil_request *from, vigil_request *to) {
    vigil_op *place = &to->place;
    *place = from->place;
    to->seen = from->seen;
    if (place->timer_link) timers_move(&from->place, place);
    if (place->slot) agent->lot->slots[place->slot].op = (uint64_t)(uintptr_t)place;
    if (!(place->flags & OP_PENDING)) return;
    struct agent_slot at = agent_slot(agent, place->slot);
    if (lot_change_place(at.lot, at.slot, to->object, to->began_ns, to->argument)) request_left_line(to);
}

static void request_give_up_place(vigil_agent *agent, vigil_request *first) {
    vigil_op *place = &first->place;
    if (place->timer_link) timers_remove(&agent->timers, place);
    bool pending = place->flags & OP_PENDING, in_line = pending && agent_leave(agent, place);
    if (pending && !in_line) {
        struct agent_slot at = agent_slot(agent, place->slot); /* told: in the mail, or soon will be */
        bool called = prim_load_relaxed(&at.lot->slots[at.slot].state) != VIGIL_CANCELLED; /* if not: vigil_forget */
        agent->lot->slots[place->slot].op = SLOT_OP_GONE;
        agent->pending++;
        if (called && !BUG(late_call_dropped)) request_kind_of(first)->decline(first->object);
    } else if (place->slot) {
        agent_slot_release(agent, place->slot);
        if (in_line) request_left_line(first);
    }
}

static void request_queue_remove(vigil_agent *agent, vigil_request *request) {
    vigil_request **link = request_queue_link(agent, request->object), *first = *link, *next = request->next;
    if (request != first) {
        request->previous->next = next;
        if (next) next->previous = request->previous;
        else first->previous = request->previous;
    } else if (next) {
        next->previous = first->previous;
        next->next_queue = first->next_queue;
        *link = next;
        request_inherit_place(agent, first, next);
    } else {
        *link = first->next_queue;
        request_give_up_place(agent, first);
    }
}

/* The place. */

static bool request_get_slot(vigil_agent *agent, vigil_request *first) {
    vigil_op *place = &first->place;
    if (!agent->kept) agent->kept = keeper_ready();
    if (!agent->kept) return false;
    if (!place->slot) place->slot = agent_slot_acquire(agent, first->object);
    return place->slot != 0;
}

static void request_be_patient(vigil_agent *agent, vigil_request *first, uint32_t seen) {
    uint64_t patience_ns = lock_patience_ns(request_kind_of(first), seen);
    first->seen = seen;
    if (patience_ns == PRIM_NEVER) return;
    uint64_t now_ns = prim_now_ns();
    first->place.deadline_ns = now_ns + patience_ns;
    agent_start_timer(agent, &first->place, now_ns);
}

/* Join the line if the word is as we saw it: false if it is not. */
static bool request_stand_in_line(vigil_agent *agent, vigil_request *first, uint32_t seen, bool again) {
    vigil_op *place = &first->place;
    struct agent_slot at = agent_slot(agent, place->slot);
    struct slot *slot = &at.lot->slots[at.slot], *own = &agent->lot->slots[place->slot];
    own->op = (uint64_t)(uintptr_t)place;
    prim_store_relaxed(&own->seat, agent->seat.number);
    slot_begin(slot, request_kind_of(first)->slot);
    slot->began_ns = first->began_ns;
    prim_store_relaxed(&slot->wants, (uint64_t)first->argument);
    if (slot != own) {
        prim_store_relaxed(&slot->seat, agent->seat.number);
        prim_store_release(&slot->home, place->slot);
    }
    if (!lock_join(request_kind_of(first), at.lot, at.slot, first->object, seen, again)) return false;
    place->callback = request_on_call;
    place->agent = agent;
    place->address = (uint64_t)(uintptr_t)first->object;
    place->flags = OP_PENDING | OP_ENDS_ITSELF;
    request_be_patient(agent, first, seen);
    if (request_kind_of(first)->joined) request_kind_of(first)->joined(first->object, seen);
    return true;
}

/* Come back to the queue after the other mail. */
static void request_call_again(vigil_agent *agent, vigil_request *first) {
    vigil_op *place = &first->place;
    struct slot *slot = &agent->lot->slots[place->slot];
    assert(place->slot);
    slot->state = SLOT_BESIDE;
    place->flags = OP_PENDING | OP_ENDS_ITSELF;
    if (seat_push(agent->lot, &agent->seat, place->slot, place->slot)) prim_bell_ring(&agent->seat.bell);
}

/* Being called. After each callback this may be a fork's child, the request gone, and the queue another one. */

static vigil_request *request_at_rest(vigil_agent *agent, const void *word) {
    if (agent_forked(agent)) return NULL;
    vigil_request *first = *request_queue_link(agent, word);
    return first && !(first->place.flags & OP_PENDING) ? first : NULL;
}

/* With the lock held. If turns are strict, the next request must be in line before another waiter can be called. */
static void request_have_next_in_line(vigil_agent *agent, vigil_request *next) {
    const struct lock_kind *kind = request_kind_of(next);
    uint32_t seen = prim_load_relaxed((uint32_t *)next->object);
    if (!kind->strict || !kind->strict(seen) || BUG(turn_missed)) return;
    do {
        int status = kind->take(next->object, next->argument, NEWCOMER, &seen);
        assert(status == VIGIL_PENDING); /* the agent holds the lock */
        (void)status;
    } while (!request_stand_in_line(agent, next, seen, false));
}

static void request_grant(vigil_agent *agent, vigil_request *first, int status) {
    vigil_request *next = first->next;
    request_queue_remove(agent, first);
    agent_end(agent, &first->op);
    if (next) request_have_next_in_line(agent, next);
    PROBE(lock_granted, first->object);
    request_kind_of(first)->granted(first, status);
}

static void request_give_up(vigil_request *request) {
    if (request_kind_of(request)->given_up) request_kind_of(request)->given_up(request);
}

/* The request can neither have the lock nor wait for it. */
static void request_refuse(vigil_agent *agent, vigil_request *first, int status) {
    request_queue_remove(agent, first);
    agent_end(agent, &first->op);
    request_give_up(first);
    first->callback(&first->op, status);
}

/*
 * For a request behind one that was just granted, `before`: it comes as a newcomer does, and so it spins as a thread
 * would. If the lock is free again after a short critical section of another holder, the loop need not sleep.
 */
static int request_take_next(const vigil_request *first, const struct lock_kind *before, uint32_t *seen) {
    if (before->spin) before->spin(first->object);
    return lock_take(request_kind_of(first), first->object, first->argument, NEWCOMER, seen);
}

/* With the place at rest: grant as many requests as possible, then make the place pending again. */
static void request_serve(vigil_agent *agent, vigil_request *first, enum lock_privilege privilege) {
    uint32_t *word = first->object, seen;
    const struct lock_kind *before = NULL;
    for (int granted = 0; first && granted < GRANTS_IN_A_ROW;) {
        const struct lock_kind *kind = request_kind_of(first);
        int status = granted ? request_take_next(first, before, &seen)
                             : lock_take(kind, word, first->argument, privilege, &seen);
        if (status != VIGIL_PENDING) {
            if (lock_is_ours(status)) request_grant(agent, first, status);
            else request_refuse(agent, first, status);
            granted++;
            before = kind;
            first = request_at_rest(agent, word);
        } else if (request_stand_in_line(agent, first, seen, !granted)) {
            return;
        }
    }
    if (first) request_call_again(agent, first);
}

/* Only the requests there are now, or callbacks that start new ones would keep us here for ever. */
static void request_cancel_all(vigil_agent *agent, vigil_request *first) {
    void *word = first->object;
    size_t count = 0;
    for (vigil_request *request = first; request; request = request->next) count++;
    for (; count && first; count--, first = request_at_rest(agent, word)) {
        request_refuse(agent, first, VIGIL_CANCELLED);
    }
    if (first) request_serve(agent, first, NEWCOMER);
}

static void request_on_call(vigil_op *place, int status) {
    vigil_request *first = request_of_place(place);
    vigil_agent *agent = place->agent;
    if (status == VIGIL_TIMED_OUT) { /* of the place: look at the word, without leaving the line */
        request_be_patient(agent, first, lock_recheck(request_kind_of(first), first->object, first->seen));
        return;
    }
    if (place->timer_link) timers_remove(&agent->timers, place);
    place->flags = 0;
    enum lock_privilege privilege = NEWCOMER;
    bool called = lock_privilege_after(status, &privilege);
    if (called && !agent->closing) {
        request_serve(agent, first, privilege);
    } else {
        bool forgotten = !called && agent->lot->slots[place->slot].state == VIGIL_CANCELLED;
        if (called) request_kind_of(first)->decline(first->object);
        else if (!forgotten) request_left_line(first); /* else the memory must not be touched any more */
        request_cancel_all(agent, first);
    }
}

/* Requests. */

/* The request's own deadline has passed, or the caller has cancelled it. agent_end has been called already. */
static void request_on_end(vigil_op *op, int status) {
    vigil_request *request = request_of_op(op);
    request_queue_remove(op->agent, request);
    request_give_up(request);
    if (status != OP_TAKEN_BACK) request->callback(op, status);
}

/* Take the lock, or join its line as the first request of a new queue. */
static int request_take_or_stand(vigil_agent *agent, vigil_request *request) {
    if (!request_get_slot(agent, request))
        return lot_for(request->object) ? VIGIL_ELIMIT : lot_missing(request->object);
    for (;;) {
        uint32_t seen;
        int status = lock_take(request_kind_of(request), request->object, request->argument, NEWCOMER, &seen);
        if (status != VIGIL_PENDING) return status;
        if (request_stand_in_line(agent, request, seen, false)) return VIGIL_PENDING;
    }
}

static void request_begin(vigil_agent *agent, vigil_request *request, uint64_t deadline_ns) {
    vigil_op *op = &request->op;
    op->callback = request_on_end;
    op->agent = agent;
    op->address = (uint64_t)(uintptr_t)request->object;
    op->slot = 0;
    op->timer_link = NULL;
    op->deadline_ns = deadline_ns;
    agent_begin(agent, op);
    op->flags |= OP_REQUEST;
    if (deadline_ns != PRIM_NEVER) agent_start_timer(agent, op, request->began_ns);
}

/*
 * Whether the queue has been called, and has not come yet. Then a new request takes its turn behind the others: if it
 * took the lock first, the place would find the lock held by its own loop, and would go back to the line.
 */
static bool request_queue_is_called(const vigil_agent *agent, const vigil_request *first) {
    if (!first || !(first->place.flags & OP_PENDING)) return false;
    struct agent_slot at = agent_slot(agent, first->place.slot);
    enum lock_privilege privilege;
    return lock_privilege_after((int)prim_load_relaxed(&at.lot->slots[at.slot].state), &privilege);
}

int request_start(vigil_agent *agent, vigil_request *request, const struct lock_kind *kind, uint32_t *word,
                  uint32_t argument, int64_t timeout_ns, vigil_callback *callback) {
    int error = agent_check_start(agent, request ? &request->op : NULL, &(struct word){word, 0, false}, callback);
    if (error) return error;
    vigil_request **link = request_queue_link(agent, word);
    bool behind = request_queue_is_called(agent, *link) && deadline_of(timeout_ns) != DEADLINE_PASSED;
    uint32_t seen;
    int status = behind ? VIGIL_PENDING : lock_take(kind, word, argument, NEWCOMER, &seen);
    if (status != VIGIL_PENDING) return status;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    if (deadline_ns == DEADLINE_PASSED) return VIGIL_TIMED_OUT;
    request->callback = callback;
    request->kind = kind;
    request->object = word;
    request->argument = argument;
    request->began_ns = prim_now_ns();
    request_begin(agent, request, deadline_ns);
    bool new_queue = !*link;
    request_queue_append(link, request);
    status = new_queue ? request_take_or_stand(agent, request) : VIGIL_PENDING;
    if (status == VIGIL_PENDING) {
        PROBE(lock_contended, word);
    } else {
        request_queue_remove(agent, request);
        agent_end(agent, &request->op);
    }
    return status;
}

int request_start_again(vigil_agent *agent, vigil_request *request, const struct lock_kind *kind, uint32_t *word,
                        uint32_t argument, int64_t timeout_ns, vigil_callback *callback) {
    int status = request_start(agent, request, kind, word, argument, timeout_ns, callback);
    if (lock_is_refused(status) && kind->recovered(word))
        status = request_start(agent, request, kind, word, argument, timeout_ns, callback);
    if (lock_is_refused(status) && kind->left) kind->left(word);
    return status;
}

int request_wait(vigil_agent *agent, vigil_request *request, const struct word *word, uint64_t deadline_ns,
                 vigil_callback *told, enum slot_kind kind) {
    int status = agent_wait(agent, &request->op, word, deadline_ns, told, kind);
    if (status == VIGIL_PENDING) request->op.flags |= OP_REQUEST;
    return status;
}

void lock_granted(vigil_request *request, int status) {
    request->callback(&request->op, status);
}
