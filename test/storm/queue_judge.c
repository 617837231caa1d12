/* SPDX-License-Identifier: MIT */
/*
 * queue_judge.c - the judge of the queue's storm: see queue.c for what its members do.
 *
 * The judge kills members by SIGKILL: one, one that it has stopped before, two at once, two one after the other. Each
 * time items must continue to pass through the queue: usually among the remaining members, before a new member is
 * started, which would look at the queue without having been signalled. Now and then the judge calls for rest, when
 * only signalled waiters continue, and checks the books when nothing moves any more:
 *
 *     items       The numbers of items are consecutive. As many have been put in, and taken out, as is entered, but for
 *                 one for each actor that was killed while it changed the queue.
 *     signals     For each condition, there are
 *                     waits ended  <=  signals + actors killed while they signalled
 *                 since each of these may have given one signal that is not entered. There are, taken together,
 *                     signals - waits ended  <=  owners that died outside + chained kills + heirless signals
 *                 A signal is missing if a killed actor's wait ended without being entered. It held the mutex then, and
 *                 had not entered its name: the next holder of the mutex was told that its owner died, found no name,
 *                 and entered that (owner_died_outside), unless it was killed as well before that, and before any actor
 *                 was inside since the other kill: a chained kill. And a signal has no heir if its receiver is killed
 *                 while the line is empty: mostly right after the start, when all members want the mutex at once. The
 *                 library counts these, in the segment's header.
 *     lines       All waiters for a condition, and no others, are in its line; the mutex's line is empty.
 */
#include "judge.h"
#include "queue.h"

#include <poll.h>

#define RESIDENTS      4 /* for each condition */
#define ITEMS_TO_PASS  10 /* before the next kill */
#define STALL_NS       (20 * SECOND)
#define ITEMS_IN_PEACE 1000
#define TAKE_OVER_NS   (100 * MILLISECOND)

static struct seeker residents[CONDS * RESIDENTS];
static uint64_t residents_seed;
static int64_t longest_ns;  /* without a new item */
static int64_t missing_now; /* signals, when all were at rest */
static uint64_t takeovers;

/* Residents. */

/* For at most that many milliseconds. */
static void attend_for(int timeout_ms) {
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    if (poll(&seat, 1, timeout_ms) > 0) receive();
}

static void attend(void) {
    attend_for(0);
}

static void residents_join(void) {
    residents_seed = random_next(&judge_seed);
    for (unsigned i = 0; i < CONDS * RESIDENTS; i++) {
        residents[i] = (struct seeker){.agent = agent,
                                       .page = &judges->actors[FIRST_WAIT + i],
                                       .seed = &residents_seed,
                                       .role = (enum role)(i % CONDS),
                                       .resident = true};
        seeker_begins(&residents[i]);
    }
}

static void residents_leave(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    for (unsigned i = 0; i < CONDS * RESIDENTS; i++) {
        residents[i].retires = true;
        if (residents[i].pending && vigil_cancel(&residents[i].request.op) == VIGIL_OK) {
            residents[i].pending = false;
            done(residents[i].page);
        }
    }
    for (unsigned i = 0; i < CONDS * RESIDENTS; i++) {
        while (residents[i].pending) {
            attend_for(1);
            DEMAND(vigil_now_ns() < until_ns, "a resident does not get the mutex");
            judge_failures();
        }
    }
}

/* Items pass. */

static uint64_t items_now(void) {
    return NOW(arena->queue.last_got);
}

/*
 * If a process dies with the mutex while all others wait for conditions, no process is about to take the mutex and be
 * told of it. The supervisor of the processes has to take it: the judge. It does so as well if the mutex has been
 * released in the dead owner's place, and the waiter that was called has been killed too: then the word still says
 * that the owner died. If a waiter is in the mutex's line, the library must handle it.
 */
static void take_over_mutex(void) {
    vigil_mutex *mutex = &arena->locks[WITH_COND].mutex;
    if (!NOW(mutex->word) || vigil_waiters(mutex) != 0) return;
    takeovers += visit(&judges->actors[0], &judge_seed);
}

