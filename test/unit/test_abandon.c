/* SPDX-License-Identifier: MIT */
/*
 * Giving up what a holder held that has ended, while its process goes on; and a robust mutex that other code locks and
 * unlocks by compare-and-exchange. Each test runs twice: without a segment, and in a process that has one open, whose
 * number is in the words of its mutexes.
 */
#include "support.h"

#include "child.h"
#include "vigil/mutex.h"
#include "vigil/rwlock.h"
#include "vigil/segment.h"

#define OK(call)   assert_int_equal((call), VIGIL_OK)
#define DIED(call) assert_int_equal((call), VIGIL_OWNER_DIED)

#define ROBUST 0x20000000u
#define LOCKED 0x20000001u

static vigil_mutex mutex;
static vigil_rwlock rwlock;
static vigil_agent *agent;
static vigil_buffer *segment; /* open in the second run */
static bool in_second_run;

static int set_up(void **state) {
    (void)state;
    mutex = (vigil_mutex)VIGIL_MUTEX_ROBUST;
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_INIT;
    if (in_second_run && !segment && vigil_segment_create_anonymous(&segment, NULL) != VIGIL_OK) return -1;
    assert_int_equal(vigil__holder != 1, in_second_run);
    return vigil_agent_create(&agent, 0) != VIGIL_OK;
}

static int tear_down(void **state) {
    (void)state;
    return vigil_agent_destroy(agent) != VIGIL_OK || vigil_waiters(&mutex) != 0 || vigil_waiters(&rwlock) != 0;
}

/* What other code does: see THE WORD in mutex.h. */

static bool exchange(uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&mutex.word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool fast_lock(void) {
    return exchange(ROBUST, LOCKED);
}

static bool fast_unlock(void) {
    return exchange(LOCKED, ROBUST);
}

/* Requests, and other threads. */

static struct outcome {
    vigil_request request; /* first, so that the op is the outcome */
    int status;
} outcome;

static void on_granted(vigil_op *op, int status) {
    ((struct outcome *)op)->status = status;
}

static void hold_as_request(void) {
    outcome = (struct outcome){.status = UNDECIDED};
    OK(vigil_mutex_lock_async(agent, &outcome.request, &mutex, VIGIL_FOREVER, on_granted));
}

static void ask(void) {
    outcome = (struct outcome){.status = UNDECIDED};
    int status = vigil_mutex_lock_async(agent, &outcome.request, &mutex, VIGIL_FOREVER, on_granted);
    assert_int_equal(status, VIGIL_PENDING);
}

static int answer(void) {
    AWAIT(vigil_agent_dispatch(agent) >= 0 && outcome.status != UNDECIDED);
    return outcome.status;
}

struct caller {
    pthread_t thread;
    int (*call)(void);
    int status;
};

static void *caller_main(void *argument) {
    struct caller *caller = argument;
    caller->status = caller->call();
    return NULL;
}

static void caller_start(struct caller *caller, int (*call)(void)) {
    caller->call = call;
    assert_int_equal(pthread_create(&caller->thread, NULL, caller_main, caller), 0);
}

static int caller_end(struct caller *caller) {
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    return caller->status;
}

static int in_another_thread(int (*call)(void)) {
    struct caller caller;
    caller_start(&caller, call);
    return caller_end(&caller);
}

static int abandon(void) {
    return vigil_mutex_abandon(&mutex);
}

static int lock_repair_and_unlock(void) {
    int status = vigil_mutex_lock(&mutex);
    if (status == VIGIL_OWNER_DIED) CHECK(vigil_mutex_consistent(&mutex) == VIGIL_OK);
    CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
    return status;
}

static void repair_and_unlock(void) {
    OK(vigil_mutex_consistent(&mutex));
    OK(vigil_mutex_unlock(&mutex));
    assert_int_equal(LOAD(mutex.word), ROBUST);
}

/* The mutex. */

static void the_next_holder_is_told(void **state) {
    (void)state;
    hold_as_request();
    OK(in_another_thread(abandon));
    assert_int_equal(vigil_mutex_abandon(&mutex), VIGIL_ENOTHELD);
    DIED(vigil_mutex_trylock(&mutex));
    OK(vigil_mutex_unlock(&mutex)); /* without having repaired it */
    DIED(vigil_mutex_lock_async(agent, &outcome.request, &mutex, 0, on_granted));
    OK(vigil_mutex_abandon(&mutex));
    DIED(vigil_mutex_lock(&mutex));
    repair_and_unlock();
    OK(in_another_thread(lock_repair_and_unlock));
}

static void a_thread_in_line_is_told(void **state) {
    (void)state;
    struct caller waiter;
    hold_as_request();
    caller_start(&waiter, lock_repair_and_unlock);
    AWAIT(vigil_waiters(&mutex) == 1);
    OK(vigil_mutex_abandon(&mutex));
    DIED(caller_end(&waiter));
    assert_int_equal(LOAD(mutex.word), ROBUST);
}

static void a_loop_in_line_is_told(void **state) {
    (void)state;
    assert_true(fast_lock());
    ask();
    OK(in_another_thread(abandon));
    DIED(answer());
    repair_and_unlock();
}

static void what_a_thread_holds_only_that_thread_gives_up(void **state) {
    (void)state;
    OK(vigil_mutex_lock(&mutex));
    uint32_t held = LOAD(mutex.word);
    assert_int_equal(in_another_thread(abandon), VIGIL_ENOTHELD);
    assert_int_equal(LOAD(mutex.word), held);
    OK(vigil_mutex_abandon(&mutex));
    DIED(in_another_thread(lock_repair_and_unlock));
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_ENOTHELD); /* there is no record of it any more */
}

