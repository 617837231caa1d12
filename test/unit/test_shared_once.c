/* SPDX-License-Identifier: MIT */
/* The once in a segment: one of several processes calls the function, and may be killed while it does. */
#include "support.h"

#include "child.h"

#include "vigil/once.h"

#define ACTORS  3
#define THREADS 3
#define FAILED  (-1000)

#define RUNNING 1u
#define AWAITED 2u
#define DONE    3u
#define STATE   3u

struct common {
    vigil_once once;
    unsigned calls;      /* of all functions together; not atomic: the once makes that correct */
    bool begun, may_end; /* atomic, for functions that take a while */
};

#include "segment_fixture.h"

static uint32_t state_now(void) {
    return LOAD(common->once.word) & STATE;
}

static int64_t in_line_now(void) {
    return vigil_waiters(&common->once);
}

/* Functions. Their argument is what they return. */

static int count_call(void *answer) {
    common->calls++;
    return (int)(intptr_t)answer;
}

static int take_a_while(void *answer) {
    common->calls++;
    STORE(common->begun, true);
    AWAIT(LOAD(common->may_end));
    return (int)(intptr_t)answer;
}

static int be_killed(void *answer) {
    common->calls++;
    raise(SIGKILL);
    return (int)(intptr_t)answer;
}

static int call(vigil_once_function *function, int status, int64_t timeout_ns) {
    return vigil_once_call_for(&common->once, function, (void *)(intptr_t)status, timeout_ns);
}

static int ask(vigil_agent *agent, struct requester *requester, int64_t timeout_ns) {
    *requester = (struct requester){0};
    return vigil_once_call_async(agent, &requester->request, &common->once, count_call, (void *)(intptr_t)VIGIL_OK,
                                 timeout_ns, answer);
}

/* Mates. */

/* Calls the function, which does not end before it may. */
static void run_for_a_while(uintptr_t status) {
    CHECK(call(take_a_while, (int)(intptr_t)status, VIGIL_FOREVER) == (int)(intptr_t)status);
}

static pid_t runner_start(int status) {
    STORE(common->begun, false);
    STORE(common->may_end, false);
    pid_t runner = actor_start(run_for_a_while, (uintptr_t)(intptr_t)status);
    AWAIT(LOAD(common->begun));
    return runner;
}

static void be_told_as_thread(uintptr_t argument) {
    (void)argument;
    CHECK(call(count_call, VIGIL_OK, VIGIL_FOREVER) == VIGIL_OK);
}

static void be_told_as_loop(uintptr_t argument) {
    (void)argument;
    struct requester requester;
    vigil_agent *agent;
    CHECK(vigil_agent_create(&agent, 0) == VIGIL_OK);
    int status = ask(agent, &requester, VIGIL_FOREVER);
    if (status == VIGIL_PENDING) status = answer_of(agent, &requester);
    CHECK(status == VIGIL_OK);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
}

/* Threads of the test that call. */

static void *caller_main(void *status) {
    *(int *)status = call(count_call, VIGIL_OK, VIGIL_FOREVER);
    return NULL;
}

/* Returns once it is in line. */
static pthread_t caller_start(int *status) {
    pthread_t thread;
    int64_t before = in_line_now();
    assert_int_equal(pthread_create(&thread, NULL, caller_main, status), 0);
    AWAIT(in_line_now() > before);
    return thread;
}

static void caller_join(pthread_t thread, const int *status) {
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(*status, VIGIL_OK);
}

/* Waiters: threads and a loop of the test, a thread and a loop of other processes. */

struct crowd {
    vigil_agent *agent;
    struct requester requester;
    pthread_t threads[THREADS];
    int statuses[THREADS];
    pid_t actors[2];
};

static void crowd_start(struct crowd *crowd) {
    int64_t before = in_line_now();
    crowd->actors[0] = actor_start(be_told_as_thread, 0);
    crowd->actors[1] = actor_start(be_told_as_loop, 0);
    AWAIT(in_line_now() == before + 2);
    crowd->agent = new_agent(0);
    assert_int_equal(ask(crowd->agent, &crowd->requester, VIGIL_FOREVER), VIGIL_PENDING);
    for (size_t i = 0; i < THREADS; i++) crowd->threads[i] = caller_start(&crowd->statuses[i]);
}

static void crowd_is_told(struct crowd *crowd) {
    assert_int_equal(answer_of(crowd->agent, &crowd->requester), VIGIL_OK);
    for (size_t i = 0; i < THREADS; i++) caller_join(crowd->threads[i], &crowd->statuses[i]);
    for (size_t i = 0; i < COUNT_OF(crowd->actors); i++) actor_ends(crowd->actors[i]);
    end_agent(crowd->agent);
    assert_int_equal(common->once.word, DONE);
    assert_int_equal(in_line_now(), 0);
}

/* Once. */

