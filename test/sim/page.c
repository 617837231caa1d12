/* SPDX-License-Identifier: MIT */
/*
 * Scenarios with the main thread of a page, which may not park: where it would have to sleep for a bucket or for a
 * ring, it runs in circles. It waits, locks, notifies and unlocks beside threads that block. Most are scenarios of
 * other files, with pages in place of their event loops.
 */
#include "scenario.h"
#include "vigil/barrier.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/once.h"
#include "vigil/rwlock.h"
#include "vigil/sem.h"

static void begin_page(void) {
    begin_in_browser();
    begin();
}

/* ---- A page that notifies ---- */

FIBER(notifying_page) {
    (void)argument;
    vigil_agent *agent = new_agent();
    prim_store_relaxed(&words[0], 1u);
    notify(&words[0], 1);
    notify(&words[0], VIGIL_ALL);
    destroy(agent);
}

static void page_notifies(void) {
    begin_page();
    go("thread 1", waiter);
    go("thread 2", waiter);
    go("page", notifying_page);
}

/* The same with a wait of the page's own in between. */
FIBER(page_that_answers) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[2], VIGIL_FOREVER);
    change_and_notify(&words[0], VIGIL_ALL);
    run(agent);
    destroy(agent);
}

FIBER(thread_that_asks) {
    (void)argument;
    wait_while_zero(&words[0], VIGIL_FOREVER);
    change_and_notify(&words[2], 1);
}

static void page_and_threads_in_turn(void) {
    begin_page();
    go("page", page_that_answers);
    go("thread 1", thread_that_asks);
    go("thread 2", waiter);
}

/* vigil_agent_run is not refused: it runs in circles until there is something to do. */
FIBER(running_page) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], &words[0], 500);
    expect(vigil_agent_run(agent), VIGIL_OK, "run");
    destroy(agent);
}

static void page_runs(void) {
    begin_page();
    go("page", running_page);
    go("notifier", bare_notifier);
}

/* ---- What a page must not do ---- */

static vigil_mutex mutex;
static vigil_rwlock rwlock;
static vigil_sem sem;
static vigil_barrier barrier;
static vigil_cond cond;
static vigil_once once;
static bool page_has_asked, once_begun;

static bool has_asked(void *unused) {
    (void)unused;
    return page_has_asked;
}

static bool has_begun(void *unused) {
    (void)unused;
    return once_begun;
}

static int slow_function(void *unused) {
    (void)unused;
    once_begun = true;
    sim_until(has_asked, NULL);
    return VIGIL_OK;
}

FIBER(caller_of_once) {
    (void)argument;
    expect(vigil_once_call(&once, slow_function, NULL), VIGIL_OK, "once");
}

FIBER(locker) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    expect(vigil_mutex_unlock(&mutex), VIGIL_OK, "unlock");
}

/* The page holds the locks itself, so that each call would have to wait. */
FIBER(refused_page) {
    (void)argument;
    vigil_agent *agent = new_agent();
    sim_until(has_begun, NULL);
    expect(vigil_wait32(&words[0], 0, VIGIL_FOREVER), VIGIL_EMAYNOTBLOCK, "wait");
    expect(vigil_mutex_lock_for(&mutex, 500), VIGIL_EMAYNOTBLOCK, "lock");
    expect(vigil_cond_wait(&cond, &mutex), VIGIL_EMAYNOTBLOCK, "wait on a condition");
    expect(vigil_rwlock_write_trylock(&rwlock), VIGIL_OK, "write trylock");
    expect(vigil_rwlock_read_lock(&rwlock), VIGIL_EMAYNOTBLOCK, "read lock");
    expect(vigil_rwlock_write_lock(&rwlock), VIGIL_EMAYNOTBLOCK, "write lock");
    expect(vigil_sem_acquire(&sem, 1), VIGIL_EMAYNOTBLOCK, "acquire");
    expect(vigil_barrier_wait(&barrier), VIGIL_EMAYNOTBLOCK, "barrier");
    expect(vigil_once_call(&once, slow_function, NULL), VIGIL_EMAYNOTBLOCK, "once");
    page_has_asked = true;
    expect(vigil_mutex_unlock(&mutex), VIGIL_OK, "unlock");
    destroy(agent);
}

static void page_refused(void) {
    begin_page();
    mutex.word = 1; /* locked by the page */
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_INIT;
    sem = (vigil_sem)VIGIL_SEM_INIT(0);
    barrier = (vigil_barrier)VIGIL_BARRIER_INIT(2);
    cond = (vigil_cond)VIGIL_COND_INIT;
    once = (vigil_once)VIGIL_ONCE_INIT;
    page_has_asked = once_begun = false;
    go("page", refused_page);
    go("caller", caller_of_once);
    go("thread", locker);
}

/* ---- A page and its worker ---- */

static void answer(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
    wait_while_zero(&words[0], VIGIL_FOREVER);
    change_and_notify(&words[2], 1);
}

FIBER(page_with_worker) {
    (void)argument;
    vigil_agent *agent = new_agent();
    vigil_worker *worker;
    expect(vigil_worker_start(&worker, answer, NULL), VIGIL_OK, "start");
    start(agent, &requests[0], &words[2], VIGIL_FOREVER);
    change_and_notify(&words[0], 1);
    run(agent);
    expect(vigil_worker_join(worker), VIGIL_EMAYNOTBLOCK, "join");
    vigil_worker_stop(worker);
    destroy(agent);
    expect(vigil_worker_join(worker), VIGIL_OK, "join"); /* as if by another thread */
}

static void page_with_a_worker(void) {
    begin_page();
    go("page", page_with_worker);
}

/* ---- Scenarios of other files ---- */

#define BORROWED(X)                                                                                                    \
    X(asynchronous_scenarios, agent_and_thread)                                                                        \
    X(asynchronous_scenarios, mixed_line)                                                                              \
    X(asynchronous_scenarios, async_timeout_and_notify)                                                                \
    X(asynchronous_scenarios, cancel_and_notify)                                                                       \
    X(asynchronous_scenarios, async_forget_and_notify)                                                                 \
    X(agent_scenarios, destroy_and_notify_all)                                                                         \
    X(mutex_scenarios, mutex_loop_and_threads)                                                                         \
    X(mutex_scenarios, mutex_fair_line)                                                                                \
    X(mutex_scenarios, mutex_cancel)                                                                                   \
    X(mutex_scenarios, mutex_slow_loop_before_loop)                                                                    \
    X(cond_scenarios, cond_loop_and_thread)                                                                            \
    X(barrier_once_scenarios, barrier_loop_and_threads)                                                                \
    X(barrier_once_scenarios, once_loop_and_thread)                                                                    \
    X(sem_scenarios, sem_loop_and_thread)                                                                              \
    X(rwlock_scenarios, rwlock_loop_and_thread_write)

#define X(list, name) BORROW_SCENARIO(begin_in_browser, list, name)
BORROWED(X)
#undef X

const struct sim_scenario page_scenarios[] = {
    {"page_notifies", "a page notifies two threads", page_notifies, balance},
    {"page_and_threads_in_turn", "a page and threads wait for each other", page_and_threads_in_turn, balance},
    {"page_runs", "a page runs its agent against notify", page_runs, balance},
    {"page_refused", "calls that would block are refused", page_refused, balance},
    {"page_with_a_worker", "a page and its worker, which blocks", page_with_a_worker, balance},
#define X(list, name) {"page_" #name, "the scenario " #name " with pages as loops", begin_##name, end_##name},
    BORROWED(X)
#undef X
    {NULL, NULL, NULL, NULL},
};
