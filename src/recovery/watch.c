/* SPDX-License-Identifier: MIT */
/*
 * What the keeper (keeper.c) does for each segment of its process.
 *
 * THE RING OF WATCHERS
 *
 * The members are a ring, in the order of their rows. Each keeper watches the members behind its own, up to and
 * including the first that has a keeper too. Normally that is one member. It sleeps on that member's pulse (prim.h):
 * the system ends the pulse, and so wakes the keeper, when the member dies. Then the keeper strikes the member off,
 * and watches the next one.
 *
 *     A member without a pulse      has just joined, or could not start a keeper, or the system has no pulses. The
 *                                   keeper asks the kernel about it every 20 ms
 *     A pulse that has ended        is a hint. The truth is the member's lock on the file, which the kernel drops a
 *                                   moment later: the keeper tests that lock until it is free, less and less often
 *     A keeper that is stopped      does not notice. Others do when they patrol, a second or more later
 *
 * Both sides of the ring's changes:
 *
 *     the keeper                                    a joiner
 *     R1  CAS relay: RESTING        (seq_cst)       J3  store life: JOINED, fence   (seq_cst)
 *     R2  look which members are behind us          B1  load relay of the keeper before us; if it is RESTING
 *     R3  sleep while it is RESTING                     clear that, and wake it     (seq_cst)
 *
 * If R2 does not see J3, then B1 sees R1. A member that leaves, or dies, ends its pulse, on which the keeper sleeps.
 *
 * THE PATROL
 *
 * A process may be stopped after it has been called for a lock, or while it watches a member that dies: no other
 * process is told of that. So once per second a keeper patrols if its own process waits: it looks at the whole segment
 * for members that have died, for what they have left, and for calls that have not been followed. One keeper is
 * enough. It stores the time of its patrol in the header. The other keepers find that time when they wake up, and sleep
 * on: the more waiters there are, the longer. If that keeper stops patrolling, one of the others finds an old time, and
 * patrols from then on.
 */
#include "watch.h"

#include "recovery.h"

/* If there is no room for the word, it is polled. */
static void watch_rest_on(struct rest *rest, uint32_t *word, uint32_t expected) {
    if (rest->count < PRIM_WORDS) rest->words[rest->count++] = (struct prim_word){word, expected, false};
    else rest_until(rest, rest->now_ns + KEEPER_POLL_NS);
}

static void watch_rest_on_pulse(struct rest *rest, uint32_t *word, uint32_t pulse) {
    if (rest->count < PRIM_WORDS) rest->pulses[rest->count / 32] |= 1u << rest->count % 32;
    watch_rest_on(rest, word, pulse);
}

/* Members. */

/* The members behind our own row, up to and including the first that has a keeper. */
struct ring {
    struct segment *segment;
    uint32_t used, step; /* rows from our own */
    bool over;
};

static struct segment_member *watch_ring_next(struct ring *ring) {
    while (!ring->over && ++ring->step < ring->used) {
        uint32_t at = (segment_self(ring->segment) + ring->step) % ring->used;
        struct segment_member *row = segment_member(ring->segment, at);
        if (!(prim_load_acquire(&row->life) & SEGMENT_JOINED)) continue;
        ring->over = prim_load_seq_cst(&row->keeping) && !(segment_pulse(row) & PRIM_PULSE_ENDED);
        return row;
    }
    return NULL;
}

static struct ring watch_ring_of(struct lot *lot) {
    return (struct ring){.segment = lot->share->segment, .used = segment_rows(lot->share->segment)};
}

/* Strike off those members behind us that have no pulse and are dead. */
static bool watch_ask(struct lot *lot) {
    struct ring ring = watch_ring_of(lot);
    bool struck = false;
    for (struct segment_member *row; (row = watch_ring_next(&ring));) {
        uint32_t number = (uint32_t)(row - segment_member(ring.segment, 0));
        if (!segment_pulse_beats(segment_pulse(row))) struck |= segment_strike_off(ring.segment, number);
    }
    return struck;
}

/*
 * Whether the kernel must be asked now. If so, `poll_ns` is when it must be asked next. The pause grows by a quarter:
 * so a death is noticed a quarter later than it could be, at most.
 */
