/* SPDX-License-Identifier: MIT */
/*
 * Scenarios with a bell that is one word (bell_word.h), as in a browser: the agent's event loop is an asynchronous
 * sleeper on the word (Atomics.waitAsync), which dispatches when it is woken. Some are scenarios of other files, run on
 * such a bell.
 */
#include "scenario.h"

static void begin_on_words(void) {
    sim_word_bells();
    begin();
}

/* ---- Parts ---- */

static void count(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
    books.ran++;
}

static void count_and_release(vigil_agent *agent, void *argument) {
    count(agent, argument);
    vigil_agent_unref(agent);
}

static void dispatch(vigil_agent *agent) {
    sim_check(vigil_agent_dispatch(agent) >= 0, "dispatch failed");
}

FIBER(poster) { /* the argument: how many posts */
    vigil_agent *agent = await_agent();
    for (intptr_t i = 0; i < (intptr_t)argument; i++) post(agent, count, NULL);
}

FIBER(releasing_poster) {
    (void)argument;
    post(await_agent(), count_and_release, NULL);
}

/* ---- The loop sleeps on what it saw before it dispatched ---- */

FIBER(loop_of_seen) { /* the argument: how many posts */
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    offer(agent);
    for (;;) {
        uint32_t seen = sim_bell_look(fd);
        dispatch(agent);
        if (books.ran == (intptr_t)argument) break;
        if (sim_bell_listen(fd, seen)) sim_poll(fd, PRIM_NEVER);
    }
    destroy(agent);
}

static void bell_seen_earlier(void) {
    begin_on_words();
    go_with("loop", loop_of_seen, 2);
    go_with("poster", poster, 2);
}

static void bell_seen_earlier_by_two(void) {
    begin_on_words();
    go_with("loop", loop_of_seen, 2);
    go_with("poster 1", poster, 1);
    go_with("poster 2", poster, 1);
}

/* ---- A call of the thread's own dispatches while the sleeper is there ---- */

FIBER(loop_dispatches_early) { /* the argument: how many posts */
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    offer(agent);
    for (bool early = true; books.ran < (intptr_t)argument; early = false) {
        uint32_t seen = sim_bell_look(fd);
        dispatch(agent);
        if (early && sim_bell_listen(fd, seen)) dispatch(agent);
        if (books.ran < (intptr_t)argument) sim_poll(fd, PRIM_NEVER);
    }
    dispatch(agent);
    destroy(agent);
}

static void bell_taken_early(void) {
    begin_on_words();
    go_with("loop", loop_dispatches_early, 2);
    go_with("poster", poster, 2);
}

/* ---- The thread blocks on the bell while the sleeper is there ---- */

FIBER(loop_listens_and_runs) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    vigil_agent_ref(agent);
    sim_bell_listen(fd, sim_bell_look(fd));
    offer(agent);
    run(agent);
    destroy(agent);
}

static void bell_run_beside_sleeper(void) {
    begin_on_words();
    go("loop", loop_listens_and_runs);
    go("poster", releasing_poster);
}

/* The agent ends while its sleeper is there, and perhaps a ring on its way. */
FIBER(loop_listens_and_ends) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    sim_bell_listen(fd, sim_bell_look(fd));
    destroy(agent);
}

static void bell_closed_beside_sleeper(void) {
    begin_on_words();
    go("loop", loop_listens_and_ends);
    go("notifier", bare_notifier);
}

/* ---- Scenarios of other files ---- */

#define BORROWED(X)                                                                                                    \
    X(asynchronous_scenarios, one_agent_twice)                                                                         \
    X(asynchronous_scenarios, cancel_and_notify)                                                                       \
    X(asynchronous_scenarios, callback_notifies)                                                                       \
    X(agent_scenarios, two_posters)                                                                                    \
    X(agent_scenarios, poll_timeout_and_notify)                                                                        \
    X(agent_scenarios, poll_post_and_notify)                                                                           \
    X(agent_scenarios, poll_reposts)                                                                                   \
    X(agent_scenarios, run_until_then_poll)                                                                            \
    X(agent_scenarios, seat_used_again)                                                                                \
    X(agent_scenarios, page_and_worker)                                                                                \
    X(mutex_scenarios, mutex_loop_and_threads)                                                                         \
    X(mutex_scenarios, mutex_slow_loop_before_loop)

#define X(list, name) BORROW_SCENARIO(sim_word_bells, list, name)
BORROWED(X)
#undef X

const struct sim_scenario bell_scenarios[] = {
    {"bell_seen_earlier", "a loop sleeps on what it saw before it dispatched", bell_seen_earlier, balance},
    {"bell_seen_earlier_by_two", "the same against two posters", bell_seen_earlier_by_two, balance},
    {"bell_taken_early", "a dispatch while the loop's sleeper is there", bell_taken_early, balance},
    {"bell_run_beside_sleeper", "a thread blocks while its loop's sleeper is there", bell_run_beside_sleeper, balance},
    {"bell_closed_beside_sleeper", "the agent ends while its loop's sleeper is there", bell_closed_beside_sleeper,
     balance},
#define X(list, name) {"bell_" #name, "the scenario " #name " on such a bell", begin_##name, end_##name},
    BORROWED(X)
#undef X
    {NULL, NULL, NULL, NULL},
};
