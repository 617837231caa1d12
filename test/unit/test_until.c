/* SPDX-License-Identifier: MIT */
/* Deadlines: one table of all waits, each with a deadline, and what holds for every one of them. */
#include "support.h"
#include "vigil/vigil.h"

#include "agent_fixture.h"

#define HOUR (3600 * SECOND)

static uint64_t wide;
static vigil_mutex mutex;
static vigil_cond cond;
static vigil_sem sem;
static vigil_rwlock rwlock;
static vigil_barrier barrier;
static vigil_once once;

static int do_nothing(void *unused) {
    (void)unused;
    return VIGIL_OK;
}

/* Everything is held, or not done yet, so that each wait has to wait. */
static void occupy(void) {
    word[0] = 0;
    wide = 0;
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    vigil_mutex_lock(&mutex);
    cond = (vigil_cond)VIGIL_COND_INIT;
    sem = (vigil_sem)VIGIL_SEM_INIT(0);
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_INIT;
    vigil_rwlock_write_lock(&rwlock);
    barrier = (vigil_barrier)VIGIL_BARRIER_INIT(2);
    once = (vigil_once){1}; /* its function is running */
}

static int wait32_until(int64_t deadline_ns) { return vigil_wait32_until(word, 0, deadline_ns); }
static int wait64_until(int64_t deadline_ns) { return vigil_wait64_until(&wide, 0, deadline_ns); }
static int mutex_until(int64_t deadline_ns) { return vigil_mutex_lock_until(&mutex, deadline_ns); }
static int sem_until(int64_t deadline_ns) { return vigil_sem_acquire_until(&sem, 1, deadline_ns); }
static int read_until(int64_t deadline_ns) { return vigil_rwlock_read_lock_until(&rwlock, deadline_ns); }
static int write_until(int64_t deadline_ns) { return vigil_rwlock_write_lock_until(&rwlock, deadline_ns); }
static int barrier_until(int64_t deadline_ns) { return vigil_barrier_wait_until(&barrier, deadline_ns); }
static int once_until(int64_t deadline_ns) { return vigil_once_call_until(&once, do_nothing, NULL, deadline_ns); }

static int cond_until(int64_t deadline_ns) {
    vigil_mutex own = VIGIL_MUTEX_INIT;
    vigil_mutex_lock(&own);
    int status = vigil_cond_wait_until(&cond, &own, deadline_ns);
    bool held = vigil_mutex_is_locked(&own);
    vigil_mutex_unlock(&own);
    return held ? status : VIGIL_ENOTHELD;
}

/* The same with the calls that take a timeout. */
static int wait32_for(int64_t timeout_ns) { return vigil_wait32(word, 0, timeout_ns); }
static int wait64_for(int64_t timeout_ns) { return vigil_wait64(&wide, 0, timeout_ns); }
static int mutex_for(int64_t timeout_ns) { return vigil_mutex_lock_for(&mutex, timeout_ns); }
static int sem_for(int64_t timeout_ns) { return vigil_sem_acquire_for(&sem, 1, timeout_ns); }
static int read_for(int64_t timeout_ns) { return vigil_rwlock_read_lock_for(&rwlock, timeout_ns); }
static int write_for(int64_t timeout_ns) { return vigil_rwlock_write_lock_for(&rwlock, timeout_ns); }
static int barrier_for(int64_t timeout_ns) { return vigil_barrier_wait_for(&barrier, timeout_ns); }
static int once_for(int64_t timeout_ns) { return vigil_once_call_for(&once, do_nothing, NULL, timeout_ns); }

static int cond_for(int64_t timeout_ns) {
    vigil_mutex own = VIGIL_MUTEX_INIT;
    vigil_mutex_lock(&own);
    int status = vigil_cond_wait_for(&cond, &own, timeout_ns);
    vigil_mutex_unlock(&own);
    return status;
}

