/* SPDX-License-Identifier: MIT */
/* Bugs that other projects had in their locks: each is named where it is tested for. */
#include "support.h"

#include "child.h"
#include "lockers.h"

static bool usable(vigil_mutex *which) {
    return vigil_waiters(which) == 0 && vigil_mutex_trylock(which) == VIGIL_OK && vigil_mutex_unlock(which) == VIGIL_OK;
}

static void ask_of(vigil_agent *whose, struct requester *requester, vigil_mutex *which) {
    *requester = (struct requester){.mutex = which};
    assert_int_equal(vigil_mutex_lock_async(whose, &requester->request, which, VIGIL_FOREVER, answer_and_unlock),
                     VIGIL_PENDING);
}

/* tokio#1898: a waiter that was aborted stayed in the queue and wedged the mutex. */
static void tokio_1898_an_aborted_waiter(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester aborted[3], last;
        struct locker behind;
        lock(both[i]);
        for (int j = 0; j < 3; j++) ask_pending(&aborted[j], both[i], VIGIL_FOREVER, answer_and_unlock);
        locker_start(&behind, both[i]);
        for (int j = 0; j < 3; j++) assert_int_equal(cancel(&aborted[j]), VIGIL_OK);
        memset(aborted, 0xEE, sizeof aborted); /* its memory may be reused */
        ask_pending(&last, both[i], VIGIL_FOREVER, answer_and_unlock);
        unlock(both[i]);
        assert_int_equal(locker_join(&behind), VIGIL_OK);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(last.calls, 1);
        assert_true(usable(both[i]));
    }
}

/* embassy#6964: when the head of the queue was cancelled, the next waiter was not woken. */
static void embassy_6964_the_cancelled_head(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int already_called = 0; already_called < 2; already_called++) {
            vigil_agent *other = new_agent(0);
            struct requester head, next;
            struct locker thread;
            lock(both[i]);
            ask_pending(&head, both[i], VIGIL_FOREVER, answer_and_unlock);
            ask_of(other, &next, both[i]);
            locker_start(&thread, both[i]);
            let_pass(PATIENCE);
            if (already_called) unlock(both[i]);
            assert_int_equal(cancel(&head), VIGIL_OK);
            if (!already_called) unlock(both[i]);
            dispatch();
            assert_int_equal(vigil_agent_run(other), VIGIL_OK);
            assert_int_equal(next.status, VIGIL_OK);
            assert_int_equal(next.calls, 1);
            assert_int_equal(locker_join(&thread), VIGIL_OK);
            assert_int_equal(head.calls, 0);
            end_agent(other);
            assert_true(usable(both[i]));
        }
    }
}

/* moonbitlang/async#160: granted, then cancelled before it ran: the permit was lost. */
static void moonbit_160_granted_then_cancelled(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        vigil_agent *other = new_agent(0);
        struct requester called, granted, next;
        lock(both[i]);
        ask_pending(&called, both[i], VIGIL_FOREVER, answer_and_unlock);
        ask_of(other, &next, both[i]);
        let_pass(PATIENCE);
        unlock(both[i]); /* reserved for the first */
        assert_int_equal(cancel(&called), VIGIL_OK);
        dispatch();
        assert_int_equal(called.calls, 0);
        assert_int_equal(vigil_agent_run(other), VIGIL_OK);
        assert_int_equal(next.status, VIGIL_OK);

        lock(both[i]);
        ask_pending(&granted, both[i], VIGIL_FOREVER, answer);
        unlock(both[i]);
        dispatch();
        assert_int_equal(cancel(&granted), VIGIL_EIDLE); /* it holds the mutex, and unlocks it like any other holder */
        assert_true(vigil_mutex_is_locked(both[i]));
        unlock(both[i]);
        end_agent(other);
        assert_true(usable(both[i]));
    }
}

/* A thread that locks and unlocks in a loop. */

static uint32_t stop;
static uint64_t plain_counter; /* not atomic: only touched by the holder of the mutex */

static void *hammer(void *which) {
    uintptr_t turns = 0;
    for (; !LOAD(stop); turns++) {
        if (vigil_mutex_lock(which) != VIGIL_OK) abort();
        plain_counter++;
        if (vigil_mutex_unlock(which) != VIGIL_OK) abort();
    }
    return (void *)turns;
}

#define HAMMERS 2

static void start_hammers(pthread_t *threads, vigil_mutex *which) {
    plain_counter = 0;
    STORE(stop, 0);
    for (int i = 0; i < HAMMERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, hammer, which), 0);
}

