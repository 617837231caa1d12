/* SPDX-License-Identifier: MIT */
/* watch.h - what the keeper does for one segment: see watch.c. The keeper calls all of this, and holds its gate. */
#ifndef VIGIL_WATCH_H
#define VIGIL_WATCH_H

#include "base/tuning.h"
#include "lot/shared.h"

/* What the keeper has found to sleep on in one iteration. */
struct rest {
    uint64_t now_ns, deadline_ns;
    uint32_t pulses[PRIM_WORDS / 32]; /* a bit for each word that is a pulse */
    bool woken;                       /* from a sleep */
    bool busy;                        /* something has been done: look again before sleeping */
    unsigned count;
    struct prim_word words[PRIM_WORDS];
};

static inline void rest_until(struct rest *rest, uint64_t time_ns) {
    if (time_ns < rest->deadline_ns) rest->deadline_ns = time_ns;
}

/* How long the keeper waits for a bucket. */
static inline uint64_t watch_patience_ns(void) {
    return BUG(stopped_waited_for) ? PRIM_NEVER : prim_now_ns() + KEEPER_PATIENCE_NS;
}

/* In each iteration, in this order: spin if a slot will be relayed soon; R1; R2, which says what to sleep on. */
void watch_spin(const struct lot *lot);
void watch_lie_down(struct lot *lot);
void watch_serve(struct lot *lot, struct rest *rest);
/* After the sleep. */
void watch_get_up(struct lot *lot);

#endif
