/* SPDX-License-Identifier: MIT */
/*
 * The keeper: the library's own thread, one per process, if the process has segments or event loops that wait for
 * locks.
 *
 * It hands on the mail for the process's event loops, notices when another member dies, guards calls to event loops
 * that may not come (guard.h), and looks at each segment from time to time. It does not poll: it sleeps on all of
 * that at once. When nothing happens, its looks are the only system calls it makes.
 *
 * THE RING OF WATCHERS
 *
 * The members are a ring, in the order of their records. Each keeper watches the members behind its own, up to and
 * including the first that has a keeper too. Normally that is one member. It sleeps on that member's pulse (prim.h):
 * the system ends the pulse, and so wakes the keeper, when the member dies. Then the keeper strikes the member off,
 * and watches the next one.
 *
 *     A member without a pulse      has just joined, or could not start a keeper, or the system has no pulses. The
 *                                   keeper asks the kernel about it every 20 ms
 *     A pulse that has ended        is a hint. The truth is the member's lock on the file, which the kernel drops a
 *                                   moment later: the keeper tests that lock until it is free, less and less often
 *     A keeper that is stopped      does not notice. Others do when they look, a second or more later
 *
 * Both sides of the ring's changes:
 *
 *     the keeper                                    a joiner
 *     R1  CAS mail: RESTING         (seq_cst)       J3  store life: JOINED, fence   (seq_cst)
 *     R2  look which members are behind us          B1  load mail of the keeper before us; if it is RESTING
 *     R3  sleep while it is RESTING                     clear that, and wake it     (seq_cst)
 *
 * If R2 does not see J3, then B1 sees R1. A member that leaves, or dies, ends its pulse, on which the keeper sleeps.
 *
 * Requests from threads of the keeper's own process reach it in the same way, with `asleep` in place of the mail: R1
 * is a store, and R2 looks at the list of segments and whether the process waits.
 *
 * LOCKING
 *
 * `gate` guards the list of segments, and the keeper's state for each (struct keeping). The keeper holds it except
 * while it sleeps. So a thread that removes a segment while it holds the gate knows that the keeper does not use the
 * segment. If the keeper sleeps on words of that segment, those words do not exist any more, and it wakes up or
 * sleeps on.
 *
 * THE LOOK
 *
 * A process may be stopped after it has been called for a lock, or while it watches a member that dies: no other
 * process is told of that. So once per second a keeper looks at the whole segment if its own process waits: for members
 * that have died, for what they have left, and for calls that have not been followed. One keeper is enough. It stores
 * the time of its look in the header. The other keepers find that time when they wake up, and sleep on: the more
 * waiters there are, the longer. If that keeper stops looking, one of the others finds an old time, and looks from
 * then on.
 */
#include "keeper.h"

#include "base/tuning.h"
#include "base/word_lock.h"
#include "guard.h"
#include "recovery.h"

static uint64_t keeper_patience(void) {
    return BUG(stopped_waited_for) ? PRIM_NEVER : prim_now_ns() + KEEPER_PATIENCE_NS;
}

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

/* What the keeper has found to sleep on in one iteration. */
struct rest {
    uint64_t now_ns, deadline_ns;
    uint32_t pulses[PRIM_WORDS / 32]; /* a bit for each word that is a pulse */
    bool woken;                       /* from a sleep */
    bool busy;                        /* something has been done: look again before sleeping */
    unsigned count;
    struct prim_word words[PRIM_WORDS];
};

static void keeper_rest_until(struct rest *rest, uint64_t time_ns) {
    if (time_ns < rest->deadline_ns) rest->deadline_ns = time_ns;
}

/* If there is no room for the word, it is polled. */
static void keeper_rest_on(struct rest *rest, uint32_t *word, uint32_t expected) {
    if (rest->count < PRIM_WORDS) rest->words[rest->count++] = (struct prim_word){word, expected, false};
    else keeper_rest_until(rest, rest->now_ns + KEEPER_POLL_NS);
}

static void keeper_rest_on_pulse(struct rest *rest, uint32_t *word, uint32_t pulse) {
    if (rest->count < PRIM_WORDS) rest->pulses[rest->count / 32] |= 1u << rest->count % 32;
    keeper_rest_on(rest, word, pulse);
}

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

