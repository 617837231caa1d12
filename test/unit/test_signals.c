/* SPDX-License-Identifier: MIT */
/*
 * What may be called in a signal handler. Here, entering a critical section stands in for a handler that interrupts
 * one; test/stress/signals.c has real ones, and test/sim/signals.c has them at every step.
 */
#include "support.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "lot/critical.h"
#include "vigil/mutex.h"
#include "vigil/sem.h"

#include "agent_fixture.h"

/* Deferred. */

static void a_notification_is_deferred(void **state) {
    (void)state;
    struct sleeper sleepers[3];
    for (unsigned i = 0; i < COUNT_OF(sleepers); i++) sleeper_start(&sleepers[i], word, false);
    critical_enter();
    assert_int_equal(vigil_notify(word, 1), 0);
    assert_int_equal(vigil_notify(word, 1), 0);
    assert_int_equal(waiters_in_line(word), 3);
    critical_leave();
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 1);
    for (unsigned i = 0; i < COUNT_OF(sleepers); i++) assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
}

static void only_the_outermost_leave_settles(void **state) {
    (void)state;
    struct sleeper sleeper;
    sleeper_start(&sleeper, word, false);
    critical_enter();
    critical_enter();
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 0);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 0); /* more than can be counted */
    critical_leave();
    assert_int_equal(waiters_in_line(word), 1);
    critical_leave();
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
}

static void nothing_is_deferred_where_nobody_waits(void **state) {
    (void)state;
    critical_enter();
    assert_int_equal(vigil_notify(word, 1), 0);
    assert_int_equal(prim_self()->deferred, 0);
    assert_int_equal(vigil_notify(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_notify(word, -1), VIGIL_ECOUNT);
    critical_leave();
}

/* As many addresses as can be deferred, and one more. */
static void too_much_is_refused(void **state) {
    (void)state;
    static uint32_t many[PRIM_DEFERRALS + 1];
    struct noted *waits = calloc(COUNT_OF(many), sizeof *waits);
    assert_non_null(waits);
    for (unsigned i = 0; i < COUNT_OF(many); i++) noted_pending(agent, &waits[i], &many[i]);
    critical_enter();
    for (unsigned i = 0; i < PRIM_DEFERRALS; i++) assert_int_equal(vigil_notify(&many[i], 1), 0);
    assert_int_equal(vigil_notify(&many[PRIM_DEFERRALS], 1), VIGIL_ELIMIT);
    assert_int_equal(vigil_notify(&many[0], 1), 0); /* which is in the table already */
    critical_leave();
    while (vigil_agent_dispatch(agent) > 0) continue;
    for (unsigned i = 0; i < PRIM_DEFERRALS; i++) assert_int_equal(waits[i].calls, 1);
    assert_int_equal(waits[PRIM_DEFERRALS].calls, 0);
    critical_enter(); /* and there is room again */
    assert_int_equal(vigil_notify(&many[PRIM_DEFERRALS], 1), 0);
    critical_leave();
    while (vigil_agent_dispatch(agent) > 0) continue;
    assert_int_equal(waits[PRIM_DEFERRALS].calls, 1);
    free(waits);
}

static vigil_sem sem;

static void *acquire_two(void *unused) {
    (void)unused;
    return vigil_sem_acquire(&sem, 2) == VIGIL_OK ? &sem : NULL;
}

static void permits_are_there_at_once(void **state) {
    (void)state;
    pthread_t thread;
    void *acquired;
    sem = (vigil_sem)VIGIL_SEM_INIT(0);
    assert_int_equal(pthread_create(&thread, NULL, acquire_two, NULL), 0);
    AWAIT(waiters_in_line(&sem) == 1);
    critical_enter();
    assert_int_equal(vigil_sem_release(&sem, 1), VIGIL_OK);
    assert_int_equal(vigil_sem_release(&sem, 1), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 2);
    assert_int_equal(vigil_sem_release(&sem, VIGIL_SEM_MAX), VIGIL_ERANGE);
    assert_int_equal(waiters_in_line(&sem), 1);
    critical_leave();
    assert_int_equal(pthread_join(thread, &acquired), 0);
    assert_non_null(acquired);
    assert_int_equal(vigil_sem_value(&sem), 0);
}

/* The thread that gets the permits may free the memory before the line is examined. */
static void freed_memory_is_not_looked_at(void **state) {
    (void)state;
    long page = sysconf(_SC_PAGESIZE);
    vigil_sem *there = prim_map((size_t)page);
    assert_true(there && prim_map_open(there, (size_t)page, false));
    there->word = 1; /* WAITERS */
    critical_enter();
    assert_int_equal(vigil_sem_release(there, 1), VIGIL_OK);
    assert_int_equal(vigil_sem_tryacquire(there, 1), VIGIL_OK);
    prim_unmap(there, (size_t)page);
    critical_leave();
}

static void a_release_makes_no_lot(void **state) {
    (void)state;
    sem = (vigil_sem){1}; /* WAITERS is set, without a waiter */
    assert_null(lot_private_if_used());
    assert_int_equal(vigil_sem_release(&sem, 3), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&sem), 3);
    assert_null(lot_private_if_used());
}

