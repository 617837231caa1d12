/* SPDX-License-Identifier: MIT */
/* The barrier, on real threads and with an event loop. */
#include "support.h"

#include "vigil/barrier.h"

#include "requesters.h"

#define ROUND            65536u
#define ARRIVED(barrier) (LOAD((barrier).word) % ROUND)

static vigil_barrier pair; /* of two parties */

static const void *new_lock(void) {
    pair = (vigil_barrier)VIGIL_BARRIER_INIT(2);
    return &pair;
}

/* A thread that arrives. */
struct arriver {
    pthread_t thread;
    vigil_barrier *barrier;
    int64_t timeout_ns;
    int status;
};

static void *arriver_main(void *argument) {
    struct arriver *me = argument;
    me->status = vigil_barrier_wait_for(me->barrier, me->timeout_ns);
    return NULL;
}

/* Returns once it is in line. */
static void arriver_start(struct arriver *arriver, vigil_barrier *barrier) {
    int64_t before = vigil_waiters(barrier);
    *arriver = (struct arriver){.barrier = barrier, .timeout_ns = VIGIL_FOREVER};
    assert_int_equal(pthread_create(&arriver->thread, NULL, arriver_main, arriver), 0);
    AWAIT(vigil_waiters(barrier) > before);
}

static int arriver_join(struct arriver *arriver) {
    assert_int_equal(pthread_join(arriver->thread, NULL), 0);
    return arriver->status;
}

static int ask(struct requester *requester, vigil_barrier *barrier, int64_t timeout_ns) {
    return vigil_barrier_wait_async(agent, &requester->request, barrier, timeout_ns, answer);
}

static void ask_pending(struct requester *requester, int64_t timeout_ns) {
    *requester = (struct requester){0};
    assert_int_equal(ask(requester, &pair, timeout_ns), VIGIL_PENDING);
    assert_int_equal(ARRIVED(pair), 1);
}

/* Arguments. */

static void null_and_misaligned_are_refused(void **state) {
    (void)state;
    struct requester requester = {0};
    vigil_barrier *misaligned = (vigil_barrier *)(void *)((char *)&pair + 2);
    assert_int_equal(vigil_barrier_wait(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_barrier_wait_for(NULL, 0), VIGIL_ENULL);
    assert_int_equal(vigil_barrier_wait(misaligned), VIGIL_EMISALIGNED);
    assert_int_equal(ask(&requester, NULL, 1), VIGIL_ENULL);
    assert_int_equal(ask(&requester, misaligned, 1), VIGIL_EMISALIGNED);
    assert_int_equal(vigil_barrier_wait_async(NULL, &requester.request, &pair, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_barrier_wait_async(agent, NULL, &pair, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_barrier_wait_async(agent, &requester.request, &pair, 1, NULL), VIGIL_ENULL);
    assert_int_equal(pair.word, 0);
}

static void numbers_of_parties_that_mean_nothing_are_refused(void **state) {
    (void)state;
    const uint32_t numbers[] = {0, ROUND, ROUND + 1, UINT32_MAX};
    struct requester requester = {0};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        vigil_barrier wrong = VIGIL_BARRIER_INIT(numbers[i]);
        assert_int_equal(vigil_barrier_wait(&wrong), VIGIL_EINVAL);
        assert_int_equal(vigil_barrier_wait_for(&wrong, 0), VIGIL_EINVAL);
        assert_int_equal(ask(&requester, &wrong, VIGIL_FOREVER), VIGIL_EINVAL);
        assert_int_equal(wrong.word, 0);
    }
}

static void a_request_in_use_is_refused(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(ask(&requester, &pair, VIGIL_FOREVER), VIGIL_EINUSE);
    assert_int_equal(ARRIVED(pair), 1);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
}

static void *ask_elsewhere(void *argument) {
    struct requester *requester = argument;
    requester->status = ask(requester, &pair, VIGIL_FOREVER);
    return NULL;
}

static void another_thread_is_refused(void **state) {
    (void)state;
    struct requester requester = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_elsewhere, &requester), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(requester.status, VIGIL_EWRONGTHREAD);
    assert_int_equal(pair.word, 0);
}

/* Meeting. */

static void one_alone_is_always_the_last(void **state) {
    (void)state;
    vigil_barrier alone = VIGIL_BARRIER_INIT(1);
    struct requester requester = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vigil_barrier_wait(&alone), VIGIL_LAST);
        assert_int_equal(vigil_barrier_wait_for(&alone, 0), VIGIL_LAST);
        assert_int_equal(ask(&requester, &alone, 0), VIGIL_LAST);
    }
    assert_int_equal(ARRIVED(alone), 0);
    assert_int_equal(dispatch(), 0);
}

static void the_last_one_is_told_apart(void **state) {
    (void)state;
    vigil_barrier three = VIGIL_BARRIER_INIT(3);
    for (int round = 0; round < 3; round++) {
        struct arriver first, second;
        arriver_start(&first, &three);
        arriver_start(&second, &three);
        assert_int_equal(vigil_barrier_wait(&three), VIGIL_LAST);
        assert_int_equal(arriver_join(&first), VIGIL_OK);
        assert_int_equal(arriver_join(&second), VIGIL_OK);
    }
}

