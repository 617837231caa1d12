/* SPDX-License-Identifier: MIT */
/*
 * The barrier.
 *
 * The word is the number of the round (upper half) and how many have arrived for it (lower half).
 *
 * WHO MAY CHANGE IT
 *
 *     who arrives           arrived + 1, if he is not the last. Then he joins the line, as long as the word is what he
 *                           sees, whatever others add to it meanwhile, or finds that the round is over
 *     who takes it back     arrived - 1, out of the line, if it still is the same round. If not, he has been counted
 *     the last to arrive    round + 1, none arrived: under the lock of the word's bucket, and takes everybody out of
 *                           the line there
 *
 * NOBODY WAITS IN VAIN, OR TOO LITTLE
 *
 * A round ends and its line is emptied in one step, and joining compares the round in another such step. So in line are
 * only those of the present round, and who is told VIGIL_OK need not look at the word again: it is his round that is
 * over. Arrivals do not concern those in line: the comparison happens at joining alone.
 *
 * An arrival counts in exactly one way: taking it back and completing the round are changes of the one word, and one of
 * them comes first.
 *
 * Rounds are numbered modulo 65536. One who has arrived and not yet joined could be fooled by so many rounds in
 * between; they would have to be completed without him, by more threads than there are parties.
 *
 * MEMORY ORDER
 *
 * Each change of the word is acquire and release: the last one to arrive has seen all that the others did before. They
 * see what it has seen by being told (lot.h), or by the acquiring load that shows them another round.
 *
 * IN A SEGMENT
 *
 * A count in the word would keep counting whoever is killed. So there the word is the round alone, and who has arrived
 * is in line; the sweep that takes a dead one's slot out of the line (lot/shared.h) has taken its arrival back.
 * To arrive is one step under the lock of the bucket:
 *
 *     so many are in line that one more completes the round    S1  store the next round
 *                                                              S2  tell everybody in line
 *     else                                                         join the line
 *
 * So in line are always fewer than there are parties. Before S1 the kernel is asked whether all those in line live: who
 * was dead by then has not arrived.
 *
 * Each has with it, in `round`, the word that it has seen. Whoever is killed between S1 and S2, or while at S2, leaves
 * some in line who have seen another word than there is now. Nobody can have joined them: before the lock of the bucket
 * is had again it is repaired, and they are told then (barrier_recovery).
 */
#include "vigil/barrier.h"

#include "check.h"
#include "vigil/interrupt.h"
#include "lock.h"
#include "calls.h"

#define MOST_PARTIES 65535u
#define ONE_ROUND    65536u

static uint32_t arrived(uint32_t seen) {
    return seen % ONE_ROUND;
}

static uint32_t round_of(uint32_t seen) {
    return seen / ONE_ROUND;
}

static uint32_t next_round(uint32_t seen) {
    return (round_of(seen) + 1) * ONE_ROUND;
}

static int check_parties(const vigil_barrier *barrier) {
    return barrier->parties - 1 < MOST_PARTIES ? VIGIL_OK : VIGIL_EINVAL;
}

/* Arriving. */

/* The round is over for everybody in line. */
static uint32_t tell_all(const struct slot *slot, void *context) {
    (void)slot, (void)context;
    return VIGIL_OK;
}

struct completion {
    uint32_t seen;
    bool done;
};

static bool end_round(uint32_t *word, const struct slot *head, void *context) {
    struct completion *completion = context;
    (void)head;
    if (!completion->done) completion->done = prim_cas_acq_rel(word, &completion->seen, next_round(completion->seen));
    return completion->done;
}

static const struct lot_release completing = {end_round, tell_all, NULL};

static bool complete(struct lot *lot, uint32_t *word, uint32_t *seen) {
    struct completion completion = {.seen = *seen};
    if (BUG(round_ends_outside)) end_round(word, NULL, &completion);
    lot_call(lot, word, &completing, &completion);
    *seen = completion.seen;
    return completion.done;
}

