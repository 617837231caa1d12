/* SPDX-License-Identifier: MIT */
/* The lot of a segment: see shared.h. */
#include "shared.h"

#include <stdlib.h>

#include "hold.h"
#include "line.h"
#include "sound.h"
#include "vigil/status.h"

/* Which lot. */

/* The user's bytes are all that is believed. */
void lot_empty(struct segment *segment) {
    const struct segment_layout *at = &segment->layout;
    struct bucket *buckets = (struct bucket *)(void *)(segment->base + at->buckets_at);
    uint32_t *claims = (uint32_t *)(void *)(segment->base + at->claims_at);
    struct slot *slots = (struct slot *)(void *)(segment->base + at->slots_at);
    hold_settle(segment);
    for (uint64_t i = 0; i < at->buckets; i++) { /* what is zero need not become memory */
        if (prim_load_relaxed(&buckets[i].word)) prim_store_relaxed(&buckets[i].word, 0);
        if (buckets[i].line) buckets[i].line = 0;
    }
    for (uint64_t i = 0; i < at->slots; i++) {
        if (!prim_load_relaxed(&claims[i])) continue;
        prim_store_relaxed(&slots[i].key, 0);
        prim_store_relaxed(&claims[i], 0);
    }
}

/* What it holds of a lock, or a lock itself for which somebody waits: those are to be told as if it had died. */
static bool leaves_something(const struct lot *lot) {
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        uint32_t number = prim_load_relaxed(&lot->share->claims[index]);
        uint64_t key = number ? prim_load_relaxed(&lot->slots[index].key) : 0;
        uint32_t kind = prim_load_relaxed(&lot->slots[index].kind);
        bool for_owned = key && (kind == SLOT_MUTEX || kind == SLOT_ONCE);
        if (number == lot->number) return true;
        if (for_owned && prim_load_relaxed(word_of(lot, key)) / SEGMENT_HOLDER == lot->number) return true;
    }
    return false;
}

static int leave(struct segment *segment) {
    struct lot *lot = segment->lot;
    if (!lot) return VIGIL_OK;
    if (segment->fd >= 0) { /* else we are a fork's child, and all of this is our parent's */
        if (prim_load_relaxed(&lot->share->claimed)) return VIGIL_EBUSY;
        watch_end(lot);
        if (leaves_something(lot)) segment_count_death(lot->share->self);
    }
    free(lot->share);
    free(lot);
    segment->lot = NULL;
    return VIGIL_OK;
}

static bool fill(struct lot *lot, struct segment *segment, struct lot *home) {
    const struct segment_layout *at = &segment->layout;
    struct segment_member *self = segment_member(segment, segment_self(segment));
    struct lot_share *share = calloc(1, sizeof *share);
    if (!share) return false;
    *share = (struct lot_share){
        .segment = segment,
        .claims = (uint32_t *)(void *)(segment->base + at->claims_at),
        .slots = (uint32_t)at->slots,
        .self = self,
    };
    *lot = (struct lot){
        .buckets = (struct bucket *)(void *)(segment->base + at->buckets_at),
        .slots = (struct slot *)(void *)(segment->base + at->slots_at),
        .base = (uint64_t)(uintptr_t)segment->base,
        .bucket_bits = (uint32_t)__builtin_ctzll(at->buckets),
        .number = prim_load_relaxed(&self->number),
        .share = share,
        .home = home,
    };
    share->hint = lot->number; /* so that processes use different cache lines, mostly */
    return true;
}

static struct lot *make(struct segment *segment) {
    struct lot *home = lot_private(), *lot = home ? calloc(1, sizeof *lot) : NULL, *other = NULL;
    if (!lot || !fill(lot, segment, home)) {
        free(lot);
        return NULL;
    }
    prim_store_relaxed(&segment_leaving, leave);
    if (prim_cas_acq_rel(&segment->lot, &other, lot)) return lot;
    free(lot->share);
    free(lot);
    return prim_load_acquire(&segment->lot);
}

struct lot *lot_in(struct segment *segment) {
    struct lot *lot = prim_load_acquire(&segment->lot);
    return lot ? lot : make(segment);
}

/* Slots. */

static void count(uint32_t *counter, uint32_t add) {
    uint32_t seen = prim_load_relaxed(counter);
    while (!prim_cas_seq_cst(counter, &seen, seen + add)) {
    }
}

