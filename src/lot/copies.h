/* SPDX-License-Identifier: MIT */
/*
 * copies.h - several copies of the library in one process.
 *
 * A program may be linked with the static library and load shared objects that contain copies of their own. A word has
 * one line all the same: the copies share one lot, that of the copy which came first (prim_meet). They share nothing
 * else. Each has its own data of each thread, its own slots kept there, its own keeper and guards, interruptions and
 * segments; and hooks of its own for the ends of threads and for forks.
 *
 * So what one copy does in the lot concerns others in these places:
 *
 *     notifications      reach threads and seats through the lot alone: it does not matter whose they are
 *     signal handlers    the thread may be in a critical section of another copy: copies_interrupted
 *     guards             the loop that has been called may be one of another copy, whose keeper must know: copies_guard
 *     segments           an address that is in a segment of another copy is not memory of this process alone:
 *                        lot_refused
 *     fork               the first copy whose hook runs in the child empties the lot, after the threads' data of all
 *                        copies; `forks` in the lot says that it has been done
 *
 * The copies are a list in the lot, and each has the others' functions. They are of one version: a copy of another
 * version than the first refuses to wait and to notify (VIGIL_ECOPIES), as it cannot know what a lot looks like there.
 *
 * A copy is pinned (prim/linux/object.c), so it stays in the list.
 */
#ifndef VIGIL_LOT_COPIES_H
#define VIGIL_LOT_COPIES_H

#include "critical.h"
#include "lot.h"

struct lot_copy {
    struct lot_copy *next; /* constant once the copy is in the list */
    struct lot **alone;    /* its copies_alone */
    const uint32_t *const **lines; /* its vigil__lines */
    bool (*has_segment)(const volatile void *address);
    bool (*interrupted)(void); /* whether this thread is in a critical section of that copy; if so: */
    int (*defer)(critical_work *work, const volatile void *address, int64_t count);
    void (*guard)(struct lot *lot, uint64_t key);
    void (*before_emptying)(void); /* in the child of a fork */
};

/* The process's own lot, which may have no buckets yet; null: this copy cannot use it. */
struct lot *copies_lot(void);

/*
 * The same as long as this is the only copy; null: there may be others, and slower paths must look. Another copy clears
 * it before it does anything else, so a thread that has learnt of an address in a segment of that copy sees null.
 */
extern struct lot *copies_alone;
#if PRIM_COPIES
static inline struct lot *copies_lot_alone(void) {
    return prim_load_relaxed(&copies_alone);
}
#else
#define copies_lot_alone copies_lot
#endif

/* prim_fence_everywhere, WF in lot.h. If the process may no longer do that, no holder may rely on it from now on. */
void copies_fence_everywhere(void);

/* Whether the address is in a segment that another copy has open. */
bool copies_have_segment(const volatile void *address);

/* H1 of critical.h, for all copies: the one whose critical section this handler has interrupted; null: none. */
const struct lot_copy *copies_interrupted(void);

/* guard_note, in all copies. Under the lock of a bucket. */
void copies_guard(struct lot *lot, uint64_t key);

/* In the child of a fork, when this copy's hook runs: returns the lot, which this copy or another has emptied; null:
 * this copy has not used it. */
struct lot *copies_in_child(void);

/* In private.c. Install this copy's hooks: false if that is not possible. */
bool private_start(void);
void private_empty(struct lot *lot);

#endif