static void one_that_has_no_room_is_refused(void **state) {
    (void)state;
    vigil_mutex plain[] = {VIGIL_MUTEX_INIT, VIGIL_MUTEX_FAIR};
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        assert_int_equal(vigil_mutex_abandon(&plain[i]), VIGIL_EINVAL);
        OK(vigil_mutex_lock(&plain[i]));
        uint32_t held = LOAD(plain[i].word);
        assert_int_equal(vigil_mutex_abandon(&plain[i]), VIGIL_EINVAL);
        assert_int_equal(LOAD(plain[i].word), held);
        OK(vigil_mutex_unlock(&plain[i]));
    }
    assert_int_equal(vigil_mutex_abandon(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_mutex_abandon((void *)((char *)plain + 1)), VIGIL_EMISALIGNED);
}

static void in_a_segment_it_need_not_be_robust(void **state) {
    (void)state;
    if (!segment) return;
    vigil_mutex *shared = vigil_buffer_data(segment);
    assert_int_equal(vigil_mutex_abandon(shared), VIGIL_ENOTHELD);
    OK(vigil_mutex_lock(shared));
    OK(vigil_mutex_abandon(shared));
    DIED(vigil_mutex_lock(shared));
    OK(vigil_mutex_consistent(shared));
    OK(vigil_mutex_unlock(shared));

    STORE(shared->word, (vigil__holder & ~15u) + 17u); /* another process holds it */
    assert_int_equal(vigil_mutex_abandon(shared), VIGIL_ENOTHELD);
    STORE(shared->word, 0);
}

/* Other code on the word of a robust mutex. */

static void other_code_and_the_functions_agree(void **state) {
    (void)state;
    assert_true(fast_lock());
    assert_true(vigil_mutex_is_locked(&mutex));
    assert_int_equal(vigil_mutex_trylock(&mutex), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_mutex_consistent(&mutex), VIGIL_EINVAL);
    OK(vigil_mutex_unlock(&mutex)); /* in the other way */
    assert_true(fast_lock() && fast_unlock());
    hold_as_request();
    assert_false(fast_lock());
    if (!fast_unlock()) OK(vigil_mutex_unlock(&mutex)); /* the word may contain the number of the process */
    OK(vigil_mutex_lock(&mutex));
    assert_false(fast_lock());
    assert_false(fast_unlock()); /* a thread holds it */
    OK(vigil_mutex_unlock(&mutex));
    assert_int_equal(LOAD(mutex.word), ROBUST);
}

