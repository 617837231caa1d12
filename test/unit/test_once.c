/* SPDX-License-Identifier: MIT */
/* The once, on real threads and with an event loop. */
#include "support.h"

#include "vigil/once.h"

#include "requesters.h"
#include "child.h"

#define NEW     0u
#define RUNNING 1u
#define AWAITED 2u
#define DONE    3u
#define FAILURE (-1234)

/* A function: how often it has been called, and what it returns. */
struct work {
    unsigned calls;
    int answer;
    bool held; /* it does not return before this is false */
};

static int do_work(void *argument) {
    struct work *work = argument;
    __atomic_add_fetch(&work->calls, 1, __ATOMIC_RELEASE);
    AWAIT(!LOAD(work->held));
    return work->answer;
}

static vigil_once once;
static struct work asked; /* what requesters run */

static const void *new_lock(void) {
    once = (vigil_once)VIGIL_ONCE_INIT;
    asked = (struct work){0};
    return &once;
}

/* A thread that calls. */
struct caller {
    pthread_t thread;
    struct work work;
    int64_t timeout_ns;
    int status;
};

static void *caller_main(void *argument) {
    struct caller *me = argument;
    me->status = vigil_once_call_for(&once, do_work, &me->work, me->timeout_ns);
    return NULL;
}

static void caller_launch(struct caller *caller) {
    caller->timeout_ns = VIGIL_FOREVER;
    assert_int_equal(pthread_create(&caller->thread, NULL, caller_main, caller), 0);
}

/* The first caller: returns when its function is running. The function returns `answer` once it is released. */
static void caller_start(struct caller *caller, int answer) {
    *caller = (struct caller){.work = {.held = true, .answer = answer}};
    caller_launch(caller);
    AWAIT(LOAD(caller->work.calls));
}

/* A caller that has to wait: returns when it is in line. */
static void caller_wait(struct caller *caller, int answer) {
    int64_t before = vigil_waiters(&once);
    *caller = (struct caller){.work = {.answer = answer}};
    caller_launch(caller);
    AWAIT(vigil_waiters(&once) > before);
}

static int caller_join(struct caller *caller) {
    STORE(caller->work.held, false);
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    return caller->status;
}

static int ask(struct requester *requester, int64_t timeout_ns) {
    return vigil_once_call_async(agent, &requester->request, &once, do_work, &asked, timeout_ns, answer);
}

static void ask_pending(struct requester *requester, int64_t timeout_ns) {
    *requester = (struct requester){0};
    asked = (struct work){0};
    assert_int_equal(ask(requester, timeout_ns), VIGIL_PENDING);
    assert_int_equal(LOAD(once.word), AWAITED);
}

static void assert_asked(const struct requester *requester, int status, unsigned function_calls) {
    assert_answered(requester, status);
    assert_int_equal(asked.calls, function_calls);
}

/* Arguments. */