static void judge_items_pass(uint64_t more) {
    uint64_t from = items_now(), seen = from;
    int64_t seen_ns = vigil_now_ns();
    while (items_now() - from < more) {
        attend_for(1);
        everybody_lives();
        int64_t now_ns = vigil_now_ns();
        if (now_ns - seen_ns > longest_ns) longest_ns = now_ns - seen_ns;
        if (now_ns - seen_ns > TAKE_OVER_NS) take_over_mutex();
        DEMAND(now_ns - seen_ns < STALL_NS, "a stall: no item has passed for 20 s, since item %" PRIu64, seen);
        judge_failures();
        if (items_now() == seen) continue;
        seen = items_now();
        seen_ns = now_ns;
    }
}

/* Rest. */

static bool rests_or_waits(const struct actor *actor, uint32_t moment) {
    enum activity activity = activity_of(NOW(actor->activity));
    return activity == IN_COND || at_rest(actor, moment);
}

static bool idles_or_waits(const struct actor *request) {
    enum activity activity = activity_of(NOW(request->activity));
    return activity == IN_COND || activity == BETWEEN || activity == STARTING;
}

static int64_t waiting_for(unsigned cond) {
    int64_t waiting = 0;
    for (unsigned i = 0; i <= MEMBERS_MOST; i++) {
        for (unsigned j = 0; j < ACTORS; j++)
            waiting += NOW(ledger->members[i].actors[j].activity) == (IN_COND | at(WITH_COND, cond) << 8);
    }
    return waiting;
}

/*
 * A signalled waiter is not in line any more, and neither are the dead. What was examined one after the other was true
 * at once if the mutex is free, and no actor has been inside meanwhile.
 */
static bool all_at_rest(void) {
    uint64_t inside = NOW(ledger->payload[WITH_COND].first);
    if (!all_recovered()) return false;
    for (unsigned i = 0; i < members; i++) {
        const struct actor *actors = ledger->members[i].actors;
        for (unsigned j = 0; j < ACTORS; j++) {
            bool rests = j <= THE_LOOP ? rests_or_waits(&actors[j], ledger->moment) : idles_or_waits(&actors[j]);
            if (!rests) return false;
        }
    }
    for (unsigned cond = 0; cond < CONDS; cond++) {
        if (vigil_waiters(&arena->conds[cond].cond) != waiting_for(cond)) return false;
    }
    return !NOW(arena->locks[WITH_COND].mutex.word) && NOW(ledger->payload[WITH_COND].first) == inside;
}

static void call_for_rest(void) {
    int64_t until_ns = vigil_now_ns() + PATIENCE_NS;
    PUT(ledger->moment, (ledger->moment / 4 + 1) * 4 + REST);
    while (!all_at_rest()) {
        attend_for(1);
        everybody_lives();
        DEMAND(vigil_now_ns() < until_ns, "the members do not come to rest");
        judge_failures();
    }
    books.rests++;
}

/* A resident that was signalled during the rest has not acted: the judge signals in its place. */
static void call_for_storm(void) {
    PUT(ledger->moment, ledger->moment / 4 * 4 + STORM);
    for (unsigned cond = 0; cond < CONDS; cond++) give_signal(&judges->actors[0], NO_MUTEX, cond);
}

/* The books. */

static int64_t signals_missing(void) {
    int64_t missing = 0;
    for (unsigned cond = 0; cond < CONDS; cond++) {
        int64_t signals = (int64_t)tally_now((enum tally)(SIGNALLED + cond));
        int64_t woken = (int64_t)tally_now((enum tally)(WOKEN + cond));
        if (signals > woken) missing += signals - woken;
    }
    return missing;
}

static int64_t signals_excused(void) {
    return (int64_t)(tally_now(NOBODY_INSIDE) + books.chained + heirless_now());
}

static void judge_missing(void) {
    missing_now = signals_missing();
    DEMAND(missing_now <= signals_excused(), "%" PRId64 " signals lost, of which %" PRId64 " at most are excused",
           missing_now, signals_excused());
}

