/* SPDX-License-Identifier: MIT */
/* mend.c - segments with content that cannot be trusted, whatever a process has written there. */
#include <stdlib.h>

#include "base/tuning.h"
#include "hold.h"
#include "lot/line.h"
#include "recovery.h"
#include "consistency.h"

/* Only the user's bytes are trusted, and holds as far as hold_settle can check them. */
void recovery_empty(struct segment *segment) {
    const struct segment_layout *at = &segment->layout;
    struct bucket *buckets = (struct bucket *)(void *)(segment->base + at->buckets_at);
    uint32_t *claims = (uint32_t *)(void *)(segment->base + at->claims_at);
    struct slot *slots = (struct slot *)(void *)(segment->base + at->slots_at);
    hold_settle(segment);
    for (uint64_t i = 0; i < at->buckets; i++) { /* writing zeroes over zeroes would allocate pages */
        if (prim_load_relaxed(&buckets[i].word)) prim_store_relaxed(&buckets[i].word, 0);
        if (buckets[i].line) buckets[i].line = 0;
    }
    for (uint64_t i = 0; i < backing_slots(segment); i++) {
        if (!prim_load_relaxed(&claims[i])) continue;
        prim_store_relaxed(&slots[i].key, 0);
        prim_store_relaxed(&claims[i], 0);
    }
}

/* Damage: whatever has been written there, mending ends, and does not harm waiters in undamaged slots. */

struct mending {
    struct lot *lot;
    struct lot_parts parts;
    uint64_t usable; /* the size of the user's part */
    uint64_t end_ns; /* when we stop waiting for buckets */
    bool stuck;      /* a bucket could not be locked */
    int64_t mended;
};

/* For an agent's slot: whether the row and slot that lead to the agent exist. */
static bool mend_has_way_home(const struct lot *lot, uint32_t index) {
    const struct slot *slot = &lot->slots[index], *slots = lot->home->slots;
    const struct segment *segment = lot->share->segment;
    uint32_t claim = prim_load_relaxed(&lot->share->claims[index]), own = prim_load_relaxed(&slot->home);
    if (claim != lot->claim) {
        return slot->row < segment->members &&
               prim_load_relaxed(&segment_member(segment, (uint32_t)slot->row)->number) == claim_number(claim);
    }
    return own && own < slot_bound(lot->home) && prim_load_relaxed(&slots[own].kind) == SLOT_AWAY &&
           prim_load_relaxed(&slots[own].seat) == prim_load_relaxed(&slot->seat) && slots[own].away == index;
}

/* The key of a slot with impossible content; zero: it is possible. A slot that is being reused may look impossible
 * for a moment. */
static uint64_t mend_nonsense_at(const struct mending *mending, uint32_t index) {
    const struct lot *lot = mending->lot;
    const struct slot *slot = &lot->slots[index];
    uint64_t key = prim_load_relaxed(&lot->share->claims[index]) ? prim_load_acquire(&slot->key) : 0;
    uint32_t kind = prim_load_relaxed(&slot->kind), of = prim_load_relaxed(&slot->of);
    bool holds = kind == SLOT_HOLDS, has_holds = of < SLOT_KINDS && recovery_calls[of].give_back;
    bool waits_as_agent = !holds && prim_load_relaxed(&slot->seat) && undecided(prim_load_relaxed(&slot->state));
    bool possible = kind < SLOT_KINDS && (!holds || has_holds) && key % sizeof(uint32_t) == holds &&
                    segment_has(lot->share->segment, key - holds, mending->usable) &&
                    (!waits_as_agent || mend_has_way_home(lot, index));
    return possible ? 0 : key;
}

/* A thread that waits there would wait for ever: so it is told, as by a notification that was not meant for it. */
static void mend_clear_nonsense(struct mending *mending, uint32_t index) {
    struct slot *slot = &mending->lot->slots[index];
    uint64_t key = mend_nonsense_at(mending, index);
    if (!key || !prim_cas_acq_rel(&slot->key, &key, 0)) return;
    mending->mended++;
    if (prim_load_relaxed(&slot->seat) || !undecided(prim_load_relaxed(&slot->state))) return;
    prim_exchange_acq_rel(&slot->state, VIGIL_OK);
    prim_wake_shared(&slot->state);
}