/* Members. */

/* The members behind our own record, up to and including the first that has a keeper. */
struct ring {
    struct segment *segment;
    uint32_t used, step; /* records from our own */
    bool over;
};

static struct segment_member *keeper_ring_next(struct ring *ring) {
    while (!ring->over && ++ring->step < ring->used) {
        uint32_t at = (segment_self(ring->segment) + ring->step) % ring->used;
        struct segment_member *record = segment_member(ring->segment, at);
        if (!(prim_load_acquire(&record->life) & SEGMENT_JOINED)) continue;
        ring->over = prim_load_seq_cst(&record->keeping) && !(segment_pulse(record) & PRIM_PULSE_ENDED);
        return record;
    }
    return NULL;
}

static struct ring keeper_ring_of(struct lot *lot) {
    return (struct ring){.segment = lot->share->segment, .used = segment_records(lot->share->segment)};
}

/* Strike off those members behind us that have no pulse and are dead. */
static bool keeper_ask(struct lot *lot) {
    struct ring ring = keeper_ring_of(lot);
    bool struck = false;
    for (struct segment_member *record; (record = keeper_ring_next(&ring));) {
        uint32_t number = (uint32_t)(record - segment_member(ring.segment, 0));
        if (!segment_pulse_beats(segment_pulse(record))) struck |= segment_strike_off(ring.segment, number);
    }
    return struck;
}

/* Whether the kernel must be asked now. If so, `poll_ns` is when it must be asked next: the pause doubles each time. */
static bool keeper_must_ask(struct keeping *keeping, const struct rest *rest, bool ended) {
    uint64_t first_ns = ended ? KEEPER_ENDED_NS : KEEPER_FIRST_NS;
    uint64_t most_ns = ended ? KEEPER_ENDED_MOST_NS : KEEPER_POLL_NS;
    bool begins = !keeping->pause_ns || keeping->pause_ns > most_ns;
    if (!begins && rest->now_ns < keeping->poll_ns) return false;
    keeping->pause_ns = begins ? first_ns : keeping->pause_ns * 2 < most_ns ? keeping->pause_ns * 2 : most_ns;
    keeping->poll_ns = rest->now_ns + keeping->pause_ns;
    return true;
}

static void keeper_watch(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    struct ring ring = keeper_ring_of(lot);
    bool silent = false, ended = false;
    for (struct segment_member *record; (record = keeper_ring_next(&ring));) {
        uint32_t pulse = segment_pulse(record);
        bool beats = segment_pulse_beats(pulse);
        if (beats && !BUG(pulse_not_watched)) keeper_rest_on_pulse(rest, &record->pulse.word, pulse);
        silent |= !beats;
        ended |= (pulse & PRIM_PULSE_ENDED) != 0;
    }
    if (!silent) {
        keeping->pause_ns = 0;
    } else if (keeper_must_ask(keeping, rest, ended) && keeper_ask(lot)) {
        keeping->unfinished = rest->busy = true;
    }
    if (silent) keeper_rest_until(rest, keeping->poll_ns);
}

/* Deaths. */

static bool keeper_recover_own(struct lot *lot, struct rest *rest) {
    bool all = recovery_own(lot, keeper_patience());
    if (!all) keeper_rest_until(rest, rest->now_ns + KEEPER_POLL_NS);
    return all;
}

/* Other processes may have struck members off, or may have left something unfinished: the header counts that. */
static void keeper_recover(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    const struct segment_header *header = segment_header(lot->share->segment);
    uint32_t deaths = prim_load_acquire(&header->deaths), recovered = prim_load_seq_cst(&header->recovered);
    keeping->unfinished |= deaths != keeping->deaths;
    keeping->deaths = deaths;
    if (keeping->unfinished) {
        keeping->unfinished = !recovery_run(lot, keeper_patience());
        if (keeping->unfinished) keeper_recover_own(lot, rest);
        if (keeping->unfinished) keeper_rest_until(rest, rest->now_ns + KEEPER_POLL_NS);
        else rest->busy = true;
    } else if (recovered != keeping->recovered && keeper_recover_own(lot, rest)) {
        keeping->recovered = recovered;
        rest->busy = true;
    }
}

/* Looking. */

