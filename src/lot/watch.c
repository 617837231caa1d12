/* SPDX-License-Identifier: MIT */
/*
 * The watcher: see shared.h.
 *
 * It sleeps on the mail, for as long as anybody of ours has a slot in the segment no longer than until it is to look
 * again. When nobody has had one for a while it sleeps until somebody does:
 *
 *     watcher                                       who begins to wait
 *     R1  store idle = 1            (seq_cst)       B1  add to claimed              (seq_cst)
 *     R2  CAS mail: RESTING         (seq_cst)       B2  load idle; if it is 1:      (seq_cst)
 *     R3  load claimed              (seq_cst)       B3  load mail, and if RESTING
 *     R4  sleep while it is RESTING                     clear that, and wake it     (seq_cst)
 *
 * If B2 does not see R1 then B1 is before R3, which sees it. If B3 does not see R2, the same. It is stopped in the same
 * way: `stopping` instead of claimed; and told of deaths, R3 with C4 instead of B1.
 *
 * WHO LOOKS
 *
 * Members are looked at, which takes a call of the system for each, by one watcher for all:
 *
 *     C1  load look_due_ns in the header: it is over
 *     C2  CAS it to 20 ms from when we shall be done  only who succeeds goes on; killed: the next one, when that is over
 *     C3  count the living and the gone; if somebody has gone since the header's numbers were stored: sweep
 *     C4  store these numbers (seq_cst)             killed before: the next one finds them different, and sweeps too
 *                                                   (so he does if something had to be left out of the sweep)
 *     C5  if somebody has died: poke all the other watchers (B3)
 *
 * Whoever finds that the number of deaths has changed (also: who has slept idle, and may have missed that) tends what is
 * his. And everybody does that once in a while: see REVIVAL in shared.h. The more watch, the more rarely each of them has
 * to wake up: one of them will be there when a look is due.
 */
#include "line.h"

#define TEND_NS UINT64_C(100000000)

/* In which a living one mostly has done what he has to do in a bucket; longer than that no mail is kept waiting. If he is
 * stopped, or others have the processor, we come back. */
#define PATIENCE_WITH_BUCKETS_NS UINT64_C(2000000)
static uint64_t patience(void) {
    return BUG(stopped_waited_for) ? PRIM_NEVER : prim_now_ns() + PATIENCE_WITH_BUCKETS_NS;
}

/* When so many watch, each does so half as often as when half as many do; but at least every half second. */
#define WATCHERS_ENOUGH 16u
#define RARELY_MOST     25u

/* What a look takes, as measured: the kernel has a list of all the locks on a file, and goes through it for each. Looking
 * is to take no more than a twentieth of one processor's time, unless there are thousands. */
#define LOOK_SHARE      20u
#define LOOK_PAUSE_MOST (LOOK_SHARE * SHARED_LOOK_NS)
static uint64_t look_takes_ns(uint64_t members) {
    return members * (500 + 3 * members);
}

static void poke(uint64_t *mail) {
    uint64_t seen = prim_load_seq_cst(mail); /* B3 */
    while (seen & SHARED_RESTING) {
        if (!prim_cas_acq_rel(mail, &seen, seen & ~(uint64_t)SHARED_RESTING)) continue;
        prim_wake_shared((uint32_t *)(void *)mail);
        return;
    }
}

static bool spin_for_mail(struct lot *lot) {
    for (unsigned turns = spin_budget(); turns; turns--) {
        if ((uint32_t)prim_load_relaxed(&lot->share->self->mail) / 2) {
            spin_learn(true);
            return true;
        }
        prim_pause();
    }
    spin_learn(false);
    return false;
}

static struct segment_header *header_of(const struct lot_share *share) {
    return segment_header(share->segment);
}

/* Watchers that have begun together are not to wake up together. */
static uint64_t period_ns(const struct lot_share *share, uint32_t number) {
    uint32_t rarely = prim_load_relaxed(&header_of(share)->watchers) / WATCHERS_ENOUGH;
    if (rarely <= 1) return SHARED_LOOK_NS;
    uint64_t period_ns = SHARED_LOOK_NS * (rarely > RARELY_MOST ? RARELY_MOST : rarely);
    uint32_t scattered = (number + share->looks) * UINT32_C(0x9E3779B1);
    return period_ns / 2 + period_ns * (scattered >> 16) / 65536;
}

static bool heard_of_all(const struct lot_share *share) {
    return prim_load_seq_cst(&header_of(share)->deaths) == share->deaths;
}