static void judge_items(void) {
    uint64_t put = tally_now(PRODUCED), got = tally_now(CONSUMED);
    uint64_t killed_putting = books.killed[CHANGING][at(WITH_COND, PRODUCER)];
    uint64_t killed_getting = books.killed[CHANGING][at(WITH_COND, CONSUMER)];
    DEMAND(put <= arena->queue.last_put && arena->queue.last_put <= put + killed_putting,
           "%" PRIu64 " items produced, %" PRIu64 " put in, %" PRIu64 " killed doing so", put, arena->queue.last_put,
           killed_putting);
    DEMAND(got <= arena->queue.last_got && arena->queue.last_got <= got + killed_getting,
           "%" PRIu64 " items consumed, %" PRIu64 " taken out, %" PRIu64 " killed doing so", got, arena->queue.last_got,
           killed_getting);
}

static void judge(void) {
    judge_missing();
    judge_signals();
    judge_grants(); /* takes the mutex, and repairs the queue if necessary */
    judge_items();
    judge_line(&arena->locks[WITH_COND].mutex, 0, "mutex");
    for (unsigned cond = 0; cond < CONDS; cond++) judge_line(&arena->conds[cond].cond, waiting_for(cond), "condition");
    judge_failures();
}

/* The storm. */

/* Kills the first, perhaps stopped before, and perhaps a second at once or later. Or only stops the first. */
static void strike(unsigned first, unsigned second) {
    uint64_t dice = random_below(&judge_seed, 100);
    bool stopped = one_in(&judge_seed, 2);
    if (stopped) some_stop(first);
    if (stopped && dice < 10) {
        signal_member(first, SIGCONT);
        return;
    }
    books.stopped_kills += stopped;
    member_killed(first);
    if (dice < 75 || second == first) return;
    if (dice < 88) nap_ns((int64_t)random_below(&judge_seed, 2000) * MICROSECOND);
    member_killed(second);
}

static void replace_killed(void) {
    for (unsigned i = 0; i < members; i++) {
        if (!processes[i].pid) member_start(i);
    }
}

static void rage(void) {
    uint64_t next_rest = KILLS_TO_REST;
    while (books.kills < options.kills) {
        unsigned first = (unsigned)random_below(&judge_seed, members);
        let_them_begin();
        strike(first, (first + 1) % members);
        if (one_in(&judge_seed, 4)) replace_killed();
        judge_items_pass(ITEMS_TO_PASS);
        replace_killed();
        print_progress();
        if (books.kills < next_rest) continue;
        next_rest += KILLS_TO_REST;
        call_for_rest();
        judge();
        call_for_storm();
    }
}

/* All waiters are signalled, one after the other, because they must leave. */
static void end_waits(void) {
    for (unsigned cond = 0; cond < CONDS; cond++) {
        while (give_signal(&judges->actors[0], NO_MUTEX, cond)) continue;
    }
}

static void end(void) {
    residents_leave();
    take_part = end_waits;
    all_leave();
    take_part = attend;
    judge_signals();
    judge_items();
    judge_failures();
}

/* At the end all leave, every place to wait is available again, and a single member finds everything in order. */
void queue_storm(void) {
    take_part = attend;
    residents_join();
    for (unsigned i = 0; i < members; i++) member_start(i);
    rage();
    judge_items_pass(ITEMS_IN_PEACE);
    call_for_rest();
    judge();
    end();
    judge_places();
    PUT(ledger->moment, ledger->moment / 4 * 4 + STORM);
    residents_join();
    members = 1;
    member_start(0);
    judge_items_pass(ITEMS_IN_PEACE);
    end();
}

void report_queue(FILE *json) {
    if (json) {
        fprintf(json,
                " \"chained\": %" PRIu64 ", \"missing_signals\": %" PRId64 ", \"excused\": %" PRId64
                ", \"heirless\": %" PRIu64,
                books.chained, missing_now, signals_excused(), heirless_now());
        fprintf(json, ", \"takeovers\": %" PRIu64 ", \"longest_pause_ms\": %" PRId64 "}\n", takeovers,
                longest_ns / MILLISECOND);
        return;
    }
    printf("Signals: %" PRId64 " missing, %" PRId64 " excused at most; longest time without an item: %" PRId64
           " ms; the judge took over the mutex %" PRIu64 " times\n",
           missing_now, signals_excused(), longest_ns / MILLISECOND, takeovers);
}
