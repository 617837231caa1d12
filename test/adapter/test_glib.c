/* SPDX-License-Identifier: MIT */
/* adapter/vigil_glib.h in GLib's main loop, in a context that is not the default one. */
#include "unit/support.h"

#include "vigil_glib.h"

typedef GSource *seat;

static GMainContext *context;
static GMainLoop *loop;
static GSource *timer;
static void (*on_tick)(void);

static void loop_open(void) {
    context = g_main_context_new();
    loop = g_main_loop_new(context, FALSE);
}

static void loop_close(void) {
    g_main_loop_unref(loop);
    g_main_context_unref(context);
}

static void loop_run(void) {
    g_main_loop_run(loop);
}

static void loop_quit(void) {
    g_main_loop_quit(loop);
}

static gboolean call_tick(gpointer unused) {
    (void)unused;
    on_tick();
    return G_SOURCE_CONTINUE;
}

static void loop_tick_start(void (*tick)(void)) {
    on_tick = tick;
    timer = g_timeout_source_new(1);
    g_source_set_callback(timer, call_tick, NULL, NULL);
    g_source_attach(timer, context);
}

static void loop_tick_stop(void) {
    g_source_destroy(timer);
    g_source_unref(timer);
}

static bool loop_in_child(void) {
    return true;
}

static int seat_attach(seat *where, vigil_agent *attached) {
    return vigil_glib_attach(context, where, attached);
}

static void seat_detach(seat *where) {
    g_source_destroy(*where);
}

#include "contract.h"

/* A loop inside a callback: the agent's other callbacks wait for their turn, and do not make the loop spin. */

static struct noted due_inside;
static unsigned inner_ticks, inner_turns;

static void count_tick(void) {
    inner_ticks++;
}

static void run_inner_loop(vigil_agent *posted, void *argument) {
    (void)posted;
    (void)argument;
    loop_tick_start(count_tick);
    for (inner_turns = 0; inner_ticks < 5 || vigil_now_ns() < tick_ns + 2 * MILLISECOND; inner_turns++)
        g_main_context_iteration(context, TRUE);
    loop_tick_stop();
    assert_int_equal(due_inside.calls, 0);
}

static void a_callback_may_run_the_loop(void **state) {
    (void)state;
    memset(&due_inside, 0, sizeof due_inside);
    inner_ticks = 0;
    tick_ns = vigil_now_ns();
    start_wait(agent, &due_inside, 2 * MILLISECOND);
    vigil_agent_post(agent, run_inner_loop, NULL);
    loop_run();
    assert_true(inner_ticks >= 5);
    assert_true(inner_turns < 10 * inner_ticks); /* it slept from tick to tick */
    assert_int_equal(due_inside.status, VIGIL_TIMED_OUT);
}

static void the_context_may_end_first(void **state) {
    (void)state;
    struct noted pending = {0};
    noted_pending(agent, &pending, &word);
    run_for_ticks(2);
    loop_close();
    end_agent(agent);
    assert_int_equal(pending.status, VIGIL_CANCELLED);
}

int main(void) {
    const struct CMUnitTest glib[] = {
        CONTRACT,
        CONTRACT_TEST(a_callback_may_run_the_loop),
        cmocka_unit_test_setup(the_context_may_end_first, set_up),
    };
    return cmocka_run_group_tests(glib, NULL, NULL);
}