/* Without locks, which cannot be relied upon yet. So a slot is impossible only if it was so at every check. */
static bool mend_slots(struct mending *mending) {
    uint32_t slots = mending->parts.slot_count, suspects = 0, nothing = 0;
    unsigned char *seen = calloc(slots, 1);
    if (!seen) return false;
    for (int check = 0; check < NONSENSE_CHECKS && (check == 0 || suspects); check++) {
        if (check) prim_park(&nothing, 0, prim_now_ns() + NONSENSE_APART_NS);
        suspects = 0;
        for (uint32_t index = 1; index < slots; index++) {
            bool still = seen[index] == check && mend_nonsense_at(mending, index);
            seen[index] = (unsigned char)(seen[index] + still);
            suspects += still;
        }
    }
    for (uint32_t index = 1; index < slots && suspects; index++) {
        if (seen[index] == NONSENSE_CHECKS) mend_clear_nonsense(mending, index);
    }
    free(seen);
    return true;
}

/* All rows, not only those that the header says are in use. */
static void mend_members(struct mending *mending) {
    struct segment *segment = mending->lot->share->segment;
    for (uint32_t i = segment_rows(segment); i < backing_members(segment); i++) {
        bool overlooked = segment_member_alive(segment, i) && segment_rows(segment) <= i;
        if (overlooked) segment_use_row(segment, i), mending->mended++;
    }
    for (uint32_t i = 0; i < segment_rows(segment); i++) {
        uint32_t number = prim_load_relaxed(&segment_member(segment, i)->number);
        bool member = segment_find_member(segment, number) == segment_member(segment, i);
        if (member && i != segment_self(segment)) mending->mended += !segment_member_lives(segment, number);
    }
}

static void mend_count_dead_slots(struct mending *mending) {
    for (uint32_t index = 1; index < mending->parts.slot_count; index++) {
        uint32_t claim = prim_load_relaxed(&mending->parts.claims[index]);
        mending->mended += claim && is_claimant_gone(mending->lot, claim);
    }
}

/* The waiters in its lines are treated as after a death. */
static void mend_bucket(struct mending *mending, uint32_t number, uint32_t expected) {
    struct lot *lot = mending->lot;
    struct bucket *bucket = &lot->buckets[number];
    uint32_t linked;
    if (!shared_trylock(lot, bucket, mending->end_ns)) {
        mending->stuck = true;
        return;
    }
    bool damaged = bucket_fault(&mending->parts, number, &linked) ||
                   (linked != expected && linked != bucket_count_in_line(&mending->parts, number));
    struct wakes wakes;
    wakes_begin(&wakes);
    if (damaged) repair_rebuild(lot, bucket, &wakes);
    repair_call_lines(lot, bucket, &wakes);
    unlock_and_wake(lot, bucket, &wakes);
    mending->mended += damaged;
}

static bool mend_buckets(struct mending *mending) {
    struct lot *lot = mending->lot;
    uint32_t *expected = buckets_count_in_line(&mending->parts);
    if (!expected) return false;
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        bool empty = !prim_load_relaxed(&bucket->word) && !prim_load_relaxed(&bucket->line) && !expected[number];
        if (!empty) mend_bucket(mending, number, expected[number]);
    }
    free(expected);
    return true;
}

/* The sweep follows the links, and takes the locks: both must be in order by then. */
int64_t recovery_mend(struct lot *lot) {
    struct mending mending = {
        .lot = lot,
        .parts = {.buckets = lot->buckets,
                  .claims = lot->share->claims,
                  .slots = lot->slots,
                  .slot_count = shared_slots(lot),
                  .bucket_bits = lot->bucket_bits},
        .usable = segment_usable(lot->share->segment),
        .end_ns = prim_now_ns() + MEND_PATIENCE_NS,
    };
    mend_members(&mending);
    if (!mend_slots(&mending) || !mend_buckets(&mending)) return VIGIL_ENOMEM;
    mend_count_dead_slots(&mending);
    if (!mending.stuck) sweep_everything(lot, mending.end_ns);
    return mending.mended;
}
