/* SPDX-License-Identifier: MIT */
/* adapter/vigil_uv.h in libuv's loop. */
#include "unit/support.h"

#include "vigil_uv.h"

typedef uv_poll_t seat;

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

static int seat_attach(seat *where, vigil_agent *attached) {
    return vigil_uv_attach(&loop, where, attached);
}

static void seat_detach(seat *where) {
    uv_close((uv_handle_t *)where, NULL);
}

#include "contract.h"

static void the_seat_keeps_the_loop_alive_or_not_as_you_choose(void **state) {
    (void)state;
    struct noted pending = {0};
    noted_pending(agent, &pending, &word);
    assert_true(uv_loop_alive(&loop));

    uv_unref((uv_handle_t *)&its_seat);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0); /* ends at once */
    assert_int_equal(pending.calls, 0);

    assert_int_equal(vigil_notify(&word, 1), 1);
    run_for_ticks(2); /* something else keeps it alive: the wait is served all the same */
    assert_int_equal(pending.calls, 1);
}

/* As vigil_uv.h says: the loop ends by itself when the last wait has ended. */

static unsigned waits_pending;

static void let_loop_end(vigil_op *op, int status) {
    note(op, status);
    if (--waits_pending == 0) uv_unref((uv_handle_t *)&its_seat);
}

static void pending_waits_alone_can_keep_the_loop_alive(void **state) {
    (void)state;
    static const int64_t timeout_ns[] = {MILLISECOND, 3 * MILLISECOND};
    struct noted waits[2] = {0};
    uv_unref((uv_handle_t *)&its_seat);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(vigil_wait32_async(agent, &waits[i].op, &word, 0, timeout_ns[i], let_loop_end), VIGIL_PENDING);
        waits_pending++;
        uv_ref((uv_handle_t *)&its_seat);
    }
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(waits[i].status, VIGIL_TIMED_OUT);
}

static unsigned destroyed;

static void on_closed(uv_handle_t *closed) {
    assert_ptr_equal(closed->data, agent);
    destroyed += vigil_agent_destroy((vigil_agent *)closed->data) == VIGIL_OK;
}

static void close_here(vigil_agent *posted, void *argument) {
    (void)argument;
    assert_int_equal(vigil_agent_destroy(posted), VIGIL_EREENTRANT);
    uv_close((uv_handle_t *)&its_seat, on_closed);
}

static void the_agent_can_be_destroyed_when_its_seat_is_closed(void **state) {
    (void)state;
    struct noted pending = {0};
    noted_pending(agent, &pending, &word);
    destroyed = 0;
    vigil_agent_post(agent, close_here, NULL);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0); /* nothing is left in it */
    assert_int_equal(destroyed, 1);
    assert_int_equal(pending.status, VIGIL_CANCELLED);
}

static void an_agent_has_one_seat_in_a_loop(void **state) {
    (void)state;
    assert_int_equal(vigil_uv_attach(&loop, &second_seat, agent), VIGIL_ESYSTEM);
    assert_int_equal(errno, EEXIST);
}

int main(void) {
    const struct CMUnitTest uv[] = {
        CONTRACT,
        CONTRACT_TEST(the_seat_keeps_the_loop_alive_or_not_as_you_choose),
        CONTRACT_TEST(pending_waits_alone_can_keep_the_loop_alive),
        cmocka_unit_test_setup_teardown(the_agent_can_be_destroyed_when_its_seat_is_closed, set_up, tear_down),
        CONTRACT_TEST(an_agent_has_one_seat_in_a_loop),
    };
    return cmocka_run_group_tests(uv, NULL, NULL);
}