static bool watch_must_ask(struct keeping *keeping, const struct rest *rest, bool ended) {
    uint64_t first_ns = ended ? KEEPER_ENDED_NS : KEEPER_FIRST_NS;
    uint64_t most_ns = ended ? KEEPER_ENDED_MOST_NS : KEEPER_POLL_NS;
    bool begins = !keeping->pause_ns || keeping->pause_ns > most_ns;
    if (!begins && rest->now_ns < keeping->poll_ns) return false;
    uint64_t longer_ns = keeping->pause_ns + keeping->pause_ns / 4;
    keeping->pause_ns = begins ? first_ns : longer_ns < most_ns ? longer_ns : most_ns;
    keeping->poll_ns = rest->now_ns + keeping->pause_ns;
    return true;
}

static void watch_members(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    struct ring ring = watch_ring_of(lot);
    bool silent = false, ended = false;
    for (struct segment_member *row; (row = watch_ring_next(&ring));) {
        uint32_t pulse = segment_pulse(row);
        bool beats = segment_pulse_beats(pulse);
        if (beats && !BUG(pulse_not_watched)) watch_rest_on_pulse(rest, &row->pulse.word, pulse);
        silent |= !beats;
        ended |= (pulse & PRIM_PULSE_ENDED) != 0;
    }
    if (!silent) {
        keeping->pause_ns = 0;
    } else if (watch_must_ask(keeping, rest, ended) && watch_ask(lot)) {
        keeping->unfinished = rest->busy = true;
    }
    if (silent) rest_until(rest, keeping->poll_ns);
}

/* Deaths. */

static bool watch_recover_own(struct lot *lot, struct rest *rest) {
    bool all = recovery_own(lot, watch_patience_ns());
    if (!all) rest_until(rest, rest->now_ns + KEEPER_POLL_NS);
    return all;
}

/* Other processes may have struck members off, or may have left something unfinished: the header counts that. */
static void watch_recover(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    const struct segment_header *header = segment_header(lot->share->segment);
    uint32_t deaths = prim_load_acquire(&header->deaths), recovered = prim_load_seq_cst(&header->recovered);
    keeping->unfinished |= deaths != keeping->deaths;
    keeping->deaths = deaths;
    if (keeping->unfinished) {
        keeping->unfinished = !recovery_run(lot, watch_patience_ns());
        if (keeping->unfinished) watch_recover_own(lot, rest);
        if (keeping->unfinished) rest_until(rest, rest->now_ns + KEEPER_POLL_NS);
        else rest->busy = true;
    } else if (recovered != keeping->recovered && watch_recover_own(lot, rest)) {
        keeping->recovered = recovered;
        rest->busy = true;
    }
}

/* The patrol. */

/* Whether a keeper patrolled the segment within that period. (A time in the future is garbage, or comes from a
 * process that has a clock ahead of ours.) */
static bool watch_patrolled_within(const struct segment_header *header, uint64_t now_ns, uint64_t period_ns) {
    uint64_t last_ns = prim_load_relaxed(&header->patrolled_ns);
    return last_ns <= now_ns && now_ns - last_ns < period_ns;
}

/* When to wake up next, scattered so that not all keepers do so at the same time. The number of waiters is known if
 * a keeper has patrolled lately. */
static uint64_t watch_period_ns(const struct lot *lot, uint64_t now_ns, uint32_t patrols) {
    const struct segment_header *header = segment_header(lot->share->segment);
    bool known = watch_patrolled_within(header, now_ns, 2 * KEEPER_PATROL_NS);
    uint64_t period_ns = known ? prim_load_relaxed(&header->waiting) * KEEPER_PATROL_EACH_NS : 0;
    if (period_ns < KEEPER_PATROL_NS) return KEEPER_PATROL_NS;
    if (period_ns > KEEPER_PATROL_MOST_NS) period_ns = KEEPER_PATROL_MOST_NS;
    uint32_t scattered = (lot->number + patrols) * UINT32_C(0x9E3779B1);
    return period_ns / 2 + period_ns * (scattered >> 16) / 65536;
}

static void watch_strike_off_ended(struct segment *segment) {
    for (uint32_t i = 0, used = segment_rows(segment); i < used; i++) {
        if (segment_pulse(segment_member(segment, i)) & PRIM_PULSE_ENDED) segment_strike_off(segment, i);
    }
}

static bool watch_has_turn(struct segment_header *header, uint64_t now_ns) {
    uint64_t last_ns = prim_load_relaxed(&header->patrolled_ns);
    if (BUG(turn_kept) && last_ns) return false;
    return !watch_patrolled_within(header, now_ns, KEEPER_RECENT_NS) &&
           prim_cas_acq_rel(&header->patrolled_ns, &last_ns, now_ns);
}

/* A pulse may beat for ever if its word has been overwritten. So the kernel is asked about a few members each time,
 * in turn. Not about all: to check one lock the kernel goes through those of all members. */
