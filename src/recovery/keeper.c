/* SPDX-License-Identifier: MIT */
/*
 * The keeper: the library's own thread, one per process, if the process has segments or event loops that wait for
 * locks.
 *
 * It hands on what is relayed to the process's event loops, notices when another member dies, guards calls to event
 * loops that may not come (guard.h), and patrols each segment from time to time. It does not poll: it sleeps on all of
 * that at once. When nothing happens, its patrols are the only system calls it makes. What it does for each segment is
 * in watch.c: a process without segments has a keeper that only guards.
 *
 * Requests from threads of the keeper's own process reach it as those of other processes do (watch.c), with `asleep` in
 * place of the relay: R1 is a store, and R2 looks at the list of segments and whether the process waits.
 *
 * LOCKING
 *
 * `gate` protects the list of segments, and the keeper's state for each (struct keeping). The keeper holds it except
 * while it sleeps. So a thread that removes a segment while it holds the gate knows that the keeper does not use the
 * segment. If the keeper sleeps on words of that segment, those words do not exist any more, and it wakes up or
 * sleeps on.
 */
#include "keeper.h"

#include "base/tuning.h"
#include "base/word_lock.h"
#include "guard.h"
#include "recovery.h"
#include "watch.h"

static struct {
    uint32_t gate;
    uint32_t asleep;   /* atomic; the keeper sleeps on it */
    uint64_t until_ns; /* atomic: how long it sleeps, if it does */
    uint32_t running;  /* atomic: the thread exists. It ends when it has nothing left to do */
    uint32_t begun;    /* atomic: the thread has begun to run */
    unsigned users;    /* agents that wait for locks, or have waited */
    unsigned count;
    struct lot *lots[SEGMENTS_MOST];
} keeper PRIM_PROCESS;

/*
 * The kernel wakes one sleeper on a pulse, and that may be the wrong one: for a moment two keepers may watch the same
 * member, or a keeper may sleep on a pulse of a segment that it has closed. So a keeper that is woken by a pulse
 * wakes the others.
 */
static void keeper_rest_sleep(const struct rest *rest) {
    int woken = prim_park_any(rest->words, rest->count, rest->deadline_ns);
    bool by_pulse = woken >= 0 && (rest->pulses[woken / 32] >> woken % 32 & 1);
    if (by_pulse && !BUG(pulse_kept)) prim_wake_shared_all(rest->words[woken].word);
}

/* R1 */
static void keeper_lie_down(void) {
    prim_store_relaxed(&keeper.until_ns, PRIM_NEVER);
    prim_store_seq_cst(&keeper.asleep, 1);
    for (unsigned i = 0; i < keeper.count; i++) watch_lie_down(keeper.lots[i]);
    prim_fence_seq_cst();
}

static void keeper_get_up(void) {
    prim_store_relaxed(&keeper.asleep, 0);
    for (unsigned i = 0; i < keeper.count; i++) watch_get_up(keeper.lots[i]);
}

/* Loops that have been called: guard.h. */
static void keeper_guard(struct rest *rest) {
    if (guard_pass(rest->now_ns)) {
        recovery_pass_all(lot_private(), watch_patience_ns());
        for (unsigned i = 0; i < keeper.count; i++) recovery_pass_all(keeper.lots[i], watch_patience_ns());
    }
    rest_until(rest, guard_due_ns());
}

/* R2 and R3. Returns true if it has slept. */
static bool keeper_iterate(bool woken) {
    struct rest rest = {.now_ns = prim_now_ns(),
                        .deadline_ns = PRIM_NEVER,
                        .woken = woken,
                        .count = 1,
                        .words = {{&keeper.asleep, 1, true}}};
    for (unsigned i = 0; i < keeper.count; i++) watch_spin(keeper.lots[i]);
    keeper_lie_down();
    for (unsigned i = 0; i < keeper.count; i++) watch_serve(keeper.lots[i], &rest);
    keeper_guard(&rest);
    prim_store_seq_cst(&keeper.until_ns, rest.deadline_ns);
    word_unlock(&keeper.gate, false);
    if (!rest.busy) keeper_rest_sleep(&rest);
    word_lock(&keeper.gate);
    keeper_get_up();
    return !rest.busy;
}