/* Whether a keeper looked at the whole segment within that period. (A time in the future is garbage, or comes from a
 * process that has a clock ahead of ours.) */
static bool keeper_inspected_within(const struct segment_header *header, uint64_t now_ns, uint64_t period_ns) {
    uint64_t last_ns = prim_load_relaxed(&header->looked_ns);
    return last_ns <= now_ns && now_ns - last_ns < period_ns;
}

/* When to wake up next, scattered so that not all keepers do so at the same time. The number of waiters is known if
 * a keeper has looked lately. */
static uint64_t keeper_period_ns(const struct lot *lot, uint64_t now_ns, uint32_t looks) {
    const struct segment_header *header = segment_header(lot->share->segment);
    bool known = keeper_inspected_within(header, now_ns, 2 * KEEPER_LOOK_NS);
    uint64_t period_ns = known ? prim_load_relaxed(&header->waiting) * KEEPER_LOOK_EACH_NS : 0;
    if (period_ns < KEEPER_LOOK_NS) return KEEPER_LOOK_NS;
    if (period_ns > KEEPER_LOOK_MOST_NS) period_ns = KEEPER_LOOK_MOST_NS;
    uint32_t scattered = (lot->number + looks) * UINT32_C(0x9E3779B1);
    return period_ns / 2 + period_ns * (scattered >> 16) / 65536;
}

static void keeper_strike_off_ended(struct segment *segment) {
    for (uint32_t i = 0, used = segment_records(segment); i < used; i++) {
        if (segment_pulse(segment_member(segment, i)) & PRIM_PULSE_ENDED) segment_strike_off(segment, i);
    }
}

static bool keeper_has_turn(struct segment_header *header, uint64_t now_ns) {
    uint64_t last_ns = prim_load_relaxed(&header->looked_ns);
    if (BUG(turn_kept) && last_ns) return false;
    return !keeper_inspected_within(header, now_ns, KEEPER_RECENT_NS) &&
           prim_cas_acq_rel(&header->looked_ns, &last_ns, now_ns);
}

/* A pulse may beat for ever if its word has been overwritten. So the kernel is asked about a few members each time,
 * in turn. Not about all: to check one lock the kernel goes through those of all members. */
static void keeper_ask_some(struct segment *segment) {
    uint32_t *asked = &segment_header(segment)->asked, from = prim_load_relaxed(asked), used = segment_records(segment);
    for (uint32_t i = 0; i < KEEPER_ASKS && i < used; i++) segment_ask_kernel(segment, (from + i) % used);
    prim_store_relaxed(asked, from + KEEPER_ASKS);
}

static void keeper_inspect(struct lot *lot) {
    struct segment *segment = lot->share->segment;
    keeper_strike_off_ended(segment);
    keeper_ask_some(segment);
    bool all = recovery_run(lot, keeper_patience()) && recovery_check(lot, keeper_patience());
    if (!all) lot->share->keeping.unfinished = true;
    if (!BUG(look_passes_none)) recovery_pass_all(lot, keeper_patience());
    prim_store_relaxed(&segment_header(segment)->waiting, recovery_count(lot));
}

/* Returns when to look next. */
static uint64_t keeper_inspect_or_not(struct lot *lot, uint64_t now_ns) {
    if (keeper_has_turn(segment_header(lot->share->segment), now_ns)) {
        keeper_inspect(lot);
        return now_ns + KEEPER_LOOK_NS;
    }
    return now_ns + keeper_period_ns(lot, now_ns, ++lot->share->keeping.looks);
}

/* If the process has not waited for some looks, its keeper stops looking until the process waits again. R1 and R2
 * pair with keeper_attend, which loads `idle` after `claimed` has been counted up (seq_cst). */
static void keeper_inspect_if_due(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    bool waits = prim_load_relaxed(&lot->share->claimed);
    if (!keeping->look_ns) keeping->look_ns = rest->now_ns + keeper_period_ns(lot, rest->now_ns, 0);
    if (rest->now_ns >= keeping->look_ns) {
        keeping->unneeded = waits ? 0 : keeping->unneeded + 1;
        keeping->look_ns = waits ? keeper_inspect_or_not(lot, rest->now_ns) : rest->now_ns + KEEPER_LOOK_NS;
    }
    bool idle = keeping->unneeded >= PRIM_LINGER;
    prim_store_seq_cst(&keeping->idle, idle);              /* R1 */
    if (idle && prim_load_seq_cst(&lot->share->claimed)) { /* R2 */
        keeping->unneeded = idle = 0;
        keeping->look_ns = rest->now_ns + keeper_period_ns(lot, rest->now_ns, 0);
        prim_store_relaxed(&keeping->idle, 0);
    }
    if (!idle) keeper_rest_until(rest, keeping->look_ns);
}

