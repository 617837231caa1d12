/* SPDX-License-Identifier: MIT */
/*
 * The barrier.
 *
 * The word is the number of the round (upper half) and, except in segments, the number of parties that have arrived for
 * it (lower half). The parties that have arrived and wait are in the word's line.
 *
 * ARRIVING IS ONE STEP
 *
 * Under the lock of the word's bucket:
 *
 *     the last party arrives    S1  store the next round, with no arrivals
 *                               S2  tell all in line
 *     another party arrives         store one more arrival, and join the line
 *
 * Leaving the line, at a deadline or when cancelled, is one step as well: lot_leave takes the arrival back (lot.c). So
 * exactly those parties are in line that have arrived for the current round. Each of them either is told that the round
 * is complete or has taken its arrival back, never both.
 *
 * THE MEMORY
 *
 * A party that has been told does not touch the barrier again: it was told about its own round, so there is nothing to
 * look at. The last party does not touch it after S1. So each party may free the barrier when its call has returned.
 *
 * After vigil_forget the parties that were in line are out of it, and lot_leave takes nothing back.
 *
 * MEMORY ORDER
 *
 * The bucket's lock orders all arrivals: the last party has seen what the others did before theirs. The others see what
 * the last party has seen by being told (lot.h).
 *
 * IN A SEGMENT
 *
 * A count in the word would keep counting parties that are killed. So in a segment the word is the round alone, and
 * arrivals are counted in the line. The sweep that removes a dead party's slot from the line (recovery/sweep.c) thereby
 * takes its arrival back. Before S1 the kernel is asked whether all parties in line live: a party that was dead by then
 * has not arrived.
 *
 * Each slot's `round` is the round that its party waits for. A process that is killed between S1 and S2, or during S2,
 * leaves parties in line that wait for a round that is over. No other party can have joined them: the bucket is
 * repaired before another process has its lock, and the repair tells them (barrier_recovery).
 */
#include "vigil/barrier.h"

#include "lot/arguments.h"
#include "lock.h"
#include "calls.h"

#define MOST_PARTIES 65535u
#define ONE_ROUND    65536u

static uint32_t barrier_arrived(uint32_t seen) {
    return seen % ONE_ROUND;
}

static uint32_t barrier_round(uint32_t seen) {
    return seen - barrier_arrived(seen);
}

static int barrier_check(const vigil_barrier *barrier) {
    return barrier->parties - 1 < MOST_PARTIES ? VIGIL_OK : VIGIL_EINVAL;
}

/* Counting arrivals, in a segment. */

/* Whether the slot's process lives. `known` caches the number of a living process, to ask the kernel less often. */
static bool barrier_party_lives(const struct lot *lot, uint32_t index, uint32_t *known) {
    uint32_t number = claim_number(prim_load_relaxed(&lot->share->claims[index]));
    if (number != *known && number != lot->number) {
        if (!segment_member_lives(lot->share->segment, number)) return false;
        *known = number;
    }
    return true;
}

static uint32_t barrier_count(const struct lot *lot, const struct slot *head, bool living_only) {
    uint32_t counted = 0, known = 0;
    for (uint32_t index = head ? (uint32_t)(head - lot->slots) : 0; index; index = lot->slots[index].next) {
        if (lot->slots[index].kind != SLOT_BARRIER) continue;
        if (!living_only || barrier_party_lives(lot, index, &known)) counted++;
    }
    return counted;
}

/* Arriving. */

struct arrival {
    struct lot *lot;
    uint32_t slot; /* zero: the party arrives only if it is the last */
    uint32_t parties;
    bool last;
};

static bool barrier_is_last(const struct arrival *arrival, uint32_t seen, const struct slot *head) {
    if (!is_shared(arrival->lot)) return barrier_arrived(seen) + 1 >= arrival->parties;
    return barrier_count(arrival->lot, head, false) + 1 >= arrival->parties &&
           barrier_count(arrival->lot, head, true) + 1 >= arrival->parties;
}

static bool barrier_arrive_locked(uint32_t *word, const struct slot *head, void *context) {
    struct arrival *arrival = context;
    uint32_t seen = prim_load_relaxed(word);
    if (BUG(round_ends_outside) && arrival->last) return true;
    arrival->last = barrier_is_last(arrival, seen, head);
    if (arrival->last) {
        prim_store_release(word, barrier_round(seen) + ONE_ROUND); /* S1 */
    } else if (arrival->slot) {
        prim_store_relaxed(&arrival->lot->slots[arrival->slot].round, (uint64_t)barrier_round(seen));
        if (!is_shared(arrival->lot)) prim_store_relaxed(word, seen + 1);
    }
    return arrival->last; /* S2 */
}

/* The round is over for all in line. */
static uint32_t barrier_outcome(const struct slot *slot, void *context) {
    (void)slot, (void)context;
    return VIGIL_OK;
}

static const struct lot_release barrier_arriving = {barrier_arrive_locked, barrier_outcome, NULL, NULL};

static bool barrier_join(struct arrival *arrival, uint32_t *word) {
    struct lot *lot = arrival->lot;
    if (BUG(round_ends_outside) && barrier_is_last(arrival, prim_load_relaxed(word), NULL)) {
        prim_store_release(word, barrier_round(prim_load_relaxed(word)) + ONE_ROUND);
        arrival->last = true;
    }
    if (BUG(arrival_in_two_steps)) {
        lot_call(lot, word, &barrier_arriving, arrival);
        struct word now = {word, prim_load_relaxed(word), false};
        return !arrival->last && arrival->slot && lot_join(lot, arrival->slot, &now);
    }
    return lot_call_or_join(lot, arrival->slot, word, &barrier_arriving, arrival);
}