static void what_blocks_is_refused(void **state) {
    (void)state;
    vigil_mutex mutex = VIGIL_MUTEX_INIT;
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OK);
    sem = (vigil_sem)VIGIL_SEM_INIT(0);
    critical_enter();
    assert_int_equal(vigil_wait32(word, 0, VIGIL_FOREVER), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_sem_acquire(&sem, 1), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_EMAYNOTBLOCK);
    critical_leave();
    assert_int_equal(vigil_wait32(word, 0, 1), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_OK);
}

/* Waking an agent. */

static bool readable(vigil_agent *of) {
    struct pollfd fd = {.fd = vigil_agent_fd(of), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void wake_refuses(void **state) {
    (void)state;
    assert_int_equal(vigil_agent_wake(NULL), VIGIL_ENULL);
}

static void a_wake_makes_the_descriptor_readable(void **state) {
    (void)state;
    assert_false(readable(agent));
    assert_int_equal(vigil_agent_wake(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_wake(agent), VIGIL_OK); /* the same one */
    assert_true(readable(agent));
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    assert_false(readable(agent));
}

static void count(vigil_agent *of, void *argument) {
    (void)of;
    ++*(unsigned *)argument;
}

static void a_wake_ends_the_next_run(void **state) {
    (void)state;
    unsigned ran = 0;
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_post(agent, count, &ran), VIGIL_OK);
    assert_int_equal(vigil_agent_wake(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(vigil_agent_run_until(agent, vigil_now_ns()), VIGIL_TIMED_OUT); /* it has been consumed */
    assert_int_equal(vigil_agent_wake(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    assert_int_equal(vigil_agent_run_until(agent, vigil_now_ns()), VIGIL_TIMED_OUT); /* the same by a dispatch */
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
}

static void wake_in_callback(vigil_agent *of, void *argument) {
    ++*(unsigned *)argument;
    vigil_agent_wake(of);
}

static void a_callback_wakes_its_own_agent(void **state) {
    (void)state;
    unsigned ran = 0;
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_post(agent, wake_in_callback, &ran), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(ran, 1);
    assert_int_equal(vigil_agent_post(agent, wake_in_callback, &ran), VIGIL_OK);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_false(readable(agent));
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
}

static vigil_agent *to_wake;
static int errno_after, status_in_handler;

static void wake_on_signal(int number) {
    int before = errno;
    (void)number;
    errno = 4711;
    int status = vigil_agent_wake(to_wake);
    errno_after = errno;
    errno = before;
    STORE(status_in_handler, status);
}

static void *signal_again_and_again(void *target) {
    while (LOAD(status_in_handler) == UNDECIDED) {
        pthread_kill(*(pthread_t *)target, SIGUSR1);
        sched_yield();
    }
    return NULL;
}

static void a_handler_ends_a_run(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = wake_on_signal};
    pthread_t self = pthread_self(), thread;
    to_wake = agent;
    status_in_handler = UNDECIDED;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    assert_int_equal(pthread_create(&thread, NULL, signal_again_and_again, &self), 0);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(signal(SIGUSR1, SIG_IGN) != SIG_ERR); /* including one that is still under way */
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
    assert_int_equal(status_in_handler, VIGIL_OK);
    assert_int_equal(errno_after, 4711);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_makes_no_lot),
        TEST(a_notification_is_deferred),
        TEST(only_the_outermost_leave_settles),
        TEST(nothing_is_deferred_where_nobody_waits),
        TEST(too_much_is_refused),
        TEST(permits_are_there_at_once),
        TEST(freed_memory_is_not_looked_at),
        TEST(what_blocks_is_refused),
        TEST(wake_refuses),
        TEST(a_wake_makes_the_descriptor_readable),
        TEST(a_wake_ends_the_next_run),
        TEST(a_callback_wakes_its_own_agent),
        TEST(a_handler_ends_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
