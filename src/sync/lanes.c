/* SPDX-License-Identifier: MIT */
/* Readers that do not share a cache line: see lanes.h. */
#include "lanes.h"

#include "base/tuning.h"
#include "lot/copies.h"
#include "lot/line.h"

/* One that no thread has. If there is none, threads share. */
static uint32_t lanes_claim(struct lot *lot) {
    for (uint32_t lane = 0; lane < LOT_LANES; lane++) {
        uint32_t none = 0, *threads = &lot->lane_threads[lane];
        if (!prim_load_relaxed(threads) && prim_cas_acq_rel(threads, &none, 1u)) return lane;
    }
    uint32_t lane = prim_thread_id() % LOT_LANES;
    prim_fetch_add_acq_rel(&lot->lane_threads[lane], 1u);
    return lane;
}

/* In S, so that V2 knows of each lane that a reader may use. */
static void lanes_use(struct lot *lot, uint32_t lane) {
    uint32_t used = prim_load_seq_cst(&lot->lanes_used);
    while (used <= lane && !prim_cas_seq_cst(&lot->lanes_used, &used, lane + 1)) {
    }
}

/* A thread whose end we are not told keeps its lane. */
struct lot_lane *lanes_new(void) {
    struct lot *lot = copies_lot();
    if (!lot) return NULL;
    prim_keep_self(false);
    uint32_t lane = lanes_claim(lot);
    lanes_use(lot, lane);
    return prim_self()->lane = &lot->lanes[lane];
}

/* The places that readers may use, from 0 on. */
static uint32_t lanes_count_places(const struct lot *lot) {
    return prim_load_seq_cst(&lot->lanes_used) * PRIM_LANE_PLACES;
}

static uint64_t *lanes_place_at(struct lot *lot, uint32_t index) {
    return &lot->lanes[index / PRIM_LANE_PLACES].locks[index % PRIM_LANE_PLACES];
}

bool lanes_leave_by_any(const uint32_t *word) {
    struct lot *lot = copies_lot();
    for (uint32_t i = 0, count = lanes_count_places(lot); i < count; i++)
        if (lanes_leave_by(lanes_place_at(lot, i), (uintptr_t)word)) return true;
    return false;
}

/* Locks share these. */
static uint64_t *lanes_rest_until(struct lot *lot, const uint32_t *word) {
    return &lot->lanes_rest_until_ns[(uintptr_t)word / sizeof *word % LOT_RESTS];
}

void lanes_meet(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if (seen & ~(RWLOCK_READERS | RWLOCK_PASS)) return;
    struct lot *lot = lot_for(word);
    if (!lot || is_shared(lot) || prim_now_ns() < prim_load_relaxed(lanes_rest_until(lot, word))) return;
    prim_cas_acq_rel(word, &seen, seen | RWLOCK_LANES);
}

/* V2 to V4. Returns what has been counted in error. */
static uint32_t lanes_count(uint32_t *word, uint64_t *place) {
    uint64_t lock = (uintptr_t)word;
    if (prim_load_seq_cst(place) != lock) return 0;                           /* V2 */
    if (!BUG(lanes_not_counted)) prim_fetch_add_acq_rel(word, RWLOCK_READER); /* V3 */
    if (prim_cas_acq_rel(place, &lock, (uint64_t)0)) return 0;                /* V4 */
    if (!BUG(lanes_left_unseen)) prim_load_acquire(place);
    return RWLOCK_READER;
}

/* V5: before all places have been counted, readers that leave may have used units that others need. */
static void lanes_take_back(uint32_t *word, uint32_t counted) {
    if (counted && !BUG(lanes_counted_twice)) prim_fetch_add_acq_rel(word, 0u - counted);
}

bool lanes_close(uint32_t *word) {
    struct lot *lot = PRIM_LANES ? copies_lot() : NULL;
    if (!lot) return false;
    uint32_t seen = prim_load_relaxed(word), before = BUG(lanes_added_unseen) ? lanes_count_places(lot) : 0;
    uint64_t began_ns = prim_now_ns();
    do {
        if ((seen & (RWLOCK_LANES | RWLOCK_CLOSING)) != RWLOCK_LANES) return false;
    } while (!prim_cas_seq_cst(word, &seen, (seen | RWLOCK_CLOSING) + RWLOCK_READER)); /* V1 */
    if (BUG(lanes_cleared_early)) prim_fetch_and_acq_rel(word, ~(RWLOCK_LANES | RWLOCK_CLOSING));
    uint32_t in_error = 0, count = BUG(lanes_added_unseen) ? before : lanes_count_places(lot);
    for (uint32_t i = 0; i < count; i++) {
        in_error += lanes_count(word, lanes_place_at(lot, i));
        if (BUG(lanes_taken_back_early)) lanes_take_back(word, in_error);
        if (BUG(lanes_taken_back_early)) in_error = 0;
    }
    lanes_take_back(word, in_error);
    uint64_t now_ns = prim_now_ns();
    prim_store_relaxed(lanes_rest_until(lot, word), now_ns + LANES_REST * (now_ns - began_ns));
    prim_fetch_and_acq_rel(word, ~(RWLOCK_LANES | RWLOCK_CLOSING)); /* V6 */
    return true;
}
