/* SPDX-License-Identifier: MIT */
/* A robust mutex: what happens to it when its holder thread ends, and which thread may unlock it. */
#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "lot/lot.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"

#define OK(call) assert_int_equal((call), VIGIL_OK)

static const vigil_mutex robust = VIGIL_MUTEX_ROBUST;
static vigil_mutex mutex, second, third;
static vigil_cond cond;
static vigil_agent *agent;

static int set_up(void **state) {
    (void)state;
    mutex = second = third = robust;
    return vigil_agent_create(&agent, 0) != VIGIL_OK;
}

static int tear_down(void **state) {
    (void)state;
    return vigil_agent_destroy(agent) != VIGIL_OK || vigil_waiters(&mutex) != 0;
}

static void in_another_thread(void *(*main)(void *)) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, main, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* It has been unlocked, and no trace of its holders is left. */
static void expect_as_new(const vigil_mutex *which) {
    assert_int_equal(LOAD(which->word), robust.word);
}

static void repair_and_unlock(vigil_mutex *which) {
    OK(vigil_mutex_consistent(which));
    OK(vigil_mutex_unlock(which));
    expect_as_new(which);
}

/* Threads that end. */

static void *lock_it(void *unused) {
    CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
    return unused;
}

static void *lock_it_and_exit(void *unused) {
    lock_it(unused);
    pthread_exit(NULL);
}

static void *try_it(void *unused) {
    CHECK(vigil_mutex_trylock(&mutex) == VIGIL_OK);
    return unused;
}

static void *lock_it_and_be_cancelled(void *unused) {
    lock_it(unused);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return unused;
}

static void the_next_one_is_told(void **state) {
    (void)state;
    void *(*const ways[])(void *) = {lock_it, lock_it_and_exit, try_it, lock_it_and_be_cancelled};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        in_another_thread(ways[i]);
        assert_int_equal(i % 2 ? vigil_mutex_trylock(&mutex) : vigil_mutex_lock(&mutex), VIGIL_OWNER_DIED);
        repair_and_unlock(&mutex);
        OK(vigil_mutex_lock(&mutex));
        assert_int_equal(vigil_mutex_consistent(&mutex), VIGIL_EINVAL);
        OK(vigil_mutex_unlock(&mutex));
        assert_int_equal(vigil_mutex_consistent(&mutex), VIGIL_ENOTHELD);
    }
}

static void as_long_as_it_is_not_consistent_all_are_told(void **state) {
    (void)state;
    in_another_thread(lock_it);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OWNER_DIED);
        OK(vigil_mutex_unlock(&mutex));
    }
    assert_int_equal(vigil_mutex_lock_for(&mutex, SECOND), VIGIL_OWNER_DIED);
    repair_and_unlock(&mutex);
}

static void of_a_plain_one_the_end_is_not_noticed(void **state) {
    (void)state;
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    in_another_thread(lock_it);
    assert_int_equal(vigil_mutex_trylock(&mutex), VIGIL_TIMED_OUT);
    OK(vigil_mutex_unlock(&mutex)); /* it belongs to no thread */
}

/* Threads that are already waiting. */

static bool may_end;

static void *lock_it_and_stay(void *unused) {
    lock_it(unused);
    AWAIT(LOAD(may_end));
    return unused;
}

static pthread_t holder_start(void) {
    pthread_t thread;
    STORE(may_end, false);
    assert_int_equal(pthread_create(&thread, NULL, lock_it_and_stay, NULL), 0);
    AWAIT(vigil_mutex_is_locked(&mutex));
    return thread;
}

static void holder_end(pthread_t thread) {
    STORE(may_end, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static unsigned told, served;

static void *take_over(void *unused) {
    int status = vigil_mutex_lock(&mutex);
    CHECK(status == VIGIL_OK || status == VIGIL_OWNER_DIED);
    if (status == VIGIL_OWNER_DIED) told++;
    if (status == VIGIL_OWNER_DIED) CHECK(vigil_mutex_consistent(&mutex) == VIGIL_OK);
    served++;
    CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
    return unused;
}

static void one_of_those_in_line_is_told(void **state) {
    (void)state;
    pthread_t holder = holder_start(), waiters[3];
    told = served = 0;
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        assert_int_equal(pthread_create(&waiters[i], NULL, take_over, NULL), 0);
        AWAIT(vigil_waiters(&mutex) == (int64_t)i + 1);
    }
    holder_end(holder);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) assert_int_equal(pthread_join(waiters[i], NULL), 0);
    assert_int_equal(told, 1);
    assert_int_equal(served, COUNT_OF(waiters));
    expect_as_new(&mutex);
}

static int granted_with;

static void on_granted(vigil_op *op, int status) {
    (void)op;
    granted_with = status;
}

