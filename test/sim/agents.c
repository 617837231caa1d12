/* SPDX-License-Identifier: MIT */
/* Scenarios of an agent's life: sleeping, posts, polling, stopping, ending; and workers. */
#include "scenario.h"

/* ---- Posts ---- */

static void count(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
    books.ran++;
}

static void count_and_release(vigil_agent *agent, void *argument) {
    count(agent, argument);
    vigil_agent_unref(agent);
}

/* Runs until all expected posts have arrived. */
FIBER(served_loop) { /* the argument: how many posts */
    vigil_agent *agent = new_agent();
    for (intptr_t i = 0; i < (intptr_t)argument; i++) vigil_agent_ref(agent);
    offer(agent);
    run(agent);
    destroy(agent);
}

FIBER(poster) {
    (void)argument;
    vigil_agent *agent = await_agent();
    post(agent, count_and_release, NULL);
}

static void post_and_sleep(void) {
    begin();
    sim_go("loop", served_loop, (void *)1);
    go("poster", poster);
}

static void two_posters(void) {
    begin();
    sim_go("loop", served_loop, (void *)2);
    go("poster 1", poster);
    go("poster 2", poster);
}

/* Two posts by the same poster run in that order. */
static intptr_t last_heard;

static void hear(vigil_agent *agent, void *argument) {
    sim_check((intptr_t)argument == last_heard + 1, "post %d runs after %d", (int)(intptr_t)argument, (int)last_heard);
    last_heard = (intptr_t)argument;
    count_and_release(agent, NULL);
}

FIBER(poster_of_three) {
    (void)argument;
    vigil_agent *agent = await_agent();
    for (intptr_t i = 1; i <= 3; i++) post(agent, hear, (void *)i);
}

static void posts_in_order(void) {
    begin();
    last_heard = 0;
    sim_go("loop", served_loop, (void *)3);
    go("poster", poster_of_three);
}

FIBER(loop_with_wait) {
    (void)argument;
    vigil_agent *agent = new_agent();
    vigil_agent_ref(agent);
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    offer(agent);
    run(agent);
    destroy(agent);
}

static void post_and_notify(void) {
    begin();
    go("loop", loop_with_wait);
    go("poster", poster);
    go("notifier", notifier_one);
}

/* ---- A loop of the caller's own ---- */

FIBER(polling_loop) { /* the argument: the wait's timeout */
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    bool pending = start(agent, &requests[0], &words[0], (intptr_t)argument) == VIGIL_PENDING;
    while (pending && requests[0].pending) {
        sim_check(sim_poll(fd, PRIM_NEVER), "poll without a deadline ended");
        sim_check(vigil_agent_dispatch(agent) >= 0, "dispatch failed");
    }
    destroy(agent);
}

static void poll_and_notify(void) {
    begin();
    sim_go("loop", polling_loop, (void *)(intptr_t)VIGIL_FOREVER);
    go("notifier", notifier_one);
}

static void poll_timeout_and_notify(void) {
    begin();
    sim_moment(1500);
    sim_go("loop", polling_loop, (void *)500);
    go("notifier", bare_notifier);
}

FIBER(polling_loop_late_fd) { /* requests the descriptor after it has begun to wait */
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], 500);
    int fd = vigil_agent_fd(agent);
    while (requests[0].pending) {
        sim_poll(fd, PRIM_NEVER);
        vigil_agent_dispatch(agent);
    }
    destroy(agent);
}

static void poll_late_descriptor(void) {
    begin();
    go("loop", polling_loop_late_fd);
    go("notifier", bare_notifier);
}

/* One poll, two kinds of work, one after the other. */
FIBER(polling_loop_served) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    offer(agent);
    while (requests[0].pending || books.ran < 2) {
        sim_check(sim_poll(fd, PRIM_NEVER), "poll without a deadline ended");
        vigil_agent_dispatch(agent);
    }
    destroy(agent);
}

FIBER(poster_of_count) {
    (void)argument;
    vigil_agent *agent = await_agent();
    post(agent, count, NULL);
    post(agent, count, NULL);
}

static void poll_post_and_notify(void) {
    begin();
    go("loop", polling_loop_served);
    go("poster", poster_of_count);
    go("notifier", notifier_one);
}

/* A frame loop: never sleeps in the library, dispatches now and then, and runs at the end. */
FIBER(frame_loop) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], 500);
    vigil_agent_dispatch(agent);
    vigil_agent_dispatch(agent);
    run(agent);
    destroy(agent);
}

