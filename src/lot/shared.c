/* SPDX-License-Identifier: MIT */
/* The lot of a segment: see shared.h. */
#include "shared.h"

#include <stdlib.h>
#include <string.h>

#include "gift.h"
#include "line.h"
#include "vigil/status.h"

/* Making and leaving a segment's lot. */

/* Whether a line is that of a lock which this process holds. One waiter for a lock in it is enough; other waiters may
 * wait for the word itself. */
static bool shared_holds_what_is_waited_for(const struct lot *lot, uint32_t head) {
    const struct segment *segment = lot->share->segment;
    uint64_t key = lot->slots[head].key;
    bool owned = false;
    for (; head && !owned; head = lot->slots[head].next) {
        owned = lot->slots[head].kind == SLOT_MUTEX || lot->slots[head].kind == SLOT_ONCE;
    }
    if (!owned || !segment_has(segment, key, buffer_length(&segment->buffer))) return false;
    return segment_holder_number(prim_load_relaxed(word_of(lot, key))) == lot->number;
}

static bool shared_holds_one_of_bucket(struct lot *lot, struct bucket *bucket) {
    bool holds = false;
    if (!prim_load_relaxed(&bucket->word)) return false;
    if (!shared_trylock(lot, bucket, prim_now_ns() + LEAVE_PATIENCE_NS)) return true; /* it may hold one */
    for (uint32_t *line = &bucket->line; *line && !holds; line = line_after(lot, line, lot->slots[*line].key)) {
        holds = shared_holds_what_is_waited_for(lot, *line);
    }
    bucket_unlock(lot, bucket);
    return holds;
}

/* Whether this process holds part of a lock, or a lock that others wait for: recovery must act as if it had died. */
static bool shared_leaves_something(struct lot *lot) {
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots; index++) {
        if (prim_load_relaxed(&lot->share->claims[index]) == lot->claim) return true;
    }
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        if (shared_holds_one_of_bucket(lot, &lot->buckets[number])) return true;
    }
    return false;
}

static int shared_leave(struct segment *segment) {
    struct lot *lot = segment->lot;
    int status = VIGIL_OK;
    if (!lot) return status;
    if (segment->fd >= 0) { /* else we are a fork's child, and all of this belongs to the parent */
        if (prim_load_relaxed(&lot->share->claimed)) return VIGIL_EBUSY;
        status = shared_leaves_something(lot) ? VIGIL_OWNER_DIED : VIGIL_OK; /* may repair a bucket, and note a guard */
        keeper_leave(lot);
    }
    free(lot->share);
    free(lot);
    segment->lot = NULL;
    return status;
}

static bool shared_fill(struct lot *lot, struct segment *segment, struct lot *home) {
    const struct segment_layout *at = &segment->layout;
    struct segment_member *self = segment_member(segment, segment_self(segment));
    struct lot_share *share = calloc(1, sizeof *share);
    if (!share) return false;
    *share = (struct lot_share){
        .segment = segment,
        .claims = (uint32_t *)(void *)(segment->base + at->claims_at),
        .slots = backing_slots(segment),
        .self = self,
    };
    *lot = (struct lot){
        .buckets = (struct bucket *)(void *)(segment->base + at->buckets_at),
        .slots = (struct slot *)(void *)(segment->base + at->slots_at),
        .base = (uint64_t)(uintptr_t)segment->base,
        .bucket_bits = (uint32_t)__builtin_ctzll(at->buckets),
        .number = prim_load_relaxed(&self->number),
        .claim = claim_of(prim_load_relaxed(&self->number), segment_incarnation(self)),
        .share = share,
        .home = home,
    };
    share->hint = lot->number; /* so that processes mostly use different cache lines */
    return true;
}

static struct lot *shared_make(struct segment *segment) {
    struct lot *home = lot_private(), *lot = home ? aligned_alloc(_Alignof(struct lot), sizeof *lot) : NULL;
    struct lot *other = NULL;
    if (lot) memset(lot, 0, sizeof *lot);
    if (!lot || !shared_fill(lot, segment, home)) {
        free(lot);
        return NULL;
    }
    prim_store_relaxed(&segment_leaving, shared_leave);
    if (prim_cas_acq_rel(&segment->lot, &other, lot)) return lot;
    free(lot->share);
    free(lot);
    return prim_load_acquire(&segment->lot);
}

struct lot *lot_in(struct segment *segment) {
    struct lot *lot = prim_load_acquire(&segment->lot);
    return lot ? lot : shared_make(segment);
}

/* Slots. */

