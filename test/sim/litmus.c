/* SPDX-License-Identifier: MIT */
/*
 * litmus.c - is the simulator's memory as weak as C11's, and no weaker?
 *
 * Each test is a few accesses by two to four fibers and a question about what they read. The simulator must find an
 * execution where the question is true if C11 allows one, and must not find one if C11 forbids it. The last tests
 * cover the rest of the engine in the same way: a small futex lock and condition, correct and with mistakes, sleepers,
 * bells and the clock.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prim.h"
#include "sim.h"

static uint32_t x, y, r[4];

static void reset(void) {
    x = y = 0;
    memset(r, 0xFF, sizeof r);
    sim_name(&x, sizeof x, "x");
    sim_name(&y, sizeof y, "y");
}

/* A fiber of three accesses, or a line of the table, is easiest to read on one line. */
/* clang-format off */
#define FIBER(name) static void name(void *unused)
#define STORE(order, p, v) ((void)unused, prim_store_##order(p, v))
#define LOAD(order, i, p) ((void)unused, r[i] = prim_load_##order(p))

/* Store buffering. */
FIBER(sb_1) { STORE(relaxed, &x, 1u); LOAD(relaxed, 0, &y); }
FIBER(sb_2) { STORE(relaxed, &y, 1u); LOAD(relaxed, 1, &x); }
FIBER(sb_1_fence) { STORE(relaxed, &x, 1u); prim_fence_seq_cst(); LOAD(relaxed, 0, &y); }
FIBER(sb_2_fence) { STORE(relaxed, &y, 1u); prim_fence_seq_cst(); LOAD(relaxed, 1, &x); }
FIBER(sb_1_release) { STORE(release, &x, 1u); LOAD(acquire, 0, &y); }
FIBER(sb_2_release) { STORE(release, &y, 1u); LOAD(acquire, 1, &x); }
FIBER(sb_1_seq_cst) { STORE(seq_cst, &x, 1u); LOAD(seq_cst, 0, &y); }
FIBER(sb_2_seq_cst) { STORE(seq_cst, &y, 1u); LOAD(seq_cst, 1, &x); }
/* A fence in all threads serves those without one. */
FIBER(sb_1_everywhere) { STORE(relaxed, &x, 1u); prim_fence_everywhere(); LOAD(relaxed, 0, &y); }
FIBER(mp_read_everywhere) { LOAD(relaxed, 0, &y); prim_fence_everywhere(); LOAD(relaxed, 1, &x); }
static bool both_missed(void) { return r[0] == 0 && r[1] == 0; }

/* A seq_cst update and load against a relaxed store, a fence and a relaxed load: the waiter and the notifier. */
FIBER(waiter) {
    uint32_t seen = 0;
    prim_cas_seq_cst(&x, &seen, 1u);
    LOAD(seq_cst, 0, &y);
}
FIBER(notifier) { STORE(relaxed, &y, 1u); prim_fence_seq_cst(); LOAD(relaxed, 1, &x); }
FIBER(notifier_no_fence) { STORE(relaxed, &y, 1u); LOAD(relaxed, 1, &x); }
FIBER(notifier_seq_cst_load) { STORE(relaxed, &y, 1u); LOAD(seq_cst, 1, &x); }
FIBER(notifier_seq_cst) { STORE(seq_cst, &y, 1u); LOAD(seq_cst, 1, &x); }

/* Message passing. */
FIBER(mp_write) { STORE(relaxed, &x, 1u); STORE(relaxed, &y, 1u); }
FIBER(mp_write_release) { STORE(relaxed, &x, 1u); STORE(release, &y, 1u); }
FIBER(mp_write_fence) { STORE(relaxed, &x, 1u); prim_fence_seq_cst(); STORE(relaxed, &y, 1u); }
FIBER(mp_read) { LOAD(relaxed, 0, &y); LOAD(relaxed, 1, &x); }
FIBER(mp_read_acquire) { LOAD(acquire, 0, &y); LOAD(relaxed, 1, &x); }
FIBER(mp_read_fence) { LOAD(relaxed, 0, &y); prim_fence_seq_cst(); LOAD(relaxed, 1, &x); }
static bool message_without_data(void) { return r[0] == 1 && r[1] == 0; }

/* An update by a third fiber carries the message on; a plain store does not. */
FIBER(sequence_update) { LOAD(relaxed, 2, &y); prim_fetch_or_acq_rel(&y, 2u); }
FIBER(sequence_store) { LOAD(relaxed, 2, &y); STORE(relaxed, &y, 3u); }
static bool carried_without_data(void) { return r[0] == 3 && r[2] == 1 && r[1] == 0; }