static void frames_then_run(void) {
    begin();
    go("loop", frame_loop);
    go("notifier", bare_notifier);
}

/* A function that posts itself again keeps the descriptor readable, but does not keep the loop from returning. */
static void post_again(vigil_agent *agent, void *argument) {
    intptr_t left = (intptr_t)argument;
    books.ran++;
    if (left > 0) post(agent, post_again, (void *)(left - 1));
}

FIBER(polling_loop_of_reposts) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    post(agent, post_again, (void *)17);
    while (requests[0].pending || books.ran < 18) {
        sim_check(sim_poll(fd, PRIM_NEVER), "poll without a deadline ended");
        vigil_agent_dispatch(agent);
    }
    destroy(agent);
}

static void poll_reposts(void) {
    begin();
    go("loop", polling_loop_of_reposts);
    go("notifier", notifier_one);
}

/* ---- Run until, unref, stop ---- */

FIBER(loop_until) {
    (void)argument;
    vigil_agent *agent = new_agent();
    bool began = start(agent, &requests[0], &words[0], VIGIL_FOREVER) == VIGIL_PENDING;
    int status = vigil_agent_run_until(agent, 1500);
    if (began && requests[0].pending) {
        sim_check(status == VIGIL_TIMED_OUT && vigil_now_ns() >= 1500, "run_until: %s at %d", vigil_status_name(status),
                  (int)vigil_now_ns());
    } else {
        sim_check(status == VIGIL_OK, "run_until: %s", vigil_status_name(status));
    }
    destroy(agent);
}

static void run_until_and_notify(void) {
    begin();
    sim_moment(1500);
    go("loop", loop_until);
    go("notifier", bare_notifier);
}

/* What arrives after run_until has given up is found by the next poll. */
FIBER(loop_until_then_poll) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int fd = vigil_agent_fd(agent);
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    vigil_agent_run_until(agent, 1500);
    while (requests[0].pending) {
        sim_check(sim_poll(fd, PRIM_NEVER), "poll without a deadline ended");
        vigil_agent_dispatch(agent);
    }
    destroy(agent);
}

static void run_until_then_poll(void) {
    begin();
    sim_moment(1500);
    go("loop", loop_until_then_poll);
    go("notifier", notifier_one);
}

/* An unreferenced wait may still be pending when run returns. */
FIBER(loop_unref) {
    (void)argument;
    vigil_agent *agent = new_agent();
    bool second = start(agent, &requests[1], &words[2], VIGIL_FOREVER) == VIGIL_PENDING;
    sim_check(vigil_unref(&requests[1].op) == (second ? VIGIL_OK : VIGIL_EIDLE), "unref");
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    run(agent);
    sim_check(!requests[0].pending, "run returned, but a wait that counts is pending");
    destroy(agent);
}

static void unref_and_notify(void) {
    begin();
    go("loop", loop_unref);
    go("notifier", notifier_one);
}

FIBER(stopped_loop) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    vigil_agent_ref(agent);
    offer(agent);
    run(agent);
    sim_check(books.ran == books.posted, "stopped before what was posted earlier had run");
    destroy(agent);
}

FIBER(stopper) {
    (void)argument;
    vigil_agent *agent = await_agent();
    post(agent, count, NULL);
    sim_check(vigil_agent_stop(agent) == VIGIL_OK, "stop failed");
}

static void stop_and_notify(void) {
    begin();
    go("loop", stopped_loop);
    go("stopper", stopper);
    go("notifier", bare_notifier);
}

/* A stop between two runs ends the next one. */
FIBER(loop_stopped_between_runs) {
    (void)argument;
    vigil_agent *agent = new_agent();
    vigil_agent_ref(agent);
    offer(agent);
    vigil_agent_dispatch(agent);
    run(agent);
    destroy(agent);
}

static void stop_between_runs(void) {
    begin();
    go("loop", loop_stopped_between_runs);
    go("stopper", stopper);
}

/* ---- An agent ends with operations pending ---- */

FIBER(short_lived_agent) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    start(agent, &requests[1], &words[0], 500);
    destroy(agent);
}

FIBER(notifier_of_all) {
    (void)argument;
    notify(&words[0], VIGIL_ALL);
}

