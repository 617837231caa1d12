/* SPDX-License-Identifier: MIT */
/*
 * The watcher: see shared.h.
 *
 * It sleeps on the mail, for as long as anybody of ours has a slot in the segment no longer than until the living are to
 * be counted again. When nobody has had one for a while it sleeps until somebody does:
 *
 *     watcher                                       who begins to wait
 *     R1  store idle = 1            (seq_cst)       B1  add to claimed              (seq_cst)
 *     R2  CAS mail: RESTING         (seq_cst)       B2  load idle; if it is 1:      (seq_cst)
 *     R3  load claimed              (seq_cst)       B3  load mail, and if RESTING
 *     R4  sleep while it is RESTING                     clear that, and wake it     (seq_cst)
 *
 * If B2 does not see R1 then B1 is before R3, which sees it. If B3 does not see R2, the same. It is stopped in the same
 * way: `stopping` instead of claimed.
 */
#include "line.h"

/* Looks. */
#define TEND_EVERY 5u

static void poke(struct lot_share *share) {
    uint64_t seen = prim_load_seq_cst(share->mail); /* B3 */
    while (seen & SHARED_RESTING) {
        if (!prim_cas_acq_rel(share->mail, &seen, seen & ~(uint64_t)SHARED_RESTING)) continue;
        prim_wake_shared((uint32_t *)(void *)share->mail);
        return;
    }
}

static bool spin_for_mail(struct lot *lot) {
    for (unsigned turns = spin_budget(); turns; turns--) {
        if ((uint32_t)prim_load_relaxed(lot->share->mail) / 2) {
            spin_learn(true);
            return true;
        }
        prim_pause();
    }
    spin_learn(false);
    return false;
}

/* Until there is mail, or somebody pokes; or until it is time to look again, if anybody of ours waits. */
static void rest(struct lot *lot, bool idle) {
    struct lot_share *share = lot->share;
    uint64_t none = (uint64_t)lot->number << 32, resting = none | SHARED_RESTING;
    if (!idle && spin_for_mail(lot)) return;
    prim_store_seq_cst(&share->idle, idle);                     /* R1 */
    if (!prim_cas_seq_cst(share->mail, &none, resting)) return; /* R2 */
    idle = idle && !prim_load_seq_cst(&share->claimed);         /* R3 */
    bool stopping = prim_load_seq_cst(&share->stopping) && !BUG(watcher_stopped_late);
    uint64_t deadline_ns = idle ? PRIM_NEVER : share->looked_ns + SHARED_LOOK_NS;
    if (!stopping) prim_park_shared((uint32_t *)(void *)share->mail, SHARED_RESTING, deadline_ns); /* R4 */
    prim_cas_acq_rel(share->mail, &resting, none); /* if not, whoever woke us has done so */
    if (idle) share->looked_ns = 0;                /* look at once: we have not for long */
}

/* Whether it was time to. */
static bool look(struct lot *lot) {
    struct lot_share *share = lot->share;
    uint64_t now_ns = prim_now_ns();
    bool first = !share->looked_ns;
    if (!first && now_ns < share->looked_ns + SHARED_LOOK_NS) return false;
    share->looked_ns = now_ns;
    bool somebody_died = segment_census(share->segment, share->lives) || first;
    if (somebody_died) lot_sweep(lot);
    if (somebody_died || ++share->looks % TEND_EVERY == 0) lot_tend(lot, somebody_died);
    return true;
}

static void watch(void *argument) {
    struct lot *lot = argument;
    struct lot_share *share = lot->share;
    for (unsigned in_vain = 0; !prim_load_acquire(&share->stopping); rest(lot, in_vain >= PRIM_LINGER)) {
        lot_deliver(lot);
        bool looked = look(lot);
        if (prim_load_relaxed(&share->claimed)) in_vain = 0;
        else if (looked) in_vain++;
    }
}

static bool start(struct lot *lot) {
    struct lot_share *share = lot->share;
    word_lock(&share->gate);
    bool watched = prim_load_relaxed(&share->watched) || prim_thread_start(&share->thread, watch, lot, true);
    prim_store_release(&share->watched, (uint32_t)watched);
    word_unlock(&share->gate, false);
    return watched;
}

bool watch_begin(struct lot *lot) {
    struct lot_share *share = lot->share;
    if (!prim_load_acquire(&share->watched) && !start(lot)) return false;
    if (prim_load_seq_cst(&share->idle)) poke(share); /* B2 */
    return true;
}

void watch_end(struct lot *lot) {
    struct lot_share *share = lot->share;
    if (!prim_load_acquire(&share->watched)) return;
    prim_store_seq_cst(&share->stopping, 1);
    poke(share);
    prim_thread_join(share->thread);
}
