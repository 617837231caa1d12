/* SPDX-License-Identifier: MIT */
/* Scenarios with agents that wait, beside threads that block. */
#include "scenario.h"

/* ---- Parts ---- */

FIBER(loop) { /* the argument: its request */
    vigil_agent *agent = new_agent();
    start(agent, argument, &words[0], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

FIBER(loop_twice) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    start(agent, &requests[1], &words[0], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

/* ---- Agents and threads in one line ---- */

static void one_agent(void) {
    begin();
    sim_go("loop", loop, &requests[0]);
    go("notifier", notifier_one);
}

static void one_agent_twice(void) {
    begin();
    go("loop", loop_twice);
    go("notifier", notifier_all);
}

static void two_agents(void) {
    begin();
    sim_go("loop 1", loop, &requests[0]);
    sim_go("loop 2", loop, &requests[1]);
    go("notifier", notifier_two);
}

static void three_agents(void) {
    begin();
    sim_go("loop 1", loop, &requests[0]);
    sim_go("loop 2", loop, &requests[1]);
    sim_go("loop 3", loop, &requests[2]);
    go("notifier", notifier_all);
}

static void agent_and_thread(void) {
    begin();
    sim_go("loop", loop, &requests[0]);
    go("thread", waiter);
    go("notifier", notifier_all);
}

static void agents_and_two_notifiers(void) {
    begin();
    sim_go("loop", loop, &requests[0]);
    go("thread", waiter);
    go("notifier 1", notifier_one);
    go("notifier 2", notifier_one);
}

/* ---- First come, first served ---- */

FIBER(loop_second) {
    (void)argument;
    await_in_line(1);
    vigil_agent *agent = new_agent();
    requests[0].place = 2;
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

FIBER(thread_in_place) { /* the argument: its place in line */
    int64_t place = (intptr_t)argument;
    await_in_line((uintptr_t)place - 1);
    wait_at(&words[0], VIGIL_FOREVER, place);
}

FIBER(notifier_one_then_two) {
    (void)argument;
    await_in_line(3);
    sim_check(notify(&words[0], 1) == 1, "a waiter was missed");
    sim_check(notify(&words[0], 3) == 2, "a waiter was missed");
}

static void mixed_line(void) {
    begin();
    sim_go("first", thread_in_place, (void *)1);
    go("second", loop_second);
    sim_go("third", thread_in_place, (void *)3);
    go("notifier", notifier_one_then_two);
}

/* One agent's callbacks run in the order of its places in line. */
static int64_t last_served;

static void served_in_order(struct request *request) {
    sim_check(request->place == last_served + 1, "number %d is served after number %d", (int)request->place,
              (int)last_served);
    last_served = request->place;
}

FIBER(loop_three_places) {
    (void)argument;
    vigil_agent *agent = new_agent();
    for (int i = 0; i < 3; i++) {
        requests[i].place = i + 1;
        requests[i].then = served_in_order;
        start(agent, &requests[i], &words[0], VIGIL_FOREVER);
    }
    run(agent);
    destroy(agent);
}

FIBER(notifier_two_then_all) {
    (void)argument;
    await_in_line(3);
    notify(&words[0], 2);
    notify(&words[0], VIGIL_ALL);
}

static void callbacks_in_order(void) {
    begin();
    last_served = 0;
    go("loop", loop_three_places);
    go("notifier", notifier_two_then_all);
}

static void two_notifiers_in_order(void) {
    begin();
    last_served = 0;
    go("loop", loop_three_places);
    go("notifier 1", notifier_two_then_all);
    go("notifier 2", notifier_two_then_all);
}

/* ---- Deadlines ---- */

FIBER(loop_500) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], 500);
    run(agent);
    destroy(agent);
}

FIBER(thread_700) {
    (void)argument;
    wait_while_zero(&words[0], 700);
}

static void async_timeout(void) {
    begin();
    go("loop", loop_500);
}

static void must_have_timed_out(void) {
    sim_check(books.ended[VIGIL_TIMED_OUT] == 1, "no wait timed out");
    balance();
}

static void async_timeout_and_notify(void) {
    begin();
    sim_moment(1500);
    go("loop", loop_500);
    go("notifier", bare_notifier);
}

static void mixed_timeouts_and_notify(void) {
    begin();
    sim_moment(1500);
    go("loop", loop_500);
    go("thread", thread_700);
    go("notifier", bare_notifier);
}

FIBER(loop_three_deadlines) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], 5000);
    start(agent, &requests[1], &words[0], 3);
    start(agent, &requests[2], &words[0], 300);
    run(agent);
    destroy(agent);
}