/* Until there is mail, or somebody pokes; or until it is time to look again, if anybody of ours waits. */
static void rest(struct lot *lot, bool idle, bool more_may_come) {
    struct lot_share *share = lot->share;
    uint64_t *mail = &share->self->mail, none = (uint64_t)lot->number << 32, resting = none | SHARED_RESTING;
    if (more_may_come && spin_for_mail(lot)) return;
    prim_store_seq_cst(&share->idle, idle);              /* R1 */
    if (!prim_cas_seq_cst(mail, &none, resting)) return; /* R2 */
    idle = idle && !prim_load_seq_cst(&share->claimed);  /* R3 */
    prim_store_relaxed(&share->self->watching, !idle);
    bool stopping = prim_load_seq_cst(&share->stopping) && !BUG(watcher_stopped_late);
    bool go_on = stopping || (!idle && !heard_of_all(share));
    uint64_t deadline_ns = idle ? PRIM_NEVER : share->looked_ns + period_ns(share, lot->number);
    if (!go_on) prim_park_shared((uint32_t *)(void *)mail, SHARED_RESTING, deadline_ns); /* R4 */
    prim_cas_acq_rel(mail, &resting, none); /* if not, whoever woke us has done so */
    if (idle) share->looked_ns = 0;         /* look at once: we have not for long */
}

/* C1 and C2. A time that is too far ahead is another's mistake, or of a clock that is not ours. */
static bool may_look(struct segment_header *header, uint64_t now_ns) {
    uint64_t due_ns = prim_load_relaxed(&header->look_due_ns);
    bool due = now_ns >= due_ns || due_ns - now_ns > 2 * LOOK_PAUSE_MOST;
    uint64_t takes_ns = look_takes_ns(prim_load_relaxed(&header->records) % (SEGMENT_MEMBERS_MOST + 1));
    return due && prim_cas_acq_rel(&header->look_due_ns, &due_ns, now_ns + SHARED_LOOK_NS + 2 * takes_ns);
}

/* C5 */
static void poke_others(const struct lot_share *share) {
    for (uint32_t i = 0, used = segment_records(share->segment); i < used; i++) {
        struct segment_member *other = segment_member(share->segment, i);
        if (other != share->self && (prim_load_acquire(&other->life) & SEGMENT_JOINED)) poke(&other->mail);
    }
}

/* C3 to C5. */
static void look_for_all(struct lot *lot) {
    struct segment_header *header = header_of(lot->share);
    struct segment_census census = segment_census(lot->share->segment);
    bool somebody_left = census.departures != prim_load_relaxed(&header->departures);
    bool all = !somebody_left || BUG(nobody_sweeps) || lot_sweep(lot, patience());
    bool somebody_died = census.deaths != prim_load_relaxed(&header->deaths);
    prim_store_relaxed(&header->watchers, census.watchers);
    if (all || BUG(left_out_for_good)) prim_store_seq_cst(&header->departures, census.departures);
    prim_store_seq_cst(&header->deaths, census.deaths); /* C4 */
    if (somebody_died) poke_others(lot->share);
    uint64_t pause_ns = look_takes_ns(census.members) * LOOK_SHARE;
    if (pause_ns > LOOK_PAUSE_MOST) pause_ns = LOOK_PAUSE_MOST;
    if (pause_ns > SHARED_LOOK_NS) prim_store_relaxed(&header->look_due_ns, prim_now_ns() + pause_ns);
}

static void tend(struct lot *lot, bool somebody_died) {
    if (somebody_died) lot->share->deaths = prim_load_seq_cst(&header_of(lot->share)->deaths);
    lot->share->unfinished = !lot_tend(lot, somebody_died, patience());
}

/* Whether it was time to. */
static bool look(struct lot *lot) {
    struct lot_share *share = lot->share;
    uint64_t now_ns = prim_now_ns();
    bool first = !share->looked_ns, time = first || now_ns >= share->looked_ns + period_ns(share, lot->number);
    if (time) {
        share->looked_ns = now_ns;
        share->looks++;
        if (may_look(header_of(share), now_ns)) look_for_all(lot);
    }
    bool somebody_died = first || !heard_of_all(share) || (time && share->unfinished);
    if (somebody_died || (time && now_ns >= share->tended_ns + TEND_NS)) {
        share->tended_ns = now_ns;
        tend(lot, somebody_died);
    }
    return time;
}

static void watch(void *argument) {
    struct lot *lot = argument;
    struct lot_share *share = lot->share;
    unsigned in_vain = 0, in_a_row = 0; /* looks while nobody waits; turns with mail */
    while (!prim_load_acquire(&share->stopping)) {
        in_a_row = lot_deliver(lot) ? in_a_row + 1 : 0;
        bool looked = look(lot);
        if (prim_load_relaxed(&share->claimed)) in_vain = 0;
        else if (looked) in_vain++;
        rest(lot, in_vain >= PRIM_LINGER, in_a_row > 1); /* one letter alone is no reason to expect another */
    }
    prim_store_relaxed(&share->self->watching, 0);
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
    if (prim_load_seq_cst(&share->idle)) poke(&share->self->mail); /* B2 */
    return true;
}

void watch_end(struct lot *lot) {
    struct lot_share *share = lot->share;
    if (!prim_load_acquire(&share->watched)) return;
    prim_store_seq_cst(&share->stopping, 1);
    poke(&share->self->mail);
    prim_thread_join(share->thread);
}
