/* SPDX-License-Identifier: MIT */
/* gift.c - pass on what a waiter has been given and does not use: see lot/gift.h. */
#include "lot/line.h"
#include "recovery.h"

static uint32_t gift_heir(const struct lot *lot, uint32_t head, uint64_t began_ns) {
    while (head && lot->slots[head].began_ns != began_ns) head = lot->slots[head].next;
    return head;
}

/* P3: give to the waiter that has this place, if there is one. */
void repair_give_to_heir(struct lot *lot, uint32_t *line, uint64_t place, struct wakes *wakes) {
    uint32_t heir = gift_heir(lot, *line, place);
    if (!heir) return; /* P3 has been done, or there was no waiter */
    line_unlink(lot, line, heir);
    slot_decide(lot, wakes, heir, VIGIL_OK);
}

/* For display and tests: a process that is killed between this and P2 has counted, and the gift is counted again. */
static void gift_count_heirless(const struct lot *lot) {
    prim_fetch_add_acq_rel(&segment_header(lot->share->segment)->heirless, 1);
}

/* P1 to P4. */
static void gift_pass(struct lot *lot, struct slot *slot, uint64_t key, struct bucket *bucket, struct wakes *wakes) {
    uint32_t *line = line_of(lot, bucket, key);
    if (!*line && is_shared(lot)) gift_count_heirless(lot);
    slot->began_ns = *line ? lot->slots[*line].began_ns : GIFT_NO_HEIR; /* P1 */
    prim_store_release(&slot->gift, gift_of(GIFT_PASSING, key));        /* P2 */
    repair_give_to_heir(lot, line, slot->began_ns, wakes);              /* P3 */
    prim_store_release(&slot->gift, UINT64_C(0));                       /* P4 */
}

bool gift_pass_on_of(struct lot *lot, uint32_t index, uint32_t claim, uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    uint64_t key = gift_line(slot);
    struct bucket *bucket = bucket_of(lot, key);
    struct wakes wakes;
    wakes_begin(&wakes);
    if (!is_shared(lot)) bucket_lock(lot, bucket);
    else if (!shared_trylock(lot, bucket, BUG(stopped_signal) ? PRIM_NEVER : deadline_ns)) return false;
    bool same = !claim || (prim_load_relaxed(&lot->share->claims[index]) == claim && is_claimant_gone(lot, claim));
    bool given = (gift_is_given(slot) && gift_line(slot) == key) || BUG(passed_on_unchecked);
    if (same && given) gift_pass(lot, slot, key, bucket, &wakes);
    unlock_and_wake(lot, bucket, &wakes);
    return true;
}

bool gift_pass_on(struct lot *lot, uint32_t index, uint64_t deadline_ns) {
    return gift_pass_on_of(lot, index, 0, deadline_ns);
}
