/* SPDX-License-Identifier: MIT */
/*
 * contract.h - what must hold for an agent in any event loop. Included by one test program per loop, after these
 * definitions, which are all that differs between them:
 *
 *     typedef ... seat;                                   what an agent is attached by
 *     static void loop_open(void);
 *     static void loop_close(void);                       all seats are detached
 *     static void loop_run(void);                         until loop_quit
 *     static void loop_quit(void);                        from a callback
 *     static void loop_tick_start(void (*tick)(void));    a timer of the loop's own, every millisecond
 *     static void loop_tick_stop(void);
 *     static bool loop_in_child(void);                    what the loop requires after fork
 *     static int seat_attach(seat *seat, vigil_agent *agent);
 *     static void seat_detach(seat *seat);                the seat is not used again
 *
 * There is one loop at a time. A loop that misbehaves hangs, and the test's time limit reports it.
 */
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prim.h"

static uint32_t word;
static vigil_agent *agent; /* in a fresh loop, */
static seat its_seat;      /* attached by this */
static seat second_seat;

static int set_up(void **state) {
    (void)state;
    word = 0;
    loop_open();
    agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    assert_int_equal(seat_attach(&its_seat, agent), VIGIL_OK);
    return 0;
}

/* For tests that have not detached it themselves. */
static int detach_and_tear_down(void **state) {
    (void)state;
    seat_detach(&its_seat);
    end_agent(agent);
    loop_close();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    loop_close();
    return 0;
}

/* Whether its descriptor is readable. If it is while there is nothing to do, the loop spins. */
static bool readable(vigil_agent *which) {
    struct pollfd ring = {.fd = vigil_agent_fd(which), .events = POLLIN};
    return poll(&ring, 1, 0) != 0;
}

/* Waits, the last of which ends the loop. */

static unsigned outstanding;

static void ended(vigil_op *op, int status) {
    note(op, status);
    if (--outstanding == 0) loop_quit();
}

static void start_wait(vigil_agent *waiting, struct noted *noted, int64_t timeout_ns) {
    outstanding++;
    assert_int_equal(vigil_wait32_async(waiting, &noted->op, &word, 0, timeout_ns, ended), VIGIL_PENDING);
}

/* Ticks, the last of which ends the loop. */

static unsigned ticks_left;

static void tick(void) {
    if (--ticks_left > 0) return;
    loop_tick_stop();
    loop_quit();
}

static void run_for_ticks(unsigned ticks) {
    ticks_left = ticks;
    loop_tick_start(tick);
    loop_run();
    assert_int_equal(ticks_left, 0);
}

/* Threads and the loop are in one line: each is served in the order in which it came. */

static struct sleeper sleepers[2];
static struct noted awake[2]; /* in line: sleeper 0, awake 0, sleeper 1, awake 1 */

static bool is_served(unsigned place) {
    return place % 2 ? LOAD(awake[place / 2].calls) == 1 : sleeper_up(&sleepers[place / 2]);
}

static unsigned count_served(void) {
    unsigned served = 0;
    for (unsigned place = 0; place < 4; place++) served += is_served(place);
    return served;
}

static void *serve_one_by_one(void *in_order) {
    for (unsigned place = 0; place < 4; place++) {
        bool one = vigil_notify(&word, 1) == 1;
        AWAIT(count_served() == place + 1);
        *(bool *)in_order &= one && is_served(place);
    }
    return NULL;
}

static void threads_and_the_loop_stand_in_one_line(void **state) {
    (void)state;
    memset(awake, 0, sizeof awake);
    for (int i = 0; i < 2; i++) {
        sleeper_start(&sleepers[i], &word, false);
        start_wait(agent, &awake[i], VIGIL_FOREVER);
    }
    bool in_order = true;
    pthread_t clerk;
    assert_int_equal(pthread_create(&clerk, NULL, serve_one_by_one, &in_order), 0);
    loop_run();
    assert_int_equal(pthread_join(clerk, NULL), 0);
    assert_true(in_order);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
        assert_int_equal(awake[i].status, VIGIL_OK);
    }
    assert_false(readable(agent));
}

