/* SPDX-License-Identifier: MIT */
/* The semaphore: counting, one line of threads and an event loop, and which of them gets what. */
#include "support.h"

#include "vigil/sem.h"

#include "requesters.h"
#include "takers.h"

static vigil_sem locks[64]; /* one for each test */
static unsigned lock_number;
#define sem locks[lock_number]

static const void *new_lock(void) {
    assert_true(++lock_number < COUNT_OF(locks));
    sem = (vigil_sem)VIGIL_SEM_INIT(0);
    return &sem;
}

static int take(uint32_t permits, int64_t timeout_ns) {
    return vigil_sem_acquire_for(&sem, permits, timeout_ns);
}

static int ask(struct requester *requester, uint32_t permits, int64_t timeout_ns) {
    return vigil_sem_acquire_async(agent, &requester->request, &sem, permits, timeout_ns, answer);
}

static void release(uint32_t permits) {
    assert_int_equal(vigil_sem_release(&sem, permits), VIGIL_OK);
}

/* Counting. */

static void permits_are_counted(void **state) {
    (void)state;
    vigil_sem some = VIGIL_SEM_INIT(5);
    assert_int_equal(vigil_sem_value(&some), 5);
    assert_int_equal(vigil_sem_acquire(&some, 2), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&some), 3);
    assert_int_equal(vigil_sem_acquire_for(&some, 3, 0), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&some), 0);
    assert_int_equal(vigil_sem_release(&some, 7), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&some), 7);
    assert_int_equal(vigil_sem_tryacquire(&some, 7), VIGIL_OK);
    assert_int_equal(some.word, 0);
}