/* VIGIL_LAST; or what to answer if one would have to wait, and only if that is VIGIL_PENDING, has arrived. */
static int arrive(struct lot *lot, vigil_barrier *barrier, int to_wait, uint32_t *round) {
    uint32_t *word = &barrier->word, seen = prim_load_relaxed(word);
    tsan_release(word);
    for (;;) {
        if (arrived(seen) + 1 == barrier->parties) {
            if (complete(lot, word, &seen)) {
                tsan_acquire(word);
                return VIGIL_LAST;
            }
        } else if (to_wait != VIGIL_PENDING) {
            return to_wait;
        } else if (BUG(arrival_unordered) ? prim_cas_acquire(word, &seen, seen + 1)
                                          : prim_cas_acq_rel(word, &seen, seen + 1)) {
            *round = round_of(seen);
            return VIGIL_PENDING;
        }
    }
}

/* Out of the line: false if the round is over, and the arrival has been counted. */
static bool take_back(uint32_t *word, uint32_t round) {
    for (;;) {
        uint32_t seen = prim_load_acquire(word);
        tsan_acquire(word);
        if (round_of(seen) != round && !BUG(taken_back_late)) return false;
        if (BUG(arrival_stays) || prim_cas_acq_rel(word, &seen, seen - 1)) return true;
    }
}

/* Arriving in a segment. */

/* Whether its process does. `known` is the number of one that does, so that it is not asked for again and again. */
static bool lives(const struct lot *lot, uint32_t index, uint32_t *known) {
    uint32_t number = claim_number(prim_load_relaxed(&lot->share->claims[index]));
    if (number != *known && number != lot->number) {
        if (!segment_lives(lot->share->segment, number)) return false;
        *known = number;
    }
    return true;
}

static uint32_t count(const struct lot *lot, const struct slot *head, bool living_only) {
    uint32_t counted = 0, known = 0;
    for (uint32_t index = head ? (uint32_t)(head - lot->slots) : 0; index; index = lot->slots[index].next) {
        if (lot->slots[index].kind != SLOT_BARRIER) continue;
        if (!living_only || lives(lot, index, &known)) counted++;
    }
    return counted;
}

struct arrival {
    const struct lot *lot;
    uint32_t seen, parties;
    bool last;
};

static bool completes(const struct arrival *arrival, const struct slot *head) {
    return count(arrival->lot, head, false) + 1 >= arrival->parties &&
           count(arrival->lot, head, true) + 1 >= arrival->parties;
}

static bool end_round_if_last(uint32_t *word, const struct slot *head, void *context) {
    struct arrival *arrival = context;
    arrival->last = prim_load_relaxed(word) == arrival->seen && completes(arrival, head);
    if (arrival->last) prim_store_release(word, next_round(arrival->seen)); /* S1 */
    return arrival->last;                                                   /* S2 */
}

static const struct lot_release arriving = {end_round_if_last, tell_all, NULL};

/* VIGIL_LAST; or VIGIL_PENDING: the slot is in line or, if it is zero, one would have to wait and has not arrived. */
static int arrive_in_line(struct lot *lot, vigil_barrier *barrier, uint32_t index) {
    uint32_t *word = &barrier->word;
    tsan_release(word);
    for (;;) {
        uint32_t seen = prim_load_relaxed(word);
        struct arrival arrival = {.lot = lot, .seen = seen, .parties = barrier->parties};
        if (index) prim_store_relaxed(&lot->slots[index].round, (uint64_t)seen);
        if (lot_call_or_join(lot, index, &(struct word){word, seen, false}, &arriving, &arrival)) return VIGIL_PENDING;
        if (arrival.last) {
            tsan_acquire(word);
            return VIGIL_LAST;
        }
        if (!index && prim_load_relaxed(word) == seen) return VIGIL_PENDING;
    }
}

/* A process has been killed: whether those in line are of a round that is over. */
static bool round_is_over(uint32_t *word, const struct slot *head, void *context) {
    const struct slot *slots = lot_for(word)->slots;
    (void)context;
    while (head && head->kind != SLOT_BARRIER) head = head->next ? &slots[head->next] : NULL;
    return head && head->round != prim_load_relaxed(word) && !BUG(barrier_half_told);
}

