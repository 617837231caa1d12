/* SPDX-License-Identifier: MIT */
/* Across fork: the child starts clean, the parent is not affected. */
#include "support.h"

#include "vigil/mutex.h"
#include "vigil/once.h"
#include "vigil/rwlock.h"
#include "vigil/sem.h"

#include "agent_fixture.h"
#include "child.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static void child_succeeds(pid_t child) {
    assert_int_equal(exit_status_of(child), 0);
}

static bool children_have_threads;

static int try_threads(void **state) {
    (void)state;
    children_have_threads = children_can_start_threads();
    if (!children_have_threads) fprintf(stderr, "no threads in children here: that is left out\n");
    return 0;
}

static void run_in_child(void (*checks)(void)) {
    pid_t child = fork_here();
    if (child == 0) {
        checks();
        _exit(0);
    }
    child_succeeds(child);
}

/* Waiting works, on the same words that the parent's threads wait on. */

static void *notify_once(void *address) {
    while (vigil_notify(address, 1) == 0) sched_yield();
    return NULL;
}

static void wait_and_notify(uint32_t *at) {
    pthread_t notifier;
    CHECK(pthread_create(&notifier, NULL, notify_once, at) == 0);
    CHECK(vigil_wait32(at, 0, VIGIL_FOREVER) == VIGIL_OK);
    CHECK(pthread_join(notifier, NULL) == 0);
    CHECK(vigil_notify(at, VIGIL_ALL) == 0);
}

static void agents_work(uint32_t *at) {
    vigil_agent *own;
    struct noted notified = {0}, late = {0}, pending = {0};
    CHECK(vigil_agent_create(&own, 0) == VIGIL_OK);
    struct pollfd seat = {.fd = vigil_agent_fd(own), .events = POLLIN};
    CHECK(seat.fd >= 0);
    CHECK(noted_start(own, &notified, at, VIGIL_FOREVER) == VIGIL_PENDING);
    CHECK(noted_start(own, &late, at, MILLISECOND) == VIGIL_PENDING);
    CHECK(vigil_notify(at, 1) == 1);
    CHECK(poll(&seat, 1, -1) == 1);
    CHECK(vigil_agent_run(own) == VIGIL_OK);
    CHECK(notified.status == VIGIL_OK && late.status == VIGIL_TIMED_OUT);
    CHECK(noted_start(own, &pending, at, VIGIL_FOREVER) == VIGIL_PENDING);
    CHECK(vigil_agent_destroy(own) == VIGIL_OK);
    CHECK(pending.calls == 1 && pending.status == VIGIL_CANCELLED);
}

static void count(vigil_agent *on, void *counter) {
    (void)on;
    ++*(int *)counter;
}

static void workers_work(void) {
    vigil_worker *worker;
    int counter = 0;
    CHECK(vigil_worker_start(&worker, count, &counter) == VIGIL_OK);
    CHECK(vigil_agent_post(vigil_worker_agent(worker), count, &counter) == VIGIL_OK);
    CHECK(vigil_worker_stop(worker) == VIGIL_OK);
    CHECK(vigil_worker_join(worker) == VIGIL_OK);
    CHECK(counter == 2);
}

static void all_works(void) {
    CHECK(vigil_wait32(word, 0, MILLISECOND) == VIGIL_TIMED_OUT);
    agents_work(word);
    if (!children_have_threads) return;
    wait_and_notify(word);
    workers_work();
}

static void lines_are_empty_and_all_works(void) {
    CHECK(vigil_notify(word, VIGIL_ALL) == 0);
    CHECK(vigil_forget(storage, sizeof storage) == 0);
    CHECK(vigil_forget(storage, UINT64_C(1) << 40) == 0);
    all_works();
}

static void a_child_of_an_idle_process(void **state) {
    (void)state;
    run_in_child(lines_are_empty_and_all_works);
}

static void a_child_while_threads_and_agents_wait(void **state) {
    (void)state;
    enum { SLEEPERS = 6 };
    struct sleeper sleepers[SLEEPERS];
    struct noted noted[3] = {{.calls = 0}};
    for (int i = 0; i < SLEEPERS; i++) {
        sleeper_start(&sleepers[i], word, i % 2);
        if (i < 3) noted_start(agent, &noted[i], word, i ? 3600 * SECOND : VIGIL_FOREVER);
    }
    run_in_child(lines_are_empty_and_all_works);
    assert_int_equal(waiters_in_line(word), SLEEPERS + 3); /* the parent is not affected */
    assert_int_equal(vigil_notify(word, VIGIL_ALL), SLEEPERS + 3);
    assert_int_equal(vigil_agent_dispatch(agent), 3);
    for (int i = 0; i < SLEEPERS; i++) assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
}