static void keeper_main(void *unused) {
    (void)unused;
    prim_store_release(&keeper.begun, 1);
    prim_wake(&keeper.begun);
    word_lock(&keeper.gate);
    for (bool woken = true; keeper.count || keeper.users || guard_due_ns() != PRIM_NEVER;)
        woken = keeper_iterate(woken);
    prim_store_relaxed(&keeper.begun, 0);
    prim_store_relaxed(&keeper.running, 0);
    word_unlock(&keeper.gate, false);
}

/* Called by other threads. */

static void keeper_poke(void) {
    if (prim_exchange_acq_rel(&keeper.asleep, 0)) prim_wake(&keeper.asleep);
}

void keeper_wake_by(uint64_t time_ns) {
    if (prim_load_seq_cst(&keeper.asleep) && prim_load_seq_cst(&keeper.until_ns) > time_ns) keeper_poke();
}

/* Under the gate. */
static bool keeper_start(void) {
    bool running = prim_load_relaxed(&keeper.running) || prim_thread_start(NULL, keeper_main, NULL, true);
    prim_store_release(&keeper.running, running);
    return running;
}

bool keeper_ready(void) {
    word_lock(&keeper.gate);
    bool ready = keeper_start();
    keeper.users += ready;
    word_unlock(&keeper.gate, false);
    return ready;
}

void keeper_unready(void) {
    word_lock(&keeper.gate);
    keeper.users--;
    word_unlock(&keeper.gate, false);
    keeper_poke(); /* it may end */
}

static bool keeper_add(struct lot *lot) {
    word_lock(&keeper.gate);
    bool new = !prim_load_relaxed(&lot->share->keeping.attended);
    bool added = new &&keeper_start();
    if (added) keeper.lots[keeper.count++] = lot;
    if (added) prim_store_release(&lot->share->keeping.attended, 1);
    word_unlock(&keeper.gate, false);
    if (added) keeper_poke();
    return added || !new;
}

bool keeper_attend(struct lot *lot) {
    struct keeping *keeping = &lot->share->keeping;
    if (!prim_load_acquire(&keeping->attended) && !keeper_add(lot)) return false;
    if (prim_load_seq_cst(&keeping->idle)) keeper_poke();
    return true;
}

void keeper_leave(struct lot *lot) {
    if (!prim_load_acquire(&lot->share->keeping.attended)) {
        guard_forget(lot);
        return;
    }
    word_lock(&keeper.gate);
    unsigned at = 0;
    while (keeper.lots[at] != lot) at++;
    keeper.lots[at] = keeper.lots[--keeper.count];
    prim_pulse_release(&lot->share->self->pulse);
    guard_forget(lot);
    word_unlock(&keeper.gate, false);
    keeper_poke(); /* so that it stops sleeping on words of this segment; and it may end */
}

/* Locks that a thread takes while it starts, in the C library or a sanitizer, would stay locked in the child. */
void keeper_before_fork(void) {
    while (prim_load_relaxed(&keeper.running) && !prim_load_acquire(&keeper.begun))
        prim_park(&keeper.begun, 0, prim_now_ns() + KEEPER_POLL_NS);
}

/* The parent's keeper has had the gate, and perhaps has ended: what it did under the gate comes before this. */
void keeper_in_child(void) {
    (void)prim_load_acquire(&keeper.gate);
    prim_store_relaxed(&keeper.gate, 0);
    prim_store_relaxed(&keeper.asleep, 0);
    prim_store_relaxed(&keeper.running, 0);
    prim_store_relaxed(&keeper.begun, 0);
    keeper.count = keeper.users = 0;
    guard_in_child();
    prim_pulse_forget();
}