const struct lot_release barrier_recovery = {round_is_over, tell_all, NULL};

/* Blocking. */

static int block(uint32_t *word, uint32_t round, uint64_t deadline_ns) {
    for (;;) {
        uint32_t seen = prim_load_acquire(word);
        tsan_acquire(word);
        if (round_of(seen) != round) return VIGIL_OK;
        int status = lot_wait(&(struct word){word, seen, false}, deadline_ns, SLOT_PLAIN, NULL);
        if (status == VIGIL_OK || status == VIGIL_CANCELLED) return status;
        if (status == VIGIL_NOT_EQUAL) continue;
        if (take_back(word, round)) return status;
        if (status == VIGIL_INTERRUPTED) vigil_interrupt(vigil_thread_self()); /* it has not been used */
        return VIGIL_OK;
    }
}

static int sleep_in_line(struct lot *lot, uint32_t index, uint32_t *word, uint64_t deadline_ns) {
    bool told = lot_sleep(lot, index, deadline_ns);
    int status = told ? (int)lot->slots[index].state : lot_give_up(lot, index, word);
    if (status == VIGIL_OK) tsan_acquire(word);
    return status;
}

static int wait_in_segment(struct lot *lot, vigil_barrier *barrier, uint64_t deadline_ns, int to_wait) {
    uint32_t index = to_wait == VIGIL_PENDING ? slot_acquire(lot) : 0;
    if (index) slot_begin(&lot->slots[index], SLOT_BARRIER);
    else if (to_wait == VIGIL_PENDING) to_wait = VIGIL_ELIMIT;
    int status = arrive_in_line(lot, barrier, index);
    if (!index) return status == VIGIL_LAST ? status : to_wait;
    if (status == VIGIL_PENDING) status = sleep_in_line(lot, index, &barrier->word, deadline_ns);
    slot_release(lot, index);
    return status;
}

int vigil_barrier_wait_for(vigil_barrier *barrier, int64_t timeout_ns) {
    int error = check_address(barrier, sizeof barrier->word);
    if (!error) error = check_parties(barrier);
    if (error) return error;
    struct lot *lot = lot_for(barrier);
    if (!lot) return VIGIL_ENOMEM;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    int to_wait = deadline_ns == DEADLINE_PASSED ? VIGIL_TIMED_OUT : VIGIL_PENDING;
    if (prim_self()->may_not_block) to_wait = VIGIL_EMAYNOTBLOCK;
    if (is_shared(lot)) return wait_in_segment(lot, barrier, deadline_ns, to_wait);
    uint32_t round;
    int status = arrive(lot, barrier, to_wait, &round);
    return status == VIGIL_PENDING ? block(&barrier->word, round, deadline_ns) : status;
}

int vigil_barrier_wait_until(vigil_barrier *barrier, int64_t deadline_ns) {
    return vigil_barrier_wait_for(barrier, vigil_until(deadline_ns));
}

int vigil_barrier_wait(vigil_barrier *barrier) {
    return vigil_barrier_wait_for(barrier, VIGIL_FOREVER);
}

/* Asynchronous. */

static void end(vigil_op *op, int status) {
    agent_end(op->agent, op);
    if (status != OP_TAKEN_BACK) request_of_op(op)->callback(op, status);
}

/* Taken back too late: it is out of the line already, so it is for us to put it into the mail. */
static void mail(vigil_op *op) {
    vigil_agent *agent = op->agent;
    agent->lot->slots[op->slot].state = VIGIL_OK;
    if (seat_push(agent->lot, &agent->seat, op->slot, op->slot)) prim_bell_ring(&agent->seat.bell);
}

/* It is in line at its deadline, and out of it in all other cases. */
static void on_told(vigil_op *op, int status) {
    vigil_request *request = request_of_op(op);
    struct lot *lot = op->agent->lot;
    if (status == VIGIL_TIMED_OUT && !agent_leave(op->agent, op)) return; /* in the mail */
    /* By vigil_forget, that is, and the memory is not to be touched any more; at the agent's end it does not say so. */
    bool forgotten = lot->slots[op->slot].state == VIGIL_CANCELLED && !BUG(forgotten_taken_back);
    bool counted = status == VIGIL_OK || (!forgotten && !take_back(request->object, request->argument));
    if (!counted || (status == OP_TAKEN_BACK && BUG(cancelled_when_over))) end(op, status);
    else if (status == OP_TAKEN_BACK) mail(op);
    else end(op, VIGIL_OK);
}

