/* SPDX-License-Identifier: MIT */
/* Scenarios with threads that block. */
#include "scenario.h"

static void one_waiter(void) {
    begin();
    go("waiter", waiter);
    go("notifier", notifier_one);
}

static void two_waiters(void) {
    begin();
    go("waiter 1", waiter);
    go("waiter 2", waiter);
    go("notifier", notifier_all);
}

/* The word changes first, so each waiter is notified by one of the notifiers or does not begin to wait. */
static void two_waiters_two_notifiers(void) {
    begin();
    go("waiter 1", waiter);
    go("waiter 2", waiter);
    go("notifier 1", notifier_one);
    go("notifier 2", notifier_one);
}

static void notify_two(void) {
    begin();
    go("waiter 1", waiter);
    go("waiter 2", waiter);
    go("notifier", notifier_two);
}

/* ---- The very first wait of the process ---- */

static void first_use(void) {
    begin_before_first_use();
    go("waiter", waiter);
    go("notifier", notifier_one);
}

static void first_use_twice(void) {
    begin_before_first_use();
    go("waiter 1", waiter);
    go("waiter 2", waiter);
    go("notifier", notifier_all);
}

/* ---- First come, first served ---- */

FIBER(in_place) { /* the argument: the place in line */
    int64_t place = (intptr_t)argument;
    await_in_line((uintptr_t)place - 1);
    wait_at(&words[0], VIGIL_FOREVER, place);
}

FIBER(notifier_in_turn) { /* the argument: how many waiters */
    intptr_t count = (intptr_t)argument;
    await_in_line((uintptr_t)count);
    for (intptr_t i = 0; i < count; i++) sim_check(notify(&words[0], 1) == 1, "a waiter was missed");
}

FIBER(notifier_two_then_one) {
    (void)argument;
    await_in_line(3);
    sim_check(notify(&words[0], 2) == 2, "a waiter was missed");
    sim_check(notify(&words[0], 2) == 1, "a waiter was missed");
}

static void in_turn(void) {
    begin();
    sim_go("first", in_place, (void *)1);
    sim_go("second", in_place, (void *)2);
    sim_go("notifier", notifier_in_turn, (void *)2);
}

static void two_then_one(void) {
    begin();
    sim_go("first", in_place, (void *)1);
    sim_go("second", in_place, (void *)2);
    sim_go("third", in_place, (void *)3);
    go("notifier", notifier_two_then_one);
}

/* ---- Deadlines ---- */

FIBER(waiter_500) {
    (void)argument;
    wait_while_zero(&words[0], 500);
}

FIBER(waiter_700) {
    (void)argument;
    wait_while_zero(&words[0], 700);
}

static void timeout_and_notify(void) {
    begin();
    sim_moment(1500);
    go("waiter", waiter_500);
    go("notifier", bare_notifier);
}

static void two_timeouts_and_notify(void) {
    begin();
    sim_moment(1500);
    go("waiter 1", waiter_500);
    go("waiter 2", waiter_700);
    go("notifier", bare_notifier);
}

static void timeouts_and_two_notifiers(void) {
    begin();
    go("waiter 1", waiter_500);
    go("waiter 2", waiter_500);
    go("notifier 1", bare_notifier);
    go("notifier 2", bare_notifier);
}

static void timeout_only(void) {
    begin();
    go("waiter", waiter_500);
}

static void must_have_timed_out(void) {
    sim_check(books.ended[VIGIL_TIMED_OUT] == 1, "no wait timed out");
    balance();
}

/* The clock may move during the call, and stops at deadlines: the wait ends at exactly that time. */
FIBER(waiter_until_1500) {
    (void)argument;
    expect(vigil_wait32_until(&words[0], 0, 1500), VIGIL_TIMED_OUT, "wait32_until");
    sim_check(vigil_now_ns() == 1500, "the deadline was 1500, and the wait ended at %d", (int)vigil_now_ns());
}

static void until(void) {
    begin();
    sim_moment(1200);
    sim_moment(1400);
    go("waiter", waiter_until_1500);
}

FIBER(impatient) {
    (void)argument;
    int status = vigil_wait32(&words[0], 0, 0);
    sim_check(status == VIGIL_TIMED_OUT || status == VIGIL_NOT_EQUAL, "zero timeout: %s", vigil_status_name(status));
    status = vigil_wait32(&words[0], 7, 0);
    sim_check(status == VIGIL_NOT_EQUAL, "another value, zero timeout: %s", vigil_status_name(status));
}