uint32_t shared_claim(struct lot *lot) {
    struct lot_share *share = lot->share;
    uint32_t start = prim_load_relaxed(&share->hint);
    for (uint32_t tried = 0; tried < share->slots; tried++) {
        uint32_t index = (start + tried) % share->slots, nobody = 0;
        if (!index || prim_load_relaxed(&share->claims[index])) continue;
        if (!prim_cas_acquire(&share->claims[index], &nobody, lot->number)) continue;
        prim_store_relaxed(&lot->slots[index].key, 0);
        prim_store_relaxed(&lot->slots[index].seat, 0);
        prim_store_relaxed(&share->hint, index + 1);
        return index;
    }
    return 0;
}

void shared_disclaim(struct lot *lot, uint32_t index) {
    struct lot_share *share = lot->share;
    prim_store_relaxed(&lot->slots[index].key, 0);
    prim_store_release(&share->claims[index], 0);
    prim_store_relaxed(&share->hint, index);
}

uint32_t shared_acquire(struct lot *lot) {
    uint32_t *claimed = &lot->share->claimed, index = 0;
    count(claimed, 1);
    if (watch_begin(lot)) {
        index = shared_claim(lot);
        if (!index && hold_recovered(lot->slots)) index = shared_claim(lot); /* the dead may have had some */
    }
    if (!index) count(claimed, UINT32_MAX);
    return index;
}

void shared_release(struct lot *lot, uint32_t index) {
    shared_disclaim(lot, index);
    count(&lot->share->claimed, UINT32_MAX);
}

/* Telling, under the bucket's lock. */

static void push_to_member(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t number) {
    struct segment_member *member = segment_member(lot->share->segment, (uint32_t)lot->slots[index].owner);
    uint64_t seen = prim_load_relaxed(&member->mail);
    do {
        if (seen >> 32 != number) return; /* it is dead, and what it has been told will be passed on */
        lot->slots[index].next = (uint32_t)seen / 2;
    } while (!prim_cas_acq_rel(&member->mail, &seen, (uint64_t)number << 32 | (uint64_t)index * 2));
    if (seen & SHARED_RESTING) add_word(wakes, (uint32_t *)(void *)&member->mail);
}

void shared_tell(struct lot *lot, struct wakes *wakes, uint32_t index, uint32_t outcome) {
    struct slot *slot = &lot->slots[index];
    uint32_t number = prim_load_relaxed(&lot->share->claims[index]);
    if (is_recorded(lot)) lot_tell(lot, VIGIL_EVENT_CALLED, index, prim_load_relaxed(&slot->key), outcome);
    if (!slot->seat) {
        if (prim_exchange_acq_rel(&slot->state, outcome) == SLOT_ASLEEP) add_word(wakes, &slot->state);
    } else if (number == lot->number) {
        uint32_t own = prim_load_relaxed(&slot->outcome);
        prim_store_relaxed(&slot->state, outcome);
        prim_store_relaxed(&slot->outcome, 0);
        add_mail(lot, wakes, own, outcome);
    } else {
        prim_store_release(&slot->state, outcome);
        if (!BUG(mail_forgotten)) push_to_member(lot, wakes, index, number);
    }
}

/* For people. */

void lot_tell(const struct lot *lot, int type, uint32_t index, uint64_t key, uint32_t status) {
    const struct slot *slot = &lot->slots[index];
    event_write(lot->share->segment, (struct segment_event){
                                         .type = (uint16_t)type,
                                         .kind = (uint16_t)slot->kind,
                                         .key = key,
                                         .number = prim_load_relaxed(&lot->share->claims[index]),
                                         .by = type == VIGIL_EVENT_CALLED ? lot->number : 0,
                                         .thread_id = slot->seat ? 0 : (uint32_t)slot->owner,
                                         .place = index,
                                         .status = status,
                                     });
}

void lot_tell_of_lock(const struct lot *lot, int type, enum slot_kind kind, const uint32_t *word, uint32_t count,
                      bool shared) {
    event_write(lot->share->segment, (struct segment_event){
                                         .type = (uint16_t)type,
                                         .kind = (uint16_t)kind,
                                         .key = key_of(lot, word),
                                         .number = lot->number,
                                         .thread_id = prim_thread_id(),
                                         .count = count,
                                         .shared = shared,
                                     });
}