static void other_code_calls_those_in_line(void **state) {
    (void)state;
    struct caller waiter;
    assert_true(fast_lock());
    caller_start(&waiter, lock_repair_and_unlock);
    AWAIT(vigil_waiters(&mutex) == 1);
    ask();
    assert_false(fast_unlock()); /* there are waiters */
    OK(vigil_mutex_unlock(&mutex));
    OK(answer());
    OK(vigil_mutex_unlock(&mutex));
    OK(caller_end(&waiter));
    assert_true(fast_lock() && fast_unlock());
}

static void other_code_does_not_miss_a_death(void **state) {
    (void)state;
    assert_true(fast_lock());
    OK(in_another_thread(abandon));
    assert_false(fast_lock());
    DIED(vigil_mutex_lock_async(agent, &outcome.request, &mutex, 0, on_granted));
    assert_false(fast_unlock());
    repair_and_unlock();
    assert_true(fast_lock() && fast_unlock());
}

enum { LOOPS = 3, LAPS = 20000 };
static uint64_t counted; /* under the mutex */

static void count_and_unlock(vigil_op *op, int status) {
    (void)op;
    CHECK(status == VIGIL_OK);
    counted++;
    if (!fast_unlock()) CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
}

static int count_fast(void) {
    vigil_agent *mine;
    vigil_request request = {0};
    CHECK(vigil_agent_create(&mine, 0) == VIGIL_OK);
    for (int i = 0; i < LAPS; i++) {
        int status = VIGIL_OK;
        if (!fast_lock()) status = vigil_mutex_lock_async(mine, &request, &mutex, VIGIL_FOREVER, count_and_unlock);
        if (status != VIGIL_PENDING) count_and_unlock(NULL, status);
        else CHECK(vigil_agent_run(mine) == VIGIL_OK);
    }
    return vigil_agent_destroy(mine);
}

static int count_slowly(void) {
    for (int i = 0; i < LAPS; i++) {
        CHECK(vigil_mutex_lock(&mutex) == VIGIL_OK);
        counted++;
        CHECK(vigil_mutex_unlock(&mutex) == VIGIL_OK);
    }
    return VIGIL_OK;
}

static void other_code_excludes_threads_and_loops(void **state) {
    (void)state;
    struct caller callers[LOOPS + 1];
    counted = 0;
    for (int i = 0; i <= LOOPS; i++) caller_start(&callers[i], i < LOOPS ? count_fast : count_slowly);
    for (int i = 0; i <= LOOPS; i++) OK(caller_end(&callers[i]));
    assert_int_equal(counted, (LOOPS + 1) * LAPS);
    assert_int_equal(LOAD(mutex.word), ROBUST);
}

/* The read-write lock. */

static int write_abandon(void) {
    return vigil_rwlock_write_abandon(&rwlock);
}

static int read_and_unlock(void) {
    int status = vigil_rwlock_read_lock(&rwlock);
    CHECK(vigil_rwlock_read_unlock(&rwlock) == VIGIL_OK);
    return status;
}

