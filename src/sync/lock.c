/* SPDX-License-Identifier: MIT */
/* Threads that wait for a lock: see lock.h. */
#include "lock.h"

#include "lot/interrupt.h"
#include "recovery/hold.h"

static uint64_t lock_earlier(uint64_t a_ns, uint64_t b_ns) {
    return a_ns < b_ns ? a_ns : b_ns;
}

bool lock_privilege_after(int status, enum lock_privilege *privilege) {
    switch (status) {
    case VIGIL_NOT_EQUAL: return true;
    case VIGIL_OK: /* by vigil_notify: a caller uses the three-state protocol on the word */
    case SLOT_CALLED: *privilege = CALLED; return true;
    case SLOT_BESIDE: *privilege = BESIDE; return true;
    default: return false;
    }
}

bool lock_has_waited(const struct slot *head) {
    return prim_now_ns() >= head->began_ns + PATIENCE_NS;
}

bool lock_may_reserve(const struct slot *head) {
    uint64_t now_ns = prim_now_ns(), key = prim_load_relaxed(&head->key);
    if (now_ns < head->began_ns + PATIENCE_NS) return false;
    struct lot_reservation *last = &lot_private()->reservations[key / sizeof(uint32_t) % LOT_RESERVATIONS];
    bool lately = now_ns < prim_load_relaxed(&last->began_ns) + PATIENCE_NS;
    if (lately && prim_load_relaxed(&last->key) == key) return false;
    prim_store_relaxed(&last->began_ns, now_ns);
    prim_store_relaxed(&last->key, key);
    return true;
}

uint64_t lock_patience_ns(const struct lock_kind *kind, uint32_t seen) {
    if (kind->patience_ns) return kind->patience_ns(seen);
    return kind->reserved(seen) ? PATIENCE_NS : PRIM_NEVER;
}

uint32_t lock_recheck(const struct lock_kind *kind, uint32_t *word, uint32_t seen) {
    bool nobody_comes = kind->reserved(seen) && prim_load_relaxed(word) == seen;
    if (nobody_comes && !BUG(nobody_looks)) kind->decline(word);
    else if (kind->waited) kind->waited(word, seen);
    return prim_load_relaxed(word);
}

int lock_wait(const struct lock_kind *kind, struct lot *lot, uint32_t index, uint32_t *word, uint32_t seen,
              uint64_t deadline_ns) {
    for (;; seen = lock_recheck(kind, word, seen)) {
        uint64_t patience_ns = lock_patience_ns(kind, seen);
        uint64_t until_ns =
            patience_ns == PRIM_NEVER ? deadline_ns : lock_earlier(deadline_ns, prim_now_ns() + patience_ns);
        bool told = kind->slot == SLOT_MUTEX ? lot_sleep_soon(lot, index, until_ns) : lot_sleep(lot, index, until_ns);
        if (told) return (int)lot->slots[index].state;
        if (until_ns == deadline_ns || interrupt_raised()) return lot_give_up(lot, index, word);
    }
}

static int lock_wait_in_line(const struct lock_kind *kind, struct lot *lot, uint32_t index, uint32_t *word,
                             uint32_t seen, uint64_t deadline_ns, bool again) {
    slot_begin(&lot->slots[index], kind->slot);
    if (BUG(gift_lost_in_between) && again) prim_store_relaxed(&lot->slots[index].gift, 0);
    if (!lock_join(kind, lot, index, word, seen, again)) return VIGIL_NOT_EQUAL;
    PROBE(lock_contended, word);
    if (kind->joined) kind->joined(word, seen);
    return lock_wait(kind, lot, index, word, seen, deadline_ns);
}

int lock_block_in(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns,
                  struct lot *lot, uint32_t index, enum lock_privilege privilege) {
    for (bool again = privilege != NEWCOMER;;) {
        uint32_t seen;
        int status = lock_take(kind, word, argument, privilege, &seen);
        if (status != VIGIL_PENDING) {
            if (again && lock_is_ours(status)) PROBE(lock_granted, word);
            return status;
        }
        status = lock_wait_in_line(kind, lot, index, word, seen, deadline_ns, again);
        if (!lock_privilege_after(status, &privilege)) return status;
        if (status != VIGIL_NOT_EQUAL) again = true;
    }
}

/* A thread may have been called just before the fork, and does not exist in the child. A waiter in line would look at
 * the word after a while; a thread that only tries has to look here. */
bool lock_outlived_fork(const struct lock_kind *kind, uint32_t *word, bool kept) {
    if (!prim_generation || !kept) return false;
    struct lot *lot = lot_for(word);
    if (!lot || lot_count(lot, word, 1)) return false;
    kind->decline(word);
    return true;
}

bool lock_recovered(const struct lock_kind *kind, uint32_t *word, uint32_t kept) {
    if (!segment_of(word)) return lock_outlived_fork(kind, word, prim_load_relaxed(word) & kept);
    bool somebody_died = hold_recovered(word);
    if (!(prim_load_relaxed(word) & kept) || !hold_has_no_waiter(word)) return somebody_died;
    kind->decline(word);
    return true;
}

int lock_block(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns) {
    struct lot *lot = lot_for(word);
    if (!lot) return lot_missing(word);
    uint32_t slot = slot_acquire(lot);
    if (!slot) return VIGIL_ELIMIT;
    lot->slots[slot].began_ns = prim_now_ns();
    prim_store_relaxed(&lot->slots[slot].wants, (uint64_t)argument);
    int status = lock_block_in(kind, word, argument, deadline_ns, lot, slot, NEWCOMER);
    slot_release(lot, slot);
    return status;
}

int lock_slowly(const struct lock_kind *kind, uint32_t *word, uint32_t argument, int64_t timeout_ns) {
    int status = kind->try_once(word, argument);
    if (!lock_is_refused(status)) return status;
    uint64_t deadline_ns = deadline_of(timeout_ns);
    bool passed = deadline_ns == DEADLINE_PASSED;
    if ((passed || status == VIGIL_ELIMIT) && kind->recovered(word)) status = kind->try_once(word, argument);
    if (status != VIGIL_TIMED_OUT || passed) return status;
    if (prim_self()->may_not_block) return VIGIL_EMAYNOTBLOCK;
    status = kind->spin_to_take(word, argument);
    if (status != VIGIL_TIMED_OUT) return status;
    status = lock_block(kind, word, argument, deadline_ns);
    if (lock_gave_up(status) && kind->left) kind->left(word);
    return status;
}