static void watch_ask_some(struct segment *segment) {
    uint32_t *asked = &segment_header(segment)->asked, from = prim_load_relaxed(asked), used = segment_rows(segment);
    for (uint32_t i = 0; i < KEEPER_ASKS && i < used; i++) segment_ask_kernel(segment, (from + i) % used);
    prim_store_relaxed(asked, from + KEEPER_ASKS);
}

static void watch_patrol(struct lot *lot) {
    struct segment *segment = lot->share->segment;
    watch_strike_off_ended(segment);
    watch_ask_some(segment);
    bool all = recovery_run(lot, watch_patience_ns()) && recovery_run_by_slots(lot, watch_patience_ns());
    if (!all) lot->share->keeping.unfinished = true;
    if (!BUG(patrol_passes_none)) recovery_pass_all(lot, watch_patience_ns());
    prim_store_relaxed(&segment_header(segment)->waiting, recovery_count(lot));
}

/* Returns when to patrol next. */
static uint64_t watch_patrol_or_not(struct lot *lot, uint64_t now_ns) {
    if (watch_has_turn(segment_header(lot->share->segment), now_ns)) {
        watch_patrol(lot);
        return now_ns + KEEPER_PATROL_NS;
    }
    return now_ns + watch_period_ns(lot, now_ns, ++lot->share->keeping.patrols);
}

/* If the process has not waited for some patrols, its keeper stops patrolling until the process waits again. R1 and R2
 * pair with keeper_attend, which loads `idle` after `claimed` has been counted up (seq_cst). */
static void watch_patrol_if_due(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    bool waits = prim_load_relaxed(&lot->share->claimed);
    if (!keeping->patrol_ns) keeping->patrol_ns = rest->now_ns + watch_period_ns(lot, rest->now_ns, 0);
    if (rest->now_ns >= keeping->patrol_ns) {
        keeping->unneeded = waits ? 0 : keeping->unneeded + 1;
        keeping->patrol_ns = waits ? watch_patrol_or_not(lot, rest->now_ns) : rest->now_ns + KEEPER_PATROL_NS;
    }
    bool idle = keeping->unneeded >= PRIM_LINGER;
    prim_store_seq_cst(&keeping->idle, idle);              /* R1 */
    if (idle && prim_load_seq_cst(&lot->share->claimed)) { /* R2 */
        keeping->unneeded = idle = 0;
        keeping->patrol_ns = rest->now_ns + watch_period_ns(lot, rest->now_ns, 0);
        prim_store_relaxed(&keeping->idle, 0);
    }
    if (!idle) rest_until(rest, keeping->patrol_ns);
}

/* Iterations. */

static void watch_begin(struct lot *lot) {
    struct segment_member *self = lot->share->self;
    if (prim_load_relaxed(&self->keeping)) return;
    prim_pulse_begin(&self->pulse);
    prim_store_seq_cst(&self->keeping, 1);
    prim_fence_seq_cst();
    lot->share->keeping.unfinished = true; /* we may have taken a dead member's row, and struck it off */
}

void watch_serve(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    watch_begin(lot);
    bool relayed = lot_deliver(lot);
    if (relayed) keeping->relayed++;
    else if (rest->woken) keeping->relayed = 0;
    rest->busy |= relayed;
    watch_members(lot, rest);
    watch_recover(lot, rest);
    watch_patrol_if_due(lot, rest);
    watch_rest_on(rest, (uint32_t *)(void *)&lot->share->self->relay, SEGMENT_RESTING);
}

static bool watch_has_relay(void *row) {
    return (uint32_t)prim_load_relaxed(&((struct segment_member *)row)->relay) / 2;
}

/* Spin on the relay only after two iterations with slots in it: one slot alone is no reason to expect another. */
void watch_spin(const struct lot *lot) {
    if (lot->share->keeping.relayed >= 2) spin_until(watch_has_relay, lot->share->self, PRIM_SPIN_MOST);
}

/* R1 */
void watch_lie_down(struct lot *lot) {
    uint64_t none = (uint64_t)lot->number << 32;
    prim_cas_seq_cst(&lot->share->self->relay, &none, none | SEGMENT_RESTING); /* else a slot is in it */
}

void watch_get_up(struct lot *lot) {
    uint64_t none = (uint64_t)lot->number << 32, resting = none | SEGMENT_RESTING;
    prim_cas_acq_rel(&lot->share->self->relay, &resting, none); /* else the waker has done so */
}