/* Load buffering: nothing is read from the future. */
FIBER(lb_1) { LOAD(relaxed, 0, &x); STORE(relaxed, &y, 1u); }
FIBER(lb_2) { LOAD(relaxed, 1, &y); STORE(relaxed, &x, 1u); }
static bool from_the_future(void) { return r[0] == 1 && r[1] == 1; }

/* One location has one order. */
FIBER(coherence_write) { STORE(relaxed, &x, 1u); STORE(relaxed, &x, 2u); }
FIBER(coherence_read) { LOAD(relaxed, 0, &x); LOAD(relaxed, 1, &x); }
static bool backwards(void) { return r[0] == 2 && r[1] == 1; }
static bool one_behind(void) { return r[0] == 1 && r[1] == 2; }

/* Independent reads of independent writes. */
FIBER(write_x) { STORE(relaxed, &x, 1u); }
FIBER(write_y) { STORE(relaxed, &y, 1u); }
FIBER(write_x_seq_cst) { STORE(seq_cst, &x, 1u); }
FIBER(write_y_seq_cst) { STORE(seq_cst, &y, 1u); }
FIBER(read_x_y) { LOAD(acquire, 0, &x); LOAD(acquire, 1, &y); }
FIBER(read_y_x) { LOAD(acquire, 2, &y); LOAD(acquire, 3, &x); }
FIBER(read_x_y_seq_cst) { LOAD(seq_cst, 0, &x); LOAD(seq_cst, 1, &y); }
FIBER(read_y_x_seq_cst) { LOAD(seq_cst, 2, &y); LOAD(seq_cst, 3, &x); }
FIBER(read_x_y_fence) { LOAD(relaxed, 0, &x); prim_fence_seq_cst(); LOAD(relaxed, 1, &y); }
FIBER(read_y_x_fence) { LOAD(relaxed, 2, &y); prim_fence_seq_cst(); LOAD(relaxed, 3, &x); }
static bool disagree(void) { return r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0; }

/* Updates always read the newest value. */
FIBER(set_one) { (void)unused; prim_fetch_or_acq_rel(&x, 1u); }
FIBER(set_two) { (void)unused; prim_fetch_or_acq_rel(&x, 2u); }
static bool lost_update(void) { return x != 3; }

/* ---- The rest of the engine ---- */

/* A lock of three states; its holder makes plain writes. */
static void toy_lock(void) {
    uint32_t seen = 0;
    if (prim_cas_acquire(&x, &seen, 1u)) return;
    while (prim_exchange_acq_rel(&x, 2u) != 0) prim_park(&x, 2, PRIM_NEVER);
}
static void toy_unlock(void) {
    if (prim_exchange_acq_rel(&x, 0u) == 2) prim_wake(&x);
}
static uint32_t data;
static void add_to_data(void) {
    uint32_t old = prim_load_relaxed(&data);
    prim_store_relaxed(&data, old + 1);
}
FIBER(locked) { (void)unused; toy_lock(); add_to_data(); toy_unlock(); }
FIBER(locked_unlock_always_1) {
    (void)unused;
    toy_lock();
    add_to_data();
    if (prim_exchange_acq_rel(&x, 0u) == 1) { /* wrong: the sleepers are those of 2 */
        prim_wake(&x);
    }
}
FIBER(locked_by_look) {
    (void)unused;
    while (prim_load_acquire(&x) != 0) prim_pause();
    prim_store_release(&x, 1u); /* wrong: another fiber may have locked it */
    add_to_data();
    toy_unlock();
}
FIBER(locked_relaxed_unlock) {
    (void)unused;
    toy_lock();
    add_to_data();
    prim_store_relaxed(&x, 0u); /* wrong: the next holder need not see data */
}
static bool not_counted(void) {
    bool wrong = data != 2;
    data = 0;
    return wrong;
}

FIBER(sleep_while_zero) {
    (void)unused;
    while (prim_load_acquire(&x) == 0) prim_park(&x, 0, PRIM_NEVER);
}
FIBER(sleep_once) { (void)unused; prim_park(&x, 0, PRIM_NEVER); r[0] = prim_fetch_or_acq_rel(&x, 0u); }
FIBER(set_and_wake) { STORE(release, &x, 1u); prim_wake(&x); }
FIBER(wake_and_set) { prim_wake(&x); STORE(release, &x, 1u); }
FIBER(sleep_until_1500) { (void)unused; prim_park(&x, 0, 1500); r[1] = (uint32_t)prim_now_ns(); }
static bool never(void) { return false; }
static bool woke_without_reason(void) { return r[0] == 0; }
static bool early(void) { return x == 0 && r[1] < 1500; }
static bool timed_out(void) { return r[1] == 1500; }

