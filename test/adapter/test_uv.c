/* SPDX-License-Identifier: MIT */
/* adapter/vigil_uv.h in libuv's loop. */
#include "unit/support.h"

#include "vigil/mutex.h"
#include "vigil_uv.h"

typedef vigil_uv seat;

static uv_loop_t loop;
static uv_timer_t timer;
static void (*on_tick)(void);

static void loop_open(void) {
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &timer), 0);
}

static void loop_close(void) {
    uv_close((uv_handle_t *)&timer, NULL);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void loop_run(void) {
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void loop_quit(void) {
    uv_stop(&loop);
}

static void call_tick(uv_timer_t *ticking) {
    (void)ticking;
    on_tick();
}

static void loop_tick_start(void (*tick)(void)) {
    on_tick = tick;
    assert_int_equal(uv_timer_start(&timer, call_tick, 1, 1), 0);
}

static void loop_tick_stop(void) {
    uv_timer_stop(&timer);
}

static bool loop_in_child(void) {
    return uv_loop_fork(&loop) == 0;
}

/* With a ref: what the tests in contract.h run ends by loop_quit. */
static int seat_attach(seat *where, vigil_agent *attached) {
    int status = vigil_uv_attach(&loop, where, attached);
    if (status == VIGIL_OK) assert_int_equal(vigil_agent_ref(attached), VIGIL_OK);
    return status;
}

static void seat_detach(seat *where) {
    vigil_agent_unref(where->agent); /* not in the child of a fork */
    vigil_uv_close(where, NULL);
}

#include "contract.h"

/* What keeps the loop alive: here the agent has no ref. */

static int set_up_without_ref(void **state) {
    set_up(state);
    return vigil_agent_unref(agent);
}

static int detach_without_ref(void **state) {
    (void)state;
    vigil_uv_close(&its_seat, NULL);
    end_agent(agent);
    loop_close();
    return 0;
}

static void run_to_the_end(void) {
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_false(uv_loop_alive(&loop));
}

static void pending_operations_keep_the_loop_alive(void **state) {
    (void)state;
    static const int64_t timeout_ns[] = {MILLISECOND, 3 * MILLISECOND};
    struct noted waits[2] = {0};
    run_to_the_end(); /* at once */
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(vigil_wait32_async(agent, &waits[i].op, &word, 0, timeout_ns[i], note), VIGIL_PENDING);
    assert_true(uv_loop_alive(&loop));
    run_to_the_end();
    for (unsigned i = 0; i < 2; i++) assert_int_equal(waits[i].status, VIGIL_TIMED_OUT);

    struct noted again = {0}; /* in the same loop, once more */
    assert_int_equal(vigil_wait32_async(agent, &again.op, &word, 0, MILLISECOND, note), VIGIL_PENDING);
    run_to_the_end();
    assert_int_equal(again.status, VIGIL_TIMED_OUT);
}

static void those_without_a_ref_do_not(void **state) {
    (void)state;
    struct noted pending = {0}, short_one = {0};
    noted_pending(agent, &pending, &word);
    assert_int_equal(vigil_unref(&pending.op), VIGIL_OK);
    run_to_the_end();
    assert_int_equal(pending.calls, 0);

    assert_int_equal(vigil_wait32_async(agent, &short_one.op, &word, 0, MILLISECOND, note), VIGIL_PENDING);
    run_to_the_end(); /* with the other one */
    assert_int_equal(short_one.status, VIGIL_TIMED_OUT);
    assert_int_equal(vigil_ref(&pending.op), VIGIL_OK);
    assert_true(uv_loop_alive(&loop));
    assert_int_equal(vigil_unref(&pending.op), VIGIL_OK);
    assert_false(uv_loop_alive(&loop));

    assert_int_equal(vigil_notify(&word, 1), 1);
    run_for_ticks(2); /* something else keeps it alive: the wait is served all the same */
    assert_int_equal(pending.calls, 1);
}

static void a_cancelled_one_does_not_either(void **state) {
    (void)state;
    struct noted pending = {0};
    noted_pending(agent, &pending, &word);
    assert_int_equal(vigil_cancel(&pending.op), VIGIL_OK);
    run_to_the_end();
}

static vigil_mutex mutex;
static struct noted_request {
    vigil_request request;
    int status;
} from_tick;

static void note_and_unlock(vigil_op *op, int status) {
    ((struct noted_request *)op)->status = status;
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_OK);
}

static void ask_in_tick(uv_timer_t *ticking) {
    uv_timer_stop(ticking);
    int status = vigil_mutex_lock_async(agent, &from_tick.request, &mutex, VIGIL_FOREVER, note_and_unlock);
    assert_int_equal(status, VIGIL_PENDING);
}

static void *unlock_when_it_waits(void *unused) {
    AWAIT(vigil_waiters(&mutex) == 1);
    if (vigil_mutex_unlock(&mutex) != VIGIL_OK) abort();
    return unused;
}

/* A timer that then stops has made the request. */
static void a_request_for_a_lock_does(void **state) {
    (void)state;
    from_tick = (struct noted_request){.status = UNDECIDED};
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    assert_int_equal(vigil_mutex_trylock(&mutex), VIGIL_OK);
    assert_int_equal(uv_timer_start(&timer, ask_in_tick, 1, 1), 0);
    pthread_t unlocker;
    assert_int_equal(pthread_create(&unlocker, NULL, unlock_when_it_waits, NULL), 0);
    run_to_the_end();
    assert_int_equal(pthread_join(unlocker, NULL), 0);
    assert_int_equal(from_tick.status, VIGIL_OK);
}

static unsigned starts_left;

static void start_another(vigil_op *op, int status) {
    note(op, status);
    if (--starts_left == 0) return;
    struct noted *noted = (struct noted *)op;
    assert_int_equal(vigil_wait32_async(agent, &noted->op, &word, 0, MILLISECOND, start_another), VIGIL_PENDING);
}

static void one_that_is_started_in_a_callback_does(void **state) {
    (void)state;
    struct noted wait_of_it = {0};
    starts_left = 5;
    assert_int_equal(vigil_wait32_async(agent, &wait_of_it.op, &word, 0, MILLISECOND, start_another), VIGIL_PENDING);
    run_to_the_end();
    assert_int_equal(wait_of_it.calls, 5);
}

static void unref_here(vigil_agent *posted, void *argument) {
    (void)argument;
    assert_int_equal(vigil_agent_unref(posted), VIGIL_OK);
}

static void a_ref_of_the_agent_does(void **state) {
    (void)state;
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_post(agent, unref_here, NULL), VIGIL_OK);
    run_to_the_end();
}

