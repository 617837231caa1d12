/* SPDX-License-Identifier: MIT */
/* adapter/vigil_event.h in libevent's loop. */
#include "unit/support.h"

#include "vigil_event.h"

typedef struct event *seat;

static struct event_base *loop;
static struct event *timer;
static void (*on_tick)(void);

static void call_tick(evutil_socket_t fd, short events, void *unused) {
    (void)fd;
    (void)events;
    (void)unused;
    on_tick();
}

static void loop_open(void) {
    loop = event_base_new();
    assert_non_null(loop);
    timer = event_new(loop, -1, EV_PERSIST, call_tick, NULL);
    assert_non_null(timer);
}

static void loop_close(void) {
    event_free(timer);
    event_base_free(loop);
}

static void loop_run(void) {
    assert_int_equal(event_base_dispatch(loop), 0);
}

static void loop_quit(void) {
    event_base_loopbreak(loop);
}

static void loop_tick_start(void (*tick)(void)) {
    struct timeval a_millisecond = {.tv_usec = 1000};
    on_tick = tick;
    assert_int_equal(event_add(timer, &a_millisecond), 0);
}

static void loop_tick_stop(void) {
    event_del(timer);
}

static bool loop_in_child(void) {
    return event_reinit(loop) == 0;
}

static int seat_attach(seat *where, vigil_agent *attached) {
    return vigil_event_attach(loop, where, attached);
}

static void seat_detach(seat *where) {
    event_free(*where);
}

#include "contract.h"

static void free_seat(vigil_op *op, int status) {
    note(op, status);
    event_free(its_seat);
}

static void the_loop_ends_when_the_last_seat_is_freed(void **state) {
    (void)state;
    struct noted last = {0};
    assert_int_equal(vigil_wait32_async(agent, &last.op, &word, 0, MILLISECOND, free_seat), VIGIL_PENDING);
    assert_int_equal(event_base_dispatch(loop), 1); /* nothing is left in it */
    assert_int_equal(last.status, VIGIL_TIMED_OUT);
    end_agent(agent);
}

int main(void) {
    const struct CMUnitTest event[] = {
        CONTRACT,
        cmocka_unit_test_setup_teardown(the_loop_ends_when_the_last_seat_is_freed, set_up, tear_down),
    };
    return cmocka_run_group_tests(event, NULL, NULL);
}