static void shared_count(uint32_t *counter, uint32_t add) {
    uint32_t seen = prim_load_relaxed(counter);
    while (!prim_cas_seq_cst(counter, &seen, seen + add)) {
    }
}

uint32_t shared_claim(struct lot *lot) {
    struct lot_share *share = lot->share;
    uint32_t start = prim_load_relaxed(&share->hint), slots = shared_slots(lot);
    for (uint32_t tried = 0; tried < slots; tried++) {
        uint32_t index = (start + tried) % slots, nobody = 0;
        if (!index || prim_load_relaxed(&share->claims[index])) continue;
        if (!prim_cas_acquire(&share->claims[index], &nobody, lot->claim)) continue;
        prim_store_relaxed(&lot->slots[index].key, 0);
        prim_store_relaxed(&lot->slots[index].gift, 0);
        prim_store_relaxed(&lot->slots[index].seat, 0);
        prim_store_relaxed(&share->hint, index + 1);
        return index;
    }
    return 0;
}

void shared_disclaim(struct lot *lot, uint32_t index) {
    struct lot_share *share = lot->share;
    prim_store_relaxed(&lot->slots[index].key, 0);
    gift_use(&lot->slots[index]);
    prim_store_release(&share->claims[index], 0);
    prim_store_relaxed(&share->hint, index);
}

/* Recovery once: while a stopped process has a bucket locked, it is never complete, and would be tried for ever. */
bool shared_find_slots(struct lot *lot, bool *recovered) {
    bool before = *recovered;
    *recovered = true;
    return (!before && recovery_now(lot)) || backing_more_slots(lot->share->segment);
}

uint32_t shared_acquire(struct lot *lot) {
    uint32_t *claimed = &lot->share->claimed, index = 0;
    shared_count(claimed, 1);
    bool recovered = false;
    if (keeper_attend(lot)) {
        do index = shared_claim(lot);
        while (!index && shared_find_slots(lot, &recovered));
    }
    if (!index) shared_count(claimed, UINT32_MAX);
    return index;
}

void shared_release(struct lot *lot, uint32_t index) {
    shared_disclaim(lot, index);
    shared_count(&lot->share->claimed, UINT32_MAX);
}

/* Telling, under the bucket's lock. */

static void shared_push_to_member(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t number) {
    struct segment_member *member = segment_member(lot->share->segment, (uint32_t)lot->slots[index].row);
    uint64_t seen = prim_load_relaxed(&member->relay);
    do {
        if (seen >> 32 != number) return; /* it is dead, and recovery passes on what it has been told */
        lot->slots[index].next = (uint32_t)seen / 2;
    } while (!prim_cas_acq_rel(&member->relay, &seen, (uint64_t)number << 32 | (uint64_t)index * 2));
    if (seen & SEGMENT_RESTING) add_word(wakes, (uint32_t *)(void *)&member->relay);
}

void shared_decide(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    struct slot *slot = &lot->slots[index];
    uint32_t claim = prim_load_relaxed(&lot->share->claims[index]);
    bool gift = outcome == VIGIL_OK && (slot->kind == SLOT_PLAIN || slot->kind == SLOT_COND);
    if (is_recorded(lot)) lot_record_event(lot, VIGIL_EVENT_CALLED, index, prim_load_relaxed(&slot->key), outcome);
    if (gift) gift_give(slot, prim_load_relaxed(&slot->key)); /* G1, and then G2 */
    if (!slot->seat) {
        if (prim_exchange_acq_rel(&slot->state, outcome) == SLOT_ASLEEP) add_word(wakes, &slot->state);
    } else if (claim == lot->claim) {
        uint32_t own = prim_load_relaxed(&slot->home);
        prim_store_relaxed(&slot->state, outcome);
        prim_store_relaxed(&slot->home, 0);
        add_mail(lot, wakes, own, outcome);
    } else {
        prim_store_release(&slot->state, outcome);
        if (!BUG(relay_forgotten)) shared_push_to_member(lot, wakes, index, claim_number(claim));
    }
}

/* Events. */

void lot_record_event(const struct lot *lot, int type, uint32_t index, uint64_t key, uint32_t status) {
    const struct slot *slot = &lot->slots[index];
    event_write(lot->share->segment, (struct segment_event){
                                         .type = (uint16_t)type,
                                         .kind = (uint16_t)slot->kind,
                                         .key = key,
                                         .number = claim_number(prim_load_relaxed(&lot->share->claims[index])),
                                         .by = type == VIGIL_EVENT_CALLED ? lot->number : 0,
                                         .thread_id = slot->seat ? 0 : (uint32_t)slot->signature,
                                         .slot = index,
                                         .status = status,
                                     });
}