/* Threads that hold the library's internal locks at the moment of the fork, now and then. */

static uint32_t stop;

static void *keep_busy(void *unused) {
    (void)unused;
    vigil_agent *mine;
    if (vigil_agent_create(&mine, 0) != VIGIL_OK) abort();
    while (!LOAD(stop)) {
        struct noted noted[3] = {{.calls = 0}};
        for (int i = 0; i < 3; i++) noted_start(mine, &noted[i], word + i % 2, MICROSECOND * (1 + i));
        vigil_notify(word, 1);
        vigil_wait32(word, 0, 1);
        for (int i = 0; i < 3; i++) vigil_cancel(&noted[i].op);
        vigil_agent_run(mine); /* serves the notified waits */
    }
    if (vigil_agent_destroy(mine) != VIGIL_OK) abort();
    return NULL;
}

static void children_while_threads_are_busy(void **state) {
    (void)state;
    enum { BUSY = 3 };
    pthread_t threads[BUSY];
    STORE(stop, 0);
    for (int i = 0; i < BUSY; i++) assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, NULL), 0);
    for (int i = 0; i < 50; i++) run_in_child(lines_are_empty_and_all_works);
    STORE(stop, 1);
    for (int i = 0; i < BUSY; i++) pthread_join(threads[i], NULL);
}

static void children_of_children(void) {
    all_works();
    int ended;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        lines_are_empty_and_all_works();
        _exit(0);
    }
    CHECK(waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    all_works();
}

static void a_childs_child(void **state) {
    (void)state;
    run_in_child(children_of_children);
}

/* The parent's agents, seen from the child. */

static struct noted pending;

