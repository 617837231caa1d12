/* SPDX-License-Identifier: MIT */
#include "interrupt.h"

#include "lot.h"
#include "vigil/thread.h"

#define INTERRUPT_RAISED     UINT64_C(1)
#define INTERRUPT_GENERATION (UINT64_C(1) << 32)

static uint64_t interrupt_cells[PRIM_INTERRUPTIBLE] PRIM_PROCESS; /* atomic; cell 0 is none */
static uint32_t interrupt_last PRIM_PROCESS;                      /* atomic: the highest index used so far */

static bool interrupt_is_free(uint64_t cell) {
    return !(cell & INTERRUPT_GENERATION);
}

static bool interrupt_take(uint32_t index) {
    uint64_t seen = prim_load_relaxed(&interrupt_cells[index]);
    return interrupt_is_free(seen) && prim_cas_acq_rel(&interrupt_cells[index], &seen, seen + INTERRUPT_GENERATION);
}

static void interrupt_use(uint32_t index) {
    uint32_t seen = prim_load_relaxed(&interrupt_last);
    while (seen < index && !prim_cas_release(&interrupt_last, &seen, index)) {
    }
}

static uint32_t interrupt_find(void) {
    for (uint32_t index = 1; index < PRIM_INTERRUPTIBLE; index++) {
        if (!interrupt_take(index)) continue;
        interrupt_use(index);
        return index;
    }
    return 0;
}

vigil_thread vigil_thread_self(void) {
    struct prim_thread *self = prim_self();
    bool may_begin = !self->interruptible && lot_private(); /* which installs the hooks for thread exit and fork */
    if (may_begin && prim_keep_self(true)) self->interruptible = interrupt_find();
    if (!self->interruptible) return 0;
    return (prim_load_relaxed(&interrupt_cells[self->interruptible]) & ~INTERRUPT_RAISED) | self->interruptible;
}

int vigil_interrupt(vigil_thread thread) {
    uint32_t index = (uint32_t)thread;
    if (!index || index >= PRIM_INTERRUPTIBLE) return VIGIL_ENOTFOUND;
    uint64_t *cell = &interrupt_cells[index], named = thread - index, seen = named;
    if (interrupt_is_free(named)) return VIGIL_ENOTFOUND;
    while (!prim_cas_acq_rel(cell, &seen, named | INTERRUPT_RAISED)) { /* I1 */
        if ((seen & ~INTERRUPT_RAISED) != named) return VIGIL_ENOTFOUND;
    }
    prim_wake((uint32_t *)(void *)cell); /* I2 */
    return VIGIL_OK;
}

uint32_t *interrupt_word(void) {
    const struct prim_thread *self = prim_self();
    bool can_be = self->interruptible && !self->holds_interruptions && !BUG(interrupt_not_slept_on);
    return can_be ? (uint32_t *)(void *)&interrupt_cells[self->interruptible] : NULL;
}

bool interrupt_raised(void) {
    const struct prim_thread *self = prim_self();
    if (self->holds_interruptions) return false;
    if (self->heeds_signals && self->signalled) return true;
    if (!self->interruptible) return false;
    return prim_load_acquire(&interrupt_cells[self->interruptible]) & INTERRUPT_RAISED;
}

int interrupt_or_timeout(void) {
    const struct prim_thread *self = prim_self();
    if (!interrupt_raised()) return VIGIL_TIMED_OUT;
    if (!self->interruptible) return VIGIL_INTERRUPTED;
    uint64_t *cell = &interrupt_cells[self->interruptible], seen = prim_load_relaxed(cell);
    while (!BUG(interrupt_kept) && !prim_cas_acq_rel(cell, &seen, seen & ~INTERRUPT_RAISED)) {
    }
    return VIGIL_INTERRUPTED;
}

void interrupt_hold_back(void) {
    prim_self()->holds_interruptions++;
}

void interrupt_allow(void) {
    prim_self()->holds_interruptions--;
}

/* A free cell is never RAISED. */
static void interrupt_free(uint32_t index) {
    uint64_t *cell = &interrupt_cells[index], seen = prim_load_relaxed(cell);
    while (!prim_cas_acq_rel(cell, &seen, (seen & ~INTERRUPT_RAISED) + INTERRUPT_GENERATION)) {
    }
}

void interrupt_thread_ends(struct prim_thread *self) {
    if (self->interruptible) interrupt_free(self->interruptible);
    self->interruptible = 0;
}

void interrupt_in_child(void) {
    struct prim_thread *self = prim_self();
    for (uint32_t index = 1; index <= prim_load_relaxed(&interrupt_last); index++) {
        bool taken = !interrupt_is_free(prim_load_relaxed(&interrupt_cells[index]));
        if (taken && index != self->interruptible) interrupt_free(index);
    }
}
