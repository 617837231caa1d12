/* SPDX-License-Identifier: MIT */
/* sweep.c - recover what dead processes have left behind: see recovery.h. */
#include "base/tuning.h"
#include "hold.h"
#include "lot/line.h"
#include "recovery.h"

/* Take the slot out of the line that it is in, or was told in. It may be moved to another line meanwhile. */
static bool sweep_take_out(struct lot *lot, uint32_t index, uint32_t claim, uint64_t key, uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    struct bucket *bucket = bucket_of(lot, key);
    if (!shared_trylock(lot, bucket, deadline_ns)) return false;
    bool still = prim_load_relaxed(&lot->share->claims[index]) == claim && is_claimant_gone(lot, claim) &&
                 prim_load_relaxed(&slot->key) == key;
    if (still) {
        if (slot->kind == SLOT_HOLDS) hold_give_back(lot, slot);
        if (in_line(slot, key) && !BUG(dead_stays_linked)) line_unlink(lot, line_of(lot, bucket, key), index);
        prim_store_release(&slot->key, 0);
    }
    bucket_unlock(lot, bucket);
    return true;
}

/* First take the slot out of all lines, so that it is given nothing more; then pass on what it has been given. */
static bool sweep_slot(struct lot *lot, uint32_t index, uint32_t claim, uint64_t deadline_ns) {
    uint32_t *claims = &lot->share->claims[index];
    struct slot *slot = &lot->slots[index];
    uint64_t key;
    /* Acquire: if another sweeper has cleared the key, we also see what the slot had been given before that. */
    while (prim_load_relaxed(claims) == claim && (key = prim_load_acquire(&slot->key))) {
        if (!sweep_take_out(lot, index, claim, key, deadline_ns)) return false;
        if (!is_claimant_gone(lot, claim)) return true;
    }
    bool passes = prim_load_relaxed(claims) == claim && gift_is_given(slot) && !BUG(pass_on_forgotten);
    if (passes && !gift_pass_on_of(lot, index, claim, deadline_ns)) return false;
    if (is_claimant_gone(lot, claim)) prim_cas_acq_rel(claims, &claim, 0);
    return true;
}

/* Buckets first, as the lines must be in order; then slots. */
static bool sweep_all(struct lot *lot, uint64_t deadline_ns) {
    bool all = true;
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        uint32_t seen = prim_load_relaxed(&bucket->word);
        if (!(seen & WORD_LOCKED) || !is_gone(lot, seen / WORD_HOLDER)) continue;
        if (shared_trylock(lot, bucket, deadline_ns)) bucket_unlock(lot, bucket);
    }
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots; index++) {
        uint32_t claim = prim_load_relaxed(&lot->share->claims[index]);
        if (claim && is_claimant_gone(lot, claim)) all &= sweep_slot(lot, index, claim, deadline_ns);
    }
    return all;
}

/* Calls. */

/* C2 and C3 of sync/mutex.c. After the fence: a waiter that we do not find in line sees at M3 which members are
 * gone. */
static bool sweep_call_all(struct lot *lot, uint64_t deadline_ns) {
    bool all = true;
    prim_fence_seq_cst();
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        struct wakes wakes;
        if (!prim_load_relaxed(&bucket->word) || BUG(no_call_after_death)) continue;
        if (!shared_trylock(lot, bucket, deadline_ns)) {
            all = false;
            continue;
        }
        wakes_begin(&wakes);
        repair_call_lines(lot, bucket, &wakes);
        unlock_and_wake(lot, bucket, &wakes);
    }
    return all;
}

/* Wake threads that a dead process has told and may not have woken. */
static void sweep_wake_threads(struct lot *lot) {
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots && !BUG(wake_not_missed); index++) {
        struct slot *slot = &lot->slots[index];
        if (!prim_load_acquire(&lot->share->claims[index]) || !prim_load_relaxed(&slot->key)) continue;
        bool told = !prim_load_relaxed(&slot->seat) && !undecided(prim_load_acquire(&slot->state));
        if (told) prim_wake_shared(&slot->state);
    }
}

/* Whether a loop has been told by this slot, and the slot not handed on: it may be in the relay, and the keeper
 * asleep. */
static bool sweep_awaits_keeper(const struct lot *lot, uint32_t index) {
    const struct slot *slot = &lot->slots[index];
    if (!prim_load_acquire(&lot->share->claims[index]) || !prim_load_relaxed(&slot->key)) return false;
    return prim_load_relaxed(&slot->seat) && prim_load_relaxed(&slot->home) &&
           !undecided(prim_load_relaxed(&slot->state));
}

