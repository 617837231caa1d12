/* SPDX-License-Identifier: MIT */
/* repair.c - rebuild a bucket that a dead process had locked from its slots. The caller has locked the bucket. */
#include "hold.h"
#include "lot/line.h"
#include "recovery.h"

/* Lines. */

/* Under the lock of the bucket that the slot would be in: no other thread can link or unlink it meanwhile. */
static bool repair_belongs(const struct lot *lot, uint32_t index, uint32_t bucket) {
    const struct slot *slot = &lot->slots[index];
    uint64_t key = prim_load_acquire(&slot->key);
    if (!key || bucket_number(lot, key) != bucket) return false;
    bool waits = undecided(prim_load_acquire(&slot->state));
    return waits && prim_load_relaxed(&slot->key) == key; /* it has not just begun to wait for something else */
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

/* Sort a list of slots, linked by `next`, by key and then by place in line: piles[n] has 2^n slots, or none. */
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

/* The notifier was killed between G1 and G2 (gift.h): the slot has been given the gift of the line that it is in. */
static bool repair_half_told(const struct slot *slot) {
    return gift_is_given(slot) && gift_line(slot) == slot->key && !BUG(half_told_stays);
}

void repair_rebuild(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    uint32_t list = 0, number = (uint32_t)(bucket - lot->buckets);
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots; index++) {
        struct slot *slot = &lot->slots[index];
        if (!prim_load_acquire(&lot->share->claims[index]) || !repair_belongs(lot, index, number)) continue;
        if (repair_half_told(slot)) {
            shared_decide(lot, wakes, index, VIGIL_OK);
            continue;
        }
        if (!hold_redo(lot, slot)) {
            shared_disclaim(lot, index);
            continue;
        }
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

/* Killed between P2 and P4: a gift that was being passed on in one of the bucket's lines arrives before anything
 * else happens. A slot that is PASSING stays so until then; everything else that is read there may change meanwhile. */
static void repair_passing(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots && !BUG(heir_chosen_again); index++) {
        struct slot *slot = &lot->slots[index];
        if (!prim_load_acquire(&lot->share->claims[index])) continue;
        uint64_t gift = prim_load_acquire(&slot->gift), key = gift_key(gift);
        bool passing = gift >= GIFT_PASSING && prim_load_relaxed(&slot->kind) != SLOT_HOLDS;
        if (!passing || bucket_of(lot, key) != bucket || prim_load_relaxed(&slot->gift) != gift) continue;
        repair_give_to_heir(lot, line_of(lot, bucket, key), slot->began_ns, wakes); /* P3 */
        prim_store_release(&slot->gift, UINT64_C(0));                               /* P4 */
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
