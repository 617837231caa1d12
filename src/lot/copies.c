/* SPDX-License-Identifier: MIT */
/* See copies.h. */
#include "copies.h"

#include "base/word_lock.h"
#include "shm/table.h"
#include "vigil/status.h"

#define COPIES_FENCES (PRIM_FENCES_EVERYWHERE == PRIM_FENCES_ALWAYS) /* without asking */
static struct lot copies_own PRIM_PROCESS; /* used if this copy is the first */
static struct lot *copies_met PRIM_PROCESS;
static uint32_t copies_refused PRIM_PROCESS;
struct lot *copies_alone PRIM_PROCESS;

#define COPIES_LINES(lot) ((const uint32_t *const *)(void *)&(lot)->buckets)
const uint32_t *const *vigil__lines PRIM_PROCESS = COPIES_FENCES ? COPIES_LINES(&copies_own) : NULL;
_Static_assert(sizeof(struct bucket) == 2 * sizeof(uint32_t) && offsetof(struct bucket, word) == 0,
               "as the inline functions read it");

static bool copies_segment_is_ours(const volatile void *address) {
    return segment_of(address) != NULL;
}

static bool copies_critical(void) {
    return critical_interrupted();
}

/* The records of robust mutexes are slots. */
static void copies_before_emptying(void) {
    struct prim_thread *self = prim_self();
    if (self->robust_on_end) self->robust_on_end(self, true);
}

static struct lot_copy copies_self PRIM_PROCESS = {
    .alone = &copies_alone,
    .lines = &vigil__lines,
    .has_segment = copies_segment_is_ours,
    .interrupted = copies_critical,
    .defer = PRIM_SIGNALS ? critical_defer : NULL,
    .guard = guard_note,
    .before_emptying = copies_before_emptying,
};

static struct lot_copy *copies_first(const struct lot *lot) {
    return prim_load_acquire(&lot->copies);
}

static bool copies_listed(const struct lot *lot) {
    const struct lot_copy *copy = copies_first(lot);
    while (copy && copy != &copies_self) copy = copy->next;
    return copy != NULL;
}

/* Under the gate. If the process forks midway, the child does it again. */
static void copies_join(struct lot *lot) {
    prim_generation = lot->forks; /* one for all copies: words of locks have it in them */
    if (PRIM_FENCES_EVERYWHERE && prim_can_fence_everywhere()) prim_store_seq_cst(&lot->fences, 1);
    if (!copies_listed(lot)) {
        copies_self.next = copies_first(lot);
        prim_store_release(&lot->copies, &copies_self);
    }
    bool only = copies_first(lot) == &copies_self && !copies_self.next;
    for (struct lot_copy *copy = copies_first(lot); copy; copy = copy->next) {
        prim_store_release(copy->alone, only ? lot : NULL);
        prim_store_release(copy->lines, only && lot->fences ? COPIES_LINES(lot) : NULL);
    }
    prim_store_release(&copies_met, lot);
}

static struct lot *copies_meet(void) {
    if (prim_load_relaxed(&copies_refused)) return NULL;
    struct lot *lot = prim_meet(&copies_own, sizeof copies_own);
    if (!lot) prim_store_relaxed(&copies_refused, 1);
    if (!lot || !private_start()) return NULL;
    word_lock(&lot->gate);
    if (!prim_load_relaxed(&copies_met)) copies_join(lot);
    word_unlock(&lot->gate, false);
    return lot;
}

struct lot *copies_lot(void) {
    if (!PRIM_COPIES) return &copies_own;
    struct lot *lot = prim_load_acquire(&copies_met);
    return lot ? lot : copies_meet();
}

/* A copy that meets no other. Callers that come earlier, from other constructors, do without. */
static void copies_load_alone(void) {
    if (!PRIM_FENCES_EVERYWHERE || !prim_can_fence_everywhere()) return;
    prim_store_seq_cst(&copies_own.fences, 1);
    prim_store_release(&vigil__lines, COPIES_LINES(&copies_own));
}

/* When the library is loaded; callers that come earlier, from other constructors, do it themselves. */
static PRIM_AT_LOAD void copies_load(void) {
    if (PRIM_COPIES) copies_lot();
    else copies_load_alone();
}

/*
 * `fences` is set before the lines are told. So if a waiter reads 0, after W1 in the single order of seq_cst
 * operations, a holder that is told of the lines later sees W1, and does not release by a store. (It reaches the
 * bucket's word through the address that it is told, so its load cannot be earlier, although it does not acquire.)
 */
static bool copies_have_fences(const struct lot *lot) {
    return COPIES_FENCES || (PRIM_FENCES_EVERYWHERE && prim_load_seq_cst(&lot->fences));
}

/* If that is refused from some moment on: a holder may have been told of the lines before, and may yet release by a
 * store, so each waiter that begins a line must go on waiting for stores to drain. */
void copies_fence_everywhere(void) {
    struct lot *lot = copies_lot();
    if (!copies_have_fences(lot) || prim_fence_everywhere()) return;
    prim_store_relaxed(&vigil__lines, NULL);
    for (const struct lot_copy *copy = copies_first(lot); copy; copy = copy->next)
        prim_store_relaxed(copy->lines, NULL);
}

bool copies_have_segment(const volatile void *address) {
    struct lot *lot = PRIM_COPIES && !copies_lot_alone() ? copies_lot() : NULL;
    if (!lot) return false;
    for (const struct lot_copy *copy = copies_first(lot); copy; copy = copy->next) {
        if (copy != &copies_self && copy->has_segment(address)) return true;
    }
    return false;
}

int lot_refused(const volatile void *address) {
    bool refused = !copies_lot() && prim_load_relaxed(&copies_refused);
    return refused || copies_have_segment(address) ? VIGIL_ECOPIES : VIGIL_OK;
}

int lot_missing(const volatile void *address) {
    int refused = lot_refused(address);
    return refused ? refused : VIGIL_ENOMEM;
}

/*
 * Sections of two copies are nested on one thread only where the outer one holds no lock: when deferred work calls
 * another copy (critical_settle). So any of them may have the work.
 */
const struct lot_copy *copies_interrupted(void) {
    if (critical_interrupted()) return &copies_self;
    struct lot *lot = PRIM_COPIES && !copies_lot_alone() ? copies_lot() : NULL;
    const struct lot_copy *copy = lot ? copies_first(lot) : NULL;
    while (copy && !copy->interrupted()) copy = copy->next;
    return copy;
}

static void copies_guard_elsewhere(const volatile void *address, int64_t unused) {
    (void)unused;
    struct lot *lot = copies_lot();
    for (const struct lot_copy *copy = copies_first(lot); copy; copy = copy->next) {
        if (copy != &copies_self) copy->guard(lot, key_of(lot, address));
    }
}

/* Guards of other copies are under locks for which other critical sections count: so not before we leave ours. */
void copies_guard(struct lot *lot, uint64_t key) {
    guard_note(lot, key);
    if (PRIM_COPIES && !is_shared(lot) && !copies_lot_alone())
        critical_defer(copies_guard_elsewhere, word_of(lot, key), 0);
}

struct lot *copies_in_child(void) {
    struct lot *lot = PRIM_COPIES ? copies_met : &copies_own;
    if (!lot) copies_own.gate = 0; /* another thread may have been joining */
    if (!lot || lot->forks == prim_generation) return lot;
    for (const struct lot_copy *copy = copies_first(lot); copy; copy = copy->next) {
        if (lot->buckets && copy != &copies_self) copy->before_emptying();
    }
    if (lot->buckets) copies_before_emptying();
    private_empty(lot);
    lot->forks = prim_generation;
    return lot;
}