/* `granted` is how often others held the mutex meanwhile. */
static void stop_hammers(pthread_t *threads, vigil_mutex *which, uint64_t granted) {
    uint64_t turns = 0;
    STORE(stop, 1);
    for (int i = 0; i < HAMMERS; i++) {
        void *his;
        pthread_join(threads[i], &his);
        turns += (uintptr_t)his;
    }
    assert_int_equal(plain_counter, turns + granted);
    assert_true(usable(which));
}

static void count_and_unlock(vigil_op *op, int status) {
    struct requester *me = (struct requester *)op;
    me->calls++;
    me->status = status;
    if (status != VIGIL_OK) return;
    plain_counter++;
    unlock(me->mutex);
}

/* Starts the request and lets it end. Returns how often it was granted. */
static unsigned ask_and_end(struct requester *requester, int64_t timeout_ns, bool cancelled) {
    unsigned before = requester->calls;
    int status = vigil_mutex_lock_async(agent, &requester->request, requester->mutex, timeout_ns, count_and_unlock);
    if (status == VIGIL_OK) {
        plain_counter++;
        unlock(requester->mutex);
        return 1;
    }
    assert_int_equal(status, VIGIL_PENDING);
    if (cancelled) {
        assert_int_equal(cancel(requester), VIGIL_OK); /* never too late */
        dispatch();
        assert_int_equal(requester->calls, before);
        return 0;
    }
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(requester->calls, before + 1);
    assert_true(requester->status == VIGIL_OK || requester->status == VIGIL_TIMED_OUT);
    return requester->status == VIGIL_OK;
}

/* repoprompt-ce#492: cancel and unlock raced, and both won: the lock was lost, or held twice. */
static void repoprompt_492_cancel_against_unlock(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        pthread_t threads[HAMMERS];
        struct requester requester = {.mutex = both[i]};
        uint64_t granted = 0;
        start_hammers(threads, both[i]);
        for (int round = 0; round < 5000; round++) granted += ask_and_end(&requester, VIGIL_FOREVER, true);
        stop_hammers(threads, both[i], granted);
    }
}

/* folly, timeout() around co_lock: both the deadline and the grant won, and the lock was never released. */
static void folly_timeout_against_unlock(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        pthread_t threads[HAMMERS];
        struct requester requester = {.mutex = both[i]};
        uint64_t granted = 0;
        start_hammers(threads, both[i]);
        for (int round = 0; round < 3000; round++) {
            granted += ask_and_end(&requester, 1 + round % 100 * MICROSECOND, false);
            int status = vigil_mutex_lock_for(both[i], 1 + round % 100 * MICROSECOND);
            if (status != VIGIL_OK) continue;
            plain_counter++;
            granted++;
            unlock(both[i]);
        }
        stop_hammers(threads, both[i], granted);
    }
}

struct holder {
    vigil_mutex *mutex;
    int64_t until_in_line;
};

static void *unlock_when_in_line(void *argument) {
    struct holder *holder = argument;
    AWAIT(vigil_waiters(holder->mutex) == holder->until_in_line);
    return (void *)(intptr_t)vigil_mutex_unlock(holder->mutex);
}

/* emscripten#25670: a blocking acquire right after an asynchronous one, on the same thread, deadlocked. */
static void emscripten_25670_behind_ones_own_request(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct holder holder = {both[i], 2};
        struct requester requester;
        pthread_t releases;
        void *status;
        lock(both[i]);
        execute_pending(&requester, both[i]);
        assert_int_equal(pthread_create(&releases, NULL, unlock_when_in_line, &holder), 0);
        lock(both[i]); /* although no loop of ours runs meanwhile */
        assert_int_equal(requester.calls, 0);
        unlock(both[i]);
        pthread_join(releases, &status);
        assert_int_equal((intptr_t)status, VIGIL_OK);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(requester.status, VIGIL_OK);
        assert_int_equal(requester.calls, 1);
        assert_true(usable(both[i]));
    }
}

/* parking_lot#515, RustPython#6963: a forked child found the queues of threads that it did not have. */

static void the_childs_copy_works(vigil_mutex *which) {
    CHECK(vigil_waiters(which) == 0);
    CHECK(vigil_mutex_unlock(which) == VIGIL_OK); /* the forking thread holds it in the child as well */
    CHECK(usable(which));
    CHECK(vigil_mutex_lock(which) == VIGIL_OK);
    CHECK(vigil_mutex_lock_for(which, MILLISECOND) == VIGIL_TIMED_OUT);
    CHECK(vigil_mutex_unlock(which) == VIGIL_OK);
    CHECK(usable(which));
}

