/* SPDX-License-Identifier: MIT */
#include "guard.h"

#include "base/tuning.h"
#include "base/word_lock.h"
#include "keeper.h"
#include "lot/line.h"
#include "recovery.h"

#define GUARD_ENTRIES PRIM_GUARDS
#define GUARD_PROBES  8u

struct guard {
    struct lot *lot; /* null: the entry is free */
    uint64_t key, due_ns, pause_ns;
};

/* Under the gate. Any thread adds entries; the keeper removes them. */
static struct {
    uint32_t gate;
    uint64_t overflow_ns; /* when to look at all lines; zero: not needed */
    uint64_t due_ns;      /* atomic: the earliest due time, or earlier; zero: none */
    struct guard table[GUARD_ENTRIES];
} guards PRIM_PROCESS;

static void guard_lock(void) {
    critical_enter();
    word_lock(&guards.gate);
}

static void guard_unlock(void) {
    word_unlock(&guards.gate, false);
    critical_leave();
}

static struct guard *guard_at(const struct lot *lot, uint64_t key) {
    struct guard *free = NULL;
    unsigned at = (unsigned)(key / 4 * UINT64_C(0x9E3779B97F4A7C15) >> 40);
    for (unsigned i = 0; i < GUARD_PROBES && i < GUARD_ENTRIES; i++) {
        struct guard *guard = &guards.table[(at + i) % GUARD_ENTRIES];
        if (guard->lot == lot && guard->key == key) return guard;
        if (!guard->lot && !free) free = guard;
    }
    return free;
}

/* Looking at all lines takes long, so it is not done often. */
static uint64_t guard_overflow(uint64_t now_ns) {
    if (!guards.overflow_ns) guards.overflow_ns = now_ns + GUARD_MOST_NS;
    return guards.overflow_ns;
}

static void guard_put(struct lot *lot, uint64_t key, uint64_t now_ns, uint64_t pause_ns) {
    uint64_t due_ns = now_ns + pause_ns;
    guard_lock();
    struct guard *guard = guard_at(lot, key);
    if (!guard) due_ns = guard_overflow(now_ns);
    else *guard = (struct guard){lot, key, due_ns, pause_ns};
    uint64_t first_ns = prim_load_relaxed(&guards.due_ns);
    if (!first_ns || due_ns < first_ns) prim_store_seq_cst(&guards.due_ns, due_ns);
    guard_unlock();
}

void guard_note(struct lot *lot, uint64_t key) {
    uint64_t now_ns = prim_now_ns();
    if (BUG(loop_relied_upon)) return;
    guard_put(lot, key, now_ns, PRIM_GUARD_NS); /* N1 */
    keeper_wake_by(now_ns + PRIM_GUARD_NS);     /* N2 */
}

uint64_t guard_due_ns(void) {
    uint64_t due_ns = prim_load_seq_cst(&guards.due_ns);
    return due_ns ? due_ns : PRIM_NEVER;
}

/* Remove an entry that is due. If there is none, store when the next one is due. */
static bool guard_take(uint64_t now_ns, struct guard *taken) {
    bool found = false;
    guard_lock();
    uint64_t next_ns = guards.overflow_ns;
    for (unsigned i = 0; i < GUARD_ENTRIES && !found; i++) {
        struct guard *guard = &guards.table[i];
        if (!guard->lot) continue;
        found = guard->due_ns <= now_ns;
        if (found) *taken = *guard, guard->lot = NULL;
        else if (!next_ns || guard->due_ns < next_ns) next_ns = guard->due_ns;
    }
    if (!found) prim_store_seq_cst(&guards.due_ns, next_ns);
    guard_unlock();
    return found;
}

static bool guard_take_overflow(uint64_t now_ns) {
    guard_lock();
    bool due = guards.overflow_ns && guards.overflow_ns <= now_ns;
    if (due) guards.overflow_ns = 0;
    guard_unlock();
    return due;
}

bool guard_pass(uint64_t now_ns) {
    struct guard guard;
    if (guard_due_ns() > now_ns) return false;
    bool overflow = guard_take_overflow(now_ns);
    while (guard_take(now_ns, &guard)) {
        uint64_t pause_ns = guard.pause_ns * 2 < GUARD_MOST_NS ? guard.pause_ns * 2 : GUARD_MOST_NS;
        if (recovery_pass_line(guard.lot, guard.key)) guard_put(guard.lot, guard.key, now_ns, pause_ns);
    }
    return overflow && !BUG(overflow_dropped);
}

void guard_forget(const struct lot *lot) {
    guard_lock();
    for (unsigned i = 0; i < GUARD_ENTRIES; i++) {
        if (guards.table[i].lot == lot) guards.table[i].lot = NULL;
    }
    guard_unlock();
}

void guard_in_child(void) {
    guards.gate = 0;
    guards.overflow_ns = 0;
    guards.due_ns = 0;
    for (unsigned i = 0; i < GUARD_ENTRIES; i++) guards.table[i].lot = NULL;
}