static void three_deadlines(void) {
    begin();
    go("loop", loop_three_deadlines);
    go("notifier", bare_notifier);
}

FIBER(loop_zero_timeout) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int status = start(agent, &requests[0], &words[0], 0);
    sim_check(status == VIGIL_TIMED_OUT || status == VIGIL_NOT_EQUAL, "zero timeout: %s", vigil_status_name(status));
    start(agent, &requests[1], &words[0], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

static void async_zero_timeout(void) {
    begin();
    go("loop", loop_zero_timeout);
    go("notifier", notifier_all);
}

/* ---- Cancel ---- */

FIBER(loop_cancels) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    cancel(&requests[0]);
    run(agent);
    cancel(&requests[0]);
    destroy(agent);
}

static void cancel_and_notify(void) {
    begin();
    go("loop", loop_cancels);
    go("notifier", bare_notifier);
}

/* The second in line gets the notification if the first is cancelled before it. */
static void cancel_the_next(struct request *request) {
    (void)request;
    cancel(&requests[1]);
}

FIBER(loop_cancels_other) {
    (void)argument;
    vigil_agent *agent = new_agent();
    requests[0].then = cancel_the_next;
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    start(agent, &requests[1], &words[0], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

FIBER(notifier_twice) {
    (void)argument;
    await_in_line(2);
    notify(&words[0], 1);
    notify(&words[0], 1);
}

static void callback_cancels(void) {
    begin();
    go("loop", loop_cancels_other);
    go("notifier", notifier_twice);
}

FIBER(loop_cancels_first) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], 500);
    start(agent, &requests[1], &words[0], 500);
    cancel(&requests[0]);
    run(agent);
    destroy(agent);
}

static void cancel_first_of_two(void) {
    begin();
    go("loop", loop_cancels_first);
    go("notifier", bare_notifier);
}