/* Mail. */

/* The agent is told, by its slot in the process's own lot. */
static void hand_on(struct lot *lot, uint32_t index) {
    struct slot *slot = &lot->slots[index];
    struct seat *seat = lot->home->seats[prim_load_relaxed(&slot->seat)];
    uint32_t own = prim_load_relaxed(&slot->outcome), outcome = prim_load_acquire(&slot->state);
    prim_store_relaxed(&lot->home->slots[own].state, outcome);
    prim_store_relaxed(&slot->outcome, 0);
    if (BUG(handed_on_as_used)) prim_store_relaxed(&slot->key, 0);
    if (seat_push(lot->home, seat, own, own)) prim_bell_ring(&seat->bell);
}

/* The whole chain, oldest first. */
static uint32_t collect(struct lot *lot) {
    uint64_t *mail = &lot->share->self->mail, seen = prim_load_relaxed(mail), none = (uint64_t)lot->number << 32;
    if (!((uint32_t)seen / 2)) return 0;
    while (!prim_cas_acq_rel(mail, &seen, none)) {
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
    uint32_t index = collect(lot), next;
    bool any = index != 0;
    for (; index; index = next) {
        next = lot->slots[index].next;
        hand_on(lot, index);
    }
    return any;
}

/* Revival. */

static bool for_lock(uint32_t kind) {
    return kind < SLOT_KINDS && lot_revivals[kind].caller;
}

static uint32_t first_for_lock(const struct lot *lot, uint32_t head) {
    while (head && !for_lock(lot->slots[head].kind)) head = lot->slots[head].next;
    return head;
}

/* Under the bucket's lock. */
static void revive(struct lot *lot, uint32_t *line, struct wakes *wakes) {
    _Alignas(16) unsigned char context[LOT_REVIVAL_BYTES];
    uint32_t index = first_for_lock(lot, *line);
    if (!index || BUG(no_revival)) return;
    const struct lot_revival *revival = &lot_revivals[lot->slots[index].kind];
    if (revival->must_call(word_of(lot, lot->slots[index].key), context))
        line_call(lot, line, revival->caller, context, wakes);
}

/* Repair. */

/* Under the lock of the bucket that it would be in: nobody else can put it there or take it out. */
static bool belongs(const struct lot *lot, uint32_t index, uint32_t bucket) {
    const struct slot *slot = &lot->slots[index];
    uint64_t key = prim_load_acquire(&slot->key);
    if (!key || bucket_number(lot, key) != bucket) return false;
    bool waits = undecided(prim_load_acquire(&slot->state));
    return waits && prim_load_relaxed(&slot->key) == key; /* not just about to wait for something else */
}

static bool comes_before(const struct lot *lot, uint32_t a, uint32_t b) {
    const struct slot *x = &lot->slots[a], *y = &lot->slots[b];
    if (x->key != y->key) return x->key < y->key;
    return x->began_ns != y->began_ns ? x->began_ns < y->began_ns : a < b;
}

static uint32_t merge(struct lot *lot, uint32_t a, uint32_t b) {
    uint32_t first = 0, *end = &first;
    while (a && b) {
        uint32_t *from = comes_before(lot, a, b) ? &a : &b;
        *end = *from;
        end = &lot->slots[*from].next;
        *from = *end;
    }
    *end = a ? a : b;
    return first;
}

/* A list of slots, linked by `next`, in the order of lines and of places in them: piles[n] has 2^n slots, or none. */
static uint32_t sorted(struct lot *lot, uint32_t list) {
    uint32_t piles[32] = {0}, all = 0, top = 0;
    for (uint32_t index = list, next; index; index = next) {
        next = lot->slots[index].next;
        lot->slots[index].next = 0;
        uint32_t n = 0, pile = index;
        for (; piles[n]; n++) {
            pile = merge(lot, piles[n], pile);
            piles[n] = 0;
        }
        piles[n] = pile;
        if (n > top) top = n;
    }
    for (uint32_t n = 0; n <= top; n++) all = merge(lot, piles[n], all);
    return all;
}

/* A slot that was being moved from a condition's line to a mutex's, and had got there. */
static void complete_move(struct slot *slot) {
    if (slot->kind != SLOT_COND || slot->seat || slot->argument != slot->key) return;
    prim_store_relaxed(&slot->kind, (uint32_t)SLOT_MUTEX);
    slot->argument = 0;
    slot->began_ns = prim_now_ns();
}

static void rebuild(struct lot *lot, struct bucket *bucket) {
    uint32_t list = 0, number = (uint32_t)(bucket - lot->buckets);
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        if (!prim_load_acquire(&lot->share->claims[index]) || !belongs(lot, index, number)) continue;
        complete_move(&lot->slots[index]);
        hold_redo(lot, &lot->slots[index]);
        lot->slots[index].next = list;
        list = index;
    }
    if (BUG(repair_drops) && list) list = lot->slots[list].next;
    if (!BUG(repair_in_any_order)) list = sorted(lot, list);
    bucket->line = 0;
    for (uint32_t index = list, next; index; index = next) {
        next = lot->slots[index].next;
        line_append(lot, line_of(lot, bucket, lot->slots[index].key), index, lot->slots[index].key);
    }
}