static void sweep_wake_keepers(struct lot *lot) {
    const struct segment *segment = lot->share->segment;
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots; index++) {
        if (!sweep_awaits_keeper(lot, index)) continue;
        uint32_t number = claim_number(prim_load_relaxed(&lot->share->claims[index]));
        struct segment_member *row = segment_find_member(segment, number);
        if (!row) continue;
        segment_poke(row);
        prim_wake_shared((uint32_t *)(void *)&row->relay); /* the dead process may have cleared RESTING */
    }
}

bool sweep_everything(struct lot *lot, uint64_t deadline_ns) {
    bool all = BUG(nobody_sweeps) || sweep_all(lot, deadline_ns);
    all &= sweep_call_all(lot, deadline_ns);
    sweep_wake_threads(lot);
    return all;
}

bool recovery_run(struct lot *lot, uint64_t deadline_ns) {
    uint32_t *recovered = &segment_header(lot->share->segment)->recovered;
    uint32_t deaths = segment_deaths(lot->share->segment);
    if (deaths == prim_load_acquire(recovered)) return true;
    bool all = sweep_everything(lot, deadline_ns);
    if (all || BUG(left_out_for_good)) prim_store_seq_cst(recovered, deaths);
    sweep_wake_keepers(lot);
    return all;
}

/* By the slots, not by the counts: a process may be killed between striking off and counting. */
bool recovery_run_by_slots(struct lot *lot, uint64_t deadline_ns) {
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots && !BUG(left_out_for_good); index++) {
        uint32_t claim = prim_load_relaxed(&lot->share->claims[index]);
        if (claim && is_claimant_gone(lot, claim)) return sweep_everything(lot, deadline_ns);
    }
    return true;
}

bool recovery_now(struct lot *lot) {
    segment_strike_off_all(lot->share->segment);
    uint32_t now = segment_deaths(lot->share->segment);
    if (prim_load_acquire(&lot->share->deaths_recovered) == now) return false;
    bool all = recovery_run(lot, prim_now_ns() + RECOVERY_TRY_NS);
    if (all) prim_store_release(&lot->share->deaths_recovered, now); /* once it is done: others rely on it */
    return true;
}

/* Our own event loops. */

uint32_t recovery_count(const struct lot *lot) {
    uint32_t count = 0;
    const uint32_t *claims = lot->share->claims;
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots; index++)
        count += prim_load_relaxed(&claims[index]) != 0;
    return count;
}

/* Acquire, pairs with the stores of `home` in agent/async.c: if `home` is that of a new wait, then key and state are
 * not those of an earlier wait. */
static bool sweep_told_in_vain(const struct slot *slot, uint64_t key) {
    uint32_t home = BUG(home_unordered) ? prim_load_relaxed(&slot->home) : prim_load_acquire(&slot->home);
    bool kept = home && prim_load_relaxed(&slot->seat);
    return kept && prim_load_relaxed(&slot->key) == key && !undecided(prim_load_relaxed(&slot->state));
}

/* Under the lock of the slot's bucket, as is every process that tells a loop and puts its slot into the relay. */
static bool sweep_hand_on(struct lot *lot, uint32_t index, uint64_t key, uint64_t deadline_ns) {
    struct slot *slot = &lot->slots[index];
    struct bucket *bucket = bucket_of(lot, key);
    if (!shared_trylock(lot, bucket, deadline_ns)) return false;
    if (sweep_told_in_vain(slot, key)) lot_deliver(lot); /* the slot may be in the relay */
    if (sweep_told_in_vain(slot, key)) lot_hand_on(lot, index);
    bucket_unlock(lot, bucket);
    return true;
}

bool recovery_own(struct lot *lot, uint64_t deadline_ns) {
    bool all = true;
    for (uint32_t index = 1, slots = shared_slots(lot); index < slots && !BUG(relay_not_missed); index++) {
        if (prim_load_relaxed(&lot->share->claims[index]) != lot->claim) continue;
        uint64_t key = prim_load_relaxed(&lot->slots[index].key);
        if (key && prim_load_relaxed(&lot->slots[index].seat)) all &= sweep_hand_on(lot, index, key, deadline_ns);
    }
    return all;
}