static void an_event_loop_in_line_is_told(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        vigil_request request = {0};
        pthread_t holder = holder_start();
        granted_with = UNDECIDED;
        int status = i == 0   ? vigil_mutex_lock_async(agent, &request, &mutex, VIGIL_FOREVER, on_granted)
                     : i == 1 ? vigil_mutex_execute(agent, &request, &mutex, VIGIL_FOREVER, on_granted)
                              : vigil_mutex_execute_later(agent, &request, &mutex, VIGIL_FOREVER, on_granted);
        assert_int_equal(status, VIGIL_PENDING);
        holder_end(holder);
        AWAIT(vigil_agent_dispatch(agent) >= 0 && granted_with != UNDECIDED);
        assert_int_equal(granted_with, VIGIL_OWNER_DIED);
        if (i == 1) assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OWNER_DIED); /* it has been unlocked */
        repair_and_unlock(&mutex);
    }
}

/* Which thread holds it. */

static int unlocked_with;

static void *unlock_it(void *unused) {
    unlocked_with = vigil_mutex_unlock(&mutex);
    return unused;
}

static void *wait_with_it(void *unused) {
    unlocked_with = vigil_cond_wait_for(&cond, &mutex, SECOND);
    return unused;
}

static void no_other_thread_can_unlock_it(void **state) {
    (void)state;
    vigil_request request = {0};
    OK(vigil_mutex_lock(&mutex));
    uint32_t locked = LOAD(mutex.word);
    in_another_thread(unlock_it);
    assert_int_equal(unlocked_with, VIGIL_ENOTHELD);
    in_another_thread(wait_with_it);
    assert_int_equal(unlocked_with, VIGIL_ENOTHELD);
    assert_int_equal(LOAD(mutex.word), locked);
    OK(vigil_mutex_unlock(&mutex));
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_ENOTHELD);
    pthread_t holder = holder_start();
    int status = vigil_cond_wait_async(agent, &request, &cond, &mutex, VIGIL_FOREVER, on_granted);
    assert_int_equal(status, VIGIL_ENOTHELD);
    holder_end(holder);
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OWNER_DIED);
    repair_and_unlock(&mutex);
}

static void what_a_loop_was_granted_any_thread_can_unlock(void **state) {
    (void)state;
    vigil_request request = {0};
    OK(vigil_mutex_lock_async(agent, &request, &mutex, VIGIL_FOREVER, on_granted));
    in_another_thread(unlock_it);
    assert_int_equal(unlocked_with, VIGIL_OK);
    granted_with = UNDECIDED;
    OK(vigil_mutex_execute(agent, &request, &mutex, VIGIL_FOREVER, on_granted));
    assert_int_equal(granted_with, VIGIL_OK);
    expect_as_new(&mutex);
}

static void *lock_three(void *unused) {
    for (int i = 0; i < 2; i++) {
        CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
        CHECK(vigil_mutex_lock(&second) == VIGIL_OK);
        CHECK(vigil_mutex_lock(&third) == VIGIL_OK);
        if (i == 0) { /* in any order */
            CHECK(vigil_mutex_unlock(&second) == VIGIL_OK);
            CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
        }
        CHECK(vigil_mutex_unlock(&third) == VIGIL_OK);
    }
    return unused;
}

static void all_that_it_has_not_unlocked_is_unlocked(void **state) {
    (void)state;
    in_another_thread(lock_three);
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OWNER_DIED);
    assert_int_equal(vigil_mutex_lock(&second), VIGIL_OWNER_DIED);
    OK(vigil_mutex_lock(&third));
    repair_and_unlock(&mutex);
    repair_and_unlock(&second);
    OK(vigil_mutex_unlock(&third));
    expect_as_new(&third);
}

enum { MANY = 300 };
static vigil_mutex many[MANY];

static void *lock_many(void *unused) {
    for (int i = 0; i < MANY; i++) CHECK(vigil_mutex_lock(&many[i]) == VIGIL_OK);
    return unused;
}

static void it_can_hold_many(void **state) {
    (void)state;
    for (int i = 0; i < MANY; i++) many[i] = robust;
    for (int round = 0; round < 3; round++) {
        in_another_thread(lock_many);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(vigil_mutex_trylock(&many[i]), VIGIL_OWNER_DIED);
            repair_and_unlock(&many[i]);
        }
    }
    assert_true(slot_bound(lot_private()) < 2 * MANY + 10 * SLOT_CHUNK); /* the notes have been returned */
}

static void a_mutex_that_is_another_one_now_is_noted_once(void **state) {
    (void)state;
    OK(vigil_mutex_lock(&mutex));
    mutex = robust;
    OK(vigil_mutex_lock(&mutex));
    OK(vigil_mutex_unlock(&mutex));
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_ENOTHELD);
    assert_int_equal(prim_self()->robust, 0);
}