static struct prim_bell bell;
FIBER(ring) { STORE(relaxed, &x, 1u); prim_bell_ring(&bell); }
FIBER(answer) {
    (void)unused;
    while (!prim_bell_take(&bell)) prim_bell_wait(&bell, PRIM_NEVER);
    LOAD(relaxed, 0, &x);
}
FIBER(answer_poll) {
    (void)unused;
    sim_poll(prim_bell_fd(&bell), PRIM_NEVER);
    r[0] = prim_bell_take(&bell) ? prim_load_relaxed(&x) : 0;
}
FIBER(answer_alarm) {
    (void)unused;
    int fd = prim_bell_fd(&bell);
    prim_bell_alarm(&bell, 2000);
    r[0] = sim_poll(fd, PRIM_NEVER) && !prim_bell_take(&bell) && prim_now_ns() >= 2000;
}
static bool ring_without_data(void) { prim_bell_close(&bell); return r[0] == 0; }
static bool alarm_went_off(void) { prim_bell_close(&bell); return r[0] == 1; }
static bool close_bell(void) { prim_bell_close(&bell); return false; }

/* Plain accesses, and mistakes of every kind. */
static int plain;
FIBER(plain_write_release) { plain = 1; STORE(release, &x, 1u); }
FIBER(plain_write_relaxed) { plain = 1; STORE(relaxed, &x, 1u); }
FIBER(plain_write_fence) { plain = 1; prim_fence_seq_cst(); STORE(relaxed, &x, 1u); }
FIBER(plain_write_after) { STORE(release, &x, 1u); plain = 1; }
FIBER(plain_read_acquire) {
    (void)unused;
    r[0] = prim_load_acquire(&x) ? (uint32_t)plain : 1;
}
FIBER(plain_read_fences_only) {
    (void)unused;
    prim_fence_seq_cst();
    r[0] = prim_load_relaxed(&x) ? (uint32_t)plain : 1;
}
static char *volatile block;
FIBER(frees) { (void)unused; char *mine = malloc(8); free(mine); }
FIBER(leaks) { (void)unused; block = malloc(8); }
FIBER(frees_twice) { (void)unused; block = malloc(8); free(block); free(block); }
FIBER(uses_freed) { (void)unused; block = malloc(8); free(block); *block = 1; }
FIBER(null_pointer) { (void)unused; block = NULL; *block = 1; }
FIBER(wrong_assertion) { (void)unused; assert(x == 1); }
FIBER(spins_for_ever) {
    (void)unused;
    while (prim_load_relaxed(&x) == 0) prim_pause();
}

/* ---- The table ---- */

struct litmus {
    const char *name;
    bool possible; /* some execution fails, or ends with `question` true */
    bool (*question)(void);
    bool spurious; /* whether sleeps may end spuriously */
    bool with_bell;
    void (*fiber[4])(void *);
};