#define THREADS 4
#define ROUNDS  (UNDER_TSAN ? 300 : 3000)

static vigil_barrier crowd = VIGIL_BARRIER_INIT(THREADS);
static unsigned passed[THREADS], last_ones; /* not atomic: the barrier makes that correct */

static void *pass_all_rounds(void *argument) {
    size_t me = (size_t)(uintptr_t)argument, wrong = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        passed[me]++;
        if (vigil_barrier_wait(&crowd) == VIGIL_LAST) last_ones++; /* alone, until all are at the next barrier */
        for (size_t i = 0; i < THREADS; i++) wrong += passed[i] != (unsigned)round;
        vigil_barrier_wait(&crowd);
    }
    return (void *)(uintptr_t)wrong;
}

static void each_round_is_everybodys(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, pass_all_rounds, (void *)(uintptr_t)i), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_int_equal(last_ones, ROUNDS);
    assert_int_equal(ARRIVED(crowd), 0);
}

static void rounds_are_counted_from_zero_again(void **state) {
    (void)state;
    for (unsigned i = 0; i < ROUND + 2; i++) {
        struct requester requester;
        ask_pending(&requester, VIGIL_FOREVER);
        assert_int_equal(vigil_barrier_wait_for(&pair, 0), VIGIL_LAST);
        assert_int_equal(dispatch(), 1);
        assert_answered(&requester, VIGIL_OK);
    }
    assert_int_equal(pair.word, 2 * ROUND);
}

static void as_many_parties_as_there_can_be(void **state) {
    (void)state;
    vigil_barrier full = VIGIL_BARRIER_INIT(ROUND - 1);
    unsigned others = ROUND - 2;
    struct requester *requesters = calloc(others, sizeof *requesters);
    assert_non_null(requesters);
    for (unsigned i = 0; i < others; i++) assert_int_equal(ask(&requesters[i], &full, VIGIL_FOREVER), VIGIL_PENDING);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(vigil_barrier_wait(&full), VIGIL_LAST);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    for (unsigned i = 0; i < others; i++) assert_answered(&requesters[i], VIGIL_OK);
    assert_int_equal(full.word, ROUND);
    free(requesters);
}

/* Deadlines of threads. */

static void a_deadline_takes_the_arrival_back(void **state) {
    (void)state;
    for (int64_t timeout_ns = 1; timeout_ns < 20 * MILLISECOND; timeout_ns *= 10) {
        int64_t due_ns = vigil_now_ns() + timeout_ns;
        assert_int_equal(vigil_barrier_wait_for(&pair, timeout_ns), VIGIL_TIMED_OUT);
        assert_true(vigil_now_ns() >= due_ns);
        assert_int_equal(pair.word, 0);
    }
    struct arriver other;
    arriver_start(&other, &pair);
    assert_int_equal(vigil_barrier_wait_for(&pair, SECOND), VIGIL_LAST);
    assert_int_equal(arriver_join(&other), VIGIL_OK);
}

static void without_time_only_the_last_one_arrives(void **state) {
    (void)state;
    const int64_t timeouts_ns[] = {0, -1, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(timeouts_ns); i++) {
        struct requester requester = {0};
        assert_int_equal(vigil_barrier_wait_for(&pair, timeouts_ns[i]), VIGIL_TIMED_OUT);
        assert_int_equal(ask(&requester, &pair, timeouts_ns[i]), VIGIL_TIMED_OUT);
        assert_int_equal(ARRIVED(pair), 0);
        struct arriver other;
        arriver_start(&other, &pair);
        assert_int_equal(vigil_barrier_wait_for(&pair, timeouts_ns[i]), VIGIL_LAST);
        assert_int_equal(arriver_join(&other), VIGIL_OK);
    }
}

static void where_blocking_is_refused_nobody_arrives(void **state) {
    (void)state;
    vigil_agent *strict = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    assert_int_equal(vigil_barrier_wait(&pair), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_barrier_wait_for(&pair, SECOND), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(pair.word, 0);
    struct arriver other;
    arriver_start(&other, &pair);
    assert_int_equal(vigil_barrier_wait(&pair), VIGIL_LAST); /* the last party need not wait */
    assert_int_equal(arriver_join(&other), VIGIL_OK);
    end_agent(strict);
}

/* Event loops. */

static void a_loop_waits_for_a_thread(void **state) {
    (void)state;
    struct requester requester;
    struct arriver other = {.barrier = &pair, .timeout_ns = VIGIL_FOREVER};
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(pthread_create(&other.thread, NULL, arriver_main, &other), 0);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_answered(&requester, VIGIL_OK);
    assert_int_equal(arriver_join(&other), VIGIL_LAST);
}

static void a_loop_that_is_the_last_does_not_wait(void **state) {
    (void)state;
    struct requester requester = {0};
    struct arriver other;
    arriver_start(&other, &pair);
    assert_int_equal(ask(&requester, &pair, VIGIL_FOREVER), VIGIL_LAST);
    assert_int_equal(arriver_join(&other), VIGIL_OK);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(requester.calls, 0);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_EIDLE);
}

