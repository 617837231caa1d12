/* SPDX-License-Identifier: MIT */
/*
 * How long to spin before a sleep. A thread begins hopeful, at PRIM_SPIN_MOST. Each spin in vain takes an eighth of
 * what is left above PRIM_SPIN_LEAST, and each that paid halves the caution; now and then a full spin finds out whether
 * it would pay again.
 */
#include "lot.h"

#define RANGE       (PRIM_SPIN_MOST - PRIM_SPIN_LEAST)
#define PROBE_EVERY 64

static bool alone(void) {
    static uint32_t processors; /* asked once: which thread asks makes no difference */
    uint32_t known = prim_load_relaxed(&processors);
    if (!known) prim_store_relaxed(&processors, known = prim_processors());
    return known == 1;
}

unsigned spin_budget(void) {
    struct prim_thread *self = prim_self();
    if (alone()) return 0;
    return ++self->spins % PROBE_EVERY ? PRIM_SPIN_MOST - self->spin_caution : PRIM_SPIN_MOST;
}

void spin_learn(bool paid) {
    struct prim_thread *self = prim_self();
    if (paid) self->spin_caution /= 2;
    else self->spin_caution += (RANGE - self->spin_caution + 7) / 8;
}
