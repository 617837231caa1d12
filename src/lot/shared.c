/* SPDX-License-Identifier: MIT */
/* The lot of a segment: see shared.h. */
#include "shared.h"

#include <stdlib.h>

#include "gift.h"
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
    const struct segment *segment = lot->share->segment;
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        uint32_t number = prim_load_relaxed(&lot->share->claims[index]);
        if (number == lot->number) return true;
        if (!number) continue;
        uint64_t key = prim_load_relaxed(&lot->slots[index].key);
        uint32_t kind = prim_load_relaxed(&lot->slots[index].kind);
        bool for_owned =
            (kind == SLOT_MUTEX || kind == SLOT_ONCE) && segment_has(segment, key, buffer_length(&segment->buffer));
        if (for_owned && prim_load_relaxed(word_of(lot, key)) / SEGMENT_HOLDER == lot->number) return true;
    }
    return false;
}

static int leave(struct segment *segment) {
    struct lot *lot = segment->lot;
    int status = VIGIL_OK;
    if (!lot) return status;
    if (segment->fd >= 0) { /* else we are a fork's child, and all of this is our parent's */
        if (prim_load_relaxed(&lot->share->claimed)) return VIGIL_EBUSY;
        watch_end(lot);
        status = leaves_something(lot) ? VIGIL_OWNER_DIED : VIGIL_OK;
    }
    free(lot->share);
    free(lot);
    segment->lot = NULL;
    return status;
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
    bool gift = outcome == VIGIL_OK && (slot->kind == SLOT_PLAIN || slot->kind == SLOT_COND);
    if (is_recorded(lot)) lot_tell(lot, VIGIL_EVENT_CALLED, index, prim_load_relaxed(&slot->key), outcome);
    if (gift) gift_give(slot, prim_load_relaxed(&slot->key)); /* G1, and then G2 */
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

static uint32_t slot_that_began(const struct lot *lot, uint32_t head, uint64_t began_ns) {
    while (head && lot->slots[head].began_ns != began_ns) head = lot->slots[head].next;
    return head;
}

/* P3: to the waiter with that place, if there is one. */
static void give_to_heir(struct lot *lot, uint32_t *line, uint64_t place, struct wakes *wakes) {
    uint32_t heir = slot_that_began(lot, *line, place);
    if (!heir) return; /* it has been done, or there was nobody */
    line_unlink(lot, line, heir);
    tell(lot, wakes, heir, VIGIL_OK);
}

/* Killed between G1 and G2 (gift.h): it has been given what was given in the line in which it stands. */
static bool is_half_told(const struct slot *slot) {
    return gift_is_given(slot) && gift_line(slot) == slot->key && !BUG(half_told_stays);
}

static void rebuild(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    uint32_t list = 0, number = (uint32_t)(bucket - lot->buckets);
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        struct slot *slot = &lot->slots[index];
        if (!prim_load_acquire(&lot->share->claims[index]) || !belongs(lot, index, number)) continue;
        if (is_half_told(slot)) {
            shared_tell(lot, wakes, index, VIGIL_OK);
            continue;
        }
        hold_redo(lot, slot);
        slot->next = list;
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

/* Killed between P2 and P4: what was being passed on in one of the bucket's lines arrives before anything else happens. */
static void finish_passing(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    for (uint32_t index = 1; index < lot->share->slots && !BUG(heir_chosen_again); index++) {
        struct slot *slot = &lot->slots[index];
        if (!prim_load_acquire(&lot->share->claims[index]) || gift_field(slot) < GIFT_PASSING) continue;
        uint64_t key = gift_line(slot);
        if (bucket_of(lot, key) != bucket) continue;
        give_to_heir(lot, line_of(lot, bucket, key), slot->began_ns, wakes); /* P3 */
        prim_store_release(&slot->gift, UINT64_C(0));                        /* P4 */
    }
}

static void revive_lines(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    for (uint32_t *line = &bucket->line; *line;) {
        uint64_t key = lot->slots[*line].key;
        revive(lot, line, wakes);
        if (*line && lot->slots[*line].key == key) line = &lot->slots[*line].next_line;
    }
}

static void repair(struct lot *lot, struct bucket *bucket) {
    struct wakes wakes;
    if (BUG(taken_over_as_it_is)) return;
    wakes_begin(&wakes);
    rebuild(lot, bucket, &wakes);
    finish_passing(lot, bucket, &wakes);
    revive_lines(lot, bucket, &wakes);
    push_mail(lot, &wakes);
    wake_all(lot, &wakes);
}

bool shared_lock_until(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns) {
    uint32_t *word = &bucket->word, mine = WORD_LOCKED | lot->number * WORD_HOLDER;
    unsigned spins_left = PRIM_SPIN_LOCK;
    for (;;) {
        uint32_t seen = prim_load_relaxed(word);
        if (!(seen & WORD_LOCKED)) {
            if (prim_cas_seq_cst(word, &seen, seen | mine)) return true;
        } else if (spins_left) {
            spins_left--;
            prim_pause();
        } else if (is_gone(lot, seen / WORD_HOLDER)) {
            if (!prim_cas_seq_cst(word, &seen, (seen & ~(WORD_LOCKED | WORD_NUMBER)) | mine)) continue;
            repair(lot, bucket);
            return true;
        } else if (deadline_ns != PRIM_NEVER && prim_now_ns() >= deadline_ns) {
            if (mine & WORD_SLEEPERS) prim_wake_shared(word); /* we may have been woken in another's place */
            return false;
        } else if ((seen & WORD_SLEEPERS) || prim_cas_acquire(word, &seen, seen | WORD_SLEEPERS)) {
            seen |= WORD_SLEEPERS;
            uint64_t look_ns = prim_now_ns() + SHARED_LOOK_NS;
            prim_park_shared(word, seen, look_ns < deadline_ns ? look_ns : deadline_ns);
            mine |= WORD_SLEEPERS; /* as in word_lock.c */
            if (prim_load_relaxed(word) == seen) segment_lives(lot->share->segment, seen / WORD_HOLDER);
        }
    }
}

static bool try_lock_bucket(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns) {
    return word_trylock(&bucket->word, lot->number) || shared_lock_until(lot, bucket, deadline_ns);
}

/* What a dead process leaves behind. */

/* P1 to P4. */
static void pass_on(struct lot *lot, struct slot *slot, uint64_t key, struct bucket *bucket, struct wakes *wakes) {
    uint32_t *line = line_of(lot, bucket, key);
    slot->began_ns = *line ? lot->slots[*line].began_ns : GIFT_NOBODY; /* P1 */
    prim_store_release(&slot->gift, gift_of(GIFT_PASSING, key));       /* P2 */
    give_to_heir(lot, line, slot->began_ns, wakes);                    /* P3 */
    prim_store_release(&slot->gift, UINT64_C(0));                      /* P4 */
}

/* `number`: zero for a slot of our own, else that of the dead process whose slot it was when we looked. */
static bool pass_on_of(struct lot *lot, uint32_t index, uint32_t number, uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    uint64_t key = gift_line(slot);
    struct bucket *bucket = bucket_of(lot, key);
    struct wakes wakes;
    wakes_begin(&wakes);
    if (!is_shared(lot)) lock_bucket(lot, bucket);
    else if (!try_lock_bucket(lot, bucket, BUG(stopped_signal) ? PRIM_NEVER : deadline_ns)) return false;
    bool same = !number || (prim_load_relaxed(&lot->share->claims[index]) == number && is_gone(lot, number));
    bool given = (gift_is_given(slot) && gift_line(slot) == key) || BUG(passed_on_unchecked);
    if (same && given) pass_on(lot, slot, key, bucket, &wakes);
    unlock_and_wake(lot, bucket, &wakes);
    return true;
}

bool gift_pass_on(struct lot *lot, uint32_t index, uint64_t deadline_ns) {
    return pass_on_of(lot, index, 0, deadline_ns);
}

/* Out of whatever line it is in, or was told something in. It may be moved from one to another meanwhile. */
static bool take_out(struct lot *lot, uint32_t index, uint32_t number, uint64_t key, uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    struct bucket *bucket = bucket_of(lot, key);
    if (!try_lock_bucket(lot, bucket, deadline_ns)) return false;
    bool still = prim_load_relaxed(&lot->share->claims[index]) == number && is_gone(lot, number) &&
                 prim_load_relaxed(&slot->key) == key;
    if (still) {
        if (slot->kind == SLOT_HOLDS) hold_give_back(lot, slot);
        if (in_line(slot, key) && !BUG(dead_stays_linked)) line_unlink(lot, line_of(lot, bucket, key), index);
        prim_store_release(&slot->key, 0);
    }
    bucket_unlock(lot, bucket);
    return true;
}

/* First out of all lines, so that nothing more is given to it; then what it has been given is passed on. */
static bool bury_slot(struct lot *lot, uint32_t index, uint32_t number, uint64_t deadline_ns) {
    uint32_t *claim = &lot->share->claims[index];
    struct slot *slot = &lot->slots[index];
    uint64_t key;
    /* Acquire: a key that another sweeper has cleared comes with what the slot had been given before that. */
    while (prim_load_relaxed(claim) == number && (key = prim_load_acquire(&slot->key))) {
        if (!take_out(lot, index, number, key, deadline_ns)) return false;
        if (!is_gone(lot, number)) return true;
    }
    bool passes = prim_load_relaxed(claim) == number && gift_is_given(slot) && !BUG(pass_on_forgotten);
    if (passes && !pass_on_of(lot, index, number, deadline_ns)) return false;
    if (is_gone(lot, number)) prim_cas_acq_rel(claim, &number, 0);
    return true;
}

bool lot_sweep(struct lot *lot, uint64_t deadline_ns) {
    bool all = true;
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        uint32_t seen = prim_load_relaxed(&bucket->word);
        if (!(seen & WORD_LOCKED) || !is_gone(lot, seen / WORD_HOLDER)) continue;
        if (try_lock_bucket(lot, bucket, deadline_ns)) bucket_unlock(lot, bucket);
    }
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        uint32_t number = prim_load_relaxed(&lot->share->claims[index]);
        if (number && is_gone(lot, number)) all &= bury_slot(lot, index, number, deadline_ns);
    }
    return all;
}