static void all_or_nothing(void **state) {
    (void)state;
    release(3);
    assert_int_equal(vigil_sem_tryacquire(&sem, 4), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_acquire_for(&sem, 4, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_acquire_for(&sem, 4, INT64_MIN), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_acquire_for(&sem, 4, MILLISECOND), VIGIL_TIMED_OUT);
    struct requester requester = {0};
    assert_int_equal(ask(&requester, 4, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_value(&sem), 3);
    assert_int_equal(vigil_sem_tryacquire(&sem, 3), VIGIL_OK);
}

static void there_is_a_greatest_number(void **state) {
    (void)state;
    release(VIGIL_SEM_MAX);
    assert_int_equal(vigil_sem_value(&sem), VIGIL_SEM_MAX);
    uint32_t full = LOAD(sem.word);
    assert_int_equal(vigil_sem_release(&sem, 1), VIGIL_ERANGE);
    assert_int_equal(vigil_sem_release(&sem, VIGIL_SEM_MAX), VIGIL_ERANGE);
    assert_int_equal(vigil_sem_release(&sem, UINT32_MAX), VIGIL_ERANGE);
    assert_int_equal(vigil_sem_acquire(&sem, VIGIL_SEM_MAX + 1), VIGIL_ERANGE);
    assert_int_equal(vigil_sem_tryacquire(&sem, UINT32_MAX), VIGIL_ERANGE);
    assert_int_equal(LOAD(sem.word), full);
    assert_int_equal(vigil_sem_acquire(&sem, VIGIL_SEM_MAX), VIGIL_OK);
    assert_int_equal(LOAD(sem.word), 0);
}

static void too_many_change_nothing_while_somebody_waits(void **state) {
    (void)state;
    struct taker taker;
    taker_start(&taker, VIGIL_SEM_MAX);
    release(VIGIL_SEM_MAX - 1);
    assert_int_equal(vigil_sem_release(&sem, 2), VIGIL_ERANGE);
    assert_int_equal(vigil_sem_value(&sem), VIGIL_SEM_MAX - 1);
    assert_false(taker_through(&taker));
    release(1);
    assert_int_equal(taker_join(&taker), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void wrong_arguments(void **state) {
    (void)state;
    struct requester requester = {0};
    assert_int_equal(vigil_sem_acquire(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_sem_acquire_for(NULL, 1, 1), VIGIL_ENULL);
    assert_int_equal(vigil_sem_tryacquire(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_sem_release(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_sem_value(NULL), 0);
    release(1);
    uint32_t before = LOAD(sem.word);
    assert_int_equal(vigil_sem_acquire(&sem, 0), VIGIL_EINVAL);
    assert_int_equal(vigil_sem_acquire_for(&sem, 0, 1), VIGIL_EINVAL);
    assert_int_equal(vigil_sem_tryacquire(&sem, 0), VIGIL_EINVAL);
    assert_int_equal(vigil_sem_release(&sem, 0), VIGIL_EINVAL);
    assert_int_equal(ask(&requester, 0, VIGIL_FOREVER), VIGIL_EINVAL);
    assert_int_equal(ask(&requester, VIGIL_SEM_MAX + 1, VIGIL_FOREVER), VIGIL_ERANGE);
    assert_int_equal(vigil_sem_acquire_async(NULL, &requester.request, &sem, 1, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_sem_acquire_async(agent, NULL, &sem, 1, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_sem_acquire_async(agent, &requester.request, NULL, 1, 1, answer), VIGIL_ENULL);
    assert_int_equal(vigil_sem_acquire_async(agent, &requester.request, &sem, 1, 1, NULL), VIGIL_ENULL);
    vigil_sem two[2] = {{0}, {0}};
    for (int i = 1; i < 4; i++) {
        vigil_sem *askew = (vigil_sem *)(void *)((char *)two + i);
        assert_int_equal(vigil__sem_acquire_slowly(askew, 1, 0), VIGIL_EMISALIGNED);
        assert_int_equal(vigil__sem_release_slowly(askew, 1), VIGIL_EMISALIGNED);
        assert_int_equal(vigil_sem_acquire_async(agent, &requester.request, askew, 1, 1, answer), VIGIL_EMISALIGNED);
    }
    assert_int_equal(LOAD(sem.word), before);
}

static void where_blocking_is_refused_only_waiting_is(void **state) {
    (void)state;
    vigil_agent *strict = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    release(1);
    assert_int_equal(vigil_sem_acquire(&sem, 1), VIGIL_OK);
    assert_int_equal(vigil_sem_acquire(&sem, 1), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_sem_acquire_for(&sem, 1, 1), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_sem_tryacquire(&sem, 1), VIGIL_TIMED_OUT);
    assert_int_equal(LOAD(sem.word), 0);
    end_agent(strict);
}

/* Threads in line. */

static void a_deadline_is_kept(void **state) {
    (void)state;
    int64_t due_ns = vigil_now_ns() + 2 * MILLISECOND;
    assert_int_equal(vigil_sem_acquire_for(&sem, 1, 2 * MILLISECOND), VIGIL_TIMED_OUT);
    assert_true(vigil_now_ns() >= due_ns);
    release(1); /* no waiter is there for it */
    assert_int_equal(vigil_sem_value(&sem), 1);
    assert_int_equal(vigil_sem_acquire_for(&sem, 1, 2 * MILLISECOND), VIGIL_OK);
}

static void a_release_serves_as_many_as_it_can(void **state) {
    (void)state;
    struct taker takers[4];
    for (size_t i = 0; i < COUNT_OF(takers); i++) taker_start(&takers[i], (uint32_t)i + 1);
    release(6); /* for waiters that want one, two and three */
    for (size_t i = 0; i < 3; i++) assert_int_equal(taker_join(&takers[i]), VIGIL_OK);
    assert_false(taker_through(&takers[3]));
    assert_int_equal(vigil_sem_value(&sem), 0);
    release(4);
    assert_int_equal(taker_join(&takers[3]), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void a_small_request_waits_behind_a_large_one(void **state) {
    (void)state;
    struct taker large, small;
    taker_start(&large, 3);
    taker_start(&small, 1);
    release(1);
    release(1);
    assert_false(taker_through(&large) || taker_through(&small));
    assert_int_equal(vigil_waiters(&sem), 2);
    release(1);
    assert_int_equal(taker_join(&large), VIGIL_OK);
    assert_int_equal(vigil_waiters(&sem), 1);
    release(1);
    assert_int_equal(taker_join(&small), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void what_is_saved_is_not_for_newcomers(void **state) {
    (void)state;
    struct taker large;
    taker_start(&large, 2);
    let_pass(MILLISECOND);
    release(1);
    assert_int_equal(vigil_sem_tryacquire(&sem, 1), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_value(&sem), 1);
    release(1);
    assert_int_equal(taker_join(&large), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void who_leaves_lets_the_next_one_have_it(void **state) {
    (void)state;
    struct taker large, small;
    taker_launch(&large, 3, 50 * MILLISECOND);
    AWAIT(vigil_waiters(&sem) == 1 || taker_through(&large));
    taker_launch(&small, 1, VIGIL_FOREVER);
    release(1); /* and not more: it may be taken at once, if the small request is faster */
    assert_int_equal(taker_join(&large), VIGIL_TIMED_OUT);
    assert_int_equal(taker_join(&small), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void who_waits_on_forgotten_memory_is_cancelled(void **state) {
    (void)state;
    struct taker taker;
    struct requester requester;
    taker_start(&taker, 1);
    ask_pending(&requester, 1, VIGIL_FOREVER);
    assert_int_equal(vigil_forget(&sem, sizeof sem), 2);
    assert_int_equal(taker_join(&taker), VIGIL_CANCELLED);
    until_answered(&requester, VIGIL_CANCELLED);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

/* Code that knows nothing of permits waits for a change of the word. */
static void a_plain_wait_ends_with_a_release(void **state) {
    (void)state;
    struct requester requester;
    struct sleeper sleeper = {.address = &sem, .timeout_ns = VIGIL_FOREVER};
    struct noted noted = {0};
    ask_pending(&requester, 1, VIGIL_FOREVER); /* otherwise the release would not look at the line */
    sleeper.expected = LOAD(sem.word);
    sleeper_launch(&sleeper);
    AWAIT(waiters_in_line(&sem) == 2);
    int status = vigil_wait32_async(agent, &noted.op, &sem, LOAD(sem.word), VIGIL_FOREVER, note);
    assert_int_equal(status, VIGIL_PENDING);
    release(1);
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
    until_answered(&requester, VIGIL_OK);
    assert_int_equal(noted.calls, 1);
    assert_int_equal(noted.status, VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

/* What its slot was used for before does not matter either. */
static void a_plain_wait_of_a_loop_wants_nothing(void **state) {
    (void)state;
    static struct requester large, small;
    static struct noted noted;
    ask_pending(&large, 1000, VIGIL_FOREVER);
    assert_int_equal(vigil_cancel(&large.request.op), VIGIL_OK);
    assert_int_equal(vigil_wait32_async(agent, &noted.op, &sem, LOAD(sem.word), VIGIL_FOREVER, note), VIGIL_PENDING);
    ask_pending(&small, 1, VIGIL_FOREVER);
    release(1);
    dispatch();
    assert_answered(&small, VIGIL_OK);
    assert_int_equal(noted.calls, 1);
    assert_int_equal(noted.status, VIGIL_OK);
}

/* The event loop. */

static void what_is_there_is_had_at_once(void **state) {
    (void)state;
    struct requester requester = {0};
    release(3);
    assert_int_equal(ask(&requester, 2, VIGIL_FOREVER), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 1);
    dispatch();
    assert_int_equal(requester.calls, 0);
}

static void a_loop_is_served_when_there_are_enough(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, 2, VIGIL_FOREVER);
    assert_int_equal(ask(&requester, 2, VIGIL_FOREVER), VIGIL_EINUSE);
    release(1);
    dispatch();
    assert_int_equal(requester.calls, 0);
    release(1);
    until_answered(&requester, VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void requests_of_a_loop_are_served_in_order(void **state) {
    (void)state;
    struct requester requesters[3];
    for (size_t i = 0; i < COUNT_OF(requesters); i++) ask_pending(&requesters[i], (uint32_t)i + 1, VIGIL_FOREVER);
    assert_int_equal(vigil_waiters(&sem), 1);
    release(3);
    until_answered(&requesters[0], VIGIL_OK);
    until_answered(&requesters[1], VIGIL_OK);
    assert_int_equal(requesters[2].calls, 0);
    release(3);
    until_answered(&requesters[2], VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void a_request_times_out(void **state) {
    (void)state;
    struct requester requester;
    int64_t due_ns = vigil_now_ns() + MILLISECOND;
    ask_pending(&requester, 1, MILLISECOND);
    until_answered(&requester, VIGIL_TIMED_OUT);
    assert_true(vigil_now_ns() >= due_ns);
    assert_int_equal(vigil_waiters(&sem), 0);
    release(1);
    assert_int_equal(vigil_sem_value(&sem), 1);
}

static void a_large_request_that_goes_lets_a_thread_have_it(void **state) {
    (void)state;
    for (int how = 0; how < WAYS_TO_GO; how++) {
        struct requester requester;
        struct taker taker;
        ask_pending(&requester, 2, how == AT_ITS_DEADLINE ? MILLISECOND : VIGIL_FOREVER);
        taker_start(&taker, 1);
        release(1);
        assert_int_equal(vigil_sem_value(&sem), 1);
        assert_false(taker_through(&taker));
        requester_goes(&requester, how);
        assert_int_equal(taker_join(&taker), VIGIL_OK);
        assert_int_equal(vigil_sem_value(&sem), 0);
    }
}

static void a_small_request_inherits_a_large_ones_place(void **state) {
    (void)state;
    struct requester large, small;
    ask_pending(&large, 2, VIGIL_FOREVER);
    ask_pending(&small, 1, VIGIL_FOREVER);
    release(1);
    assert_int_equal(vigil_cancel(&large.request.op), VIGIL_OK);
    until_answered(&small, VIGIL_OK);
    assert_int_equal(large.calls, 0);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void what_was_for_a_cancelled_request_goes_on(void **state) {
    (void)state;
    struct requester requester;
    ask_pending(&requester, 1, VIGIL_FOREVER);
    release(1); /* it has been called */
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
    dispatch();
    assert_int_equal(requester.calls, 0);
    assert_int_equal(vigil_sem_tryacquire(&sem, 1), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

static void a_loop_that_does_not_run_keeps_nobody_from_it(void **state) {
    (void)state;
    struct requester requester;
    struct taker taker;
    ask_pending(&requester, 1, VIGIL_FOREVER);
    taker_start(&taker, 1);
    let_pass(MILLISECOND);
    release(1); /* reserved for the loop, which does not run */
    assert_int_equal(taker_join(&taker), VIGIL_OK);
    dispatch();
    assert_int_equal(requester.calls, 0);
    release(1);
    until_answered(&requester, VIGIL_OK);
}

/* Forgotten, and freed before the loop is told: the address sanitizer checks. */

static void start_on(vigil_sem *which, struct requester *requester, vigil_callback *callback) {
    *requester = (struct requester){0};
    int status = vigil_sem_acquire_async(agent, &requester->request, which, 1, VIGIL_FOREVER, callback);
    assert_int_equal(status, VIGIL_PENDING);
}

static void forget_and_free(vigil_sem *which) {
    assert_int_equal(vigil_forget(which, sizeof *which), 1);
    free(which);
}

static void a_request_goes_that_was_for_freed_memory(void **state) {
    (void)state;
    for (int how = CANCELLED; how < WAYS_TO_GO; how++) {
        struct requester requester, next;
        vigil_sem *gone = calloc(1, sizeof *gone);
        start_on(gone, &requester, answer);
        forget_and_free(gone);
        requester_goes(&requester, how);
        dispatch();
        gone = calloc(1, sizeof *gone);
        start_on(gone, &requester, answer);
        start_on(gone, &next, answer);
        forget_and_free(gone);
        requester_goes(&requester, how); /* and its place goes to the next */
        until_answered(&next, VIGIL_CANCELLED);
        assert_int_equal(requester.calls, how == CANCELLED ? 0 : 1);
    }
}

static struct requester victim;

static void cancel_the_victim(vigil_op *op, int status) {
    answer(op, status);
    assert_int_equal(vigil_cancel(&victim.request.op), VIGIL_OK);
}

static void who_hears_of_it_cancels_the_next(void **state) {
    (void)state;
    struct requester requester;
    vigil_sem *gone = calloc(1, sizeof *gone);
    start_on(gone, &requester, cancel_the_victim);
    start_on(gone, &victim, answer);
    forget_and_free(gone);
    until_answered(&requester, VIGIL_CANCELLED);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(victim.calls, 0);
}

/* All together. */

#define SUPPLY 4
#define ROUNDS (UNDER_TSAN ? 2000 : 10000)

static int32_t in_use, most_in_use;

static void use(int32_t permits) {
    int32_t now = __atomic_add_fetch(&in_use, permits, __ATOMIC_RELAXED);
    for (int32_t most = LOAD(most_in_use); now > most;) {
        if (__atomic_compare_exchange_n(&most_in_use, &most, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
    }
    __atomic_sub_fetch(&in_use, permits, __ATOMIC_RELAXED);
}

static void *user_main(void *seed) {
    uint64_t random = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t permits = (uint32_t)(random_next(&random) % SUPPLY) + 1;
        int64_t timeout_ns = random_next(&random) % 4 ? VIGIL_FOREVER : 10 * MICROSECOND;
        int status = vigil_sem_acquire_for(&sem, permits, timeout_ns);
        if (status == VIGIL_TIMED_OUT && timeout_ns != VIGIL_FOREVER) continue;
        if (status != VIGIL_OK) return "acquire";
        use((int32_t)permits);
        if (vigil_sem_release(&sem, permits) != VIGIL_OK) return "release";
    }
    return NULL;
}

static void use_and_release(vigil_op *op, int status) {
    answer(op, status);
    if (status != VIGIL_OK) return;
    use(2);
    release(2);
}

static void nobody_holds_what_there_is_not(void **state) {
    (void)state;
    pthread_t users[3];
    in_use = most_in_use = 0;
    release(SUPPLY);
    launch_all(users, COUNT_OF(users), user_main);
    for (int i = 0; i < ROUNDS; i++) {
        struct requester requester = {0};
        int status = vigil_sem_acquire_async(agent, &requester.request, &sem, 2, VIGIL_FOREVER, use_and_release);
        if (status == VIGIL_OK) use_and_release(&requester.request.op, status);
        else if (i % 3 == 0) assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
        else until_answered(&requester, VIGIL_OK);
    }
    join_all(users, COUNT_OF(users));
    assert_true(most_in_use > 0 && most_in_use <= SUPPLY);
    assert_int_equal(vigil_sem_value(&sem), SUPPLY);
    assert_int_equal(vigil_sem_acquire(&sem, SUPPLY), VIGIL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(permits_are_counted),
        TEST(all_or_nothing),
        TEST(there_is_a_greatest_number),
        TEST(too_many_change_nothing_while_somebody_waits),
        TEST(wrong_arguments),
        TEST(where_blocking_is_refused_only_waiting_is),
        TEST(a_deadline_is_kept),
        TEST(a_release_serves_as_many_as_it_can),
        TEST(a_small_request_waits_behind_a_large_one),
        TEST(what_is_saved_is_not_for_newcomers),
        TEST(who_leaves_lets_the_next_one_have_it),
        TEST(who_waits_on_forgotten_memory_is_cancelled),
        TEST(a_plain_wait_ends_with_a_release),
        TEST(a_plain_wait_of_a_loop_wants_nothing),
        TEST(what_is_there_is_had_at_once),
        TEST(a_loop_is_served_when_there_are_enough),
        TEST(requests_of_a_loop_are_served_in_order),
        TEST(a_request_times_out),
        TEST(a_large_request_that_goes_lets_a_thread_have_it),
        TEST(a_small_request_inherits_a_large_ones_place),
        TEST(what_was_for_a_cancelled_request_goes_on),
        TEST(a_loop_that_does_not_run_keeps_nobody_from_it),
        TEST(a_request_goes_that_was_for_freed_memory),
        TEST(who_hears_of_it_cancels_the_next),
        TEST(nobody_holds_what_there_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