static void destroy_and_notify(void) {
    begin();
    go("loop", short_lived_agent);
    go("notifier", bare_notifier);
}

static void destroy_and_notify_all(void) {
    begin();
    go("loop", short_lived_agent);
    go("notifier 1", notifier_of_all);
    go("notifier 2", bare_notifier);
}

FIBER(thread) {
    (void)argument;
    wait_while_zero(&words[0], 500);
}

static void destroy_beside_thread(void) {
    begin();
    go("loop", short_lived_agent);
    go("thread", thread);
    go("notifier", bare_notifier);
}

/* What was posted before destroy runs, although no thread ran the loop. */
static uint32_t poster_done;

static bool poster_is_done(void *unused) {
    (void)unused;
    return poster_done;
}

static void await_poster(void) {
    sim_until(poster_is_done, NULL);
    while (!prim_load_acquire(&poster_done)) prim_pause();
}

FIBER(agent_ends_with_mail) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    offer(agent);
    await_poster();
    destroy(agent);
}

FIBER(poster_and_done) {
    (void)argument;
    post(await_agent(), count, NULL);
    prim_store_release(&poster_done, 1u);
}

static void destroy_and_post(void) {
    begin();
    poster_done = 0;
    go("loop", agent_ends_with_mail);
    go("poster", poster_and_done);
    go("notifier", bare_notifier);
}

/* A callback that runs because its agent ends cannot start anything on that agent. */
static void try_again(struct request *request) {
    int status = start(request->op.agent, request, &words[2], VIGIL_FOREVER);
    sim_check(status == VIGIL_ECLOSING, "start on an ending agent: %s", vigil_status_name(status));
}

FIBER(agent_ends_with_stubborn_wait) {
    (void)argument;
    vigil_agent *agent = new_agent();
    requests[0].then = try_again;
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    destroy(agent);
}

static void destroy_starts_nothing(void) {
    begin();
    go("loop", agent_ends_with_stubborn_wait);
    go("notifier", bare_notifier);
}

/* The seat's number goes to the next agent at once. */
FIBER(two_lives) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    destroy(agent);
    agent = new_agent();
    start(agent, &requests[1], &words[0], 500);
    run(agent);
    destroy(agent);
}

static void seat_used_again(void) {
    begin();
    go("loop", two_lives);
    go("notifier 1", bare_notifier);
    go("notifier 2", bare_notifier);
}

/* ---- May not block ---- */

FIBER(loop_may_not_block) {
    (void)argument;
    vigil_agent *agent;
    sim_check(vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK) == VIGIL_OK, "create failed");
    int status = vigil_wait32(&words[0], 0, VIGIL_FOREVER);
    sim_check(status == VIGIL_EMAYNOTBLOCK, "blocking on an agent that may not: %s", vigil_status_name(status));
    start(agent, &requests[0], &words[0], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
    wait_while_zero(&words[0], VIGIL_FOREVER);
}

static void may_not_block(void) {
    begin();
    go("loop", loop_may_not_block);
    go("notifier", notifier_one);
}

/* ---- Workers ---- */

FIBER(owner) {
    (void)argument;
    vigil_worker *worker;
    sim_check(vigil_worker_start(&worker, NULL, NULL) == VIGIL_OK, "start failed");
    post(vigil_worker_agent(worker), count, NULL);
    vigil_worker_stop(worker);
    sim_check(vigil_worker_join(worker) == VIGIL_OK, "join failed");
    sim_check(books.ran == 1, "what was posted before the stop did not run");
}

static void worker_life(void) {
    begin();
    go("owner", owner);
}

static void worker_waits(vigil_agent *agent, void *argument) {
    start(agent, argument, &words[0], VIGIL_FOREVER);
}

FIBER(owner_of_waiting_worker) {
    (void)argument;
    vigil_worker *worker;
    sim_check(vigil_worker_start(&worker, worker_waits, &requests[0]) == VIGIL_OK, "start failed");
    notify(&words[0], 1);
    vigil_worker_stop(worker);
    sim_check(vigil_worker_join(worker) == VIGIL_OK, "join failed");
}

static void worker_and_notify(void) {
    begin();
    go("owner", owner_of_waiting_worker);
}

static void worker_and_two_notifiers(void) {
    begin();
    go("owner", owner_of_waiting_worker);
    go("notifier", bare_notifier);
}

/* Posts to a worker that is ending either run or are dropped; nothing breaks. */
static void count_unbooked(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
}