static void repair(struct lot *lot, struct bucket *bucket) {
    struct wakes wakes;
    if (BUG(taken_over_as_it_is)) return;
    rebuild(lot, bucket);
    wakes_begin(&wakes);
    for (uint32_t *line = &bucket->line; *line;) {
        uint64_t key = lot->slots[*line].key;
        revive(lot, line, &wakes);
        if (*line && lot->slots[*line].key == key) line = &lot->slots[*line].next_line;
    }
    push_mail(lot, &wakes);
    wake_all(lot, &wakes);
}

void shared_lock(struct lot *lot, struct bucket *bucket) {
    uint32_t *word = &bucket->word, mine = WORD_LOCKED | lot->number * WORD_HOLDER;
    unsigned spins_left = PRIM_SPIN_LOCK;
    for (;;) {
        uint32_t seen = prim_load_relaxed(word);
        if (!(seen & WORD_LOCKED)) {
            if (prim_cas_seq_cst(word, &seen, seen | mine)) return;
        } else if (spins_left) {
            spins_left--;
            prim_pause();
        } else if (is_gone(lot, seen / WORD_HOLDER)) {
            if (!prim_cas_seq_cst(word, &seen, (seen & ~(WORD_LOCKED | WORD_NUMBER)) | mine)) continue;
            repair(lot, bucket);
            return;
        } else if ((seen & WORD_SLEEPERS) || prim_cas_acquire(word, &seen, seen | WORD_SLEEPERS)) {
            seen |= WORD_SLEEPERS;
            prim_park_shared(word, seen, prim_now_ns() + SHARED_LOOK_NS);
            mine |= WORD_SLEEPERS; /* as in word_lock.c */
            if (prim_load_relaxed(word) == seen) segment_lives(lot->share->segment, seen / WORD_HOLDER);
        }
    }
}

/* What a dead process leaves behind. */

static uint32_t slot_that_began(const struct lot *lot, uint32_t head, uint64_t began_ns) {
    while (head && lot->slots[head].began_ns != began_ns) head = lot->slots[head].next;
    return head;
}

/* The slot, which is dead, was told VIGIL_OK. */
static void pass_on(struct lot *lot, struct slot *slot, uint32_t *line, struct wakes *wakes) {
    if (!slot->argument) prim_store_release(&slot->argument, *line ? lot->slots[*line].began_ns : UINT64_MAX);
    uint32_t heir = slot_that_began(lot, *line, slot->argument);
    if (!heir) return; /* it has been done, or there is nobody */
    line_unlink(lot, line, heir);
    tell(lot, wakes, heir, VIGIL_OK);
}

static bool has_unused(const struct slot *slot) {
    if (BUG(pass_on_forgotten)) return false;
    return slot->state == VIGIL_OK && (slot->kind == SLOT_PLAIN || (slot->kind == SLOT_COND && slot->seat));
}

/* The condition whose signal has brought it here, and which it has not used; zero: none. */
static uint64_t signal_of(const struct lot *lot, const struct slot *slot) {
    bool moved = slot->kind == SLOT_MUTEX && slot->argument >= lot->share->segment->layout.user_at;
    return moved && slot->argument != slot->key ? slot->argument : 0;
}

