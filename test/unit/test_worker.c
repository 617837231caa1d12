/* SPDX-License-Identifier: MIT */
/* Workers: start, post, stop, join. */
#include "support.h"

static uint32_t word;

static vigil_worker *new_worker(vigil_function *main, void *argument) {
    vigil_worker *worker = NULL;
    assert_int_equal(vigil_worker_start(&worker, main, argument), VIGIL_OK);
    assert_non_null(worker);
    assert_non_null(vigil_worker_agent(worker));
    return worker;
}

static void stop_and_join(vigil_worker *worker) {
    assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
    assert_int_equal(vigil_worker_join(worker), VIGIL_OK);
}

static void null_is_refused(void **state) {
    (void)state;
    assert_int_equal(vigil_worker_start(NULL, NULL, NULL), VIGIL_ENULL);
    assert_null(vigil_worker_agent(NULL));
    assert_int_equal(vigil_worker_stop(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_worker_join(NULL), VIGIL_ENULL);
}

static void start_stop_join(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) stop_and_join(new_worker(NULL, NULL));
}

/* What the worker's thread saw. */
static struct {
    vigil_agent *agent;
    pthread_t thread;
    void *argument;
    unsigned count;
    int statuses[4];
} seen;

static void see(vigil_agent *agent, void *argument) {
    seen.agent = agent;
    seen.thread = pthread_self();
    seen.argument = argument;
    seen.count++;
}

static void main_runs_first_on_the_thread(void **state) {
    (void)state;
    memset(&seen, 0, sizeof seen);
    int argument;
    vigil_worker *worker = new_worker(see, &argument);
    vigil_agent *agent = vigil_worker_agent(worker);
    stop_and_join(worker);
    assert_int_equal(seen.count, 1);
    assert_ptr_equal(seen.agent, agent);
    assert_ptr_equal(seen.argument, &argument);
    assert_false(pthread_equal(seen.thread, pthread_self()));
}

static void what_was_posted_before_stop_runs(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        memset(&seen, 0, sizeof seen);
        vigil_worker *worker = new_worker(see, NULL);
        vigil_agent *agent = vigil_worker_agent(worker);
        for (int j = 0; j < 50; j++) assert_int_equal(vigil_agent_post(agent, see, NULL), VIGIL_OK);
        stop_and_join(worker);
        assert_int_equal(seen.count, 51);
    }
}

static void stop_twice(void **state) {
    (void)state;
    vigil_worker *worker = new_worker(NULL, NULL);
    assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
    assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
    stop_and_join(worker);
}

static void set_flag(vigil_agent *agent, void *flag) {
    (void)agent;
    __atomic_store_n((uint32_t *)flag, 1, __ATOMIC_RELEASE);
}

/* Whether those still run depends on how far the thread is. But they are accepted, and nothing of them is left. */
static void posts_after_stop_do_no_harm(void **state) {
    (void)state;
    uint32_t before = slots_ever_used();
    for (int i = 0; i < 300; i++) {
        uint32_t flag = 0;
        vigil_worker *worker = new_worker(NULL, NULL);
        assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
        for (int j = 0; j < 50; j++) {
            assert_int_equal(vigil_agent_post(vigil_worker_agent(worker), set_flag, &flag), VIGIL_OK);
        }
        assert_int_equal(vigil_worker_join(worker), VIGIL_OK);
    }
    assert_true(slots_ever_used() - before <= 6 * SLOT_CHUNK);
}

static void stop_self(vigil_agent *agent, void *worker) {
    (void)agent;
    vigil_worker **self = worker;
    while (!LOAD(*self)) sched_yield();
    seen.statuses[0] = vigil_worker_stop(LOAD(*self));
}

static void a_worker_may_stop_itself(void **state) {
    (void)state;
    vigil_worker *self = NULL, *worker = new_worker(stop_self, &self);
    STORE(self, worker);
    assert_int_equal(vigil_worker_join(worker), VIGIL_OK);
    assert_int_equal(seen.statuses[0], VIGIL_OK);
}

static void join_self(vigil_agent *agent, void *worker) {
    (void)agent;
    seen.statuses[0] = vigil_worker_join(worker);
}

static void join_on_its_own_thread_is_refused(void **state) {
    (void)state;
    seen.statuses[0] = VIGIL_OK;
    vigil_worker *worker = new_worker(NULL, NULL);
    assert_int_equal(vigil_agent_post(vigil_worker_agent(worker), join_self, worker), VIGIL_OK);
    stop_and_join(worker);
    assert_int_equal(seen.statuses[0], VIGIL_EWRONGTHREAD);
}

static void join_where_blocking_is_refused(void **state) {
    (void)state;
    vigil_worker *worker = new_worker(NULL, NULL);
    vigil_agent *strict = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
    assert_int_equal(vigil_worker_join(worker), VIGIL_EMAYNOTBLOCK);
    end_agent(strict);
    assert_int_equal(vigil_worker_join(worker), VIGIL_OK);
}

