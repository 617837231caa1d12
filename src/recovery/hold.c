/* SPDX-License-Identifier: MIT */
/* See hold.h. */
#include "hold.h"

#include "lot/line.h"
#include "recovery.h"
#include "vigil/status.h"

#define APPLYING (UINT64_C(1) << 31)
#define HELD     (APPLYING - 1)

static uint64_t hold_key_of_holders(const struct lot *lot, const uint32_t *word) {
    return key_of(lot, word) + 1;
}

/* The key of the lock that the hold is of. */
static uint64_t hold_lock_key_of(const struct slot *hold) {
    return prim_load_relaxed(&hold->key) - 1;
}

static uint32_t hold_held_by(const struct slot *hold) {
    return (uint32_t)(prim_load_relaxed(&hold->held) & HELD);
}

static uint32_t hold_number(const struct slot *hold) {
    return (uint32_t)prim_load_relaxed(&hold->signature);
}

/* The hold becomes more than nothing. */
static void hold_set_number(const struct lot *lot, struct slot *hold) {
    uint32_t steals = prim_load_relaxed(&segment_header(lot->share->segment)->steals);
    uint64_t since_ms = prim_now_coarse_ms();
    prim_store_relaxed(&hold->signature, since_ms << 32 | (BUG(hold_not_numbered) ? 1 : (uint32_t)(2 * steals + 1)));
}

/* Release stores, so that neither the processor nor the compiler moves one before the store that precedes it. */
static void hold_apply(uint32_t *word, struct slot *hold, uint32_t to, uint32_t held) {
    prim_store_release(&hold->held, (uint64_t)to << 32 | APPLYING | held); /* H1 */
    prim_store_release(word, to);                                          /* H2 */
    prim_store_release(&hold->held, (uint64_t)held);                       /* H3 */
}

static void hold_redo_change(uint32_t *word, struct slot *hold) {
    uint64_t held = prim_load_relaxed(&hold->held);
    if (!(held & APPLYING) || BUG(hold_not_redone)) return;
    prim_store_release(word, (uint32_t)(held >> 32)); /* H2 */
    prim_store_release(&hold->held, held & HELD);     /* H3 */
}

static uint32_t hold_of_ours(const struct lot *lot, uint32_t line) {
    while (line && prim_load_relaxed(&lot->share->claims[line]) != lot->claim) line = lot->slots[line].next;
    return line;
}

/* H0. Returns zero if no slot is free. */
static uint32_t hold_new(struct lot *lot, uint32_t *line, uint64_t key, enum slot_kind kind) {
    uint32_t index = shared_claim(lot);
    if (!index) return 0;
    struct slot *hold = &lot->slots[index];
    slot_begin(hold, SLOT_HOLDS);
    hold->of = kind;
    hold->began_ns = 0;
    prim_store_relaxed(&hold->held, 0);
    line_append(lot, line, index, key);
    return index;
}

/* H4. */
static void hold_end(struct lot *lot, uint32_t *line, uint32_t index) {
    line_unlink(lot, line, index);
    prim_store_release(&lot->slots[index].key, 0);
    shared_disclaim(lot, index);
}

/* Write an event, for observers. */
static void hold_record_event(const struct lot *lot, int type, const uint32_t *word, enum slot_kind kind,
                              uint32_t units) {
    bool shared = kind == SLOT_RWLOCK && units >= HOLD_READER;
    if (units) lot_record_lock_event(lot, type, kind, word, shared ? units / HOLD_READER : units, shared);
}

static void hold_record_events(const struct lot *lot, const uint32_t *word, struct hold hold) {
    if (hold.given == hold.taken) return; /* the process holds as much as before: only the word changes */
    hold_record_event(lot, VIGIL_EVENT_RELEASED, word, hold.kind, hold.given);
    hold_record_event(lot, VIGIL_EVENT_GRANTED, word, hold.kind, hold.taken);
}

int hold_change_locked(struct lot *lot, uint32_t *word, uint32_t to, struct hold hold) {
    if (!hold.given && !hold.taken) {
        prim_store_release(word, to);
        return VIGIL_OK;
    }
    uint64_t key = hold_key_of_holders(lot, word);
    uint32_t *line = line_of(lot, bucket_of(lot, key), key), index = hold_of_ours(lot, *line);
    uint32_t held = index ? hold_held_by(&lot->slots[index]) : 0;
    if (held < hold.given) return VIGIL_ENOTHELD;
    if (hold.given && hold.number && hold.number != hold_number(&lot->slots[index])) return VIGIL_ENOTHELD;
    if (!index) index = hold_new(lot, line, key, hold.kind);
    if (!index) return VIGIL_ELIMIT;
    if (!held) hold_set_number(lot, &lot->slots[index]);
    if (hold.taken) prim_self()->hold_number = hold_number(&lot->slots[index]);
    held = held - hold.given + hold.taken;
    if (is_recorded(lot)) hold_record_events(lot, word, hold);
    hold_apply(word, &lot->slots[index], to, held);
    if (!held) hold_end(lot, line, index);
    return VIGIL_OK;
}

static int hold_try_change(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold) {
    struct bucket *bucket = bucket_find_and_lock(lot, key_of(lot, word));
    uint32_t now = prim_load_relaxed(word);
    int status = now == *seen ? hold_change_locked(lot, word, to, hold) : VIGIL_NOT_EQUAL;
    bucket_unlock(lot, bucket);
    *seen = now;
    return status;
}

int hold_change(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold) {
    bool recovered = false;
    int status;
    do status = hold_try_change(lot, word, seen, to, hold);
    while (status == VIGIL_ELIMIT && shared_find_slots(lot, &recovered));
    return status;
}

