/* SPDX-License-Identifier: MIT */
/* Condition variables, on real threads and agents. */
#include "support.h"
#include "vigil/cond.h"

#include "agent_fixture.h"

static vigil_mutex mutex;
static vigil_cond cond;

static int set_up_cond(void **state) {
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    cond = (vigil_cond)VIGIL_COND_INIT;
    return set_up(state);
}

static int tear_down_cond(void **state) {
    bool clean = !vigil_mutex_is_locked(&mutex) && !waiters_in_line(&mutex) && !waiters_in_line(&cond);
    return tear_down(state) || !clean;
}

/* A thread that waits once, and records when it got the mutex back. */
struct waiter {
    pthread_t thread;
    int64_t timeout_ns;
    int status, turn;
};

static int turns;

static void *wait_once(void *argument) {
    struct waiter *waiter = argument;
    vigil_mutex_lock(&mutex);
    int status = vigil_cond_wait_for(&cond, &mutex, waiter->timeout_ns);
    waiter->turn = ++turns;
    vigil_mutex_unlock(&mutex);
    STORE(waiter->status, status);
    return NULL;
}

static void waiter_start(struct waiter *waiter, int64_t timeout_ns) {
    unsigned before = waiters_in_line(&cond);
    *waiter = (struct waiter){.timeout_ns = timeout_ns, .status = UNDECIDED};
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_once, waiter), 0);
    AWAIT(waiters_in_line(&cond) > before || LOAD(waiter->status) != UNDECIDED);
}

static int waiter_join(struct waiter *waiter) {
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    return waiter->status;
}

static void lock(void) {
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OK);
}

static void unlock(void) {
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_OK);
}

static void nobody_is_signalled(void **state) {
    (void)state;
    assert_int_equal(vigil_cond_signal(&cond), 0);
    assert_int_equal(vigil_cond_broadcast(&cond), 0);
}

