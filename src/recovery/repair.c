/* SPDX-License-Identifier: MIT */
/* repair.c - a bucket whose lock was a dead process's: built anew from its slots. The caller has its lock. */
#include "hold.h"
#include "lot/line.h"
#include "recovery.h"

/* Locks in whose lines somebody waits. */

/* What is to be done for the lock whose line it is; null: it is none's. Those in line know, under its lock. */
static const struct recovery_call *repair_call_of(const struct lot *lot, uint32_t head) {
    for (; head; head = lot->slots[head].next) {
        uint32_t kind = lot->slots[head].kind;
        if (kind < SLOT_KINDS && recovery_calls[kind].call) return &recovery_calls[kind];
    }
    return NULL;
}

void repair_call_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes) {
    _Alignas(16) unsigned char context[RECOVERY_CALL_BYTES] = {0};
    const struct recovery_call *call = repair_call_of(lot, *line_of(lot, bucket, key));
    if (call && !BUG(no_revival)) line_call(lot, bucket, key, call->call, context, wakes);
}

/* The same when one that has been called has not come. True: it is not to be passed by yet. */
bool repair_pass_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes) {
    _Alignas(16) unsigned char context[RECOVERY_CALL_BYTES] = {0};
    const struct recovery_call *call = repair_call_of(lot, *line_of(lot, bucket, key));
    if (!call || BUG(no_revival)) return false;
    if (call->may_pass && call->may_pass(word_of(lot, key), context) == PASS_LATER) return true;
    line_call(lot, bucket, key, call->call, context, wakes);
    return false;
}

/* Lines. */

/* Under the lock of the bucket that it would be in: nobody else can put it there or take it out. */
static bool repair_belongs(const struct lot *lot, uint32_t index, uint32_t bucket) {
    const struct slot *slot = &lot->slots[index];
    uint64_t key = prim_load_acquire(&slot->key);
    if (!key || bucket_number(lot, key) != bucket) return false;
    bool waits = undecided(prim_load_acquire(&slot->state));
    return waits && prim_load_relaxed(&slot->key) == key; /* not just about to wait for something else */
}

static bool repair_before(const struct lot *lot, uint32_t a, uint32_t b) {
    const struct slot *x = &lot->slots[a], *y = &lot->slots[b];
    if (x->key != y->key) return x->key < y->key;
    return x->began_ns != y->began_ns ? x->began_ns < y->began_ns : a < b;
}

static uint32_t repair_merge(struct lot *lot, uint32_t a, uint32_t b) {
    uint32_t first = 0, *end = &first;
    while (a && b) {
        uint32_t *from = repair_before(lot, a, b) ? &a : &b;
        *end = *from;
        end = &lot->slots[*from].next;
        *from = *end;
    }
    *end = a ? a : b;
    return first;
}

/* A list of slots, linked by `next`, in the order of lines and of places in them: piles[n] has 2^n slots, or none. */
static uint32_t repair_sorted(struct lot *lot, uint32_t list) {
    uint32_t piles[32] = {0}, all = 0, top = 0;
    for (uint32_t index = list, next; index; index = next) {
        next = lot->slots[index].next;
        lot->slots[index].next = 0;
        uint32_t n = 0, pile = index;
        for (; piles[n]; n++) {
            pile = repair_merge(lot, piles[n], pile);
            piles[n] = 0;
        }
        piles[n] = pile;
        if (n > top) top = n;
    }
    for (uint32_t n = 0; n <= top; n++) all = repair_merge(lot, piles[n], all);
    return all;
}

static uint32_t repair_heir(const struct lot *lot, uint32_t head, uint64_t began_ns) {
    while (head && lot->slots[head].began_ns != began_ns) head = lot->slots[head].next;
    return head;
}

/* P3: to the waiter with that place, if there is one. */
void repair_give_to_heir(struct lot *lot, uint32_t *line, uint64_t place, struct wakes *wakes) {
    uint32_t heir = repair_heir(lot, *line, place);
    if (!heir) return; /* it has been done, or there was nobody */
    line_unlink(lot, line, heir);
    tell(lot, wakes, heir, VIGIL_OK);
}

/* Killed between G1 and G2 (gift.h): it has been given what was given in the line in which it stands. */
static bool repair_half_told(const struct slot *slot) {
    return gift_is_given(slot) && gift_line(slot) == slot->key && !BUG(half_told_stays);
}

void repair_rebuild(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    uint32_t list = 0, number = (uint32_t)(bucket - lot->buckets);
    for (uint32_t index = 1; index < lot->share->slots; index++) {
        struct slot *slot = &lot->slots[index];
        if (!prim_load_acquire(&lot->share->claims[index]) || !repair_belongs(lot, index, number)) continue;
        if (repair_half_told(slot)) {
            shared_tell(lot, wakes, index, VIGIL_OK);
            continue;
        }
        hold_redo(lot, slot);
        slot->next = list;
        list = index;
    }
    if (BUG(repair_drops) && list) list = lot->slots[list].next;
    if (!BUG(repair_in_any_order)) list = repair_sorted(lot, list);
    bucket->line = 0;
    for (uint32_t index = list, next; index; index = next) {
        next = lot->slots[index].next;
        line_append(lot, line_of(lot, bucket, lot->slots[index].key), index, lot->slots[index].key);
    }
}

/* Killed between P2 and P4: what was being passed on in one of the bucket's lines arrives before anything else happens.
 * What is PASSING stays so until then; whatever else is read there may change meanwhile. */
static void repair_passing(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    for (uint32_t index = 1; index < lot->share->slots && !BUG(heir_chosen_again); index++) {
        struct slot *slot = &lot->slots[index];
        if (!prim_load_acquire(&lot->share->claims[index])) continue;
        uint64_t gift = prim_load_acquire(&slot->gift), key = gift_key(gift);
        bool passing = gift >= GIFT_PASSING && prim_load_relaxed(&slot->kind) != SLOT_HOLDS;
        if (!passing || bucket_of(lot, key) != bucket || prim_load_relaxed(&slot->gift) != gift) continue;
        repair_give_to_heir(lot, line_of(lot, bucket, key), slot->began_ns, wakes); /* P3 */
        prim_store_release(&slot->gift, UINT64_C(0));                               /* P4 */
    }
}

void repair_call_lines(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    for (uint32_t *line = &bucket->line; *line;) {
        uint64_t key = lot->slots[*line].key;
        repair_call_line(lot, bucket, key, wakes);
        line = line_behind(lot, line, key);
    }
}

void recovery_repair(struct lot *lot, struct bucket *bucket) {
    struct wakes wakes;
    if (BUG(taken_over_as_it_is)) return;
    wakes_begin(&wakes);
    repair_rebuild(lot, bucket, &wakes);
    repair_passing(lot, bucket, &wakes);
    repair_call_lines(lot, bucket, &wakes);
    push_mail(lot, &wakes);
    wake_all(lot, &wakes);
}