static void one_of_all_processes_calls_it(void **state) {
    (void)state;
    for (unsigned turn = 0; turn < 20; turn++) {
        *common = (struct common){0};
        pid_t actors[ACTORS];
        for (size_t i = 0; i < ACTORS; i++) actors[i] = actor_start(i % 2 ? be_told_as_loop : be_told_as_thread, 0);
        assert_int_equal(call(count_call, VIGIL_OK, VIGIL_FOREVER), VIGIL_OK);
        assert_int_equal(common->calls, 1);
        for (size_t i = 0; i < ACTORS; i++) actor_ends(actors[i]);
        assert_int_equal(common->calls, 1);
        assert_true(vigil_once_is_done(&common->once));
    }
}

static void all_wait_until_it_is_done(void **state) {
    (void)state;
    struct crowd crowd;
    pid_t runner = runner_start(VIGIL_OK);
    crowd_start(&crowd);
    assert_int_equal(call(count_call, VIGIL_OK, 0), VIGIL_TIMED_OUT);
    assert_int_equal(call(count_call, VIGIL_OK, MILLISECOND), VIGIL_TIMED_OUT);
    assert_int_equal(state_now(), AWAITED);
    STORE(common->may_end, true);
    crowd_is_told(&crowd);
    actor_ends(runner);
    assert_int_equal(common->calls, 1);
}

static void after_a_failure_another_calls_it(void **state) {
    (void)state;
    struct crowd crowd;
    pid_t runner = runner_start(FAILED);
    crowd_start(&crowd);
    STORE(common->may_end, true);
    crowd_is_told(&crowd);
    actor_ends(runner);
    assert_int_equal(common->calls, 2);
}

static void a_loop_may_leave(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    struct requester timed, cancelled, ended;
    pid_t runner = runner_start(VIGIL_OK);
    assert_int_equal(call(count_call, VIGIL_OK, VIGIL_FOREVER), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(ask(agent, &timed, 0), VIGIL_TIMED_OUT);
    assert_int_equal(ask(agent, &timed, MILLISECOND), VIGIL_PENDING);
    assert_int_equal(answer_of(agent, &timed), VIGIL_TIMED_OUT);
    assert_int_equal(ask(agent, &cancelled, VIGIL_FOREVER), VIGIL_PENDING);
    assert_int_equal(vigil_cancel(&cancelled.request.op), VIGIL_OK);
    assert_int_equal(ask(agent, &ended, VIGIL_FOREVER), VIGIL_PENDING);
    end_agent(agent);
    assert_int_equal(cancelled.calls, 0);
    assert_int_equal(ended.status, VIGIL_CANCELLED);
    assert_int_equal(in_line_now(), 0);
    STORE(common->may_end, true);
    actor_ends(runner);
    assert_int_equal(common->calls, 1);
}

static void forgetting_cancels_all(void **state) {
    (void)state;
    int status;
    vigil_agent *agent = new_agent(0);
    struct requester requester;
    pid_t runner = runner_start(VIGIL_OK);
    pthread_t thread = caller_start(&status);
    assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_PENDING);
    assert_int_equal(vigil_forget(common, sizeof *common), 2);
    assert_int_equal(answer_of(agent, &requester), VIGIL_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, VIGIL_CANCELLED);
    STORE(common->may_end, true);
    actor_ends(runner);
    end_agent(agent);
}

static int fork_and_tell(void *child) {
    *(pid_t *)child = fork_here();
    return VIGIL_OK;
}

/* The child has no part in what belongs to its parent. */
static void the_function_may_fork(void **state) {
    (void)state;
    pid_t child = -1;
    int status = vigil_once_call(&common->once, fork_and_tell, &child);
    if (child == 0) _exit(status == VIGIL_OK ? 0 : 1);
    assert_int_equal(status, VIGIL_OK);
    assert_int_equal(exit_status_of(child), 0);
    assert_int_equal(common->once.word, DONE);
}

/* Killed. */

static void if_the_runner_is_killed_the_next_calls_it(void **state) {
    (void)state;
    pid_t runner = runner_start(VIGIL_OK);
    assert_int_equal(state_now(), RUNNING);
    actor_kill(runner);
    assert_int_equal(call(count_call, VIGIL_OK, VIGIL_FOREVER), VIGIL_OK);
    assert_int_equal(common->calls, 2);
    assert_int_equal(common->once.word, DONE);
}

static void it_is_known_at_once_that_the_runner_is_dead(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    struct requester requester;
    actor_kill(runner_start(VIGIL_OK));
    assert_int_equal(call(count_call, FAILED, VIGIL_FOREVER), FAILED); /* although it may not wait */
    actor_kill(runner_start(VIGIL_OK));
    assert_int_equal(ask(agent, &requester, 0), VIGIL_OK);
    end_agent(agent);
    common->once = (vigil_once)VIGIL_ONCE_INIT;
    actor_kill(runner_start(VIGIL_OK));
    assert_int_equal(call(count_call, VIGIL_OK, 0), VIGIL_OK);
    assert_int_equal(common->calls, 6);
}