/* The slot of the cancelled wait is used for the next wait, in another line. */
FIBER(loop_cancels_and_goes_elsewhere) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    cancel(&requests[0]);
    start(agent, &requests[1], &words[2], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

FIBER(notifier_both_words) {
    (void)argument;
    change_and_notify(&words[0], 1);
    change_and_notify(&words[2], 1);
}

static void cancel_and_wait_elsewhere(void) {
    begin();
    go("loop", loop_cancels_and_goes_elsewhere);
    go("notifier", notifier_both_words);
}

/* The slots of three waits are of two chunks or more, and are used again. */
FIBER(loop_cancels_three_and_begins_anew) {
    (void)argument;
    vigil_agent *agent = new_agent();
    for (int i = 0; i < 3; i++) start(agent, &requests[i], &words[0], VIGIL_FOREVER);
    for (int i = 0; i < 3; i++) cancel(&requests[i]);
    for (int i = 3; i < 6; i++) start(agent, &requests[i], &words[0], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

static void cancel_three_and_begin_anew(void) {
    begin();
    go("loop", loop_cancels_three_and_begins_anew);
    go("thread", waiter);
    go("notifier", notifier_all);
}

/* ---- Callbacks that wait again, and that notify ---- */

static void wait_again(struct request *request) {
    request->then = NULL;
    start(request->op.agent, request, &words[2], VIGIL_FOREVER);
}

FIBER(loop_waits_again) {
    (void)argument;
    vigil_agent *agent = new_agent();
    requests[0].then = wait_again;
    if (start(agent, &requests[0], &words[0], VIGIL_FOREVER) == VIGIL_PENDING) run(agent);
    destroy(agent);
}

static void callback_waits_again(void) {
    begin();
    go("loop", loop_waits_again);
    go("notifier", notifier_both_words);
}

static void pass_on(struct request *request) {
    (void)request;
    notify(&words[0], 1);
}

FIBER(loop_passes_on) { /* the argument: its request */
    struct request *request = argument;
    request->then = pass_on;
    loop(request);
}

FIBER(first_notifier) {
    (void)argument;
    await_in_line(2);
    notify(&words[0], 1);
}

static void callback_notifies(void) {
    begin();
    sim_go("loop 1", loop_passes_on, &requests[0]);
    sim_go("loop 2", loop_passes_on, &requests[1]);
    go("notifier", first_notifier);
}

/* ---- Forget ---- */

FIBER(forgetter) {
    (void)argument;
    await_in_line(2);
    forget(words, sizeof words[0]);
}

FIBER(late_notifier) {
    (void)argument;
    await_in_line(2);
    notify(&words[0], 1);
}

static void async_forget_and_notify(void) {
    begin();
    sim_go("loop", loop, &requests[0]);
    go("thread", waiter);
    go("forgetter", forgetter);
    go("notifier", late_notifier);
}

/* ---- Two lines in one bucket ---- */

FIBER(loop_neighbour) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[1], &words[2], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

FIBER(notifier_neighbour) {
    (void)argument;
    change_and_notify(&words[2], VIGIL_ALL);
}

static void async_two_words_one_bucket(void) {
    begin();
    sim_go("loop 0", loop, &requests[0]);
    go("loop 2", loop_neighbour);
    go("notifier 0", notifier_all);
    go("notifier 2", notifier_neighbour);
}

const struct sim_scenario asynchronous_scenarios[] = {
    {"one_agent", "an asynchronous wait against notify", one_agent, balance},
    {"one_agent_twice", "one agent twice in line against notify of all", one_agent_twice, balance},
    {"two_agents", "two agents against notify of two", two_agents, balance},
    {"three_agents", "three agents against notify of all", three_agents, balance},
    {"agent_and_thread", "an agent and a thread against notify of all", agent_and_thread, balance},
    {"agents_and_two_notifiers", "an agent and a thread against two notifiers", agents_and_two_notifiers, balance},
    {"mixed_line", "thread, agent, thread, notified as one and two", mixed_line, balance},
    {"callbacks_in_order", "three places of one agent, notified as two and one", callbacks_in_order, balance},
    {"two_notifiers_in_order", "three places of one agent, two notifiers", two_notifiers_in_order, balance},
    {"async_timeout", "a deadline, without a notifier", async_timeout, must_have_timed_out},
    {"async_timeout_and_notify", "an agent's deadline against notify", async_timeout_and_notify, balance},
    {"mixed_timeouts_and_notify", "deadlines of an agent and a thread against notify of one", mixed_timeouts_and_notify,
     balance},
    {"three_deadlines", "three deadlines of one agent against notify of one", three_deadlines, balance},
    {"async_zero_timeout", "a zero timeout never joins", async_zero_timeout, balance},
    {"cancel_and_notify", "cancel against notify", cancel_and_notify, balance},
    {"callback_cancels", "a callback cancels the next wait, against notify", callback_cancels, balance},
    {"cancel_first_of_two", "the first in line is cancelled, against notify of one", cancel_first_of_two, balance},
    {"cancel_and_wait_elsewhere", "a cancelled wait's slot is used again", cancel_and_wait_elsewhere, balance},
    {"cancel_three_and_begin_anew", "slots of several chunks are used again, beside a thread",
     cancel_three_and_begin_anew, balance},
    {"callback_waits_again", "a callback starts its operation again", callback_waits_again, balance},
    {"callback_notifies", "callbacks pass the notification on", callback_notifies, balance},
    {"async_forget_and_notify", "forget against notify, an agent and a thread in line", async_forget_and_notify,
     balance},
    {"async_two_words_one_bucket", "two agents in two lines of one bucket", async_two_words_one_bucket, balance},
    {NULL, NULL, NULL, NULL},
};