/* Damage: whatever somebody has written there, mending ends, and harms nobody who is well. */

/* Somebody alive may have a bucket's lock for good: he is stopped, or that is the damage. All together: */
#define MEND_PATIENCE_NS UINT64_C(1000000000)

struct mending {
    struct lot *lot;
    struct lot_parts parts;
    uint64_t usable; /* of the user's bytes */
    uint64_t end_ns; /* of our patience */
    bool stuck;      /* it was in vain */
    int64_t mended;
};

/* An agent's: whether those whom the telling goes through are there. */
static bool has_way_home(const struct lot *lot, uint32_t index) {
    const struct slot *slot = &lot->slots[index], *slots = lot->home->slots;
    const struct segment *segment = lot->share->segment;
    uint32_t number = prim_load_relaxed(&lot->share->claims[index]), own = prim_load_relaxed(&slot->outcome);
    if (number != lot->number) {
        return slot->owner < segment->members &&
               prim_load_relaxed(&segment_member(segment, (uint32_t)slot->owner)->number) == number;
    }
    return own && own < slot_bound(lot->home) && prim_load_relaxed(&slots[own].kind) == SLOT_AWAY &&
           prim_load_relaxed(&slots[own].seat) == prim_load_relaxed(&slot->seat) && slots[own].away == index;
}