void lot_record_lock_event(const struct lot *lot, int type, enum slot_kind kind, const uint32_t *word, uint32_t count,
                           bool shared) {
    event_write(lot->share->segment, (struct segment_event){
                                         .type = (uint16_t)type,
                                         .kind = (uint16_t)kind,
                                         .key = key_of(lot, word),
                                         .number = lot->number,
                                         .thread_id = prim_thread_id(),
                                         .pid = prim_process_id(),
                                         .count = count,
                                         .shared = shared,
                                     });
}

/* The relay. */

void lot_hand_on(struct lot *lot, uint32_t index) {
    struct slot *slot = &lot->slots[index];
    struct seat *seat = lot->home->seats[prim_load_relaxed(&slot->seat)];
    uint32_t own = prim_load_relaxed(&slot->home), outcome = prim_load_acquire(&slot->state);
    prim_store_relaxed(&lot->home->slots[own].state, outcome);
    prim_store_relaxed(&slot->home, 0);
    if (outcome == SLOT_CALLED || outcome == SLOT_BESIDE) guard_note(lot, prim_load_relaxed(&slot->key));
    if (BUG(handed_on_as_used)) gift_use(slot);
    if (seat_push(lot->home, seat, own, own)) prim_bell_ring(&seat->bell);
}

/* Take all slots out of our relay, oldest first. */
static uint32_t shared_collect(struct lot *lot) {
    uint64_t *relay = &lot->share->self->relay, seen = prim_load_relaxed(relay), none = (uint64_t)lot->number << 32;
    if (!((uint32_t)seen / 2)) return 0;
    while (!prim_cas_acq_rel(relay, &seen, none)) {
    }
    uint32_t first = 0;
    for (uint32_t index = (uint32_t)seen / 2, older; index; index = older) {
        older = lot->slots[index].next;
        lot->slots[index].next = first;
        first = index;
    }
    return first;
}

bool lot_deliver(struct lot *lot) {
    uint32_t index = shared_collect(lot), next;
    bool any = index != 0;
    for (; index; index = next) {
        next = lot->slots[index].next;
        lot_hand_on(lot, index);
    }
    return any;
}

/* The lock of a bucket. */

/* A dead process's pulse may beat for ever, if its word has been overwritten: so every now and then ask the kernel. */
static void shared_check_holder(struct lot *lot, uint32_t number, unsigned checks) {
    if (checks % SHARED_ASK_CHECKS) segment_member_lives(lot->share->segment, number);
    else segment_ask_kernel_about(lot->share->segment, number);
}

bool shared_lock_until(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns) {
    uint32_t *word = &bucket->word, mine = WORD_LOCKED | lot->number * WORD_HOLDER;
    unsigned spins_left = PRIM_SPIN_LOCK, checks = 0;
    for (;;) {
        uint32_t seen = prim_load_relaxed(word);
        if (!(seen & WORD_LOCKED)) {
            if (prim_cas_seq_cst(word, &seen, seen | mine)) return true;
        } else if (spins_left) {
            spins_left--;
            prim_pause();
        } else if (is_gone(lot, seen / WORD_HOLDER)) {
            if (!prim_cas_seq_cst(word, &seen, (seen & ~(WORD_LOCKED | WORD_NUMBER)) | mine)) continue;
            recovery_repair(lot, bucket);
            return true;
        } else if (deadline_ns != PRIM_NEVER && prim_now_ns() >= deadline_ns) {
            if (mine & WORD_SLEEPERS) prim_wake_shared(word); /* we may have been woken in place of another sleeper */
            return false;
        } else if ((seen & WORD_SLEEPERS) || prim_cas_acquire(word, &seen, seen | WORD_SLEEPERS)) {
            seen |= WORD_SLEEPERS;
            uint64_t check_ns = prim_now_ns() + SHARED_HOLDER_CHECK_NS;
            prim_park_shared(word, seen, check_ns < deadline_ns ? check_ns : deadline_ns);
            mine |= WORD_SLEEPERS;                                    /* as in word_lock.c */
            if (!BUG(deferred_too_long)) critical_settle_meanwhile(); /* the holder's process may be stopped */
            if (prim_load_relaxed(word) == seen) shared_check_holder(lot, seen / WORD_HOLDER, ++checks);
        }
    }
}

bool shared_trylock(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns) {
    critical_enter();
    if (word_trylock(&bucket->word, lot->number) || shared_lock_until(lot, bucket, deadline_ns)) return true;
    critical_leave();
    return false;
}