static void parking_lot_515_a_child_of_a_process_with_a_line(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct locker threads[3];
        struct requester requester;
        lock(both[i]);
        for (int j = 0; j < 3; j++) locker_start(&threads[j], both[i]);
        execute_pending(&requester, both[i]);
        pid_t child = fork_here();
        if (child == 0) {
            the_childs_copy_works(both[i]);
            CHECK(requester.calls == 0);
            _exit(0);
        }
        assert_int_equal(exit_status_of(child), 0);
        assert_int_equal(vigil_waiters(both[i]), 4);
        unlock(both[i]);
        for (int j = 0; j < 3; j++) assert_int_equal(locker_join(&threads[j]), VIGIL_OK);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(requester.calls, 1);
        assert_true(usable(both[i]));
    }
}

/* A lock reserved for a waiter of the parent does not remain unavailable in the child. */
static void parking_lot_515_reserved_for_one_the_child_has_not(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct requester requester;
        lock(both[i]);
        execute_pending(&requester, both[i]);
        let_pass(PATIENCE);
        unlock(both[i]);
        assert_int_equal(STATE_OF(both[i]), RESERVED);
        pid_t child = fork_here();
        if (child == 0) {
            CHECK(vigil_mutex_lock(both[i]) == VIGIL_OK);
            the_childs_copy_works(both[i]);
            _exit(0);
        }
        assert_int_equal(exit_status_of(child), 0);
        dispatch();
        assert_int_equal(requester.calls, 1);
        assert_true(usable(both[i]));
    }
}

/* parking_lot#76: a thread that came back at once took the lock again and again, and a waiter starved. */
static void parking_lot_76_starvation(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        pthread_t threads[HAMMERS];
        struct requester requester = {.mutex = both[i]};
        uint64_t granted = 0;
        start_hammers(threads, both[i]);
        for (int round = 0; round < 200; round++) { /* each one ends, or the runner's time limit reports it */
            lock(both[i]);
            plain_counter++;
            granted++;
            unlock(both[i]);
            granted += ask_and_end(&requester, VIGIL_FOREVER, false);
        }
        stop_hammers(threads, both[i], granted);
        assert_int_equal(granted, 400);
    }
}

/* tokio#6450: the lock was handed to a task that never ran, and all others waited for it. */
static void tokio_6450_a_loop_that_never_runs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int entitled = 0; entitled < 2; entitled++) {
            vigil_agent *never_dispatched = new_agent(0), *other = new_agent(0);
            struct requester stuck, next;
            struct locker threads[2], late;
            lock(both[i]);
            ask_of(never_dispatched, &stuck, both[i]);
            ask_of(other, &next, both[i]);
            for (int j = 0; j < 2; j++) locker_start(&threads[j], both[i]);
            if (entitled) let_pass(PATIENCE);
            unlock(both[i]);
            assert_int_equal(vigil_agent_run(other), VIGIL_OK);
            assert_int_equal(next.status, VIGIL_OK);
            for (int j = 0; j < 2; j++) assert_int_equal(locker_join(&threads[j]), VIGIL_OK);
            locker_launch(&late, both[i], VIGIL_FOREVER);
            assert_int_equal(locker_join(&late), VIGIL_OK);
            assert_int_equal(stuck.calls, 0);
            end_agent(never_dispatched);
            assert_int_equal(stuck.calls, 1);
            end_agent(other);
            assert_true(usable(both[i]));
        }
    }
}

/* With a fair lock, a waiter that loses its turn loses it to the next in line, not to any thread that tries first. */
static void tokio_6450_the_turn_goes_to_the_next(void **state) {
    (void)state;
    struct requester stuck;
    struct locker threads[2];
    lock(&fair);
    ask_pending(&stuck, &fair, VIGIL_FOREVER, answer_and_unlock);
    locker_start(&threads[0], &fair);
    let_pass(FAIR_PATIENCE / 2); /* so that the second one looks when the first one does not */
    locker_start(&threads[1], &fair);
    let_pass(FAIR_PATIENCE * 3 / 4);
    unlock(&fair);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(locker_join(&threads[i]), VIGIL_OK);
    dispatch();
    assert_int_equal(stuck.status, VIGIL_OK);
    assert_int_equal(threads[0].rank, 1);
    assert_int_equal(threads[1].rank, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(tokio_1898_an_aborted_waiter),
        TEST(embassy_6964_the_cancelled_head),
        TEST(moonbit_160_granted_then_cancelled),
        TEST(repoprompt_492_cancel_against_unlock),
        TEST(folly_timeout_against_unlock),
        TEST(emscripten_25670_behind_ones_own_request),
        TEST(parking_lot_515_a_child_of_a_process_with_a_line),
        TEST(parking_lot_515_reserved_for_one_the_child_has_not),
        TEST(parking_lot_76_starvation),
        TEST(tokio_6450_a_loop_that_never_runs),
        TEST(tokio_6450_the_turn_goes_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