/* All processes just sleep. */
static void a_sleeping_thread_calls_it(void **state) {
    (void)state;
    int status;
    pid_t runner = runner_start(VIGIL_OK);
    pthread_t thread = caller_start(&status);
    actor_kill(runner);
    caller_join(thread, &status);
    assert_int_equal(common->calls, 2);
}

static void a_resting_loop_calls_it(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(0);
    struct requester requester;
    pid_t runner = runner_start(VIGIL_OK);
    assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_PENDING);
    actor_kill(runner);
    assert_int_equal(answer_of(agent, &requester), VIGIL_OK);
    assert_int_equal(common->calls, 2);
    end_agent(agent);
}

static void of_all_who_wait_one_calls_it(void **state) {
    (void)state;
    struct crowd crowd;
    pid_t runner = runner_start(VIGIL_OK);
    crowd_start(&crowd);
    actor_kill(runner);
    crowd_is_told(&crowd);
    assert_int_equal(common->calls, 2);
}

static void be_killed_calling(uintptr_t argument) {
    (void)argument;
    call(be_killed, VIGIL_OK, VIGIL_FOREVER);
}

static void one_after_the_other_is_killed(void **state) {
    (void)state;
    pid_t actors[ACTORS], runner = runner_start(VIGIL_OK);
    for (size_t i = 0; i < ACTORS; i++) actors[i] = actor_start(be_killed_calling, 0);
    AWAIT(in_line_now() == ACTORS);
    actor_kill(runner);
    for (size_t i = 0; i < ACTORS; i++) actor_dies(actors[i]);
    assert_int_equal(call(count_call, VIGIL_OK, VIGIL_FOREVER), VIGIL_OK);
    assert_int_equal(common->calls, ACTORS + 2);
}

/* The runner is killed after it has changed the word, but before it has notified any waiter. */

static int change_and_be_killed(void *word) {
    AWAIT(LOAD(common->may_end));
    STORE(common->once.word, (uint32_t)(uintptr_t)word);
    raise(SIGKILL);
    return VIGIL_OK;
}

static void change_without_notifying(uintptr_t word) {
    vigil_once_call(&common->once, change_and_be_killed, (void *)word);
}

static void those_in_line_are_told_in_the_place_of_a_dead_one(void **state) {
    (void)state;
    const struct {
        uint32_t word;
        unsigned calls;
    } ends[] = {{DONE, 0}, {0, 1}};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        *common = (struct common){0};
        pid_t runner = actor_start(change_without_notifying, ends[i].word);
        AWAIT(state_now() == RUNNING);
        struct crowd crowd;
        crowd_start(&crowd);
        STORE(common->may_end, true);
        actor_dies(runner);
        crowd_is_told(&crowd);
        assert_int_equal(common->calls, ends[i].calls);
    }
}

static int kill_and_be_awaited(void *runner) {
    assert_int_equal(state_now(), RUNNING);
    actor_kill(*(pid_t *)runner);
    AWAIT(state_now() == AWAITED); /* by the waiter in line, which has not been notified */
    return VIGIL_OK;
}

static int change_and_stay(void *argument) {
    (void)argument;
    AWAIT(LOAD(common->may_end));
    STORE(common->once.word, 0);
    pause(); /* until it is killed */
    return VIGIL_OK;
}

static void change_and_do_nothing_more(uintptr_t argument) {
    (void)argument;
    vigil_once_call(&common->once, change_and_stay, NULL);
}

static void those_in_line_are_told_though_another_is_at_it_already(void **state) {
    (void)state;
    int status;
    pid_t runner = actor_start(change_and_do_nothing_more, 0);
    AWAIT(state_now() == RUNNING);
    pthread_t thread = caller_start(&status);
    STORE(common->may_end, true);
    AWAIT(LOAD(common->once.word) == 0);
    assert_int_equal(vigil_once_call(&common->once, kill_and_be_awaited, &runner), VIGIL_OK);
    caller_join(thread, &status);
    assert_int_equal(common->calls, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_of_all_processes_calls_it),
        TEST(all_wait_until_it_is_done),
        TEST(after_a_failure_another_calls_it),
        TEST(a_loop_may_leave),
        TEST(forgetting_cancels_all),
        TEST(the_function_may_fork),
        TEST(if_the_runner_is_killed_the_next_calls_it),
        TEST(it_is_known_at_once_that_the_runner_is_dead),
        TEST(a_sleeping_thread_calls_it),
        TEST(a_resting_loop_calls_it),
        TEST(of_all_who_wait_one_calls_it),
        TEST(one_after_the_other_is_killed),
        TEST(those_in_line_are_told_in_the_place_of_a_dead_one),
        TEST(those_in_line_are_told_though_another_is_at_it_already),
    };
    return children_can_start_threads() ? cmocka_run_group_tests(tests, NULL, NULL) : NO_THREADS_IN_CHILDREN;
}
