/* SPDX-License-Identifier: MIT */
/* Threads that wait for a lock: see lock.h. */
#include "lock.h"

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns) {
    return a_ns < b_ns ? a_ns : b_ns;
}

bool standing_after(int status, enum standing *standing) {
    switch (status) {
    case VIGIL_NOT_EQUAL: return true;
    case VIGIL_OK: /* by vigil_notify: somebody speaks the three-state protocol himself */
    case SLOT_CALLED: *standing = CALLED; return true;
    case SLOT_BESIDE: *standing = BESIDE; return true;
    case VIGIL_TIMED_OUT: *standing = IMPATIENT; return true;
    default: return false;
    }
}

bool lock_look(const struct lock_kind *kind, const uint32_t *word, uint32_t *seen) {
    uint32_t before = *seen;
    *seen = prim_load_relaxed(word);
    return *seen == before && kind->reserved(before);
}

/* Until called, impatient (VIGIL_TIMED_OUT) or at the deadline (the same); VIGIL_NOT_EQUAL if the word has changed. */
static int wait_in_line(const struct lock_kind *kind, struct lot *lot, uint32_t index, uint32_t *word, uint32_t seen,
                        uint64_t deadline_ns, bool again) {
    struct slot *slot = &lot->slots[index];
    prim_store_relaxed(&slot->state, SLOT_WAITING);
    if (!lot_join_in_order(lot, index, &(struct word){word, seen, false}, again)) return VIGIL_NOT_EQUAL;
    for (;;) {
        uint64_t patience_ns = kind->patience_ns(seen);
        uint64_t until_ns = patience_ns == PRIM_NEVER ? deadline_ns : earlier(deadline_ns, prim_now_ns() + patience_ns);
        if (lot_sleep(lot, index, until_ns)) return (int)slot->state;
        if (until_ns == deadline_ns || lock_look(kind, word, &seen)) return lot_give_up(lot, index, key_of(word));
    }
}

static bool passed(uint64_t deadline_ns) {
    return deadline_ns != PRIM_NEVER && prim_now_ns() >= deadline_ns;
}

int lock_block_in(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns,
                  struct lot *lot, uint32_t index, enum standing standing) {
    struct slot *slot = &lot->slots[index];
    if (standing == NEWCOMER) slot->began_ns = prim_now_ns();
    slot->argument = argument;
    for (bool again = standing != NEWCOMER;;) {
        uint32_t seen;
        if (kind->take(word, argument, standing, &seen)) return VIGIL_OK;
        int status = wait_in_line(kind, lot, index, word, seen, deadline_ns, again);
        if (!standing_after(status, &standing)) return status;
        if (status != VIGIL_NOT_EQUAL) again = true;
        if (status == VIGIL_TIMED_OUT && passed(deadline_ns)) {
            /* We may have been the guard of what was reserved for somebody who does not come. */
            if (BUG(guard_leaves)) return VIGIL_TIMED_OUT;
            return kind->take(word, argument, IMPATIENT, &seen) ? VIGIL_OK : VIGIL_TIMED_OUT;
        }
    }
}

int lock_block(const struct lock_kind *kind, uint32_t *word, uint32_t argument, uint64_t deadline_ns) {
    struct lot *lot = lot_private();
    if (!lot) return VIGIL_ENOMEM;
    uint32_t slot = slot_acquire(lot);
    if (!slot) return VIGIL_ELIMIT;
    int status = lock_block_in(kind, word, argument, deadline_ns, lot, slot, NEWCOMER);
    slot_release(lot, slot);
    return status;
}