/* Iterations. */

static void keeper_begin(struct lot *lot) {
    struct segment_member *self = lot->share->self;
    if (prim_load_relaxed(&self->keeping)) return;
    prim_pulse_begin(&self->pulse);
    prim_store_seq_cst(&self->keeping, 1);
    prim_fence_seq_cst();
    lot->share->keeping.unfinished = true; /* we may have taken a dead member's record, and struck it off */
}

static void keeper_serve(struct lot *lot, struct rest *rest) {
    struct keeping *keeping = &lot->share->keeping;
    keeper_begin(lot);
    bool mail = lot_deliver(lot);
    if (mail) keeping->letters++;
    else if (rest->woken) keeping->letters = 0;
    rest->busy |= mail;
    keeper_watch(lot, rest);
    keeper_recover(lot, rest);
    keeper_inspect_if_due(lot, rest);
    keeper_rest_on(rest, (uint32_t *)(void *)&lot->share->self->mail, SEGMENT_RESTING);
}

/* Spin for mail only after two iterations with mail: one letter alone is no reason to expect another. */
static void keeper_spin(const struct lot *lot) {
    const struct lot_share *share = lot->share;
    if (share->keeping.letters < 2) return;
    for (unsigned spins = spin_budget(PRIM_SPIN_MOST); spins; spins--) {
        if ((uint32_t)prim_load_relaxed(&share->self->mail) / 2) {
            spin_learn(true);
            return;
        }
        prim_pause();
    }
    spin_learn(false);
}

/* R1 */
static void keeper_lie_down(void) {
    prim_store_relaxed(&keeper.until_ns, PRIM_NEVER);
    prim_store_seq_cst(&keeper.asleep, 1);
    for (unsigned i = 0; i < keeper.count; i++) {
        uint64_t none = (uint64_t)keeper.lots[i]->number << 32;
        prim_cas_seq_cst(&keeper.lots[i]->share->self->mail, &none, none | SEGMENT_RESTING); /* else there is mail */
    }
    prim_fence_seq_cst();
}

static void keeper_get_up(void) {
    prim_store_relaxed(&keeper.asleep, 0);
    for (unsigned i = 0; i < keeper.count; i++) {
        uint64_t none = (uint64_t)keeper.lots[i]->number << 32, resting = none | SEGMENT_RESTING;
        prim_cas_acq_rel(&keeper.lots[i]->share->self->mail, &resting, none); /* else the waker has done so */
    }
}

/* Loops that have been called: guard.h. */
static void keeper_guard(struct rest *rest) {
    if (guard_pass(rest->now_ns)) {
        recovery_pass_all(lot_private(), keeper_patience());
        for (unsigned i = 0; i < keeper.count; i++) recovery_pass_all(keeper.lots[i], keeper_patience());
    }
    keeper_rest_until(rest, guard_due_ns());
}

/* R2 and R3. Returns true if it has slept. */
static bool keeper_iterate(bool woken) {
    struct rest rest = {.now_ns = prim_now_ns(), .deadline_ns = PRIM_NEVER, .woken = woken};
    for (unsigned i = 0; i < keeper.count; i++) keeper_spin(keeper.lots[i]);
    keeper_lie_down();
    keeper_rest_on(&rest, &keeper.asleep, 1);
    for (unsigned i = 0; i < keeper.count; i++) keeper_serve(keeper.lots[i], &rest);
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
    if (prim_exchange_acq_rel(&keeper.asleep, 0)) prim_wake_shared(&keeper.asleep);
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

void keeper_in_child(void) {
    keeper.gate = keeper.asleep = keeper.count = keeper.users = 0;
    keeper.running = keeper.begun = 0;
    guard_in_child();
    prim_pulse_forget();
}
