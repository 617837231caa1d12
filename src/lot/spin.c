/* SPDX-License-Identifier: MIT */
/*
 * How long to spin before a sleep. A thread begins hopeful, at PRIM_SPIN_MOST; each spin in vain takes an eighth of
 * what is left above PRIM_SPIN_LEAST, each that paid gives an eighth of the caution back.
 */
#include "lot.h"

#define RANGE (PRIM_SPIN_MOST - PRIM_SPIN_LEAST)

static bool alone(void) {
    static uint32_t processors; /* asked once: which thread asks makes no difference */
    uint32_t known = prim_load_relaxed(&processors);
    if (!known) prim_store_relaxed(&processors, known = prim_processors());
    return known == 1;
}

unsigned spin_budget(void) {
    return alone() ? 0 : PRIM_SPIN_MOST - prim_self()->spin_caution;
}

void spin_learn(bool paid) {
    struct prim_thread *self = prim_self();
    if (paid) self->spin_caution -= (self->spin_caution + 7) / 8;
    else self->spin_caution += (RANGE - self->spin_caution + 7) / 8;
}