static void all_are_told_until_a_writer_has_repaired_it(void **state) {
    (void)state;
    assert_int_equal(vigil_rwlock_write_abandon(&rwlock), VIGIL_ENOTHELD);
    OK(vigil_rwlock_read_lock(&rwlock));
    assert_int_equal(vigil_rwlock_write_abandon(&rwlock), VIGIL_ENOTHELD);
    OK(vigil_rwlock_read_unlock(&rwlock)); /* also in place of a reader that has ended */
    OK(vigil_rwlock_write_lock(&rwlock));
    OK(in_another_thread(write_abandon));

    DIED(vigil_rwlock_read_lock(&rwlock));
    DIED(vigil_rwlock_read_trylock(&rwlock));
    DIED(in_another_thread(read_and_unlock));
    assert_int_equal(vigil_rwlock_consistent(&rwlock), VIGIL_ENOTHELD);
    OK(vigil_rwlock_read_unlock(&rwlock));
    OK(vigil_rwlock_read_unlock(&rwlock));
    DIED(vigil_rwlock_read_lock_async(agent, &outcome.request, &rwlock, 0, on_granted));
    OK(vigil_rwlock_read_unlock(&rwlock));

    DIED(vigil_rwlock_write_trylock(&rwlock));
    OK(vigil_rwlock_write_unlock(&rwlock));
    DIED(vigil_rwlock_write_lock(&rwlock));
    OK(vigil_rwlock_downgrade(&rwlock));
    OK(vigil_rwlock_read_unlock(&rwlock));
    DIED(vigil_rwlock_write_lock_async(agent, &outcome.request, &rwlock, 0, on_granted));
    OK(vigil_rwlock_consistent(&rwlock));
    assert_int_equal(vigil_rwlock_consistent(&rwlock), VIGIL_EINVAL);
    OK(vigil_rwlock_write_unlock(&rwlock));
    OK(in_another_thread(read_and_unlock));
    assert_int_equal(vigil_rwlock_write_abandon(NULL), VIGIL_ENULL);
}

static void waiters_of_a_writer_that_has_ended_are_told(void **state) {
    (void)state;
    struct caller reader;
    OK(vigil_rwlock_write_lock(&rwlock));
    caller_start(&reader, read_and_unlock);
    AWAIT(vigil_waiters(&rwlock) == 1);
    outcome = (struct outcome){.status = UNDECIDED};
    int status = vigil_rwlock_write_lock_async(agent, &outcome.request, &rwlock, VIGIL_FOREVER, on_granted);
    assert_int_equal(status, VIGIL_PENDING);
    OK(vigil_rwlock_write_abandon(&rwlock));
    DIED(caller_end(&reader));
    DIED(answer());
    OK(vigil_rwlock_consistent(&rwlock));
    OK(vigil_rwlock_write_unlock(&rwlock));
    OK(in_another_thread(read_and_unlock));
}

static void readers_pass_as_before(void **state) {
    (void)state;
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_READERS_PASS;
    OK(vigil_rwlock_write_lock(&rwlock));
    OK(vigil_rwlock_write_abandon(&rwlock));
    DIED(vigil_rwlock_write_lock(&rwlock));
    OK(vigil_rwlock_consistent(&rwlock));
    OK(vigil_rwlock_write_unlock(&rwlock));
    assert_int_equal(LOAD(rwlock.word), ((vigil_rwlock)VIGIL_RWLOCK_READERS_PASS).word);
}

static void in_a_segment_only_the_process_that_writes_gives_it_up(void **state) {
    (void)state;
    if (!segment) return;
    vigil_rwlock *shared = vigil_buffer_data(segment);
    OK(vigil_rwlock_write_lock(shared));
    OK(vigil_rwlock_write_abandon(shared));
    DIED(vigil_rwlock_write_lock(shared));
    OK(vigil_rwlock_consistent(shared));
    OK(vigil_rwlock_write_unlock(shared));
    STORE(shared->word, 1); /* a process of which there is no record */
    assert_int_equal(vigil_rwlock_write_abandon(shared), VIGIL_ENOTHELD);
    STORE(shared->word, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_next_holder_is_told),
        TEST(a_thread_in_line_is_told),
        TEST(a_loop_in_line_is_told),
        TEST(what_a_thread_holds_only_that_thread_gives_up),
        TEST(one_that_has_no_room_is_refused),
        TEST(in_a_segment_it_need_not_be_robust),
        TEST(other_code_and_the_functions_agree),
        TEST(other_code_calls_those_in_line),
        TEST(other_code_does_not_miss_a_death),
        TEST(other_code_excludes_threads_and_loops),
        TEST(all_are_told_until_a_writer_has_repaired_it),
        TEST(waiters_of_a_writer_that_has_ended_are_told),
        TEST(readers_pass_as_before),
        TEST(in_a_segment_only_the_process_that_writes_gives_it_up),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    in_second_run = true;
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed + (vigil_buffer_destroy(segment) != VIGIL_OK);
}
