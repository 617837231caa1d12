/* SPDX-License-Identifier: MIT */
/*
 * Locks in a process that may not use membarrier: a filter of system calls refuses it, from the beginning or from some
 * time on. Then holders must not release a mutex by a store (WF in lot/lot.h), and all else is as usual.
 *
 * The library asks for membarrier when it is loaded. So a child sets up the filter and executes this program again,
 * with the name of the case as its argument; there the tests below run.
 */
#include "support.h"

#include "child.h"
#include "lockers.h"
#include "lot/copies.h"
#include "vigil/cond.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LEFT_OUT 77
#define LATE     "late"

static vigil_mutex robust;
static vigil_mutex *const all[] = {&mutex, &fair, &robust};
static bool late; /* membarrier was there when the library was loaded */

/* The filter. */

static bool refuse_membarrier(unsigned error) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT_OF(steps), .filter = steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return false;
    return syscall(SYS_membarrier, 0, 0, 0) == -1 && errno == (int)error;
}

/* Whether there can be such a filter: tried in a child. */
static bool can_refuse(void) {
    pid_t child = fork_here();
    if (child == 0) _exit(refuse_membarrier(EPERM) ? 0 : 1);
    return exit_status_of(child) == 0;
}

/* Tests under the filter. */

static int set_up_all(void **state) {
    robust = (vigil_mutex)VIGIL_MUTEX_ROBUST;
    return set_up(state);
}

static int tear_down_all(void **state) {
    return tear_down(state) || vigil_waiters(&robust) != 0 || vigil__own_lines() != NULL;
}

static void no_holder_may_store(void **state) {
    (void)state;
    if (late) {
        struct locker locker;
        assert_non_null(vigil__own_lines());
        lock(&mutex);
        locker_start(&locker, &mutex); /* finds that there is no membarrier any more */
        assert_null(vigil__own_lines());
        unlock(&mutex);
        assert_int_equal(locker_join(&locker), VIGIL_OK);
    }
    assert_null(vigil__own_lines());
    assert_int_equal(copies_lot()->fences, late);
    errno = ERANGE;
    assert_false(prim_can_fence_everywhere());
    assert_false(prim_fence_everywhere());
    assert_int_equal(errno, ERANGE);
}

#define THREADS 4u
#define ROUNDS  2000u

static unsigned counter; /* not atomic: the mutex protects it */

static void *count_under(void *which) {
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(vigil_mutex_lock(which) == VIGIL_OK);
        counter++;
        CHECK(vigil_mutex_unlock(which) == VIGIL_OK);
    }
    return NULL;
}

static void only_one_holds_it(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        pthread_t threads[THREADS];
        counter = 0;
        lock(all[i]);
        for (unsigned t = 0; t < THREADS; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, count_under, all[i]), 0);
        AWAIT(vigil_waiters(all[i]) == THREADS);
        unlock(all[i]);
        for (unsigned t = 0; t < THREADS; t++) assert_int_equal(pthread_join(threads[t], NULL), 0);
        assert_int_equal(counter, THREADS * ROUNDS);
        assert_int_equal(STATE_OF(all[i]), UNLOCKED);
    }
}

static void a_sleeping_waiter_is_woken(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct locker first, second;
        lock(all[i]);
        locker_start(&first, all[i]);
        locker_start(&second, all[i]);
        AWAIT(asleep(all[i]) == 2);
        assert_false(locker_through(&first) || locker_through(&second));
        unlock(all[i]);
        assert_int_equal(locker_join(&first), VIGIL_OK);
        assert_int_equal(locker_join(&second), VIGIL_OK);
    }
}

/* The first waiter joins the line just when the mutex is unlocked. One that is missed sleeps for ever. */
static void a_waiter_that_just_joins_is_woken(void **state) {
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        vigil_mutex *which = all[i % COUNT_OF(all)];
        struct locker locker;
        lock(which);
        locker_launch(&locker, which, VIGIL_FOREVER);
        AWAIT(STATE_OF(which) == CONTENDED); /* so it is about to join, or has joined */
        unlock(which);
        assert_int_equal(locker_join(&locker), VIGIL_OK);
    }
}