static void the_loop_goes_on_while_waits_are_pending(void **state) {
    (void)state;
    struct noted pending = {0}, hurried = {0};
    struct sleeper behind;
    start_wait(agent, &pending, VIGIL_FOREVER);
    start_wait(agent, &hurried, 3600 * SECOND);
    sleeper_start(&behind, &word, false);
    run_for_ticks(10);
    assert_int_equal(pending.calls + hurried.calls, 0);
    assert_false(sleeper_up(&behind));

    assert_int_equal(vigil_notify(&word, VIGIL_ALL), 3);
    loop_run();
    assert_int_equal(pending.calls, 1);
    assert_int_equal(hurried.calls, 1);
    assert_int_equal(sleeper_join(&behind), VIGIL_OK);
}

/* An agent that always has something to do must not starve the loop. */

static unsigned rounds;

static void go_round(vigil_agent *posted, void *argument) {
    rounds++;
    if (ticks_left) vigil_agent_post(posted, go_round, argument);
}

static void a_busy_agent_does_not_stop_the_loop(void **state) {
    (void)state;
    rounds = 0;
    ticks_left = 5;
    assert_int_equal(vigil_agent_post(agent, go_round, NULL), VIGIL_OK);
    run_for_ticks(5);
    assert_true(rounds > 5);
}

/* Deadlines. */

static void deadlines_fire_in_the_loop_and_never_early(void **state) {
    (void)state;
    static const int64_t timeout_ns[] = {7 * MILLISECOND, 3 * MILLISECOND, MICROSECOND, 12 * MILLISECOND};
    struct noted late[COUNT_OF(timeout_ns)] = {0};
    int64_t began_ns = vigil_now_ns();
    for (unsigned i = 0; i < COUNT_OF(late); i++) start_wait(agent, &late[i], timeout_ns[i]);
    loop_run();
    for (unsigned i = 0; i < COUNT_OF(late); i++) {
        assert_int_equal(late[i].status, VIGIL_TIMED_OUT);
        assert_true(late[i].ended_ns - began_ns >= timeout_ns[i]);
    }
    assert_false(readable(agent));
}

static struct noted started_in_tick;
static int64_t tick_ns;

static void start_wait_in_tick(void) {
    loop_tick_stop();
    tick_ns = vigil_now_ns();
    start_wait(agent, &started_in_tick, 2 * MILLISECOND);
}

static void a_wait_that_the_loop_starts_elsewhere_has_its_deadline(void **state) {
    (void)state;
    memset(&started_in_tick, 0, sizeof started_in_tick);
    loop_tick_start(start_wait_in_tick);
    loop_run();
    assert_int_equal(started_in_tick.status, VIGIL_TIMED_OUT);
    assert_true(started_in_tick.ended_ns - tick_ns >= 2 * MILLISECOND);
}

/* Posts. */

#define POSTERS 3
#define POSTS   500

struct poster {
    pthread_t thread;
    unsigned received; /* by the loop */
    bool in_order;
    bool refused;
    struct letter {
        struct poster *from;
        unsigned number;
    } letter[POSTS];
};

static unsigned letters_left;

static void receive(vigil_agent *posted, void *argument) {
    struct letter *letter = argument;
    (void)posted;
    letter->from->in_order &= letter->from->received++ == letter->number;
    if (--letters_left == 0) loop_quit();
}

static void *post_all(void *argument) {
    struct poster *poster = argument;
    for (unsigned i = 0; i < POSTS; i++) {
        poster->letter[i] = (struct letter){poster, i};
        poster->refused |= vigil_agent_post(agent, receive, &poster->letter[i]) != VIGIL_OK;
    }
    return NULL;
}

static void posts_of_other_threads_arrive_in_order(void **state) {
    (void)state;
    static struct poster poster[POSTERS];
    letters_left = POSTERS * POSTS;
    for (unsigned i = 0; i < POSTERS; i++) {
        poster[i] = (struct poster){.in_order = true};
        assert_int_equal(pthread_create(&poster[i].thread, NULL, post_all, &poster[i]), 0);
    }
    loop_run();
    for (unsigned i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_join(poster[i].thread, NULL), 0);
        assert_true(poster[i].in_order);
        assert_false(poster[i].refused);
        assert_int_equal(poster[i].received, POSTS);
    }
}