/* The key of a slot that says what cannot be; zero: it may be. For a moment that is so of one that is used anew. */
static uint64_t nonsense_at(const struct mending *mending, uint32_t index) {
    const struct lot *lot = mending->lot;
    const struct slot *slot = &lot->slots[index];
    uint64_t key = prim_load_relaxed(&lot->share->claims[index]) ? prim_load_acquire(&slot->key) : 0;
    uint32_t kind = prim_load_relaxed(&slot->kind), of = prim_load_relaxed(&slot->outcome);
    bool holds = kind == SLOT_HOLDS, recorded = of < SLOT_KINDS && lot_revivals[of].give_back;
    bool waits_as_agent = !holds && prim_load_relaxed(&slot->seat) && undecided(prim_load_relaxed(&slot->state));
    bool possible = kind < SLOT_KINDS && (!holds || recorded) && key % sizeof(uint32_t) == holds &&
                    segment_has(lot->share->segment, key - holds, mending->usable) &&
                    (!waits_as_agent || has_way_home(lot, index));
    return possible ? 0 : key;
}

/* Whoever waits there would wait for ever: so he is told, as by a notification that was not meant for him. */
static void clear_nonsense(struct mending *mending, uint32_t index) {
    struct slot *slot = &mending->lot->slots[index];
    uint64_t key = nonsense_at(mending, index);
    if (!key || !prim_cas_acq_rel(&slot->key, &key, 0)) return;
    mending->mended++;
    if (prim_load_relaxed(&slot->seat) || !undecided(prim_load_relaxed(&slot->state))) return;
    prim_exchange_acq_rel(&slot->state, VIGIL_OK);
    prim_wake_shared(&slot->state);
}

/* Without locks, for what they guard cannot be relied upon yet. So it is nonsense if it was so each time. */
#define NONSENSE_LOOKS    8
#define NONSENSE_APART_NS UINT64_C(1000000)
static bool mend_slots(struct mending *mending) {
    uint32_t slots = mending->parts.slot_count, suspects = 0, nothing = 0;
    unsigned char *seen = calloc(slots, 1);
    if (!seen) return false;
    for (int look = 0; look < NONSENSE_LOOKS && (look == 0 || suspects); look++) {
        if (look) prim_park(&nothing, 0, prim_now_ns() + NONSENSE_APART_NS);
        suspects = 0;
        for (uint32_t index = 1; index < slots; index++) {
            bool still = seen[index] == look && nonsense_at(mending, index);
            seen[index] = (unsigned char)(seen[index] + still);
            suspects += still;
        }
    }
    for (uint32_t index = 1; index < slots && suspects; index++) {
        if (seen[index] == NONSENSE_LOOKS) clear_nonsense(mending, index);
    }
    free(seen);
    return true;
}