static void the_agent_is_dead(void) {
    struct noted noted = {0};
    CHECK(noted_start(agent, &noted, word, VIGIL_FOREVER) == VIGIL_EFORKED);
    CHECK(noted_start(agent, &noted, word, 0) == VIGIL_EFORKED);
    CHECK(vigil_wait64_async(agent, &noted.op, word, 0, VIGIL_FOREVER, note) == VIGIL_EFORKED);
    CHECK(vigil_cancel(&pending.op) == VIGIL_EFORKED);
    CHECK(vigil_ref(&pending.op) == VIGIL_EFORKED);
    CHECK(vigil_unref(&pending.op) == VIGIL_EFORKED);
    CHECK(vigil_agent_fd(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_dispatch(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_run(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_run_until(agent, 0) == VIGIL_EFORKED);
    CHECK(vigil_agent_stop(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_wake(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_post(agent, count, NULL) == VIGIL_EFORKED);
    CHECK(vigil_agent_ref(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_unref(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
    CHECK(pending.calls == 0); /* destroy calls no callback */
    memset(&pending, 0, sizeof pending);
    vigil_agent *own;
    CHECK(vigil_agent_create(&own, 0) == VIGIL_OK);
    CHECK(noted_start(own, &pending, word, VIGIL_FOREVER) == VIGIL_PENDING);
    CHECK(vigil_notify(word, 1) == 1);
    CHECK(vigil_agent_dispatch(own) == 1 && pending.calls == 1);
    CHECK(vigil_agent_destroy(own) == VIGIL_OK);
}

static void the_parents_agent_is_dead_in_the_child_only(void **state) {
    (void)state;
    memset(&pending, 0, sizeof pending);
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    assert_int_equal(noted_start(agent, &pending, word, 3600 * SECOND), VIGIL_PENDING);
    run_in_child(the_agent_is_dead);
    assert_int_equal(poll(&seat, 1, 0), 0);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(poll(&seat, 1, 0), 1);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(pending.calls, 1);
}

/* Mail that the parent has not read when it forks belongs to the parent alone. */

static int counted;

static void the_mail_is_not_the_childs(void) {
    CHECK(vigil_agent_dispatch(agent) == VIGIL_EFORKED);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
    CHECK(counted == 0 && pending.calls == 0);
    all_works();
}

static void mail_on_its_way(void **state) {
    (void)state;
    memset(&pending, 0, sizeof pending);
    counted = 0;
    noted_pending(agent, &pending, word);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_agent_post(agent, count, &counted), VIGIL_OK);
    run_in_child(the_mail_is_not_the_childs);
    assert_int_equal(vigil_agent_dispatch(agent), 2);
    assert_int_equal(counted + (int)pending.calls, 2);
}

static void the_child_may_block(void) {
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT);
    vigil_agent *own;
    CHECK(vigil_agent_create(&own, VIGIL_AGENT_MAY_NOT_BLOCK) == VIGIL_OK);
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_EMAYNOTBLOCK);
    CHECK(vigil_agent_destroy(own) == VIGIL_OK);
    CHECK(vigil_wait32(word, 0, 1) == VIGIL_TIMED_OUT);
}

static void may_not_block_is_not_inherited(void **state) {
    (void)state;
    end_agent(agent);
    agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    run_in_child(the_child_may_block);
    assert_int_equal(vigil_wait32(word, 0, 1), VIGIL_EMAYNOTBLOCK);
}

/* Workers. */

static vigil_worker *worker;

static void the_worker_is_dead(void) {
    CHECK(vigil_agent_post(vigil_worker_agent(worker), count, NULL) == VIGIL_EFORKED);
    CHECK(vigil_worker_stop(worker) == VIGIL_EFORKED);
    CHECK(vigil_worker_join(worker) == VIGIL_OK);
    all_works();
}

static void the_parents_worker_is_dead_in_the_child_only(void **state) {
    (void)state;
    int counter = 0;
    assert_int_equal(vigil_worker_start(&worker, count, &counter), VIGIL_OK);
    run_in_child(the_worker_is_dead);
    assert_int_equal(vigil_agent_post(vigil_worker_agent(worker), count, &counter), VIGIL_OK);
    assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
    assert_int_equal(vigil_worker_join(worker), VIGIL_OK);
    assert_int_equal(counter, 2);
}

/* Fork inside callbacks: the child continues after the call that called back. */

static pid_t forked; /* 0 in the child */
static int destroyed_inside;

static void fork_inside(vigil_op *op, int status) {
    note(op, status);
    forked = fork_here();
    if (forked == 0) destroyed_inside = vigil_agent_destroy(agent);
}

static void fork_posted(vigil_agent *on, void *unused) {
    (void)on, (void)unused;
    forked = fork_here();
}

enum way { BY_DISPATCH, BY_RUN, BY_DESTROY };

static int64_t serve(enum way way) {
    if (way == BY_DISPATCH) return vigil_agent_dispatch(agent);
    return way == BY_RUN ? vigil_agent_run_until(agent, 0) : vigil_agent_destroy(agent);
}

static void child_after_callback(int64_t answer, const struct noted *others, int count_of_others) {
    CHECK(answer == VIGIL_EFORKED);
    CHECK(destroyed_inside == VIGIL_EREENTRANT);
    for (int i = 0; i < count_of_others; i++) CHECK(others[i].calls == 0);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
    all_works();
    _exit(0);
}

/*
 * Other operations are pending or in the mail behind the one with the callback that forks: they belong to the parent.
 */
static void fork_while(enum way way, int64_t timeout_ns) {
    static struct noted forker, others[6];
    memset(&forker, 0, sizeof forker);
    memset(others, 0, sizeof others);
    destroyed_inside = VIGIL_EREENTRANT;
    assert_int_equal(vigil_wait32_async(agent, &forker.op, word, 0, timeout_ns, fork_inside), VIGIL_PENDING);
    for (int i = 0; i < 3; i++) noted_pending(agent, &others[i], word);
    for (int i = 3; i < 6; i++) noted_start(agent, &others[i], word + 1, i % 2 ? 3600 * SECOND : VIGIL_FOREVER);
    int64_t notified = timeout_ns != VIGIL_FOREVER ? 0 : way == BY_DESTROY ? 2 : 4;
    assert_int_equal(vigil_notify(word, notified), notified);
    forked = -1;
    int64_t answer = 0;
    while (forker.calls == 0) answer = serve(way);
    bool first = timeout_ns != VIGIL_FOREVER - 1; /* destroy may cancel in any order */
    if (forked == 0) child_after_callback(answer, others, first ? 6 : 0);
    child_succeeds(forked);
    if (way == BY_DESTROY) agent = new_agent(0);
    assert_int_equal(forker.calls, 1);
    for (int i = 0; i < 6 && way != BY_DESTROY; i++) {
        if (others[i].calls == 0) assert_int_equal(vigil_cancel(&others[i].op), VIGIL_OK);
        else assert_int_equal(others[i].status, VIGIL_OK);
    }
    for (int i = 0; i < 6 && way == BY_DESTROY; i++) {
        assert_int_equal(others[i].calls, 1);
        assert_int_equal(others[i].status, i == 0 && timeout_ns == VIGIL_FOREVER ? VIGIL_OK : VIGIL_CANCELLED);
    }
}

static void fork_in_a_notified_callback(void **state) {
    (void)state;
    fork_while(BY_DISPATCH, VIGIL_FOREVER);
    fork_while(BY_RUN, VIGIL_FOREVER);
}

static void fork_in_a_deadlines_callback(void **state) {
    (void)state;
    fork_while(BY_DISPATCH, MICROSECOND);
    fork_while(BY_RUN, MICROSECOND);
}

static void fork_in_a_callback_of_destroy(void **state) {
    (void)state;
    fork_while(BY_DESTROY, VIGIL_FOREVER);     /* the forker and the first of the others have been notified */
    fork_while(BY_DESTROY, VIGIL_FOREVER - 1); /* none has been notified */
}

static void fork_in_a_posted_function(void **state) {
    (void)state;
    for (int way = BY_DISPATCH; way <= BY_RUN; way++) {
        counted = 0;
        forked = -1;
        destroyed_inside = VIGIL_EREENTRANT;
        assert_int_equal(vigil_agent_post(agent, fork_posted, NULL), VIGIL_OK);
        assert_int_equal(vigil_agent_post(agent, count, &counted), VIGIL_OK);
        int64_t answer = serve((enum way)way);
        if (forked == 0) child_after_callback(counted ? VIGIL_OK : answer, NULL, 0);
        child_succeeds(forked);
        assert_int_equal(counted, 1);
    }
}

/* A thread other than the agent's forks while that agent's thread is inside run. */

static void destroy_the_workers_agent(void) {
    CHECK(vigil_agent_destroy(vigil_worker_agent(worker)) == VIGIL_OK);
    all_works();
}

static void anothers_agent_may_be_destroyed_in_the_child(void **state) {
    (void)state;
    assert_int_equal(vigil_worker_start(&worker, NULL, NULL), VIGIL_OK);
    run_in_child(destroy_the_workers_agent);
    assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
    assert_int_equal(vigil_worker_join(worker), VIGIL_OK);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* A call to an event loop that does not run is guarded by a thread of the library: the child has one of its own. */

static void *lock_and_unlock(void *mutex) {
    CHECK(vigil_mutex_lock(mutex) == VIGIL_OK);
    CHECK(vigil_mutex_unlock(mutex) == VIGIL_OK);
    return NULL;
}

static void granted(vigil_op *op, int status) {
    CHECK(status == VIGIL_OK);
    CHECK(vigil_mutex_unlock(op->data) == VIGIL_OK);
}

/* The thread waits behind the loop, which is called, and does not run until the thread has held the mutex. */
static void pass_a_loop_by(void) {
    static vigil_mutex mutex;
    vigil_agent *loop;
    vigil_request request = {.op.data = &mutex};
    pthread_t thread;
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    CHECK(vigil_agent_create(&loop, 0) == VIGIL_OK);
    CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
    CHECK(vigil_mutex_lock_async(loop, &request, &mutex, VIGIL_FOREVER, granted) == VIGIL_PENDING);
    CHECK(pthread_create(&thread, NULL, lock_and_unlock, &mutex) == 0);
    while (vigil_waiters(&mutex) < 2) sched_yield();
    CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(vigil_agent_run(loop) == VIGIL_OK);
    CHECK(vigil_agent_destroy(loop) == VIGIL_OK);
}

static void a_loop_is_passed_by_in_the_child_too(void **state) {
    (void)state;
    pass_a_loop_by();
    if (children_have_threads) run_in_child(pass_a_loop_by);
    pass_a_loop_by();
}

/* Another thread is running the function of a once. In the child no thread is, so the function is called again. */

static struct {
    vigil_once once;
    uint32_t inside, may_end;
    int calls;
} begun;

static int call_until_told(void *answer) {
    begun.calls++;
    STORE(begun.inside, 1);
    AWAIT(LOAD(begun.may_end));
    return *(int *)answer;
}

static int call_briefly(void *unused) {
    (void)unused;
    begun.calls++;
    return VIGIL_OK;
}

static void *call_once(void *answer) {
    return (void *)(intptr_t)vigil_once_call(&begun.once, call_until_told, answer);
}

static void *call_once_too(void *unused) {
    return (void *)(intptr_t)vigil_once_call(&begun.once, call_briefly, unused);
}

static void it_is_called_again(void) {
    CHECK(!vigil_once_is_done(&begun.once));
    CHECK(vigil_once_call_for(&begun.once, call_briefly, NULL, 0) == VIGIL_OK);
    CHECK(begun.calls == 2);
    CHECK(vigil_once_call(&begun.once, call_briefly, NULL) == VIGIL_OK);
    CHECK(begun.calls == 2);
}

static int call_in_vain(void *unused) {
    (void)unused;
    begun.calls++;
    return -7;
}

static void it_fails_and_is_called_again(void) {
    CHECK(vigil_once_call(&begun.once, call_in_vain, NULL) == -7);
    CHECK(vigil_once_call(&begun.once, call_briefly, NULL) == VIGIL_OK);
    CHECK(begun.calls == 3);
}

static void it_is_called_by_a_loop(void) {
    vigil_agent *own;
    vigil_request request = {0};
    CHECK(vigil_agent_create(&own, 0) == VIGIL_OK);
    CHECK(vigil_once_call_async(own, &request, &begun.once, call_briefly, NULL, VIGIL_FOREVER, note) == VIGIL_OK);
    CHECK(begun.calls == 2);
    CHECK(vigil_agent_destroy(own) == VIGIL_OK);
}

/* In the child another thread runs the function, and is waited for. */
static void it_is_waited_for(void) {
    static int answer = VIGIL_OK;
    pthread_t threads[2];
    begun.inside = 0;
    CHECK(pthread_create(&threads[0], NULL, call_once, &answer) == 0);
    AWAIT(LOAD(begun.inside));
    CHECK(pthread_create(&threads[1], NULL, call_once_too, NULL) == 0);
    AWAIT(vigil_waiters(&begun.once) == 1);
    STORE(begun.may_end, 1);
    void *status;
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], &status) == 0 && !status);
    CHECK(begun.calls == 2);
}

static void in_a_childs_child(void) {
    pid_t child = fork_here();
    if (child == 0) {
        it_is_called_again();
        _exit(0);
    }
    CHECK(exit_status_of(child) == 0);
    it_is_called_again();
}

static void fork_while_once_runs(int answer, bool awaited) {
    pthread_t runner, waiter;
    memset(&begun, 0, sizeof begun);
    assert_int_equal(pthread_create(&runner, NULL, call_once, &answer), 0);
    AWAIT(LOAD(begun.inside));
    if (awaited) {
        assert_int_equal(pthread_create(&waiter, NULL, call_once_too, NULL), 0);
        AWAIT(waiters_in_line(&begun.once) == 1);
    }
    run_in_child(it_is_called_again);
    run_in_child(it_fails_and_is_called_again);
    run_in_child(it_is_called_by_a_loop);
    run_in_child(in_a_childs_child);
    if (children_have_threads) run_in_child(it_is_waited_for);
    STORE(begun.may_end, 1);
    void *status;
    assert_int_equal(pthread_join(runner, &status), 0);
    assert_int_equal((intptr_t)status, answer);
    if (awaited) assert_int_equal(pthread_join(waiter, &status), 0);
    assert_int_equal(begun.calls, answer == VIGIL_OK || !awaited ? 1 : 2);
    assert_int_equal(vigil_once_is_done(&begun.once), answer == VIGIL_OK || awaited);
}

static void a_once_is_called_again_in_the_child(void **state) {
    (void)state;
    fork_while_once_runs(VIGIL_OK, false);
    fork_while_once_runs(VIGIL_OK, true);
    fork_while_once_runs(-7, false);
    fork_while_once_runs(-7, true);
}

/* The function itself forks: it returns in both processes, and completes the once in both. */

static pid_t forked_inside;

static int fork_in_function(void *unused) {
    (void)unused;
    begun.calls++;
    forked_inside = fork_here();
    return VIGIL_OK;
}

static void the_function_of_a_once_forks(void **state) {
    (void)state;
    memset(&begun, 0, sizeof begun);
    int status = vigil_once_call(&begun.once, fork_in_function, NULL);
    if (forked_inside == 0) {
        CHECK(status == VIGIL_OK && vigil_once_is_done(&begun.once));
        CHECK(vigil_once_call(&begun.once, call_briefly, NULL) == VIGIL_OK && begun.calls == 1);
        _exit(0);
    }
    child_succeeds(forked_inside);
    assert_int_equal(status, VIGIL_OK);
    assert_true(vigil_once_is_done(&begun.once));
}

/* A thread that has been called, and has not come yet, does not exist in the child: the child can take the lock. */
static void what_is_reserved_can_be_had_in_the_child(void **state) {
    (void)state;
    vigil_mutex mutex = {3}, passed = {8 | 0x3fff0};
    vigil_rwlock rwlock = {4}, held = {4 | 2};
    vigil_sem sem = {16 | 2}, saved = {16 | 4 | 1};
    assert_int_equal(vigil_mutex_trylock(&mutex), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_mutex_trylock(&passed), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_rwlock_read_trylock(&rwlock), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_rwlock_write_trylock(&held), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_tryacquire(&sem, 1), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_tryacquire(&saved, 1), VIGIL_TIMED_OUT);
    pid_t child = fork_here();
    if (child == 0) {
        CHECK(vigil_mutex_trylock(&mutex) == VIGIL_OK && vigil_mutex_unlock(&mutex) == VIGIL_OK);
        CHECK(vigil_mutex_trylock(&passed) == VIGIL_OK && vigil_mutex_unlock(&passed) == VIGIL_OK);
        CHECK(vigil_rwlock_read_trylock(&rwlock) == VIGIL_OK && vigil_rwlock_read_unlock(&rwlock) == VIGIL_OK);
        CHECK(vigil_rwlock_write_trylock(&held) == VIGIL_OK && vigil_rwlock_write_unlock(&held) == VIGIL_OK);
        CHECK(vigil_sem_tryacquire(&sem, 1) == VIGIL_OK && vigil_sem_tryacquire(&saved, 1) == VIGIL_OK);
        _exit(0);
    }
    child_succeeds(child);
}

/* Threads of the child contend for a mutex that the forking thread holds, and for which a thread of the parent waits.
 * The child may still ask for fences in all threads, as the parent may. */
static vigil_mutex contended;
static unsigned counted_under_it; /* not atomic: the mutex protects it */

static void *count_under_it(void *unused) {
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        CHECK(vigil_mutex_lock(&contended) == VIGIL_OK);
        counted_under_it++;
        CHECK(vigil_mutex_unlock(&contended) == VIGIL_OK);
    }
    return NULL;
}

static void contend_in_child(void) {
    pthread_t threads[4];
    bool stores = vigil__own_lines() != NULL;
    counted_under_it = 0;
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, count_under_it, NULL) == 0);
    while (vigil_waiters(&contended) < 4) sched_yield();
    CHECK(vigil_mutex_unlock(&contended) == VIGIL_OK);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(counted_under_it == 8000 && contended.word == 0);
    CHECK(stores == (vigil__own_lines() != NULL));
}