FIBER(owner_stops_early) {
    (void)argument;
    vigil_worker *worker;
    sim_check(vigil_worker_start(&worker, NULL, NULL) == VIGIL_OK, "start failed");
    offer(vigil_worker_agent(worker));
    vigil_worker_stop(worker);
    await_poster();
    sim_check(vigil_worker_join(worker) == VIGIL_OK, "join failed");
}

FIBER(late_poster) {
    (void)argument;
    vigil_agent *agent = await_agent();
    sim_check(vigil_agent_post(agent, count_unbooked, NULL) == VIGIL_OK, "post failed");
    sim_check(vigil_agent_post(agent, count_unbooked, NULL) == VIGIL_OK, "post failed");
    prim_store_release(&poster_done, 1u);
}

static void worker_late_posts(void) {
    begin();
    poster_done = 0;
    go("owner", owner_stops_early);
    go("poster", late_poster);
}

/* The main agent and its worker pass a word back and forth: one waits asynchronously, the other blocks. */
static void worker_answers(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
    wait_while_zero(&words[0], VIGIL_FOREVER);
    change_and_notify(&words[2], 1);
}

FIBER(main_page) {
    (void)argument;
    vigil_agent *agent = new_agent();
    vigil_worker *worker;
    sim_check(vigil_worker_start(&worker, worker_answers, NULL) == VIGIL_OK, "start failed");
    start(agent, &requests[0], &words[2], VIGIL_FOREVER);
    change_and_notify(&words[0], 1);
    run(agent);
    vigil_worker_stop(worker);
    destroy(agent);
    sim_check(vigil_worker_join(worker) == VIGIL_OK, "join failed");
}

static void page_and_worker(void) {
    begin();
    go("page", main_page);
}

const struct sim_scenario agent_scenarios[] = {
    {"post_and_sleep", "a post against an agent that falls asleep", post_and_sleep, balance},
    {"two_posters", "two posts at once", two_posters, balance},
    {"posts_in_order", "three posts run in order", posts_in_order, balance},
    {"post_and_notify", "a post against a notify", post_and_notify, balance},
    {"poll_and_notify", "a loop of the caller's own against notify", poll_and_notify, balance},
    {"poll_timeout_and_notify", "a polled deadline against notify", poll_timeout_and_notify, balance},
    {"poll_late_descriptor", "the descriptor is requested late", poll_late_descriptor, balance},
    {"poll_post_and_notify", "a loop of the caller's own against posts and notify", poll_post_and_notify, balance},
    {"poll_reposts", "functions that post themselves again", poll_reposts, balance},
    {"frames_then_run", "dispatch now and then, then run", frames_then_run, balance},
    {"run_until_and_notify", "run_until's deadline against notify", run_until_and_notify, balance},
    {"run_until_then_poll", "run_until gives up, poll goes on, against notify", run_until_then_poll, balance},
    {"unref_and_notify", "an unreferenced wait beside a referenced one", unref_and_notify, balance},
    {"stop_and_notify", "stop against notify", stop_and_notify, balance},
    {"stop_between_runs", "stop against dispatch and then run", stop_between_runs, balance},
    {"destroy_and_notify", "destroy with operations pending against notify", destroy_and_notify, balance},
    {"destroy_and_notify_all", "the same against two notifiers", destroy_and_notify_all, balance},
    {"destroy_beside_thread", "destroy and a thread's deadline against notify", destroy_beside_thread, balance},
    {"destroy_and_post", "destroy with mail unread against notify", destroy_and_post, balance},
    {"destroy_starts_nothing", "a callback of an ending agent against notify", destroy_starts_nothing, balance},
    {"seat_used_again", "an agent ends, another takes its seat, against two notifiers", seat_used_again, balance},
    {"may_not_block", "blocking is refused while the agent lives", may_not_block, balance},
    {"worker_life", "start, post, stop, join", worker_life, balance},
    {"worker_and_notify", "a worker that waits is notified and stopped", worker_and_notify, balance},
    {"worker_and_two_notifiers", "the same with a second notifier", worker_and_two_notifiers, balance},
    {"worker_late_posts", "posts to a worker that is ending", worker_late_posts, balance},
    {"page_and_worker", "an event loop and a blocking worker pass a word back and forth", page_and_worker, balance},
    {NULL, NULL, NULL, NULL},
};