static int stand_in_line(vigil_agent *agent, vigil_request *request, uint64_t deadline_ns) {
    for (uint32_t *word = request->object, round = request->argument;;) {
        uint32_t seen = prim_load_acquire(word);
        tsan_acquire(word);
        if (round_of(seen) != round) return VIGIL_OK;
        int status = request_wait(agent, request, &(struct word){word, seen, false}, deadline_ns, on_told, SLOT_BARRIER);
        if (status == VIGIL_PENDING) {
            request->op.flags |= OP_PLACE;
            return VIGIL_PENDING;
        }
        if (status == VIGIL_NOT_EQUAL) continue;
        if (take_back(word, round)) return status;
        if (status == VIGIL_INTERRUPTED) vigil_interrupt(vigil_thread_self()); /* it has not been used */
        return VIGIL_OK;
    }
}

/* In a segment there is nothing to be taken back but the slot, so it is an operation like any other. */

static void fill_in(vigil_agent *agent, vigil_op *op, uint32_t index) {
    struct slot *own = &agent->lot->slots[index];
    struct agent_place at = agent_place(agent, index);
    struct slot *slot = &at.lot->slots[at.slot];
    own->op = (uint64_t)(uintptr_t)op;
    prim_store_relaxed(&own->seat, agent->seat.number);
    slot_begin(slot, SLOT_BARRIER);
    prim_store_relaxed(&slot->seat, agent->seat.number);
}

static void begin(vigil_agent *agent, vigil_op *op, uint32_t index, vigil_barrier *barrier, uint64_t deadline_ns) {
    op->agent = agent;
    op->address = (uint64_t)(uintptr_t)&barrier->word;
    op->slot = index;
    op->timer_link = NULL;
    op->deadline_ns = deadline_ns;
    if (deadline_ns != PRIM_NEVER) agent_start_timer(agent, op, prim_now_ns());
    agent_begin(agent, op);
}

static int ask_in_segment(vigil_agent *agent, vigil_request *request, vigil_barrier *barrier, uint64_t deadline_ns,
                          vigil_callback *callback) {
    struct lot *lot = lot_for(barrier);
    if (!lot) return VIGIL_ENOMEM;
    bool passed = deadline_ns == DEADLINE_PASSED;
    uint32_t index = passed ? 0 : agent_slot_acquire(agent, barrier);
    if (index) fill_in(agent, &request->op, index);
    int status = arrive_in_line(lot, barrier, index ? agent_place(agent, index).slot : 0);
    if (!index) return status == VIGIL_LAST ? status : passed ? VIGIL_TIMED_OUT : VIGIL_ELIMIT;
    if (status == VIGIL_LAST) {
        agent_slot_release(agent, index);
    } else {
        request->op.callback = callback;
        begin(agent, &request->op, index, barrier, deadline_ns);
    }
    return status;
}

int vigil_barrier_wait_async(vigil_agent *agent, vigil_request *request, vigil_barrier *barrier, int64_t timeout_ns,
                             vigil_callback *callback) {
    struct word word = {barrier, 0, false};
    int error = agent_check_start(agent, request ? &request->op : NULL, &word, callback);
    if (!error) error = check_parties(barrier);
    if (error) return error;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    if (segment_of(barrier)) return ask_in_segment(agent, request, barrier, deadline_ns, callback);
    uint32_t round;
    int to_wait = deadline_ns == DEADLINE_PASSED ? VIGIL_TIMED_OUT : VIGIL_PENDING;
    int status = arrive(lot_for(barrier), barrier, to_wait, &round);
    if (status != VIGIL_PENDING) return status;
    request->callback = callback;
    request->object = &barrier->word;
    request->argument = round;
    return stand_in_line(agent, request, deadline_ns);
}