static void zero_timeout(void) {
    begin();
    go("impatient", impatient);
    go("waiter", waiter);
    go("notifier", notifier_all);
}

/* ---- Several lines ---- */

FIBER(waiter_neighbour) {
    (void)argument;
    wait_while_zero(&words[2], VIGIL_FOREVER);
}

FIBER(notifier_neighbour) {
    (void)argument;
    change_and_notify(&words[2], VIGIL_ALL);
}

static void two_words_one_bucket(void) {
    begin();
    go("waiter 0", waiter);
    go("waiter 2", waiter_neighbour);
    go("notifier 0", notifier_all);
    go("notifier 2", notifier_neighbour);
}

/* Both waiters are in line; a notification of one word must not count the waiter on the other. */
FIBER(notifier_one_after_the_other) {
    (void)argument;
    await_in_line(2);
    sim_check(notify(&words[2], VIGIL_ALL) == 1, "the waiter in that line was missed");
    sim_check(notify(&words[0], VIGIL_ALL) == 1, "the waiter in this line was missed");
}

static void lines_are_apart(void) {
    begin();
    go("waiter 0", waiter);
    go("waiter 2", waiter_neighbour);
    go("notifier", notifier_one_after_the_other);
}

FIBER(waiter_neighbour_500) {
    (void)argument;
    wait_while_zero(&words[2], 500);
}

static void lines_and_a_timeout(void) {
    begin();
    go("waiter 2", waiter_neighbour_500);
    go("waiter 0", waiter);
    go("notifier", notifier_all);
}

FIBER(wide_waiter) { /* the argument: its word */
    int status = vigil_wait64(argument, 0, VIGIL_FOREVER);
    if (status != VIGIL_NOT_EQUAL) {
        books.begun++;
        books.ended[status]++;
    }
}

static uint64_t wide_word;

FIBER(wide_notifier) {
    (void)argument;
    prim_store_relaxed(&wide_word, UINT64_C(1) << 32);
    books.notified += vigil_notify(&wide_word, VIGIL_ALL);
}

FIBER(plain_waiter) {
    int status = vigil_wait32(argument, 0, VIGIL_FOREVER);
    if (status == VIGIL_NOT_EQUAL) return;
    books.begun++;
    books.ended[status]++;
}

FIBER(storing_notifier) {
    (void)argument;
    books.notified += vigil_store_and_notify32(&words[0], 1, VIGIL_ALL);
}

static void store_and_notify(void) {
    begin();
    sim_go("waiter", plain_waiter, &words[0]);
    go("notifier", storing_notifier);
}

FIBER(wide_storing_notifier) {
    (void)argument;
    books.notified += vigil_store_and_notify64(&wide_word, UINT64_C(1) << 32, VIGIL_ALL);
}

static void wide_store_and_notify(void) {
    begin();
    wide_word = 0;
    sim_go("waiter", wide_waiter, &wide_word);
    go("notifier", wide_storing_notifier);
}

static void wide(void) {
    begin();
    wide_word = 0;
    sim_go("waiter", wide_waiter, &wide_word);
    go("notifier", wide_notifier);
}

static void both_widths(void) {
    begin();
    go("narrow", waiter);
    sim_go("wide", wide_waiter, words);
    go("notifier", notifier_all);
}

/* ---- Forget ---- */

FIBER(forgetter) {
    (void)argument;
    await_in_line(2);
    forget(words, 3 * sizeof words[0]);
}

/* A large range is searched by scanning all slots, without their buckets' locks. */
FIBER(forgetter_large) {
    (void)argument;
    hear_of_in_line(2);
    forget(words, 1 << 16);
}

FIBER(late_notifier) {
    (void)argument;
    await_in_line(2);
    notify(&words[0], 1);
}

static void forget_two_words(void) {
    begin();
    go("waiter 0", waiter);
    go("waiter 2", waiter_neighbour);
    go("forgetter", forgetter);
}

static void forget_and_notify(void) {
    begin();
    go("waiter 0", waiter);
    go("waiter 2", waiter_neighbour);
    go("forgetter", forgetter);
    go("notifier", late_notifier);
}

static void forget_large(void) {
    begin();
    go("waiter 0", waiter);
    go("waiter 2", waiter_neighbour);
    go("forgetter", forgetter_large);
}

FIBER(second_waiter_500) {
    (void)argument;
    await_in_line(1);
    wait_while_zero(&words[0], 500);
}