/* Under the bucket's lock. */
static void bury(struct lot *lot, uint32_t index, struct bucket *bucket, uint64_t key, struct wakes *wakes) {
    struct slot *slot = &lot->slots[index];
    uint32_t *line = line_of(lot, bucket, key);
    if (slot->kind == SLOT_HOLDS) hold_give_back(lot, slot);
    if (in_line(slot, key)) {
        if (!BUG(dead_stays_linked)) line_unlink(lot, line, index);
    } else if (has_unused(slot)) {
        pass_on(lot, slot, line, wakes);
    }
}

/* Out of whatever line it is in, or was told something in. It may be moved from one to another meanwhile. */
static void take_out(struct lot *lot, uint32_t index, uint32_t number, uint64_t key, uint64_t *signalled_by) {
    struct slot *slot = &lot->slots[index];
    struct wakes wakes;
    wakes_begin(&wakes);
    struct bucket *bucket = bucket_lock(lot, key);
    bool still = prim_load_relaxed(&lot->share->claims[index]) == number && is_gone(lot, number) &&
                 prim_load_relaxed(&slot->key) == key;
    uint64_t signal = still ? signal_of(lot, slot) : 0;
    if (signal && !*signalled_by) {
        *signalled_by = signal; /* first that: if we are killed it is done once more, which does no harm */
    } else if (still) {
        bury(lot, index, bucket, key, &wakes);
        prim_store_release(&slot->key, 0);
    }
    unlock_and_wake(lot, bucket, &wakes);
}

static void bury_slot(struct lot *lot, uint32_t index, uint32_t number) {
    uint32_t *claim = &lot->share->claims[index];
    uint64_t key, signalled_by = 0;
    while (prim_load_relaxed(claim) == number && (key = prim_load_relaxed(&lot->slots[index].key))) {
        uint64_t before = signalled_by;
        take_out(lot, index, number, key, &signalled_by);
        if (signalled_by != before) lot_take(lot, word_of(lot, signalled_by), 1, VIGIL_OK);
        if (!is_gone(lot, number)) return;
    }
    if (is_gone(lot, number)) prim_cas_acq_rel(claim, &number, 0);
}

void lot_sweep(struct lot *lot) {
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        uint32_t seen = prim_load_relaxed(&bucket->word);
        if (!(seen & WORD_LOCKED) || !is_gone(lot, seen / WORD_HOLDER)) continue;
        lock_bucket(lot, bucket);
        bucket_unlock(lot, bucket);
    }
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        uint32_t number = prim_load_relaxed(&lot->share->claims[index]);
        if (number && is_gone(lot, number)) bury_slot(lot, index, number);
    }
}

/* Damage. */

static struct lot_parts parts_of(const struct lot *lot) {
    return (struct lot_parts){
        .buckets = lot->buckets,
        .claims = lot->share->claims,
        .slots = lot->slots,
        .slot_count = lot->share->slots,
        .bucket_bits = lot->bucket_bits,
    };
}

/* Whether its lock can be had: not if somebody alive has it for good, because he is stopped or that is the damage. */
#define MEND_PATIENCE_NS UINT64_C(1000000000)
static bool can_be_locked(const struct lot *lot, struct bucket *bucket) {
    uint64_t now_ns = prim_now_ns(), end_ns = now_ns + MEND_PATIENCE_NS;
    for (uint32_t nothing = 0; now_ns < end_ns; now_ns = prim_now_ns()) {
        uint32_t seen = prim_load_relaxed(&bucket->word);
        if (!(seen & WORD_LOCKED) || is_gone(lot, seen / WORD_HOLDER)) return true;
        prim_park(&nothing, 0, now_ns + MEND_PATIENCE_NS / 1000);
    }
    return false;
}

/* Whether it was damaged. Whoever stands in its lines is looked after as when somebody has died. */
static bool mend_bucket(struct lot *lot, uint32_t number, uint32_t expected) {
    struct lot_parts parts = parts_of(lot);
    struct bucket *bucket = &lot->buckets[number];
    uint32_t linked;
    if (!can_be_locked(lot, bucket)) return false;
    lock_bucket(lot, bucket);
    bool damaged = bucket_fault(&parts, number, &linked) ||
                   (linked != expected && linked != bucket_census(&parts, number));
    if (damaged || bucket->line) repair(lot, bucket);
    bucket_unlock(lot, bucket);
    return damaged;
}