/* What ends the wait. */
static void notify32(void) { vigil_notify(word, 1); }
static void notify64(void) { vigil_notify(&wide, 1); }
static void unlock_mutex(void) { vigil_mutex_unlock(&mutex); }
static void signal_cond(void) { vigil_cond_signal(&cond); }
static void release_sem(void) { vigil_sem_release(&sem, 1); }
static void unlock_rwlock(void) { vigil_rwlock_write_unlock(&rwlock); }
static void arrive(void) { assert_int_equal(vigil_barrier_wait(&barrier), VIGIL_LAST); }

static void finish_once(void) {
    __atomic_store_n(&once.word, 3, __ATOMIC_RELEASE);
    vigil_notify(&once, VIGIL_ALL);
}

/* The asynchronous forms. */
static void on_end(vigil_op *op, int status) {
    *(int *)op->data = status;
}

static int wait32_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_wait32_async(agent, &request->op, word, 0, timeout_ns, on_end);
}
static int wait64_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_wait64_async(agent, &request->op, &wide, 0, timeout_ns, on_end);
}
static int mutex_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_mutex_lock_async(agent, request, &mutex, timeout_ns, on_end);
}
static int cond_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_cond_wait_async(agent, request, &cond, &mutex, timeout_ns, on_end);
}
static int sem_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_sem_acquire_async(agent, request, &sem, 1, timeout_ns, on_end);
}
static int read_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_rwlock_read_lock_async(agent, request, &rwlock, timeout_ns, on_end);
}
static int write_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_rwlock_write_lock_async(agent, request, &rwlock, timeout_ns, on_end);
}
static int barrier_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_barrier_wait_async(agent, request, &barrier, timeout_ns, on_end);
}
static int once_async(vigil_request *request, int64_t timeout_ns) {
    return vigil_once_call_async(agent, request, &once, do_nothing, NULL, timeout_ns, on_end);
}

static const struct waiting {
    const char *name;
    int (*until)(int64_t deadline_ns);
    int (*with_timeout)(int64_t timeout_ns);
    int (*async)(vigil_request *request, int64_t timeout_ns);
    const volatile void *line;
    void (*end)(void);
    int late_async; /* what the asynchronous form returns for a deadline that has passed */
} all[] = {
    {"wait32", wait32_until, wait32_for, wait32_async, storage, notify32, VIGIL_TIMED_OUT},
    {"wait64", wait64_until, wait64_for, wait64_async, &wide, notify64, VIGIL_TIMED_OUT},
    {"mutex", mutex_until, mutex_for, mutex_async, &mutex, unlock_mutex, VIGIL_TIMED_OUT},
    {"cond", cond_until, cond_for, cond_async, &cond, signal_cond, VIGIL_PENDING},
    {"sem", sem_until, sem_for, sem_async, &sem, release_sem, VIGIL_TIMED_OUT},
    {"read", read_until, read_for, read_async, &rwlock, unlock_rwlock, VIGIL_TIMED_OUT},
    {"write", write_until, write_for, write_async, &rwlock, unlock_rwlock, VIGIL_TIMED_OUT},
    {"barrier", barrier_until, barrier_for, barrier_async, &barrier, arrive, VIGIL_TIMED_OUT},
    {"once", once_until, once_for, once_async, &once, finish_once, VIGIL_TIMED_OUT},
};

#define FOR_ALL(waiting) for (const struct waiting *waiting = all; waiting < all + COUNT_OF(all); waiting++)

static void expect(const struct waiting *waiting, int status, int expected) {
    if (status != expected) fail_msg("%s: %s", waiting->name, vigil_status_name(status));
}

