/* SPDX-License-Identifier: MIT */
/*
 * How long to spin before a sleep. A thread starts with PRIM_SPIN_MOST. Each spin in vain takes an eighth of what is
 * left above PRIM_SPIN_LEAST, and each spin that paid halves the caution. Every SPIN_PROBE_EVERY times a full spin
 * finds out whether it would pay again.
 *
 * Where threads take a lock back to back, most of the time is spent moving its cache line from one processor to the
 * next: one thread alone does more than two together. So a thread that has found locks taken PRIM_CROWD times,
 * SPIN_CONFLICT_NS apart or less on average, stands aside for a moment and lets the others go on. (The idea is from
 * Dice: Malthusian Locks, EuroSys 2017, as is long-term fairness by the line.)
 */
#include "base/tuning.h"
#include "lot.h"

#define RANGE       (PRIM_SPIN_MOST - PRIM_SPIN_LEAST)

unsigned spin_processors(void) {
    static uint32_t processors PRIM_PROCESS; /* read once; threads that race store the same value */
    uint32_t known = prim_load_relaxed(&processors);
    if (!known) prim_store_relaxed(&processors, known = prim_processors());
    return known;
}

static bool spin_alone(void) {
    return spin_processors() == 1;
}

unsigned spin_budget(unsigned most) {
    struct prim_thread *self = prim_self();
    if (spin_alone()) return 0;
    unsigned spins = ++self->spins % SPIN_PROBE_EVERY ? PRIM_SPIN_MOST - self->spin_caution : PRIM_SPIN_MOST;
    return spins < most ? spins : most;
}

void spin_learn(bool paid) {
    struct prim_thread *self = prim_self();
    if (paid) self->spin_caution /= 2;
    else self->spin_caution += (RANGE - self->spin_caution + 7) / 8;
}

unsigned spin_apart(void) {
    for (unsigned i = 0; i < PRIM_SPIN_APART; i++) prim_pause();
    return PRIM_SPIN_APART;
}

void spin_stand_aside(void) {
    struct prim_thread *self = prim_self();
    if (++self->conflicts % PRIM_CROWD || spin_alone()) return;
    uint64_t now_ns = prim_now_ns();
    bool crowded = now_ns - self->conflicts_ns < PRIM_CROWD * SPIN_CONFLICT_NS;
    self->conflicts_ns = now_ns;
    if (!crowded) return;
    uint32_t nothing = 0;
    prim_park(&nothing, 0, now_ns + SPIN_ASIDE_NS);
    self->conflicts_ns = prim_now_ns();
}