/* After callbacks. */

static unsigned afters;

static void count_after(vigil_uv *from) {
    assert_ptr_equal(from, &its_seat);
    afters++;
}

static void after_is_called_once_for_a_dispatch_with_work(void **state) {
    (void)state;
    struct noted waits[3] = {0};
    its_seat.after = count_after;
    afters = 0;
    for (unsigned i = 0; i < 3; i++) noted_pending(agent, &waits[i], &word);
    assert_int_equal(vigil_notify(&word, VIGIL_ALL), 3);
    run_to_the_end();
    assert_int_equal(afters, 1);

    assert_int_equal(vigil_agent_wake(agent), VIGIL_OK);
    run_for_ticks(2); /* a dispatch without work */
    assert_int_equal(afters, 1);
}

static struct noted started_after;

static void start_after(vigil_uv *from) {
    if (++afters == 1) noted_pending(from->agent, &started_after, &word);
    if (afters == 1) assert_int_equal(vigil_notify(&word, 1), 1);
}

static void after_may_start_an_operation(void **state) {
    (void)state;
    struct noted first = {0};
    started_after = (struct noted){0};
    its_seat.after = start_after;
    afters = 0;
    noted_pending(agent, &first, &word);
    assert_int_equal(vigil_notify(&word, 1), 1);
    run_to_the_end();
    assert_int_equal(started_after.calls, 1);
    assert_int_equal(afters, 2);
}

/* Closing. */

static unsigned destroyed;

static void on_closed(vigil_uv *from) {
    assert_ptr_equal(from, &its_seat);
    destroyed += vigil_agent_destroy(from->agent) == VIGIL_OK;
}

static void close_here(vigil_agent *posted, void *argument) {
    (void)argument;
    assert_int_equal(vigil_agent_destroy(posted), VIGIL_EREENTRANT);
    vigil_uv_close(&its_seat, on_closed);
}

static void the_agent_can_be_destroyed_when_its_seat_is_closed(void **state) {
    (void)state;
    struct noted pending = {0};
    noted_pending(agent, &pending, &word);
    its_seat.after = count_after;
    destroyed = afters = 0;
    vigil_agent_post(agent, close_here, NULL);
    run_to_the_end(); /* nothing is left in it */
    assert_int_equal(destroyed, 1);
    assert_int_equal(afters, 1); /* callbacks have run */
    assert_int_equal(pending.status, VIGIL_CANCELLED);
}

static void close_after(vigil_uv *from) {
    vigil_uv_close(from, on_closed);
}

static void the_seat_can_be_closed_after_callbacks(void **state) {
    (void)state;
    struct noted pending = {0}, ended_one = {0};
    noted_pending(agent, &pending, &word);
    its_seat.after = close_after;
    destroyed = 0;
    assert_int_equal(vigil_wait32_async(agent, &ended_one.op, &word, 0, MILLISECOND, note), VIGIL_PENDING);
    run_to_the_end();
    assert_int_equal(destroyed, 1);
    assert_int_equal(pending.status, VIGIL_CANCELLED);
}

static void an_agent_has_one_seat_in_a_loop(void **state) {
    (void)state;
    assert_int_equal(vigil_uv_attach(&loop, &second_seat, agent), VIGIL_ESYSTEM);
    assert_int_equal(errno, EEXIST);
}

#define LIFE_TEST(test)    cmocka_unit_test_setup_teardown(test, set_up_without_ref, detach_without_ref)
#define CLOSING_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_without_ref, tear_down)

int main(void) {
    const struct CMUnitTest uv[] = {
        CONTRACT,
        LIFE_TEST(pending_operations_keep_the_loop_alive),
        LIFE_TEST(one_that_is_started_in_a_callback_does),
        LIFE_TEST(a_request_for_a_lock_does),
        LIFE_TEST(a_ref_of_the_agent_does),
        LIFE_TEST(those_without_a_ref_do_not),
        LIFE_TEST(a_cancelled_one_does_not_either),
        LIFE_TEST(after_is_called_once_for_a_dispatch_with_work),
        LIFE_TEST(after_may_start_an_operation),
        CLOSING_TEST(the_agent_can_be_destroyed_when_its_seat_is_closed),
        CLOSING_TEST(the_seat_can_be_closed_after_callbacks),
        CONTRACT_TEST(an_agent_has_one_seat_in_a_loop),
    };
    return cmocka_run_group_tests(uv, NULL, NULL);
}