static const struct litmus litmus[] = {
    {"SB relaxed", true, both_missed, false, false, {sb_1, sb_2}},
    {"SB release/acquire", true, both_missed, false, false, {sb_1_release, sb_2_release}},
    {"SB one fence", true, both_missed, false, false, {sb_1_fence, sb_2}},
    {"SB fences", false, both_missed, false, false, {sb_1_fence, sb_2_fence}},
    {"SB fence everywhere", false, both_missed, false, false, {sb_1_everywhere, sb_2}},
    {"SB seq_cst", false, both_missed, false, false, {sb_1_seq_cst, sb_2_seq_cst}},
    {"SB seq_cst and fence", false, both_missed, false, false, {sb_1_seq_cst, sb_2_fence}},
    {"waiter and notifier", false, both_missed, false, false, {waiter, notifier}},
    {"waiter and notifier without fence", true, both_missed, false, false, {waiter, notifier_no_fence}},
    {"waiter and notifier, seq_cst load only", true, both_missed, false, false, {waiter, notifier_seq_cst_load}},
    {"waiter and notifier, all seq_cst", false, both_missed, false, false, {waiter, notifier_seq_cst}},
    {"MP relaxed", true, message_without_data, false, false, {mp_write, mp_read}},
    {"MP release, relaxed", true, message_without_data, false, false, {mp_write_release, mp_read}},
    {"MP relaxed, acquire", true, message_without_data, false, false, {mp_write, mp_read_acquire}},
    {"MP release, acquire", false, message_without_data, false, false, {mp_write_release, mp_read_acquire}},
    {"MP fences", false, message_without_data, false, false, {mp_write_fence, mp_read_fence}},
    {"MP fence, acquire", false, message_without_data, false, false, {mp_write_fence, mp_read_acquire}},
    {"MP release, fence", false, message_without_data, false, false, {mp_write_release, mp_read_fence}},
    {"MP fence everywhere", false, message_without_data, false, false, {mp_write, mp_read_everywhere}},
    {"MP fence, relaxed", true, message_without_data, false, false, {mp_write_fence, mp_read}},
    {"release sequence by update", false, carried_without_data, false, false,
     {mp_write_release, sequence_update, mp_read_acquire}},
    {"no release sequence by store", true, carried_without_data, false, false,
     {mp_write_release, sequence_store, mp_read_acquire}},
    {"LB", false, from_the_future, false, false, {lb_1, lb_2}},
    {"coherence", false, backwards, false, false, {coherence_write, coherence_read}},
    {"stale read", true, one_behind, false, false, {coherence_write, coherence_read}},
    {"IRIW acquire", true, disagree, false, false, {write_x, write_y, read_x_y, read_y_x}},
    {"IRIW seq_cst", false, disagree, false, false,
     {write_x_seq_cst, write_y_seq_cst, read_x_y_seq_cst, read_y_x_seq_cst}},
    {"IRIW fences", false, disagree, false, false, {write_x, write_y, read_x_y_fence, read_y_x_fence}},
    {"updates", false, lost_update, false, false, {set_one, set_two}},

    {"lock", false, not_counted, true, false, {locked, locked}},
    {"lock that forgets sleepers", true, not_counted, false, false, {locked_unlock_always_1, locked_unlock_always_1}},
    {"lock by look and store", true, not_counted, false, false, {locked_by_look, locked_by_look}},
    {"lock with relaxed unlock", true, not_counted, false, false, {locked_relaxed_unlock, locked_relaxed_unlock}},
    {"sleep and wake", false, never, true, false, {sleep_while_zero, set_and_wake}},
    {"wake before the reason", true, never, false, false, {sleep_while_zero, wake_and_set}},
    {"no spurious wake unless asked for", false, woke_without_reason, false, false, {sleep_once, set_and_wake}},
    {"spurious wake", true, woke_without_reason, true, false, {sleep_once, set_and_wake}},
    {"sleeps until the deadline", false, early, false, false, {sleep_until_1500, set_one}},
    {"deadline", true, timed_out, false, false, {sleep_until_1500, set_and_wake}},
    {"bell", false, ring_without_data, true, true, {ring, answer}},
    {"bell polled", false, ring_without_data, false, true, {ring, answer_poll}},
    {"alarm", true, alarm_went_off, false, true, {answer_alarm}},
    {"bell rung twice", true, close_bell, false, true, {ring, ring, answer}},

    {"race: release, acquire", false, never, false, false, {plain_write_release, plain_read_acquire}},
    {"race: fence, acquire", false, never, false, false, {plain_write_fence, plain_read_acquire}},
    {"race: relaxed, acquire", true, never, false, false, {plain_write_relaxed, plain_read_acquire}},
    {"race: written after the release", true, never, false, false, {plain_write_after, plain_read_acquire}},
    {"race: fences on the wrong side", true, never, false, false, {plain_write_fence, plain_read_fences_only}},
    {"malloc and free", false, never, false, false, {frees, frees}},
    {"leak", true, never, false, false, {leaks}},
    {"freed twice", true, never, false, false, {frees_twice}},
    {"used after free", true, never, false, false, {uses_freed}},
    {"null pointer", true, never, false, false, {null_pointer}},
    {"assertion", true, never, false, false, {wrong_assertion}},
    {"endless spin", true, never, false, false, {spins_for_ever}},
};

/* clang-format on */

static const struct litmus *present;

static void setup(void) {
    static const char *const names[] = {"one", "two", "three", "four"};
    reset();
    data = 0;
    if (present->with_bell) prim_bell_open(&bell);
    for (unsigned i = 0; i < 4 && present->fiber[i]; i++) sim_go(names[i], present->fiber[i], NULL);
}

static void finish(void) {
    sim_check(!present->question(), "it happened: %u %u %u %u", r[0], r[1], r[2], r[3]);
}

/* The recorded choices lead to the same failure again. */
static bool replays(const struct sim_scenario *scenario, const struct sim_report *report) {
    struct sim_report again;
    return sim_replay(scenario, report->replay, NULL, &again) && again.failed &&
           strcmp(again.reason, report->reason) == 0;
}

static bool test(const struct litmus *test) {
    const struct sim_scenario scenario = {test->name, "", setup, finish};
    const struct sim_search search = {
        .limit = {9, 4, 4, test->spurious ? 2 : 0}, .deviations = 5, .executions = 500000};
    struct sim_report report;
    present = test;
    sim_explore(&scenario, &search, &report);
    bool complete = report.failed || report.deviations == 5;
    bool right = complete && report.failed == test->possible && (!report.failed || replays(&scenario, &report));
    printf("%-6s %-40s %s%.100s\n", right ? "ok" : "FAILED", test->name,
           report.failed ? "possible: "
           : complete    ? "impossible"
                         : "not explored completely",
           report.reason);
    return right;
}

int main(void) {
    unsigned passed = 0, failed = 0;
    for (unsigned i = 0; i < sizeof litmus / sizeof *litmus; i++) *(test(&litmus[i]) ? &passed : &failed) += 1;
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}