/* Conditions. */

static void *wait_and_end(void *unused) {
    CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
    CHECK(vigil_cond_wait(&cond, &mutex) == VIGIL_OK);
    return unused;
}

static void *time_out_and_end(void *unused) {
    CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
    CHECK(vigil_cond_wait_for(&cond, &mutex, MILLISECOND) == VIGIL_TIMED_OUT);
    return unused;
}

static void one_that_has_waited_for_a_condition_holds_it_again(void **state) {
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_and_end, NULL), 0);
    AWAIT(vigil_waiters(&cond) == 1);
    OK(vigil_mutex_lock(&mutex)); /* meanwhile the waiter does not hold it */
    assert_int_equal(vigil_cond_signal(&cond), 1);
    OK(vigil_mutex_unlock(&mutex));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OWNER_DIED);
    repair_and_unlock(&mutex);
    in_another_thread(time_out_and_end);
    assert_int_equal(vigil_mutex_lock(&mutex), VIGIL_OWNER_DIED);
    repair_and_unlock(&mutex);
}

static int waited_with;

static void *wait_for_condition(void *unused) {
    CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
    waited_with = vigil_cond_wait(&cond, &mutex);
    CHECK(vigil_mutex_consistent(&mutex) == VIGIL_OK);
    CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
    return unused;
}

static void *signal_and_end(void *unused) {
    CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
    CHECK(vigil_cond_signal(&cond) == 1);
    return unused;
}

static void one_that_waits_for_a_condition_is_told(void **state) {
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_condition, NULL), 0);
    AWAIT(vigil_waiters(&cond) == 1);
    in_another_thread(signal_and_end);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waited_with, VIGIL_OWNER_DIED);
    expect_as_new(&mutex);
}

/* The child of a fork. */

static void the_child_of_a_fork_can_unlock_it(void **state) {
    (void)state;
    OK(vigil_mutex_lock(&mutex));
    OK(vigil_mutex_lock(&second));
    pid_t child = fork_here();
    if (child == 0) {
        CHECK(vigil_mutex_trylock(&mutex) == VIGIL_TIMED_OUT);
        CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK && vigil_mutex_unlock(&second) == VIGIL_OK);
        CHECK(mutex.word == robust.word && second.word == robust.word);
        CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK && vigil_mutex_unlock(&mutex) == VIGIL_OK);
        _exit(0);
    }
    assert_int_equal(exit_status_of(child), 0);
    OK(vigil_mutex_unlock(&second));
    OK(vigil_mutex_unlock(&mutex));
    expect_as_new(&mutex);
}

/* All together: threads that start, lock it and end, while holding it or not. */

enum { THREADS = 4, ROUNDS = 300 };
static unsigned left_locked, found_locked, turns;

static void *have_a_turn(void *number) {
    int status = vigil_mutex_lock(&mutex);
    CHECK(status == VIGIL_OK || status == VIGIL_OWNER_DIED);
    if (status == VIGIL_OWNER_DIED) found_locked++;
    if (status == VIGIL_OWNER_DIED) CHECK(vigil_mutex_consistent(&mutex) == VIGIL_OK);
    turns++;
    if ((uintptr_t)number % 3 == 0) left_locked++;
    else CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
    return NULL;
}

static void none_is_forgotten_and_each_end_is_told_once(void **state) {
    (void)state;
    left_locked = found_locked = turns = 0;
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, have_a_turn, (void *)(round + i)), 0);
        for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    int status = vigil_mutex_lock(&mutex);
    if (status == VIGIL_OWNER_DIED) OK(vigil_mutex_consistent(&mutex));
    OK(vigil_mutex_unlock(&mutex));
    assert_int_equal(turns, THREADS * ROUNDS);
    assert_int_equal(found_locked + (status == VIGIL_OWNER_DIED), left_locked);
    expect_as_new(&mutex);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_child_of_a_fork_can_unlock_it), /* first: the thread sanitizer does not allow a keeper in the parent */
        TEST(the_next_one_is_told),
        TEST(as_long_as_it_is_not_consistent_all_are_told),
        TEST(of_a_plain_one_the_end_is_not_noticed),
        TEST(one_of_those_in_line_is_told),
        TEST(an_event_loop_in_line_is_told),
        TEST(no_other_thread_can_unlock_it),
        TEST(what_a_loop_was_granted_any_thread_can_unlock),
        TEST(all_that_it_has_not_unlocked_is_unlocked),
        TEST(it_can_hold_many),
        TEST(a_mutex_that_is_another_one_now_is_noted_once),
        TEST(one_that_has_waited_for_a_condition_holds_it_again),
        TEST(one_that_waits_for_a_condition_is_told),
        TEST(none_is_forgotten_and_each_end_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