static void forget_and_timeout(void) {
    begin();
    go("waiter 2", waiter_neighbour);
    go("waiter 0", second_waiter_500);
    go("forgetter", forgetter);
}

/* ---- Slots are used again ---- */

FIBER(waiter_twice) {
    (void)argument;
    wait_while_zero(&words[0], VIGIL_FOREVER);
    wait_while_zero(&words[2], VIGIL_FOREVER);
}

FIBER(notifier_twice) {
    (void)argument;
    change_and_notify(&words[0], VIGIL_ALL);
    change_and_notify(&words[2], VIGIL_ALL);
}

static void slots_again(void) {
    begin();
    go("waiter 1", waiter_twice);
    go("waiter 2", waiter_twice);
    go("notifier", notifier_twice);
}

/* The thread ends, its slots are returned, and the next thread begins with them. */
FIBER(short_lived) {
    (void)argument;
    wait_while_zero(&words[0], 500);
    sim_go("heir", waiter_neighbour_500, NULL);
}

static void slots_inherited(void) {
    begin();
    go("short-lived", short_lived);
    go("notifier 0", bare_notifier);
    go("notifier 2", notifier_neighbour);
}

/* ---- Two threads take turns ---- */

FIBER(player) { /* the argument: it is this thread's turn when the word has this value */
    uint32_t mine = (uint32_t)(uintptr_t)argument;
    for (int turn = 0; turn < 2; turn++) {
        while (prim_load_seq_cst(&words[0]) != mine) {
            int status = vigil_wait32(&words[0], !mine, VIGIL_FOREVER);
            if (status == VIGIL_OK) {
                books.begun++;
                books.ended[VIGIL_OK]++;
            }
        }
        prim_store_relaxed(&words[0], (uint32_t)!mine);
        notify(&words[0], 1);
    }
}

static void ping_pong(void) {
    begin();
    sim_go("ping", player, (void *)0);
    sim_go("pong", player, (void *)1);
}

const struct sim_scenario blocking_scenarios[] = {
    {"one_waiter", "wait against notify", one_waiter, balance},
    {"two_waiters", "two waits against notify of all", two_waiters, balance},
    {"two_waiters_two_notifiers", "two waits against two notifies of one", two_waiters_two_notifiers, balance},
    {"notify_two", "two waits against notify of two", notify_two, balance},
    {"first_use", "the first wait of a process against notify", first_use, balance},
    {"first_use_twice", "the first two waits of a process against notify of all", first_use_twice, balance},
    {"in_turn", "two in line are notified one by one", in_turn, balance},
    {"two_then_one", "three in line, notified as two and one", two_then_one, balance},
    {"timeout_only", "a deadline, without a notifier", timeout_only, must_have_timed_out},
    {"timeout_and_notify", "a deadline against notify", timeout_and_notify, balance},
    {"two_timeouts_and_notify", "two deadlines against notify of one", two_timeouts_and_notify, balance},
    {"timeouts_and_two_notifiers", "two equal deadlines against two notifiers", timeouts_and_two_notifiers, balance},
    {"until", "a deadline, and the clock moves during the call", until, balance},
    {"zero_timeout", "zero timeouts beside a wait and a notify", zero_timeout, balance},
    {"two_words_one_bucket", "two lines in one bucket, each with its notifier", two_words_one_bucket, balance},
    {"lines_are_apart", "two lines in one bucket, notified one after the other", lines_are_apart, balance},
    {"lines_and_a_timeout", "a deadline in one line of a bucket, notify in the other", lines_and_a_timeout, balance},
    {"store_and_notify", "a wait against a store and notification in one call", store_and_notify, balance},
    {"wide_store_and_notify", "the same with 64 bits", wide_store_and_notify, balance},
    {"wide", "a 64-bit wait against a change of its upper half", wide, balance},
    {"both_widths", "32- and 64-bit waits on one address", both_widths, balance},
    {"forget_two_words", "forget two lines", forget_two_words, balance},
    {"forget_and_notify", "forget against notify", forget_and_notify, balance},
    {"forget_large", "forget a large range", forget_large, balance},
    {"forget_and_timeout", "forget against a deadline", forget_and_timeout, balance},
    {"slots_again", "waits one after the other, on slots used before", slots_again, balance},
    {"slots_inherited", "a thread ends and leaves its slots to the next", slots_inherited, balance},
    {"ping_pong", "two threads pass a word back and forth", ping_pong, balance},
    {NULL, NULL, NULL, NULL},
};