static void the_agent_is_the_workers(void **state) {
    (void)state;
    vigil_worker *worker = new_worker(NULL, NULL);
    vigil_agent *agent = vigil_worker_agent(worker);
    struct noted noted = {0};
    assert_int_equal(noted_start(agent, &noted, &word, VIGIL_FOREVER), VIGIL_EWRONGTHREAD);
    assert_int_equal(vigil_agent_dispatch(agent), VIGIL_EWRONGTHREAD);
    assert_int_equal(vigil_agent_destroy(agent), VIGIL_EWRONGTHREAD);
    assert_int_equal(vigil_agent_ref(agent), VIGIL_EWRONGTHREAD);
    stop_and_join(worker);
}

static void wait_for_word(vigil_agent *agent, void *status) {
    (void)agent;
    STORE(*(int *)status, vigil_wait32(&word, 0, VIGIL_FOREVER));
}

static void a_worker_may_block(void **state) {
    (void)state;
    int status = UNDECIDED;
    vigil_worker *worker = new_worker(wait_for_word, &status);
    AWAIT(waiters_in_line(&word) == 1);
    assert_int_equal(vigil_notify(&word, 1), 1);
    stop_and_join(worker);
    assert_int_equal(status, VIGIL_OK);
}

static struct noted noted[4];

static void start_four(vigil_agent *agent, void *unused) {
    (void)unused;
    for (int i = 0; i < 4; i++) {
        seen.statuses[i] = noted_start(agent, &noted[i], &word, i % 2 ? 3600 * SECOND : VIGIL_FOREVER);
    }
}

static void the_end_cancels_what_is_pending(void **state) {
    (void)state;
    memset(noted, 0, sizeof noted);
    vigil_worker *worker = new_worker(start_four, NULL);
    AWAIT(waiters_in_line(&word) == 4);
    assert_int_equal(vigil_notify(&word, 1), 1);
    stop_and_join(worker);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(seen.statuses[i], VIGIL_PENDING);
        assert_int_equal(noted[i].calls, 1);
        assert_int_equal(noted[i].status, i ? VIGIL_CANCELLED : VIGIL_OK);
    }
    assert_int_equal(waiters_in_line(&word), 0);
}

static void it_serves_without_anything_pending(void **state) {
    (void)state;
    vigil_worker *worker = new_worker(NULL, NULL);
    for (int i = 0; i < 200; i++) {
        uint32_t flag = 0;
        assert_int_equal(vigil_agent_post(vigil_worker_agent(worker), set_flag, &flag), VIGIL_OK);
        AWAIT(LOAD(flag));
    }
    stop_and_join(worker);
}

static void ask(vigil_agent *from, void *to);

static void answer(vigil_agent *to, void *from) {
    if (++seen.count < 2000) vigil_agent_post(from, ask, to);
    else vigil_agent_stop(from);
}

static void ask(vigil_agent *from, void *to) {
    vigil_agent_post(to, answer, from);
}

/* The page and its worker: messages back and forth, one at a time. */
static void messages_to_and_fro(void **state) {
    (void)state;
    vigil_agent *page = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    vigil_worker *worker = new_worker(NULL, NULL);
    seen.count = 0;
    vigil_agent_ref(page);
    ask(page, vigil_worker_agent(worker));
    assert_int_equal(vigil_agent_run(page), VIGIL_OK);
    vigil_agent_unref(page);
    end_agent(page);
    stop_and_join(worker);
    assert_int_equal(seen.count, 2000);
}

static void start_and_end_another(vigil_agent *agent, void *unused) {
    (void)agent, (void)unused;
    vigil_worker *inner;
    seen.statuses[0] = vigil_worker_start(&inner, see, NULL);
    seen.statuses[1] = vigil_worker_stop(inner);
    seen.statuses[2] = vigil_worker_join(inner);
}

static void a_worker_may_have_workers(void **state) {
    (void)state;
    memset(&seen, 0, sizeof seen);
    stop_and_join(new_worker(start_and_end_another, NULL));
    assert_int_equal(seen.count, 1);
    for (int i = 0; i < 3; i++) assert_int_equal(seen.statuses[i], VIGIL_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(start_stop_join),
        cmocka_unit_test(main_runs_first_on_the_thread),
        cmocka_unit_test(what_was_posted_before_stop_runs),
        cmocka_unit_test(stop_twice),
        cmocka_unit_test(posts_after_stop_do_no_harm),
        cmocka_unit_test(a_worker_may_stop_itself),
        cmocka_unit_test(join_on_its_own_thread_is_refused),
        cmocka_unit_test(join_where_blocking_is_refused),
        cmocka_unit_test(the_agent_is_the_workers),
        cmocka_unit_test(a_worker_may_block),
        cmocka_unit_test(the_end_cancels_what_is_pending),
        cmocka_unit_test(it_serves_without_anything_pending),
        cmocka_unit_test(messages_to_and_fro),
        cmocka_unit_test(a_worker_may_have_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