static void a_mutex_is_contended_in_the_child(void **state) {
    (void)state;
    if (!children_have_threads) return;
    pthread_t thread;
    contended = (vigil_mutex)VIGIL_MUTEX_INIT;
    assert_int_equal(vigil_mutex_lock(&contended), VIGIL_OK);
    assert_int_equal(pthread_create(&thread, NULL, lock_and_unlock, &contended), 0);
    while (vigil_waiters(&contended) < 1) sched_yield();
    run_in_child(contend_in_child);
    assert_int_equal(vigil_mutex_unlock(&contended), VIGIL_OK);
    pthread_join(thread, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_loop_is_passed_by_in_the_child_too),
        TEST(a_child_of_an_idle_process),
        TEST(a_child_while_threads_and_agents_wait),
        TEST(children_while_threads_are_busy),
        TEST(a_childs_child),
        TEST(the_parents_agent_is_dead_in_the_child_only),
        TEST(mail_on_its_way),
        TEST(may_not_block_is_not_inherited),
        TEST(the_parents_worker_is_dead_in_the_child_only),
        TEST(fork_in_a_notified_callback),
        TEST(fork_in_a_deadlines_callback),
        TEST(fork_in_a_callback_of_destroy),
        TEST(fork_in_a_posted_function),
        TEST(anothers_agent_may_be_destroyed_in_the_child),
        TEST(a_once_is_called_again_in_the_child),
        TEST(the_function_of_a_once_forks),
        TEST(what_is_reserved_can_be_had_in_the_child),
        TEST(a_mutex_is_contended_in_the_child),
    };
    return cmocka_run_group_tests(tests, try_threads, NULL);
}