static void null_and_misaligned_are_refused(void **state) {
    (void)state;
    struct requester requester = {0};
    vigil_request *request = &requester.request;
    vigil_once *misaligned = (vigil_once *)(void *)((char *)&once + 2);
    assert_int_equal(vigil_once_call(NULL, do_work, &asked), VIGIL_ENULL);
    assert_int_equal(vigil_once_call(&once, NULL, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_once_call_for(NULL, do_work, &asked, 0), VIGIL_ENULL);
    assert_int_equal(vigil__once_call_slowly(misaligned, do_work, &asked, 0), VIGIL_EMISALIGNED);
    assert_int_equal(vigil_once_call_async(NULL, request, &once, do_work, &asked, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_once_call_async(agent, NULL, &once, do_work, &asked, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_once_call_async(agent, request, NULL, do_work, &asked, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_once_call_async(agent, request, &once, NULL, &asked, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_once_call_async(agent, request, &once, do_work, &asked, 1, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_once_call_async(agent, request, misaligned, do_work, &asked, 1, answer), VIGIL_EMISALIGNED);
    assert_false(vigil_once_is_done(NULL));
    assert_int_equal(asked.calls, 0);
    assert_int_equal(once.word, NEW);
}

static void a_request_in_use_is_refused(void **state) {
    (void)state;
    struct caller first;
    struct requester requester;
    caller_start(&first, VIGIL_OK);
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(ask(&requester, VIGIL_FOREVER), VIGIL_EINUSE);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
    assert_int_equal(caller_join(&first), VIGIL_OK);
}

static void *ask_elsewhere(void *argument) {
    struct requester *requester = argument;
    requester->status = ask(requester, VIGIL_FOREVER);
    return NULL;
}

static void another_thread_is_refused(void **state) {
    (void)state;
    struct requester requester = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_elsewhere, &requester), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(requester.status, VIGIL_EWRONGTHREAD);
    assert_int_equal(asked.calls, 0);
}

/* One after the other. */

static void zero_is_new(void **state) {
    (void)state;
    static vigil_once zero;
    assert_int_equal(sizeof zero, 4);
    assert_memory_equal(&zero, &once, sizeof zero);
    assert_false(vigil_once_is_done(&zero));
}

static void it_is_called_once(void **state) {
    (void)state;
    struct work work = {0};
    struct requester requester = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vigil_once_call(&once, do_work, &work), VIGIL_OK);
        assert_true(vigil_once_is_done(&once));
        assert_int_equal(vigil_once_call_for(&once, do_work, &work, 0), VIGIL_OK);
        assert_int_equal(vigil__once_call_slowly(&once, do_work, &work, 0), VIGIL_OK);
        assert_int_equal(ask(&requester, 0), VIGIL_OK);
    }
    assert_int_equal(work.calls, 1);
    assert_int_equal(asked.calls + requester.calls, 0);
}

static void a_failure_is_told_and_it_is_new_again(void **state) {
    (void)state;
    struct work fails = {.answer = FAILURE}, works = {0};
    struct requester requester = {0};
    asked.answer = FAILURE;
    assert_int_equal(vigil_once_call(&once, do_work, &fails), FAILURE);
    assert_int_equal(vigil_once_call_for(&once, do_work, &fails, 0), FAILURE);
    assert_int_equal(ask(&requester, 0), FAILURE);
    assert_false(vigil_once_is_done(&once));
    assert_int_equal(once.word, NEW);
    assert_int_equal(vigil_once_call(&once, do_work, &works), VIGIL_OK);
    assert_int_equal(fails.calls, 2);
    assert_int_equal(asked.calls, 1);
    assert_int_equal(requester.calls, 0);
    assert_int_equal(works.calls, 1);
}

static void a_loop_calls_the_function_at_once_if_it_is_new(void **state) {
    (void)state;
    struct requester requester = {0};
    assert_int_equal(ask(&requester, 0), VIGIL_OK);
    assert_true(vigil_once_is_done(&once));
    assert_int_equal(asked.calls, 1);
    assert_int_equal(requester.calls, 0);
    assert_int_equal(dispatch(), 0);
}

/* Waiting. */

static void others_wait_until_it_is_done(void **state) {
    (void)state;
    struct caller first, second;
    struct requester requester;
    caller_start(&first, VIGIL_OK);
    assert_int_equal(LOAD(once.word), RUNNING);
    caller_wait(&second, VIGIL_OK);
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(caller_join(&first), VIGIL_OK);
    assert_int_equal(caller_join(&second), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_asked(&requester, VIGIL_OK, 0);
    assert_int_equal(second.work.calls, 0);
    assert_int_equal(once.word, DONE);
}

static void after_a_failure_a_waiting_thread_is_next(void **state) {
    (void)state;
    struct caller first, second;
    caller_start(&first, FAILURE);
    caller_wait(&second, VIGIL_OK);
    assert_int_equal(caller_join(&first), FAILURE);
    assert_int_equal(caller_join(&second), VIGIL_OK);
    assert_int_equal(second.work.calls, 1);
    assert_true(vigil_once_is_done(&once));
}

static void after_a_failure_a_waiting_loop_is_next(void **state) {
    (void)state;
    const int answers[] = {FAILURE - 1, VIGIL_OK};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct caller first;
        struct requester requester;
        caller_start(&first, FAILURE);
        ask_pending(&requester, VIGIL_FOREVER);
        asked.answer = answers[i];
        assert_int_equal(caller_join(&first), FAILURE);
        assert_int_equal(once.word, NEW);
        assert_int_equal(dispatch(), 1);
        assert_asked(&requester, answers[i], 1);
        assert_int_equal(once.word, answers[i] == VIGIL_OK ? DONE : NEW);
    }
}

/* The loop in line does not run; the thread behind it proceeds all the same. */
static void nobody_waits_for_a_loop(void **state) {
    (void)state;
    struct caller first, second;
    struct requester requester;
    caller_start(&first, FAILURE);
    ask_pending(&requester, VIGIL_FOREVER);
    caller_wait(&second, VIGIL_OK);
    assert_int_equal(caller_join(&first), FAILURE);
    assert_int_equal(caller_join(&second), VIGIL_OK);
    assert_int_equal(dispatch(), 1);
    assert_asked(&requester, VIGIL_OK, 0);
}

static void a_loop_waits_again_if_another_was_faster(void **state) {
    (void)state;
    struct caller first, second;
    struct requester requester;
    caller_start(&first, FAILURE);
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(vigil_unref(&requester.request.op), VIGIL_OK);
    assert_int_equal(caller_join(&first), FAILURE);
    caller_start(&second, VIGIL_OK);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(requester.calls, 0);
    assert_int_equal(vigil_waiters(&once), 1);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK); /* it is still unreferenced */
    assert_int_equal(vigil_ref(&requester.request.op), VIGIL_OK);
    assert_int_equal(caller_join(&second), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_asked(&requester, VIGIL_OK, 0);
}

#define THREADS 4
#define ONCES   (UNDER_TSAN ? 200 : 2000)

static struct {
    vigil_once once;
    unsigned attempts, successes; /* not atomic: the once makes that correct */
} contested[2000];

static int fail_twice(void *argument) {
    size_t i = (size_t)(uintptr_t)argument;
    if (++contested[i].attempts <= 2) return FAILURE;
    contested[i].successes++;
    return VIGIL_OK;
}

static void *call_all(void *argument) {
    uintptr_t wrong = 0;
    (void)argument;
    for (size_t i = 0; i < ONCES; i++) {
        while (vigil_once_call(&contested[i].once, fail_twice, (void *)(uintptr_t)i) != VIGIL_OK) continue;
        wrong += contested[i].successes != 1;
    }
    return (void *)wrong;
}

static void a_contest_has_one_winner(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_all, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    for (size_t i = 0; i < ONCES; i++) assert_int_equal(contested[i].attempts, 3);
}

/* Deadlines. */

static void a_deadline_is_for_waiting(void **state) {
    (void)state;
    struct caller first;
    struct work work = {0};
    struct requester requester = {0};
    const int64_t none_ns[] = {0, -1, INT64_MIN};
    caller_start(&first, VIGIL_OK);
    for (size_t i = 0; i < COUNT_OF(none_ns); i++) {
        assert_int_equal(vigil_once_call_for(&once, do_work, &work, none_ns[i]), VIGIL_TIMED_OUT);
        assert_int_equal(ask(&requester, none_ns[i]), VIGIL_TIMED_OUT);
    }
    for (int64_t timeout_ns = 1; timeout_ns < 20 * MILLISECOND; timeout_ns *= 10) {
        int64_t due_ns = vigil_now_ns() + timeout_ns;
        assert_int_equal(vigil_once_call_for(&once, do_work, &work, timeout_ns), VIGIL_TIMED_OUT);
        assert_true(vigil_now_ns() >= due_ns);
    }
    assert_int_equal(caller_join(&first), VIGIL_OK);
    assert_int_equal(work.calls + asked.calls, 0);
}

static void a_loop_has_a_deadline_too(void **state) {
    (void)state;
    struct caller first;
    struct requester requester;
    caller_start(&first, VIGIL_OK);
    int64_t due_ns = vigil_now_ns() + MILLISECOND;
    ask_pending(&requester, MILLISECOND);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_true(vigil_now_ns() >= due_ns);
    assert_asked(&requester, VIGIL_TIMED_OUT, 0);
    assert_int_equal(caller_join(&first), VIGIL_OK);
}

static void a_loop_that_waits_again_keeps_its_deadline(void **state) {
    (void)state;
    struct caller first, second;
    struct requester requester;
    caller_start(&first, FAILURE);
    int64_t due_ns = vigil_now_ns() + 20 * MILLISECOND;
    ask_pending(&requester, 20 * MILLISECOND);
    assert_int_equal(caller_join(&first), FAILURE);
    caller_start(&second, VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_true(vigil_now_ns() >= due_ns);
    assert_asked(&requester, VIGIL_TIMED_OUT, 0);
    assert_int_equal(caller_join(&second), VIGIL_OK);
}

static void where_blocking_is_refused_nobody_waits(void **state) {
    (void)state;
    struct caller first;
    struct work work = {0};
    vigil_agent *strict = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    caller_start(&first, FAILURE);
    assert_int_equal(vigil_once_call(&once, do_work, &work), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_once_call_for(&once, do_work, &work, SECOND), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(caller_join(&first), FAILURE);
    assert_int_equal(work.calls, 0);
    assert_int_equal(vigil_once_call(&once, do_work, &work), VIGIL_OK); /* it need not wait */
    assert_int_equal(vigil_once_call(&once, do_work, &work), VIGIL_OK);
    assert_int_equal(work.calls, 1);
    end_agent(strict);
}

/* Cancel, and agents that end. */

static void cancel_takes_it_out_of_the_line(void **state) {
    (void)state;
    struct caller first;
    struct requester requester;
    caller_start(&first, VIGIL_OK);
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_EIDLE);
    assert_int_equal(caller_join(&first), VIGIL_OK);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(requester.calls, 0);
}

static void cancel_may_come_too_late(void **state) {
    (void)state;
    struct caller first;
    struct requester requester;
    caller_start(&first, VIGIL_OK);
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(caller_join(&first), VIGIL_OK);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_ETOOLATE);
    assert_int_equal(dispatch(), 1);
    assert_asked(&requester, VIGIL_OK, 0);
}

static void an_agents_end_cancels(void **state) {
    (void)state;
    struct caller first;
    struct requester requester;
    caller_start(&first, VIGIL_OK);
    ask_pending(&requester, VIGIL_FOREVER);
    end_agent(agent);
    assert_asked(&requester, VIGIL_CANCELLED, 0);
    assert_int_equal(caller_join(&first), VIGIL_OK);
    agent = new_agent(0);
}

/* Called before the agent ends: a once that is done is reported, but no function is started. */
static void an_agent_that_ends_begins_nothing(void **state) {
    (void)state;
    const int answers[] = {FAILURE, VIGIL_OK};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct caller first;
        struct requester requester;
        caller_start(&first, answers[i]);
        ask_pending(&requester, VIGIL_FOREVER);
        assert_int_equal(caller_join(&first), answers[i]);
        end_agent(agent);
        assert_asked(&requester, answers[i] == VIGIL_OK ? VIGIL_OK : VIGIL_CANCELLED, 0);
        agent = new_agent(0);
    }
}

/* The request that runs the function is pending while the function runs. */

static struct requester meddler;

static int meddle(void *argument) {
    struct work *work = argument;
    work->calls++;
    assert_int_equal(vigil_cancel(&meddler.request.op), VIGIL_ETOOLATE);
    assert_int_equal(ask(&meddler, VIGIL_FOREVER), VIGIL_EINUSE);
    return VIGIL_OK;
}

static void the_function_cannot_have_its_own_request(void **state) {
    (void)state;
    struct caller first;
    caller_start(&first, FAILURE);
    meddler = (struct requester){0};
    assert_int_equal(vigil_once_call_async(agent, &meddler.request, &once, meddle, &asked, VIGIL_FOREVER, answer),
                     VIGIL_PENDING);
    assert_int_equal(caller_join(&first), FAILURE);
    assert_int_equal(dispatch(), 1);
    assert_asked(&meddler, VIGIL_OK, 1);
}

static pid_t child;

static int fork_in_function(void *unused) {
    (void)unused;
    child = fork_here();
    return child < 0 ? FAILURE : VIGIL_OK;
}

static void the_function_may_fork(void **state) {
    (void)state;
    struct caller first;
    struct requester requester = {0};
    caller_start(&first, FAILURE);
    assert_int_equal(
        vigil_once_call_async(agent, &requester.request, &once, fork_in_function, NULL, VIGIL_FOREVER, answer),
        VIGIL_PENDING);
    assert_int_equal(caller_join(&first), FAILURE);
    int64_t dispatched = vigil_agent_dispatch(agent);
    if (child == 0) {
        CHECK(dispatched == VIGIL_EFORKED);
        CHECK(requester.calls == 0);
        CHECK(vigil_once_is_done(&once));
        _exit(0);
    }
    assert_int_equal(dispatched, 1);
    assert_asked(&requester, VIGIL_OK, 0);
    assert_int_equal(exit_status_of(child), 0);
}

/* Forget. */

static void forgetting_cancels_all(void **state) {
    (void)state;
    struct caller first, second;
    struct requester requester;
    caller_start(&first, VIGIL_OK);
    caller_wait(&second, VIGIL_OK);
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(vigil_forget(&once, sizeof once), 2);
    assert_int_equal(caller_join(&second), VIGIL_CANCELLED);
    assert_int_equal(dispatch(), 1);
    assert_asked(&requester, VIGIL_CANCELLED, 0);
    assert_int_equal(caller_join(&first), VIGIL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(null_and_misaligned_are_refused),
        TEST(a_request_in_use_is_refused),
        TEST(another_thread_is_refused),
        TEST(zero_is_new),
        TEST(it_is_called_once),
        TEST(a_failure_is_told_and_it_is_new_again),
        TEST(a_loop_calls_the_function_at_once_if_it_is_new),
        TEST(others_wait_until_it_is_done),
        TEST(after_a_failure_a_waiting_thread_is_next),
        TEST(after_a_failure_a_waiting_loop_is_next),
        TEST(nobody_waits_for_a_loop),
        TEST(a_loop_waits_again_if_another_was_faster),
        TEST(a_contest_has_one_winner),
        TEST(a_deadline_is_for_waiting),
        TEST(a_loop_has_a_deadline_too),
        TEST(a_loop_that_waits_again_keeps_its_deadline),
        TEST(where_blocking_is_refused_nobody_waits),
        TEST(cancel_takes_it_out_of_the_line),
        TEST(cancel_may_come_too_late),
        TEST(an_agents_end_cancels),
        TEST(an_agent_that_ends_begins_nothing),
        TEST(the_function_cannot_have_its_own_request),
        TEST(the_function_may_fork),
        TEST(forgetting_cancels_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