/* A slot that says what cannot be is nobody's who could still be waiting: such a wait is lost anyway. */
static bool is_nonsense(const struct lot *lot, uint32_t index) {
    const struct segment *segment = lot->share->segment;
    uint64_t key = prim_load_relaxed(&lot->slots[index].key);
    uint32_t kind = prim_load_relaxed(&lot->slots[index].kind), of = prim_load_relaxed(&lot->slots[index].outcome);
    bool holds = kind == SLOT_HOLDS, recorded = of < SLOT_KINDS && lot_revivals[of].give_back;
    if (!key) return false;
    if (kind >= SLOT_KINDS || (holds && !recorded) || key % sizeof(uint32_t) != holds) return true;
    uint64_t begin = segment->layout.user_at, length = buffer_length(&segment->buffer);
    return key < begin || key - begin >= length || length - (key - begin) < sizeof(uint32_t);
}

static int64_t mend_members(struct segment *segment) {
    int64_t mended = 0;
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) {
        uint32_t number = prim_load_relaxed(&segment_member(segment, i)->number);
        bool member = segment_find_member(segment, number) == segment_member(segment, i);
        if (member && i != segment_self(segment)) mended += !segment_lives(segment, number);
    }
    return mended;
}

static int64_t mend_slots(struct lot *lot) {
    int64_t mended = 0;
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        uint32_t number = prim_load_relaxed(&lot->share->claims[index]);
        bool dead = number && is_gone(lot, number), nonsense = number && is_nonsense(lot, index);
        if (nonsense) prim_store_release(&lot->slots[index].key, 0);
        mended += dead || nonsense;
    }
    return mended;
}

static int64_t mend_buckets(struct lot *lot) {
    struct lot_parts parts = parts_of(lot);
    uint32_t *expected = bucket_censuses(&parts);
    int64_t mended = expected ? 0 : VIGIL_ENOMEM;
    for (uint32_t number = 0; expected && number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        bool empty = !prim_load_relaxed(&bucket->word) && !prim_load_relaxed(&bucket->line) && !expected[number];
        if (!empty) mended += mend_bucket(lot, number, expected[number]);
    }
    free(expected);
    return mended;
}

/* The links come before the sweep, which follows them. */
int64_t lot_mend(struct lot *lot) {
    int64_t mended = mend_members(lot->share->segment) + mend_slots(lot), lines = mend_buckets(lot);
    if (lines < 0) return lines;
    lot_sweep(lot);
    return mended + lines;
}

/* What is ours. */

/* An agent's, that has been told and has not been handed on. */
static bool told_in_vain(const struct slot *slot, uint64_t key) {
    bool agents = prim_load_relaxed(&slot->key) == key && prim_load_relaxed(&slot->seat);
    return agents && prim_load_relaxed(&slot->outcome) && !undecided(prim_load_relaxed(&slot->state));
}

static void tend_slot(struct lot *lot, uint32_t index, uint64_t key) {
    struct slot *slot = &lot->slots[index];
    struct wakes wakes;
    wakes_begin(&wakes);
    struct bucket *bucket = bucket_lock(lot, key);
    if (in_line(slot, key)) {
        revive(lot, line_of(lot, bucket, key), &wakes);
    } else if (told_in_vain(slot, key) && !BUG(mail_not_missed)) {
        lot_deliver(lot); /* it may be there */
        if (told_in_vain(slot, key)) hand_on(lot, index);
    }
    unlock_and_wake(lot, bucket, &wakes);
}

void lot_tend(struct lot *lot, bool somebody_died) {
    prim_fence_seq_cst(); /* who is in line after this has seen who has gone: see sync/mutex.c */
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        if (prim_load_relaxed(&lot->share->claims[index]) != lot->number) continue;
        struct slot *slot = &lot->slots[index];
        if (somebody_died && !BUG(wake_not_missed)) prim_wake_shared(&slot->state);
        uint64_t key = prim_load_relaxed(&slot->key);
        if (key && (somebody_died || for_lock(prim_load_relaxed(&slot->kind)))) tend_slot(lot, index, key);
    }
}