static void a_passed_deadline_is_a_timeout_of_zero(void **state) {
    (void)state;
    FOR_ALL(waiting) {
        const int64_t passed[] = {vigil_now_ns(), vigil_now_ns() - HOUR, 1, 0, -1, -HOUR, INT64_MIN};
        occupy();
        for (size_t i = 0; i < COUNT_OF(passed); i++) {
            expect(waiting, waiting->until(passed[i]), VIGIL_TIMED_OUT);
            expect(waiting, waiting->with_timeout(vigil_until(passed[i])), VIGIL_TIMED_OUT);
        }
        expect(waiting, waiting->with_timeout(0), VIGIL_TIMED_OUT);
        expect(waiting, waiting->with_timeout(-HOUR), VIGIL_TIMED_OUT);
        expect(waiting, waiting->with_timeout(INT64_MIN), VIGIL_TIMED_OUT);
        assert_int_equal(waiters_in_line(waiting->line), 0);
    }
}

/* What is available at once is taken, whatever the deadline. */
static void what_is_free_has_no_deadline(void **state) {
    (void)state;
    occupy();
    vigil_mutex_unlock(&mutex);
    vigil_sem_release(&sem, 1);
    vigil_rwlock_write_unlock(&rwlock);
    word[0] = 1;
    wide = 1;
    barrier = (vigil_barrier)VIGIL_BARRIER_INIT(1);
    once = (vigil_once)VIGIL_ONCE_INIT;
    assert_int_equal(wait32_until(0), VIGIL_NOT_EQUAL);
    assert_int_equal(wait64_until(0), VIGIL_NOT_EQUAL);
    assert_int_equal(mutex_until(0), VIGIL_OK);
    assert_int_equal(sem_until(0), VIGIL_OK);
    assert_int_equal(read_until(0), VIGIL_OK);
    assert_int_equal(vigil_rwlock_read_unlock(&rwlock), VIGIL_OK);
    assert_int_equal(write_until(0), VIGIL_OK);
    assert_int_equal(barrier_until(0), VIGIL_LAST);
    assert_int_equal(once_until(0), VIGIL_OK);
}

static void a_deadline_is_never_early(void **state) {
    (void)state;
    FOR_ALL(waiting) {
        occupy();
        int64_t deadline_ns = vigil_now_ns() + MILLISECOND;
        expect(waiting, waiting->until(deadline_ns), VIGIL_TIMED_OUT);
        assert_true(vigil_now_ns() >= deadline_ns);
    }
}

/* A thread that waits for a deadline that does not come. */
struct thread {
    pthread_t thread;
    const struct waiting *waiting;
    int64_t deadline_ns;
    bool as_timeout;
    int status;
};

static void *thread_main(void *argument) {
    struct thread *thread = argument;
    thread->status = thread->as_timeout ? thread->waiting->with_timeout(thread->deadline_ns)
                                        : thread->waiting->until(thread->deadline_ns);
    return NULL;
}

static void wait_and_end(struct thread thread) {
    occupy();
    assert_int_equal(pthread_create(&thread.thread, NULL, thread_main, &thread), 0);
    AWAIT(waiters_in_line(thread.waiting->line) == 1);
    thread.waiting->end();
    assert_int_equal(pthread_join(thread.thread, NULL), 0);
    expect(thread.waiting, thread.status, VIGIL_OK);
}

static void what_comes_before_the_deadline_counts(void **state) {
    (void)state;
    FOR_ALL(waiting) {
        const int64_t far_ns[] = {vigil_now_ns() + HOUR, INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX - 1,
                                  VIGIL_FOREVER};
        for (size_t i = 0; i < COUNT_OF(far_ns); i++) {
            wait_and_end((struct thread){.waiting = waiting, .deadline_ns = far_ns[i]});
            wait_and_end((struct thread){.waiting = waiting, .deadline_ns = far_ns[i], .as_timeout = true});
        }
        wait_and_end((struct thread){
            .waiting = waiting, .deadline_ns = vigil_until(vigil_now_ns() + HOUR), .as_timeout = true});
    }
}