/* Several agents in one loop. */

#define AGENTS 8
#define LAPS   50

static vigil_agent *agents[AGENTS];
static unsigned handed_on;

/* A baton: each agent passes it to the next one. */
static void hand_on(vigil_agent *holder, void *argument) {
    assert_ptr_equal(holder, agents[handed_on % AGENTS]);
    if (++handed_on == AGENTS * LAPS) loop_quit();
    else vigil_agent_post(agents[handed_on % AGENTS], hand_on, argument);
}

static void *notify_all(void *notified) {
    *(int64_t *)notified = vigil_notify(&word, VIGIL_ALL);
    return NULL;
}

static void agents_share_a_loop(void **state) {
    (void)state;
    static seat seats[AGENTS];
    struct noted waits[AGENTS] = {0};
    for (unsigned i = 0; i < AGENTS; i++) {
        agents[i] = new_agent(0);
        assert_int_equal(seat_attach(&seats[i], agents[i]), VIGIL_OK);
        start_wait(agents[i], &waits[i], VIGIL_FOREVER);
    }
    handed_on = 0;
    vigil_agent_post(agents[0], hand_on, NULL);
    loop_run();
    assert_int_equal(handed_on, AGENTS * LAPS);

    int64_t notified = 0;
    pthread_t notifier;
    assert_int_equal(pthread_create(&notifier, NULL, notify_all, &notified), 0);
    loop_run();
    assert_int_equal(pthread_join(notifier, NULL), 0);
    assert_int_equal(notified, AGENTS);
    for (unsigned i = 0; i < AGENTS; i++) {
        assert_int_equal(waits[i].calls, 1);
        assert_int_equal(waits[i].status, VIGIL_OK);
        assert_false(readable(agents[i]));
        seat_detach(&seats[i]);
        end_agent(agents[i]);
    }
}

/* Detaching. */

static void a_detached_agent_is_not_served(void **state) {
    (void)state;
    struct noted first = {0}, second = {0};
    start_wait(agent, &first, VIGIL_FOREVER);
    start_wait(agent, &second, VIGIL_FOREVER);
    outstanding = 1; /* the first wait ends the loop */
    seat_detach(&its_seat);
    assert_int_equal(vigil_notify(&word, 1), 1);
    run_for_ticks(5);
    assert_int_equal(first.calls, 0);

    assert_int_equal(seat_attach(&second_seat, agent), VIGIL_OK);
    loop_run();
    assert_int_equal(first.calls, 1);
    assert_int_equal(first.status, VIGIL_OK);

    seat_detach(&second_seat);
    outstanding = 2; /* no loop to end */
    end_agent(agent);
    assert_int_equal(second.calls, 1);
    assert_int_equal(second.status, VIGIL_CANCELLED);
    outstanding = 0;
}

static void detach_here(vigil_agent *posted, void *argument) {
    (void)posted;
    (void)argument;
    seat_detach(&its_seat);
}

static void a_callback_may_detach_its_agent(void **state) {
    (void)state;
    struct noted wait_of_it = {0};
    noted_pending(agent, &wait_of_it, &word);
    vigil_agent_post(agent, detach_here, NULL);
    run_for_ticks(5);
    assert_int_equal(vigil_notify(&word, 1), 1);
    run_for_ticks(5);
    assert_int_equal(wait_of_it.calls, 0);
    end_agent(agent);
    assert_int_equal(wait_of_it.status, VIGIL_OK);
}