/* All of them, not only those that are said to be in use. */
static void mend_members(struct mending *mending) {
    struct segment *segment = mending->lot->share->segment;
    for (uint32_t i = segment_records(segment); i < segment->members; i++) {
        bool overlooked = segment_member_alive(segment, i) && segment_records(segment) <= i;
        if (overlooked) segment_use_record(segment, i), mending->mended++;
    }
    for (uint32_t i = 0; i < segment_records(segment); i++) {
        uint32_t number = prim_load_relaxed(&segment_member(segment, i)->number);
        bool member = segment_find_member(segment, number) == segment_member(segment, i);
        if (member && i != segment_self(segment)) mending->mended += !segment_lives(segment, number);
    }
}

static void count_dead_slots(struct mending *mending) {
    for (uint32_t index = 1; index < mending->parts.slot_count; index++) {
        uint32_t number = prim_load_relaxed(&mending->parts.claims[index]);
        mending->mended += number && is_gone(mending->lot, number);
    }
}

/* Whoever stands in its lines is looked after as when somebody has died. */
static void mend_bucket(struct mending *mending, uint32_t number, uint32_t expected) {
    struct lot *lot = mending->lot;
    struct bucket *bucket = &lot->buckets[number];
    uint32_t linked;
    if (!try_lock_bucket(lot, bucket, mending->end_ns)) {
        mending->stuck = true;
        return;
    }
    bool damaged = bucket_fault(&mending->parts, number, &linked) ||
                   (linked != expected && linked != bucket_census(&mending->parts, number));
    struct wakes wakes;
    wakes_begin(&wakes);
    if (damaged) rebuild(lot, bucket, &wakes);
    revive_lines(lot, bucket, &wakes);
    unlock_and_wake(lot, bucket, &wakes);
    mending->mended += damaged;
}

static bool mend_buckets(struct mending *mending) {
    struct lot *lot = mending->lot;
    uint32_t *expected = bucket_censuses(&mending->parts);
    if (!expected) return false;
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        bool empty = !prim_load_relaxed(&bucket->word) && !prim_load_relaxed(&bucket->line) && !expected[number];
        if (!empty) mend_bucket(mending, number, expected[number]);
    }
    free(expected);
    return true;
}

/* The sweep follows the links, and takes the locks: both are to be in order by then. */
int64_t lot_mend(struct lot *lot) {
    struct mending mending = {
        .lot = lot,
        .parts = {.buckets = lot->buckets,
                  .claims = lot->share->claims,
                  .slots = lot->slots,
                  .slot_count = lot->share->slots,
                  .bucket_bits = lot->bucket_bits},
        .usable = segment_usable(lot->share->segment),
        .end_ns = prim_now_ns() + MEND_PATIENCE_NS,
    };
    mend_members(&mending);
    if (!mend_slots(&mending) || !mend_buckets(&mending)) return VIGIL_ENOMEM;
    count_dead_slots(&mending);
    if (!mending.stuck) lot_sweep(lot, mending.end_ns);
    return mending.mended;
}

/* What is ours. */

/* An agent's, that has been told and has not been handed on. */
static bool told_in_vain(const struct slot *slot, uint64_t key) {
    bool agents = prim_load_relaxed(&slot->key) == key && prim_load_relaxed(&slot->seat);
    return agents && prim_load_relaxed(&slot->outcome) && !undecided(prim_load_relaxed(&slot->state));
}

static bool tend_slot(struct lot *lot, uint32_t index, uint64_t key, uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    struct bucket *bucket = bucket_of(lot, key);
    struct wakes wakes;
    wakes_begin(&wakes);
    if (!try_lock_bucket(lot, bucket, deadline_ns)) return false;
    if (in_line(slot, key)) {
        revive(lot, line_of(lot, bucket, key), &wakes);
    } else if (told_in_vain(slot, key) && !BUG(mail_not_missed)) {
        lot_deliver(lot); /* it may be there */
        if (told_in_vain(slot, key)) hand_on(lot, index);
    }
    unlock_and_wake(lot, bucket, &wakes);
    return true;
}

bool lot_tend(struct lot *lot, bool somebody_died, uint64_t deadline_ns) {
    bool all = true;
    prim_fence_seq_cst(); /* who is in line after this has seen who has gone: see sync/mutex.c */
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        if (prim_load_relaxed(&lot->share->claims[index]) != lot->number) continue;
        struct slot *slot = &lot->slots[index];
        if (somebody_died && !BUG(wake_not_missed)) prim_wake_shared(&slot->state);
        uint64_t key = prim_load_relaxed(&slot->key);
        bool concerned = key && (somebody_died || for_lock(prim_load_relaxed(&slot->kind)));
        if (concerned) all &= tend_slot(lot, index, key, deadline_ns);
    }
    return all;
}