static void a_loops_deadline_takes_the_arrival_back(void **state) {
    (void)state;
    struct requester requester;
    int64_t due_ns = vigil_now_ns() + MILLISECOND;
    ask_pending(&requester, MILLISECOND);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_true(vigil_now_ns() >= due_ns);
    assert_answered(&requester, VIGIL_TIMED_OUT);
    assert_int_equal(pair.word, 0);
}

static void a_deadline_after_the_last_one_changes_nothing(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, 1);
    assert_int_equal(vigil_barrier_wait(&pair), VIGIL_LAST);
    AWAIT(vigil_now_ns() >= (int64_t)requester.request.op.deadline_ns);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_answered(&requester, VIGIL_OK);
    assert_int_equal(pair.word, ROUND);
}

static void cancel_takes_the_arrival_back(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
    assert_int_equal(pair.word, 0);
    assert_int_equal(vigil_waiters(&pair), 0);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_EIDLE);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(requester.calls, 0);
}

static void cancel_may_come_too_late(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(vigil_barrier_wait(&pair), VIGIL_LAST);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_ETOOLATE);
    assert_int_equal(dispatch(), 1);
    assert_answered(&requester, VIGIL_OK);
}

static void an_agents_end_takes_the_arrival_back(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, VIGIL_FOREVER);
    end_agent(agent);
    assert_answered(&requester, VIGIL_CANCELLED);
    assert_int_equal(pair.word, 0);
    agent = new_agent(0);
}

static void who_has_been_counted_is_told_so_at_the_agents_end(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(vigil_barrier_wait(&pair), VIGIL_LAST);
    end_agent(agent);
    assert_answered(&requester, VIGIL_OK);
    agent = new_agent(0);
}

static void an_unreferenced_request_keeps_nothing_going(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, VIGIL_FOREVER);
    assert_int_equal(vigil_unref(&requester.request.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(requester.calls, 0);
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
}

static void arrive_again(vigil_op *op, int status) {
    answer(op, status);
    assert_int_equal(vigil_barrier_wait_async(agent, &((struct requester *)op)->request, &pair, VIGIL_FOREVER, answer),
                     VIGIL_PENDING);
}

static void a_callback_may_arrive_again(void **state) {
    (void)state;
    struct requester requester = {0};
    assert_int_equal(vigil_barrier_wait_async(agent, &requester.request, &pair, VIGIL_FOREVER, arrive_again),
                     VIGIL_PENDING);
    for (unsigned round = 1; round <= 2; round++) {
        assert_int_equal(vigil_barrier_wait(&pair), VIGIL_LAST);
        assert_int_equal(dispatch(), 1);
        assert_int_equal(requester.calls, round);
    }
    assert_int_equal(pair.word, 2 * ROUND);
}

/* Forget. */

static void forgetting_cancels_all(void **state) {
    (void)state;
    vigil_barrier *three = malloc(sizeof *three);
    assert_non_null(three);
    *three = (vigil_barrier)VIGIL_BARRIER_INIT(3);
    struct arriver thread;
    struct requester requester = {0};
    arriver_start(&thread, three);
    assert_int_equal(ask(&requester, three, VIGIL_FOREVER), VIGIL_PENDING);
    assert_int_equal(vigil_forget(three, sizeof *three), 2);
    free(three);
    assert_int_equal(arriver_join(&thread), VIGIL_CANCELLED);
    assert_int_equal(dispatch(), 1);
    assert_answered(&requester, VIGIL_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(null_and_misaligned_are_refused),
        TEST(numbers_of_parties_that_mean_nothing_are_refused),
        TEST(a_request_in_use_is_refused),
        TEST(another_thread_is_refused),
        TEST(one_alone_is_always_the_last),
        TEST(the_last_one_is_told_apart),
        TEST(each_round_is_everybodys),
        TEST(rounds_are_counted_from_zero_again),
        TEST(as_many_parties_as_there_can_be),
        TEST(a_deadline_takes_the_arrival_back),
        TEST(without_time_only_the_last_one_arrives),
        TEST(where_blocking_is_refused_nobody_arrives),
        TEST(a_loop_waits_for_a_thread),
        TEST(a_loop_that_is_the_last_does_not_wait),
        TEST(a_loops_deadline_takes_the_arrival_back),
        TEST(a_deadline_after_the_last_one_changes_nothing),
        TEST(cancel_takes_the_arrival_back),
        TEST(cancel_may_come_too_late),
        TEST(an_agents_end_takes_the_arrival_back),
        TEST(who_has_been_counted_is_told_so_at_the_agents_end),
        TEST(an_unreferenced_request_keeps_nothing_going),
        TEST(a_callback_may_arrive_again),
        TEST(forgetting_cancels_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