static void errors_change_nothing(void **state) {
    (void)state;
    vigil_request request = {0};
    vigil_callback *never = (vigil_callback *)(uintptr_t)1;
    vigil_cond *crooked = (vigil_cond *)(void *)((char *)storage + 1);
    lock();
    assert_int_equal(vigil_cond_wait(NULL, &mutex), VIGIL_ENULL);
    assert_int_equal(vigil_cond_wait(&cond, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_cond_wait(crooked, &mutex), VIGIL_EMISALIGNED);
    assert_int_equal(vigil_cond_signal(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_cond_broadcast(crooked), VIGIL_EMISALIGNED);
    assert_int_equal(vigil_cond_wait_for(&cond, &mutex, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_cond_wait_for(&cond, &mutex, -1), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_cond_wait_async(NULL, &request, &cond, &mutex, 1, never), VIGIL_ENULL);
    assert_int_equal(vigil_cond_wait_async(agent, NULL, &cond, &mutex, 1, never), VIGIL_ENULL);
    assert_int_equal(vigil_cond_wait_async(agent, &request, &cond, &mutex, 1, NULL), VIGIL_ENULL);
    assert_true(vigil_mutex_is_locked(&mutex));
    unlock();
    assert_int_equal(vigil_cond_wait(&cond, &mutex), VIGIL_ENOTHELD);
    assert_int_equal(vigil_cond_wait_async(agent, &request, &cond, &mutex, 1, never), VIGIL_ENOTHELD);
}

static void refused_where_blocking_is(void **state) {
    (void)state;
    vigil_agent *strict;
    assert_int_equal(vigil_agent_create(&strict, VIGIL_AGENT_MAY_NOT_BLOCK), VIGIL_OK);
    lock();
    assert_int_equal(vigil_cond_wait(&cond, &mutex), VIGIL_EMAYNOTBLOCK);
    assert_true(vigil_mutex_is_locked(&mutex));
    unlock();
    vigil_agent_destroy(strict);
}

static void a_signal_is_for_one_in_turn(void **state) {
    (void)state;
    struct waiter waiters[3];
    turns = 0;
    for (unsigned i = 0; i < COUNT_OF(waiters); i++) waiter_start(&waiters[i], VIGIL_FOREVER);
    for (unsigned i = 0; i < COUNT_OF(waiters); i++) {
        lock();
        assert_int_equal(vigil_cond_signal(&cond), 1);
        unlock();
        assert_int_equal(waiter_join(&waiters[i]), VIGIL_OK);
        assert_int_equal(waiters_in_line(&cond), COUNT_OF(waiters) - 1 - i);
    }
}

static void a_broadcast_moves_them_to_the_mutex(void **state) {
    (void)state;
    struct waiter waiters[4];
    turns = 0;
    for (unsigned i = 0; i < COUNT_OF(waiters); i++) waiter_start(&waiters[i], VIGIL_FOREVER);
    AWAIT(asleep(&cond) == COUNT_OF(waiters));
    lock();
    assert_int_equal(vigil_cond_broadcast(&cond), COUNT_OF(waiters));
    assert_int_equal(waiters_in_line(&cond), 0);
    assert_int_equal(asleep(&mutex), COUNT_OF(waiters)); /* no thundering herd: no thread was woken */
    unlock();
    for (unsigned i = 0; i < COUNT_OF(waiters); i++) assert_int_equal(waiter_join(&waiters[i]), VIGIL_OK);
}

static void moved_ones_are_served_in_turn(void **state) {
    (void)state;
    struct waiter waiters[4];
    turns = 0;
    mutex = (vigil_mutex)VIGIL_MUTEX_FAIR;
    for (unsigned i = 0; i < COUNT_OF(waiters); i++) waiter_start(&waiters[i], VIGIL_FOREVER);
    lock();
    assert_int_equal(vigil_cond_broadcast(&cond), COUNT_OF(waiters));
    unlock();
    for (unsigned i = 0; i < COUNT_OF(waiters); i++) {
        assert_int_equal(waiter_join(&waiters[i]), VIGIL_OK);
        assert_int_equal(waiters[i].turn, i + 1);
    }
}

static void signals_without_the_mutex(void **state) {
    (void)state;
    struct waiter waiters[3];
    for (unsigned i = 0; i < COUNT_OF(waiters); i++) waiter_start(&waiters[i], VIGIL_FOREVER);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(waiter_join(&waiters[0]), VIGIL_OK);
    assert_int_equal(vigil_cond_broadcast(&cond), 2);
    assert_int_equal(waiter_join(&waiters[1]), VIGIL_OK);
    assert_int_equal(waiter_join(&waiters[2]), VIGIL_OK);
}

static void times_out_with_the_mutex(void **state) {
    (void)state;
    struct waiter waiter;
    int64_t before_ns = vigil_now_ns();
    waiter_start(&waiter, 2 * MILLISECOND);
    assert_int_equal(waiter_join(&waiter), VIGIL_TIMED_OUT);
    assert_true(vigil_now_ns() - before_ns >= 2 * MILLISECOND);
}

/*
 * The usual loop with a deadline that has passed, and a thread that waits for the mutex in order to make the condition
 * true.
 */

static bool ready;

static void *make_ready(void *unused) {
    lock();
    ready = true;
    unlock();
    return unused;
}

static void *make_ready_when_signalled(void *unused) {
    lock();
    vigil_cond_wait(&cond, &mutex);
    ready = true;
    unlock();
    return unused;
}

/* Called with the mutex held, and that thread in its line. Returns how many turns it takes. */
static int turns_until_ready(void) {
    int count = 0;
    for (; !ready && count < 1000; count++)
        assert_int_equal(vigil_cond_wait_for(&cond, &mutex, -count), VIGIL_TIMED_OUT);
    return count;
}

static void a_late_wait_lets_others_in(void **state) {
    (void)state;
    for (int fair = 0; fair < 2; fair++) {
        pthread_t thread;
        if (fair) mutex = (vigil_mutex)VIGIL_MUTEX_FAIR;
        ready = false;
        lock();
        assert_int_equal(pthread_create(&thread, NULL, make_ready, NULL), 0);
        AWAIT(waiters_in_line(&mutex) == 1);
        assert_int_equal(turns_until_ready(), 1);
        unlock();
        pthread_join(thread, NULL);
    }
}

static void a_late_wait_lets_signalled_ones_in(void **state) {
    (void)state;
    pthread_t thread;
    ready = false;
    assert_int_equal(pthread_create(&thread, NULL, make_ready_when_signalled, NULL), 0);
    AWAIT(asleep(&cond) == 1);
    lock();
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(waiters_in_line(&mutex), 1);
    assert_int_equal(turns_until_ready(), 1);
    unlock();
    pthread_join(thread, NULL);
}

/* A signal is only for waiters that wait for it. */
static void a_late_wait_takes_no_signal(void **state) {
    (void)state;
    struct waiter waiter;
    waiter_start(&waiter, VIGIL_FOREVER);
    lock();
    assert_int_equal(vigil_cond_wait_for(&cond, &mutex, 0), VIGIL_TIMED_OUT);
    assert_int_equal(waiters_in_line(&cond), 1);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    unlock();
    assert_int_equal(waiter_join(&waiter), VIGIL_OK);
}

/* The timeout is for the signal only: a signal in time counts, however long the mutex is unavailable after that. */
static void a_signal_in_time_holds(void **state) {
    (void)state;
    struct waiter waiter;
    waiter_start(&waiter, SECOND);
    lock();
    bool signalled = vigil_cond_signal(&cond) == 1;
    int64_t deadline_ns = vigil_now_ns() + SECOND + 10 * MILLISECOND;
    AWAIT(vigil_now_ns() > deadline_ns);
    unlock();
    assert_int_equal(waiter_join(&waiter), signalled ? VIGIL_OK : VIGIL_TIMED_OUT);
}

static void forgotten(void **state) {
    (void)state;
    struct waiter waiter;
    vigil_mutex_lock(&mutex);
    vigil_mutex_unlock(&mutex);
    waiter_start(&waiter, VIGIL_FOREVER);
    assert_int_equal(vigil_forget(&cond, sizeof cond), 1);
    AWAIT(LOAD(waiter.status) != UNDECIDED);
    assert_int_equal(waiter_join(&waiter), VIGIL_CANCELLED);
}

/* Event loops. */

static int last_status, calls;
static bool held;

static void look(vigil_op *op, int status) {
    (void)op;
    calls++;
    last_status = status;
    held = vigil_mutex_is_locked(&mutex);
    if (status == VIGIL_OK || status == VIGIL_TIMED_OUT) unlock();
}

static void wait_async(vigil_request *request, int64_t timeout_ns) {
    calls = 0;
    lock();
    assert_int_equal(vigil_cond_wait_async(agent, request, &cond, &mutex, timeout_ns, look), VIGIL_PENDING);
}

static void a_loop_is_signalled(void **state) {
    (void)state;
    vigil_request request = {0};
    wait_async(&request, VIGIL_FOREVER);
    assert_int_equal(vigil_mutex_trylock(&mutex), VIGIL_OK); /* the mutex has been released */
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(calls, 0); /* not before the mutex is available */
    unlock();
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(last_status, VIGIL_OK);
    assert_true(held);
}

static void a_loop_times_out(void **state) {
    (void)state;
    vigil_request request = {0};
    wait_async(&request, 2 * MILLISECOND);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(last_status, VIGIL_TIMED_OUT);
    assert_true(held);
}

/* A deadline that has passed is no exception: the mutex is released, and granted again after the waiters before it. */
static void a_late_loop_lets_others_in(void **state) {
    (void)state;
    vigil_request request = {0};
    pthread_t thread;
    ready = false;
    calls = 0;
    lock();
    assert_int_equal(pthread_create(&thread, NULL, make_ready, NULL), 0);
    AWAIT(waiters_in_line(&mutex) == 1);
    assert_int_equal(vigil_cond_wait_async(agent, &request, &cond, &mutex, 0, look), VIGIL_PENDING);
    assert_int_equal(waiters_in_line(&cond), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(ready);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(last_status, VIGIL_TIMED_OUT);
    assert_true(held);
    wait_async(&request, -1); /* with no other waiter there */
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(last_status, VIGIL_TIMED_OUT);
}

static void loops_and_threads_in_one_line(void **state) {
    (void)state;
    vigil_request request = {0};
    struct waiter before, after;
    waiter_start(&before, VIGIL_FOREVER);
    wait_async(&request, VIGIL_FOREVER);
    waiter_start(&after, VIGIL_FOREVER);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(waiter_join(&before), VIGIL_OK);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(waiter_join(&after), VIGIL_OK);
}

static void a_wait_is_cancelled(void **state) {
    (void)state;
    vigil_request request = {0};
    wait_async(&request, VIGIL_FOREVER);
    assert_int_equal(vigil_cancel(&request.op), VIGIL_OK);
    assert_int_equal(vigil_cond_signal(&cond), 0);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(calls, 0);
}

/* Cancelled after the signal, while waiting for the mutex: the signal is not lost. */
static void the_signal_of_a_cancelled_one_goes_on(void **state) {
    (void)state;
    vigil_request request = {0};
    struct waiter waiter;
    wait_async(&request, VIGIL_FOREVER);
    waiter_start(&waiter, VIGIL_FOREVER);
    lock();
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(vigil_cancel(&request.op), VIGIL_ETOOLATE);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(vigil_cancel(&request.op), VIGIL_OK);
    unlock();
    assert_int_equal(waiter_join(&waiter), VIGIL_OK);
    assert_int_equal(calls, 0);
}

static void unreferenced_stays_so(void **state) {
    (void)state;
    vigil_request request = {0};
    wait_async(&request, VIGIL_FOREVER);
    assert_int_equal(vigil_unref(&request.op), VIGIL_OK);
    lock();
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK); /* returns: the request does not keep it running */
    assert_int_equal(calls, 0);
    unlock();
    AWAIT(vigil_agent_dispatch(agent) >= 0 && calls == 1);
}

static void an_agent_ends(void **state) {
    (void)state;
    vigil_request request = {0};
    vigil_agent *other;
    assert_int_equal(vigil_agent_create(&other, 0), VIGIL_OK);
    calls = 0;
    lock();
    assert_int_equal(vigil_cond_wait_async(other, &request, &cond, &mutex, VIGIL_FOREVER, look), VIGIL_PENDING);
    struct waiter waiter;
    waiter_start(&waiter, VIGIL_FOREVER);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    assert_int_equal(vigil_agent_destroy(other), VIGIL_OK);
    assert_int_equal(calls, 1);
    assert_int_equal(last_status, VIGIL_CANCELLED);
    assert_int_equal(waiter_join(&waiter), VIGIL_OK); /* which has received the signal */
}

/* Many threads and agents, and a ball that must not be dropped. */
#define PLAYERS 6
#define PASSES  2000

static int ball, passes;

static void *player(void *argument) {
    int me = (int)(intptr_t)argument;
    lock();
    while (passes < PASSES) {
        if (ball % PLAYERS == me) {
            ball++;
            passes++;
            vigil_cond_broadcast(&cond);
        } else {
            vigil_cond_wait(&cond, &mutex);
        }
    }
    vigil_cond_broadcast(&cond);
    unlock();
    return NULL;
}

static void a_ball_is_passed_on(void **state) {
    (void)state;
    pthread_t threads[PLAYERS];
    ball = passes = 0;
    for (int i = 0; i < PLAYERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, player, (void *)(intptr_t)i), 0);
    for (int i = 0; i < PLAYERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(ball, PASSES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_cond, tear_down_cond)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(nobody_is_signalled),
        TEST(errors_change_nothing),
        TEST(refused_where_blocking_is),
        TEST(a_signal_is_for_one_in_turn),
        TEST(a_broadcast_moves_them_to_the_mutex),
        TEST(moved_ones_are_served_in_turn),
        TEST(signals_without_the_mutex),
        TEST(times_out_with_the_mutex),
        TEST(a_late_wait_lets_others_in),
        TEST(a_late_wait_lets_signalled_ones_in),
        TEST(a_late_wait_takes_no_signal),
        TEST(a_signal_in_time_holds),
        TEST(forgotten),
        TEST(a_loop_is_signalled),
        TEST(a_loop_times_out),
        TEST(a_late_loop_lets_others_in),
        TEST(loops_and_threads_in_one_line),
        TEST(a_wait_is_cancelled),
        TEST(the_signal_of_a_cancelled_one_goes_on),
        TEST(unreferenced_stays_so),
        TEST(an_agent_ends),
        TEST(a_ball_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