static void an_event_loop_keeps_the_very_deadline(void **state) {
    (void)state;
    FOR_ALL(waiting) {
        int ended = UNDECIDED;
        vigil_request request = {.op.data = &ended};
        occupy();
        int64_t deadline_ns = vigil_now_ns() + 2 * MILLISECOND;
        int status = waiting->async(&request, vigil_until(deadline_ns));
        bool may_be_late = vigil_now_ns() >= deadline_ns; /* on a slow machine */
        if (!may_be_late) {
            expect(waiting, status, VIGIL_PENDING);
            assert_int_equal(request.op.deadline_ns, deadline_ns);
        }
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        if (status == VIGIL_PENDING) expect(waiting, ended, VIGIL_TIMED_OUT);
        assert_true(vigil_now_ns() >= deadline_ns);
    }
}

static void an_event_loop_is_late(void **state) {
    (void)state;
    FOR_ALL(waiting) {
        const int64_t passed[] = {vigil_now_ns(), 0, -HOUR, INT64_MIN};
        for (size_t i = 0; i < COUNT_OF(passed); i++) {
            int ended = UNDECIDED;
            vigil_request request = {.op.data = &ended};
            occupy();
            expect(waiting, waiting->async(&request, vigil_until(passed[i])), waiting->late_async);
            assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
            expect(waiting, ended, waiting->late_async == VIGIL_PENDING ? VIGIL_TIMED_OUT : UNDECIDED);
        }
    }
}

static void an_event_loop_waits_for_ever(void **state) {
    (void)state;
    FOR_ALL(waiting) {
        int ended = UNDECIDED;
        vigil_request request = {.op.data = &ended};
        occupy();
        expect(waiting, waiting->async(&request, vigil_until(VIGIL_FOREVER)), VIGIL_PENDING);
        assert_null(request.op.timer_link);
        assert_int_equal(vigil_cancel(&request.op), VIGIL_OK);
    }
}

static void elements_of_views_too(void **state) {
    (void)state;
    vigil_buffer *buffer;
    vigil_view view;
    assert_int_equal(vigil_buffer_create(&buffer, 64, 64), VIGIL_OK);
    assert_int_equal(vigil_view_init(&view, buffer, VIGIL_I32, 0, 1), VIGIL_OK);
    int64_t deadline_ns = vigil_now_ns() + MILLISECOND;
    assert_int_equal(vigil_atomics_wait(view, 0, 0, vigil_until(deadline_ns)), VIGIL_TIMED_OUT);
    assert_true(vigil_now_ns() >= deadline_ns);
    assert_int_equal(vigil_atomics_wait(view, 0, 0, vigil_until(deadline_ns)), VIGIL_TIMED_OUT);
    vigil_buffer_destroy(buffer);
}

/* No number that a caller computes as a duration is taken for a deadline. */
static void deadlines_are_no_durations(void **state) {
    (void)state;
    assert_true(vigil_until(INT64_MAX) == VIGIL_FOREVER);
    assert_true(vigil_until(INT64_MAX / 2 + 1) == VIGIL_FOREVER);
    assert_true(vigil_until(INT64_MAX / 2) < -HOUR * 24 * 365 * 146);
    assert_true(vigil_until(0) == INT64_MIN && vigil_until(-1) == INT64_MIN && vigil_until(INT64_MIN) == INT64_MIN);
    for (int64_t now_ns = vigil_now_ns(), i = 1; i < 62; i++) {
        int64_t deadline_ns = INT64_C(1) << i;
        if (deadline_ns > now_ns) assert_int_equal(wait32_for(now_ns - deadline_ns), VIGIL_TIMED_OUT);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_passed_deadline_is_a_timeout_of_zero),
        TEST(what_is_free_has_no_deadline),
        TEST(a_deadline_is_never_early),
        TEST(what_comes_before_the_deadline_counts),
        TEST(an_event_loop_keeps_the_very_deadline),
        TEST(an_event_loop_is_late),
        TEST(an_event_loop_waits_for_ever),
        TEST(elements_of_views_too),
        TEST(deadlines_are_no_durations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