/* Stealing. */

/* T3 of one hold. Returns what of `keep` a dead process would leave in the word. */
static uint32_t hold_take_away(struct lot *lot, uint32_t *word, uint32_t *line, uint32_t index, uint32_t keep) {
    struct slot *hold = &lot->slots[index];
    uint32_t left = recovery_calls[hold->of].give_back(prim_load_relaxed(word), hold_held_by(hold));
    bool gone = is_claimant_gone(lot, prim_load_relaxed(&lot->share->claims[index]));
    hold_apply(word, hold, left, 0);
    hold_end(lot, line, index);
    return gone ? left & keep : 0;
}

static int hold_steal_locked(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t keep, struct hold hold) {
    uint64_t key = hold_key_of_holders(lot, word);
    uint32_t *line = line_of(lot, bucket_of(lot, key), key), ours = hold_new(lot, line, key, hold.kind); /* T1 */
    if (!ours) return VIGIL_ELIMIT;
    prim_fetch_add_acq_rel(&segment_header(lot->share->segment)->steals, 1); /* T2 */
    *seen = prim_load_relaxed(word);
    for (uint32_t index = *line, next; index; index = next) {
        next = lot->slots[index].next;
        if (index != ours) *seen |= hold_take_away(lot, word, line, index, keep); /* T3 */
    }
    hold_set_number(lot, &lot->slots[ours]);
    prim_self()->hold_number = hold_number(&lot->slots[ours]);
    if (is_recorded(lot)) hold_record_events(lot, word, hold);
    hold_apply(word, &lot->slots[ours], (*seen & keep) | hold.taken, hold.taken); /* T4 */
    return VIGIL_OK;
}

static int hold_try_steal(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t keep, struct hold hold) {
    struct bucket *bucket = bucket_find_and_lock(lot, key_of(lot, word));
    int status = hold_steal_locked(lot, word, seen, keep, hold);
    bucket_unlock(lot, bucket);
    return status;
}

int hold_steal(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t keep, struct hold hold) {
    bool recovered = false;
    int status;
    do status = hold_try_steal(lot, word, seen, keep, hold);
    while (status == VIGIL_ELIMIT && shared_find_slots(lot, &recovered));
    return status;
}

bool hold_is_ours(struct lot *lot, const uint32_t *word, uint32_t number) {
    uint64_t key = hold_key_of_holders(lot, word);
    struct bucket *bucket = bucket_find_and_lock(lot, key);
    uint32_t index = hold_of_ours(lot, *line_of(lot, bucket, key));
    bool ours = index && hold_held_by(&lot->slots[index]) && hold_number(&lot->slots[index]) == number;
    bucket_unlock(lot, bucket);
    return ours;
}

/* On behalf of dead processes. */

static uint32_t *hold_word_of(const struct lot *lot, const struct slot *hold) {
    return word_of(lot, hold_lock_key_of(hold));
}

bool hold_redo(struct lot *lot, struct slot *hold) {
    if (hold->kind != SLOT_HOLDS) return true;
    hold_redo_change(hold_word_of(lot, hold), hold);
    return hold_held_by(hold);
}

static void hold_give_back_to(uint32_t *word, struct slot *hold) {
    uint32_t held = hold_held_by(hold);
    if (held && !BUG(hold_kept))
        hold_apply(word, hold, recovery_calls[hold->of].give_back(prim_load_relaxed(word), held), 0);
}

void hold_give_back(struct lot *lot, struct slot *hold) {
    hold_give_back_to(hold_word_of(lot, hold), hold);
}

bool hold_recovered(const volatile void *word) {
    struct lot *lot = segment_of(word) ? lot_for(word) : NULL;
    return lot && recovery_now(lot);
}

bool hold_has_no_waiter(const volatile void *word) {
    struct lot *lot = segment_of(word) ? lot_for(word) : NULL;
    for (uint32_t index = 1, slots = lot ? shared_slots(lot) : 0; index < slots; index++) {
        bool claimed = prim_load_relaxed(&lot->share->claims[index]);
        if (claimed && prim_load_relaxed(&lot->slots[index].key) == key_of(lot, word)) return false;
    }
    return lot;
}

/* The lock's word, for a slot that cannot be trusted. Null: it is not a valid hold. */
static uint32_t *hold_word_to_settle(const struct segment *segment, const struct slot *slot) {
    uint64_t at = hold_lock_key_of(slot), begin = segment->layout.user_at;
    bool is_hold = slot->kind == SLOT_HOLDS && undecided(prim_load_relaxed(&slot->state)) && slot->of < SLOT_KINDS;
    if (!is_hold || !recovery_calls[slot->of].give_back) return NULL;
    uint64_t length = prim_load_relaxed(segment->buffer.length);
    bool inside = at >= begin && at - begin < length && length - (at - begin) >= sizeof(uint32_t);
    return inside && at % sizeof(uint32_t) == 0 ? (uint32_t *)(void *)(segment->base + at) : NULL;
}

void hold_settle(const struct segment *segment) {
    uint32_t *claims = (uint32_t *)(void *)(segment->base + segment->layout.claims_at);
    struct slot *slots = (struct slot *)(void *)(segment->base + segment->layout.slots_at);
    for (int undone = 1; undone >= 0; undone--) { /* first what was being applied */
        for (uint64_t index = 1; index < backing_slots(segment); index++) {
            uint32_t *word = prim_load_relaxed(&claims[index]) ? hold_word_to_settle(segment, &slots[index]) : NULL;
            if (word && undone) hold_redo_change(word, &slots[index]);
            else if (word) hold_give_back_to(word, &slots[index]);
        }
    }
}