/* VIGIL_LAST; or VIGIL_PENDING: the slot is in line; if it is zero, the party must wait and has not arrived. */
static int barrier_arrive(struct lot *lot, vigil_barrier *barrier, uint32_t slot) {
    struct arrival arrival = {.lot = lot, .slot = slot, .parties = barrier->parties};
    uint32_t *word = &barrier->word;
    tsan_release(word);
    barrier_join(&arrival, word);
    if (!arrival.last) return VIGIL_PENDING;
    tsan_acquire(word);
    return VIGIL_LAST;
}

/* A process has been killed: whether the parties in line wait for a round that is over. */
static bool barrier_is_over(uint32_t *word, const struct slot *head, void *context) {
    const struct slot *slots = lot_for(word)->slots;
    (void)context;
    while (head && head->kind != SLOT_BARRIER) head = head->next ? &slots[head->next] : NULL;
    return head && head->round != barrier_round(prim_load_relaxed(word)) && !BUG(barrier_half_told);
}

const struct lot_release barrier_recovery = {barrier_is_over, barrier_outcome, NULL, NULL};

/* Blocking. */

static int barrier_sleep(struct lot *lot, uint32_t index, uint32_t *word, uint64_t deadline_ns) {
    bool told = lot_sleep(lot, index, deadline_ns);
    int status = told ? (int)lot->slots[index].state : lot_give_up(lot, index, word);
    if (BUG(told_looks_again) && status == VIGIL_OK) prim_load_relaxed(word);
    if (status == VIGIL_OK) tsan_acquire(word);
    return status;
}

int vigil_barrier_wait_for(vigil_barrier *barrier, int64_t timeout_ns) {
    int error = check_address(barrier, sizeof barrier->word);
    if (!error) error = barrier_check(barrier);
    if (error) return error;
    struct lot *lot = lot_for(barrier);
    if (!lot) return lot_missing(barrier);
    uint64_t deadline_ns = deadline_of(timeout_ns);
    int to_wait = deadline_ns == DEADLINE_PASSED ? VIGIL_TIMED_OUT : VIGIL_PENDING;
    if (prim_self()->may_not_block) to_wait = VIGIL_EMAYNOTBLOCK;
    uint32_t index = to_wait == VIGIL_PENDING ? slot_acquire(lot) : 0;
    if (index) slot_begin(&lot->slots[index], SLOT_BARRIER);
    else if (to_wait == VIGIL_PENDING) to_wait = VIGIL_ELIMIT;
    int status = barrier_arrive(lot, barrier, index);
    if (!index) return status == VIGIL_LAST ? status : to_wait;
    if (status == VIGIL_PENDING) status = barrier_sleep(lot, index, &barrier->word, deadline_ns);
    slot_release(lot, index);
    return status;
}

int vigil_barrier_wait_until(vigil_barrier *barrier, int64_t deadline_ns) {
    return vigil_barrier_wait_for(barrier, vigil_until(deadline_ns));
}

int vigil_barrier_wait(vigil_barrier *barrier) {
    return vigil_barrier_wait_for(barrier, VIGIL_FOREVER);
}

/* Asynchronous. To cancel is to leave the line, and nothing else: so it is an operation like any other. */

static void barrier_fill_in(vigil_agent *agent, vigil_op *op, uint32_t index) {
    struct slot *own = &agent->lot->slots[index];
    struct agent_slot at = agent_slot(agent, index);
    struct slot *slot = &at.lot->slots[at.slot];
    own->op = (uint64_t)(uintptr_t)op;
    prim_store_relaxed(&own->seat, agent->seat.number);
    slot_begin(slot, SLOT_BARRIER);
    prim_store_relaxed(&slot->seat, agent->seat.number);
}

static void barrier_begin(vigil_agent *agent, vigil_op *op, uint32_t index, vigil_barrier *barrier,
                          uint64_t deadline_ns) {
    op->agent = agent;
    op->address = (uint64_t)(uintptr_t)&barrier->word;
    op->slot = index;
    op->timer_link = NULL;
    op->deadline_ns = deadline_ns;
    if (deadline_ns != PRIM_NEVER) agent_start_timer(agent, op, prim_now_ns());
    agent_begin(agent, op);
}

int vigil_barrier_wait_async(vigil_agent *agent, vigil_request *request, vigil_barrier *barrier, int64_t timeout_ns,
                             vigil_callback *callback) {
    struct word word = {barrier, 0, false};
    int error = agent_check_start(agent, request ? &request->op : NULL, &word, callback);
    if (!error) error = barrier_check(barrier);
    if (error) return error;
    struct lot *lot = lot_for(barrier);
    if (!lot) return lot_missing(barrier);
    uint64_t deadline_ns = deadline_of(timeout_ns);
    bool passed = deadline_ns == DEADLINE_PASSED;
    uint32_t index = passed ? 0 : agent_slot_acquire(agent, barrier);
    if (index) barrier_fill_in(agent, &request->op, index);
    int status = barrier_arrive(lot, barrier, index ? agent_slot(agent, index).slot : 0);
    if (!index) return status == VIGIL_LAST ? status : passed ? VIGIL_TIMED_OUT : VIGIL_ELIMIT;
    if (status == VIGIL_LAST) {
        agent_slot_release(agent, index);
    } else {
        request->op.callback = callback;
        barrier_begin(agent, &request->op, index, barrier, deadline_ns);
    }
    return status;
}