static void a_request_is_served(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct requester asks, executes;
        struct locker locker;
        lock(all[i]);
        ask_pending(&asks, all[i], VIGIL_FOREVER, answer_and_unlock);
        execute_pending(&executes, all[i]);
        locker_start(&locker, all[i]);
        unlock(all[i]);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_true(asks.calls == 1 && asks.status == VIGIL_OK);
        assert_true(executes.calls == 1 && executes.status == VIGIL_OK);
        assert_int_equal(locker_join(&locker), VIGIL_OK);
        assert_int_equal(STATE_OF(all[i]), UNLOCKED);
    }
}

static bool may_end;

static void *end_as_its_owner(void *unused) {
    CHECK(vigil_mutex_lock(&robust) == VIGIL_OK);
    AWAIT(LOAD(may_end));
    return unused;
}

static void a_waiter_is_told_that_the_owner_ended(void **state) {
    (void)state;
    struct locker locker;
    pthread_t owner;
    STORE(may_end, false);
    assert_int_equal(pthread_create(&owner, NULL, end_as_its_owner, NULL), 0);
    AWAIT(vigil_mutex_is_locked(&robust));
    locker_start(&locker, &robust);
    STORE(may_end, true);
    assert_int_equal(pthread_join(owner, NULL), 0);
    assert_int_equal(locker_join(&locker), VIGIL_OWNER_DIED); /* which does not unlock it, but ends, too */
    assert_int_equal(vigil_mutex_lock(&robust), VIGIL_OWNER_DIED);
    assert_int_equal(vigil_mutex_consistent(&robust), VIGIL_OK);
    unlock(&robust);
}

static vigil_cond cond;
static bool ready;

static void *wait_until_ready(void *which) {
    CHECK(vigil_mutex_lock(which) == VIGIL_OK);
    while (!ready) CHECK(vigil_cond_wait(&cond, which) == VIGIL_OK);
    CHECK(vigil_mutex_unlock(which) == VIGIL_OK);
    return NULL;
}

/* Signalled while the mutex is held, the thread is moved into its line. */
static void a_condition_moves_a_waiter(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        pthread_t thread;
        ready = false;
        assert_int_equal(pthread_create(&thread, NULL, wait_until_ready, all[i]), 0);
        AWAIT(vigil_waiters(&cond) == 1);
        lock(all[i]);
        ready = true;
        vigil_cond_signal(&cond);
        assert_int_equal(vigil_waiters(all[i]), 1);
        unlock(all[i]);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

#define UNDER_FILTER(function) cmocka_unit_test_setup_teardown(function, set_up_all, tear_down_all)

static int run_under_filter(const char *which_case) {
    const struct CMUnitTest tests[] = {
        UNDER_FILTER(no_holder_may_store),
        UNDER_FILTER(only_one_holds_it),
        UNDER_FILTER(a_sleeping_waiter_is_woken),
        UNDER_FILTER(a_waiter_that_just_joins_is_woken),
        UNDER_FILTER(a_request_is_served),
        UNDER_FILTER(a_waiter_is_told_that_the_owner_ended),
        UNDER_FILTER(a_condition_moves_a_waiter),
    };
    late = strcmp(which_case, LATE) == 0;
    if (late && (!vigil__own_lines() || !refuse_membarrier(EPERM))) return LEFT_OUT;
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}

/* The cases. */

static int status_of_case(const char *which_case, unsigned error) {
    pid_t child = fork_here();
    if (child == 0) {
        if (error && !refuse_membarrier(error)) _exit(LEFT_OUT);
        execl("/proc/self/exe", "unit_membarrier", which_case, (char *)NULL);
        _exit(1);
    }
    return exit_status_of(child);
}

static void not_permitted(void **state) {
    (void)state;
    assert_int_equal(status_of_case("not permitted", EPERM), 0);
}

static void unknown_to_the_system(void **state) {
    (void)state;
    assert_int_equal(status_of_case("unknown", ENOSYS), 0);
}

static void given_up_later(void **state) {
    (void)state;
    int status = status_of_case(LATE, 0);
    if (status == LEFT_OUT) fprintf(stderr, "left out: there is no membarrier here\n");
    else assert_int_equal(status, 0);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_permitted),
        cmocka_unit_test(unknown_to_the_system),
        cmocka_unit_test(given_up_later),
    };
    if (count == 2) return run_under_filter(arguments[1]);
    if (!can_refuse()) {
        fprintf(stderr, "skipped: no system calls can be refused here\n");
        return LEFT_OUT;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