/* The next agent will have the same descriptor number: the loop must not mistake it for the old one. */
static void an_agent_follows_another(void **state) {
    (void)state;
    struct noted of_first = {0}, of_second = {0};
    noted_pending(agent, &of_first, &word);
    run_for_ticks(2);
    seat_detach(&its_seat);
    end_agent(agent);
    assert_int_equal(of_first.status, VIGIL_CANCELLED);

    agent = new_agent(0);
    assert_int_equal(seat_attach(&second_seat, agent), VIGIL_OK);
    start_wait(agent, &of_second, VIGIL_FOREVER);
    run_for_ticks(2);
    assert_int_equal(of_second.calls, 0);
    assert_int_equal(vigil_notify(&word, 1), 1);
    loop_run();
    assert_int_equal(of_second.calls, 1);
    seat_detach(&second_seat);
    end_agent(agent);
}

/* Errors. */

static void *attach_here(void *answer) {
    *(int *)answer = seat_attach(&second_seat, agent);
    return NULL;
}

/* Where the agent's descriptor is made when it is needed first, and none is left. */
static void attach_without_descriptors(void) {
    vigil_agent *unlucky = new_agent(0);
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int answer = seat_attach(&second_seat, unlucky);
    int reason = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(answer, VIGIL_ESYSTEM);
    assert_int_equal(reason, EMFILE);
    end_agent(unlucky);
}

static void errors_are_passed_on(void **state) {
    (void)state;
    assert_int_equal(seat_attach(&second_seat, NULL), VIGIL_ENULL);

    int answer = VIGIL_OK;
    pthread_t stranger;
    assert_int_equal(pthread_create(&stranger, NULL, attach_here, &answer), 0);
    assert_int_equal(pthread_join(stranger, NULL), 0);
    assert_int_equal(answer, VIGIL_EWRONGTHREAD);

    if (PRIM_SEGMENTS) attach_without_descriptors(); /* else it exists from the beginning */
    run_for_ticks(2);
}

/* Fork: the child detaches the agent and makes one of its own; the parent is not affected. */

static void quit(vigil_agent *posted, void *argument) {
    (void)posted;
    (void)argument;
    loop_quit();
}

static bool child_works(void) {
    if (!loop_in_child()) return false;
    if (seat_attach(&second_seat, agent) != VIGIL_EFORKED) return false;
    seat_detach(&its_seat);
    if (vigil_agent_destroy(agent) != VIGIL_OK) return false;
    if (vigil_agent_create(&agent, 0) != VIGIL_OK) return false;
    if (seat_attach(&second_seat, agent) != VIGIL_OK) return false;
    if (vigil_agent_post(agent, quit, NULL) != VIGIL_OK) return false;
    loop_run();
    return true;
}

static void a_fork_leaves_the_parents_loop_alone(void **state) {
    (void)state;
    struct noted across = {0};
    start_wait(agent, &across, VIGIL_FOREVER);
    run_for_ticks(2);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* a child that hangs has failed */
        _exit(child_works() ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);

    assert_int_equal(across.calls, 0);
    assert_int_equal(vigil_notify(&word, 1), 1);
    loop_run();
    assert_int_equal(across.calls, 1);
}

#define CONTRACT_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, detach_and_tear_down)
#define CONTRACT                                                                                                       \
    CONTRACT_TEST(threads_and_the_loop_stand_in_one_line), CONTRACT_TEST(the_loop_goes_on_while_waits_are_pending),    \
        CONTRACT_TEST(a_busy_agent_does_not_stop_the_loop), CONTRACT_TEST(deadlines_fire_in_the_loop_and_never_early), \
        CONTRACT_TEST(a_wait_that_the_loop_starts_elsewhere_has_its_deadline),                                         \
        CONTRACT_TEST(posts_of_other_threads_arrive_in_order), CONTRACT_TEST(agents_share_a_loop),                     \
        cmocka_unit_test_setup_teardown(a_detached_agent_is_not_served, set_up, tear_down),                            \
        cmocka_unit_test_setup_teardown(a_callback_may_detach_its_agent, set_up, tear_down),                           \
        cmocka_unit_test_setup_teardown(an_agent_follows_another, set_up, tear_down),                                  \
        CONTRACT_TEST(errors_are_passed_on), CONTRACT_TEST(a_fork_leaves_the_parents_loop_alone)
