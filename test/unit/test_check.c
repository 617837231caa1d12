/* SPDX-License-Identifier: MIT */
/* What a program that is compiled with VIGIL_CHECK is told, and what not. */
#define VIGIL_CHECK
#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

#include "vigil/check.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/rwlock.h"

static vigil_mutex a, b, c;
static vigil_rwlock rwlock;
static vigil_cond cond;
static vigil_agent *agent;

/* The last report, and the number of reports. */
static unsigned reports;
static enum vigil_check_problem problem;
static char text[4096];

static void on_problem(enum vigil_check_problem which, const char *said) {
    reports++;
    problem = which;
    snprintf(text, sizeof text, "%s", said);
}

static int set_up(void **state) {
    (void)state;
    a = b = c = (vigil_mutex)VIGIL_MUTEX_INIT;
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_INIT;
    reports = 0;
    vigil_check_on_problem(on_problem);
    return vigil_agent_create(&agent, 0) != VIGIL_OK;
}

static int tear_down(void **state) {
    (void)state;
    vigil_check_forget(&a, sizeof a);
    vigil_check_forget(&b, sizeof b);
    vigil_check_forget(&c, sizeof c);
    vigil_check_forget(&rwlock, sizeof rwlock);
    return vigil_agent_destroy(agent) != VIGIL_OK;
}

static void expect_quiet(void) {
    if (reports) fputs(text, stderr);
    assert_int_equal(reports, 0);
}

static void expect_report(enum vigil_check_problem which) {
    assert_int_equal(reports, 1);
    assert_int_equal(problem, which);
    reports = 0;
}

/* The text names that line of this file, after those that were expected before. */
static void expect_site(const char **from, const char *before, int line) {
    char site[256];
    snprintf(site, sizeof site, "%s%s:%d", before, __FILE__, line);
    const char *found = strstr(*from, site);
    if (!found) fprintf(stderr, "no \"%s\" in:\n%s", site, *from);
    assert_non_null(found);
    *from = found + strlen(site);
}

#define LOCK(mutex)   assert_int_equal(vigil_mutex_lock(mutex), VIGIL_OK)
#define UNLOCK(mutex) assert_int_equal(vigil_mutex_unlock(mutex), VIGIL_OK)

static void in_another_thread(void *(*main)(void *)) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, main, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A thread against itself. */

static void who_waits_for_itself_is_told(void **state) {
    (void)state;
    int first, again[2];
    LOCK(&a), first = __LINE__;
    for (int i = 0; i < 2; i++) { /* not reported a second time */
        assert_int_equal(vigil_mutex_lock(&a), VIGIL_EDEADLOCK), again[0] = __LINE__;
        if (i) break;
        const char *from = text;
        expect_report(VIGIL_CHECK_SELF_DEADLOCK);
        expect_site(&from, "locked at ", first);
        expect_site(&from, "again at ", again[0]);
    }
    expect_quiet();
    assert_int_equal(vigil_mutex_lock_for(&a, SECOND), VIGIL_EDEADLOCK), again[1] = __LINE__;
    const char *from = text;
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    expect_site(&from, "again at ", again[1]);
    UNLOCK(&a);
    LOCK(&a);
    UNLOCK(&a);
    expect_quiet();
}

static void trying_is_not_waiting(void **state) {
    (void)state;
    LOCK(&a);
    assert_int_equal(vigil_mutex_trylock(&a), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_mutex_lock_for(&a, 0), VIGIL_TIMED_OUT);
    UNLOCK(&a);
    expect_quiet();
}

static void errors_are_as_always(void **state) {
    (void)state;
    assert_int_equal(vigil_mutex_lock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_mutex_unlock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_mutex_unlock(&a), VIGIL_ENOTHELD);
    assert_int_equal(vigil_mutex_execute(agent, NULL, &a, 0, NULL), VIGIL_ENULL);
    vigil_agent *loop = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    LOCK(&a);
    assert_int_equal(vigil_mutex_lock(&a), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_cond_wait(&cond, &a), VIGIL_EMAYNOTBLOCK);
    end_agent(loop);
    UNLOCK(&a);
    expect_quiet();
}

static void ones_own_lock_that_is_another_one_now_is_free(void **state) {
    (void)state;
    LOCK(&a);
    a = (vigil_mutex)VIGIL_MUTEX_INIT;
    LOCK(&a);
    UNLOCK(&a);
    expect_quiet();
}

/* Other threads. */

static int locked_at, unlocked_at;

static void *lock_a(void *unused) {
    (void)unused;
    LOCK(&a), locked_at = __LINE__;
    return NULL;
}

static bool locked, unlocked;

static void *lock_a_and_stay(void *unused) {
    lock_a(unused);
    STORE(locked, true);
    AWAIT(LOAD(unlocked));
    return NULL;
}

static pthread_t let_another_lock_a(void) {
    pthread_t thread;
    STORE(locked, false);
    STORE(unlocked, false);
    assert_int_equal(pthread_create(&thread, NULL, lock_a_and_stay, NULL), 0);
    AWAIT(LOAD(locked));
    return thread;
}

static void let_it_go(pthread_t thread) {
    STORE(unlocked, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_stranger_is_reported(void **state) {
    (void)state;
    pthread_t thread = let_another_lock_a();
    UNLOCK(&a), unlocked_at = __LINE__;
    let_it_go(thread);
    const char *from = text;
    expect_report(VIGIL_CHECK_STRANGER);
    expect_site(&from, "locked at ", locked_at);
    expect_site(&from, "unlocked at ", unlocked_at);
}

/* Locked by unchecked code: the thread that unlocks it is not known to hold it, but no other thread is either. */
static void lock_unseen(vigil_mutex *mutex) {
    assert_int_equal((vigil_mutex_lock)(mutex), VIGIL_OK);
}

static void anothers_lock_that_is_another_one_now_is_free(void **state) {
    (void)state;
    pthread_t thread = let_another_lock_a();
    a = (vigil_mutex)VIGIL_MUTEX_INIT;
    LOCK(&a);
    UNLOCK(&a);
    lock_unseen(&a);
    UNLOCK(&a);
    let_it_go(thread);
    expect_quiet();
}

static void *unlock_a(void *unused) {
    (void)unused;
    UNLOCK(&a);
    return NULL;
}

static void what_is_forgotten_may_be_handed_over(void **state) {
    (void)state;
    LOCK(&a);
    vigil_check_forget(&a, sizeof a);
    in_another_thread(unlock_a);
    expect_quiet();
}

static unsigned granted;

static void on_granted(vigil_op *op, int status) {
    (void)op;
    assert_int_equal(status, VIGIL_OK);
    granted++;
}

static void dispatch(void) {
    assert_true(vigil_agent_dispatch(agent) >= 0);
}

static void what_a_loop_was_granted_may_be_unlocked_anywhere(void **state) {
    (void)state;
    vigil_request request = {0};
    assert_int_equal(vigil_mutex_lock_async(agent, &request, &a, VIGIL_FOREVER, on_granted), VIGIL_OK);
    in_another_thread(unlock_a);
    assert_int_equal(vigil_mutex_execute_later(agent, &request, &a, VIGIL_FOREVER, on_granted), VIGIL_OK);
    in_another_thread(unlock_a);
    for (int i = 0; i < 2; i++) {
        LOCK(&a);
        int status = i ? vigil_mutex_lock_async(agent, &request, &a, VIGIL_FOREVER, on_granted)
                       : vigil_mutex_execute_later(agent, &request, &a, VIGIL_FOREVER, on_granted);
        assert_int_equal(status, VIGIL_PENDING);
        UNLOCK(&a);
        granted = 0;
        dispatch();
        assert_int_equal(granted, 1);
        in_another_thread(unlock_a);
    }
    expect_quiet();
}

static void a_loop_gets_a_lock_that_is_another_one_now(void **state) {
    (void)state;
    vigil_request request = {0};
    pthread_t thread = let_another_lock_a();
    a = (vigil_mutex)VIGIL_MUTEX_INIT;
    assert_int_equal(vigil_mutex_lock_async(agent, &request, &a, VIGIL_FOREVER, on_granted), VIGIL_OK);
    UNLOCK(&a);
    let_it_go(thread);
    expect_quiet();
}

static void *unlock_a_when_awaited(void *unused) {
    AWAIT(vigil_waiters(&a) == 1);
    return unlock_a(unused);
}

static void have_it_unlocked(vigil_op *op, int status) {
    on_granted(op, status);
    in_another_thread(unlock_a);
}

static void wait_until_it_is_unlocked(vigil_op *op, int status) {
    pthread_t thread;
    on_granted(op, status);
    assert_int_equal(pthread_create(&thread, NULL, unlock_a_when_awaited, NULL), 0);
    LOCK(&a);
    UNLOCK(&a);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void also_while_its_callback_runs(void **state) {
    (void)state;
    vigil_request request = {0};
    assert_int_equal(vigil_mutex_execute_later(agent, &request, &a, VIGIL_FOREVER, have_it_unlocked), VIGIL_OK);
    int status = vigil_mutex_execute_later(agent, &request, &a, VIGIL_FOREVER, wait_until_it_is_unlocked);
    assert_int_equal(status, VIGIL_OK);
    expect_quiet();
}

/* A thread that has ended holds nothing; nor does a later thread, even if it has the same place in memory. */
static void *wait_for_a(void *status) {
    (void)status;
    assert_int_equal(vigil_mutex_lock_for(&a, MILLISECOND), VIGIL_TIMED_OUT);
    return NULL;
}

static void a_thread_that_ends_with_a_lock_is_reported(void **state) {
    (void)state;
    in_another_thread(lock_a);
    const char *from = text;
    expect_report(VIGIL_CHECK_THREAD_ENDED);
    expect_site(&from, "locked at ", locked_at);
    in_another_thread(wait_for_a); /* it is not known to hold anything: no deadlock is reported */
    UNLOCK(&a);
    expect_quiet();
}

static void a_robust_mutex_is_not_reported(void **state) {
    (void)state;
    a = (vigil_mutex)VIGIL_MUTEX_ROBUST;
    in_another_thread(lock_a);
    assert_int_equal(vigil_mutex_lock(&a), VIGIL_OWNER_DIED);
    UNLOCK(&a);
    expect_quiet();
}

static int read_at, b_locked_at;

static void *read_and_lock_b(void *unused) {
    (void)unused;
    assert_int_equal(vigil_rwlock_read_lock(&rwlock), VIGIL_OK), read_at = __LINE__;
    LOCK(&b), b_locked_at = __LINE__;
    LOCK(&c);
    UNLOCK(&c);
    return NULL;
}

static void all_that_it_holds_is_named(void **state) {
    (void)state;
    in_another_thread(read_and_lock_b);
    const char *from = text;
    expect_report(VIGIL_CHECK_THREAD_ENDED);
    expect_site(&from, "locked at ", b_locked_at);
    expect_site(&from, "locked at ", read_at);
    assert_null(strstr(from, "locked at "));
    UNLOCK(&b);
    assert_int_equal(vigil_rwlock_read_unlock(&rwlock), VIGIL_OK);
    expect_quiet();
}

/* Order. */

static int a_at, b_at, c_at;

static void *a_then_b(void *unused) {
    (void)unused;
    LOCK(&a), a_at = __LINE__;
    LOCK(&b), b_at = __LINE__;
    UNLOCK(&b);
    UNLOCK(&a);
    return NULL;
}

static void *b_then_c(void *unused) {
    (void)unused;
    LOCK(&b), b_at = __LINE__;
    LOCK(&c), c_at = __LINE__;
    UNLOCK(&b); /* in any order */
    UNLOCK(&c);
    return NULL;
}

static void two_orders_are_reported_with_both(void **state) {
    (void)state;
    int b_first_at, a_second_at;
    in_another_thread(a_then_b);
    in_another_thread(a_then_b);
    expect_quiet();
    for (int i = 0; i < 2; i++) {
        LOCK(&b), b_first_at = __LINE__;
        LOCK(&a), a_second_at = __LINE__;
        UNLOCK(&a);
        UNLOCK(&b);
    }
    const char *from = text;
    expect_report(VIGIL_CHECK_ORDER);
    expect_site(&from, "locked at ", b_first_at);
    expect_site(&from, " at ", a_second_at);
    expect_site(&from, "locked at ", a_at);
    expect_site(&from, " at ", b_at);
    in_another_thread(a_then_b);
    expect_quiet();
}

static void a_circle_of_three_is_reported(void **state) {
    (void)state;
    int c_first_at, a_second_at;
    in_another_thread(a_then_b);
    int a_first_at = a_at, b_second_at = b_at;
    in_another_thread(b_then_c);
    expect_quiet();
    LOCK(&c), c_first_at = __LINE__;
    LOCK(&a), a_second_at = __LINE__;
    UNLOCK(&a);
    UNLOCK(&c);
    const char *from = text;
    expect_report(VIGIL_CHECK_ORDER);
    const int sites[] = {c_first_at, a_second_at, a_first_at, b_second_at, b_at, c_at};
    for (size_t i = 0; i < COUNT_OF(sites); i++) expect_site(&from, " at ", sites[i]);
}

static void the_same_order_is_right(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        LOCK(&a);
        LOCK(&b);
        LOCK(&c);
        UNLOCK(&a); /* unlocking has no order */
        UNLOCK(&b);
        UNLOCK(&c);
        LOCK(&a);
        LOCK(&c);
        UNLOCK(&a);
        UNLOCK(&c);
    }
    expect_quiet();
}

static void to_try_has_no_order(void **state) {
    (void)state;
    in_another_thread(a_then_b);
    LOCK(&b);
    assert_int_equal(vigil_mutex_trylock(&a), VIGIL_OK);
    UNLOCK(&a);
    UNLOCK(&b);
    expect_quiet();
    assert_int_equal(vigil_mutex_trylock(&b), VIGIL_OK); /* but a successful trylock does hold it */
    LOCK(&a);
    UNLOCK(&a);
    UNLOCK(&b);
    expect_report(VIGIL_CHECK_ORDER);
}

static void what_is_forgotten_has_no_order(void **state) {
    (void)state;
    in_another_thread(a_then_b);
    vigil_check_forget(&a, sizeof a);
    LOCK(&b);
    LOCK(&a);
    UNLOCK(&a);
    UNLOCK(&b);
    expect_quiet();
}

static void many_locks_are_no_problem(void **state) {
    (void)state;
    enum { MANY = 5000 };
    vigil_mutex *many = calloc(MANY, sizeof *many);
    for (int i = 0; i + 1 < MANY; i++) {
        LOCK(&many[i]);
        LOCK(&many[i + 1]);
        UNLOCK(&many[i + 1]);
        UNLOCK(&many[i]);
    }
    expect_quiet();
    LOCK(&many[MANY - 1]);
    LOCK(&many[0]);
    UNLOCK(&many[0]);
    UNLOCK(&many[MANY - 1]);
    expect_report(VIGIL_CHECK_ORDER); /* a report that long is truncated */
    vigil_check_forget(many, MANY * sizeof *many);
    free(many);
}

/* Inside a callback the lock is held. */

static int lock_again_at;

static void lock_a_again(vigil_op *op, int status) {
    on_granted(op, status);
    assert_int_equal(vigil_mutex_lock(&a), VIGIL_EDEADLOCK), lock_again_at = __LINE__;
}

static void execute_holds_the_lock(void **state) {
    (void)state;
    vigil_request request = {0};
    int at;
    assert_int_equal(vigil_mutex_execute(agent, &request, &a, VIGIL_FOREVER, lock_a_again), VIGIL_OK), at = __LINE__;
    const char *from = text;
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    expect_site(&from, "locked at ", at);
    expect_site(&from, "again at ", lock_again_at);
    LOCK(&a);
    int status = vigil_mutex_execute(agent, &request, &a, VIGIL_FOREVER, lock_a_again);
    at = __LINE__ - 1;
    assert_int_equal(status, VIGIL_PENDING);
    UNLOCK(&a);
    expect_quiet();
    dispatch();
    from = text;
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    expect_site(&from, "locked at ", at);
    assert_false(vigil_mutex_is_locked(&a));
}

static void lock_b_inside(vigil_op *op, int status) {
    on_granted(op, status);
    LOCK(&b);
    UNLOCK(&b);
}

static void callbacks_have_an_order(void **state) {
    (void)state;
    vigil_request request = {0};
    for (int later = 0; later < 2; later++) {
        LOCK(&b);
        LOCK(&a);
        UNLOCK(&b);
        int status = later ? vigil_mutex_execute_later(agent, &request, &a, VIGIL_FOREVER, lock_b_inside)
                           : vigil_mutex_execute(agent, &request, &a, VIGIL_FOREVER, lock_b_inside);
        assert_int_equal(status, VIGIL_PENDING);
        UNLOCK(&a);
        expect_quiet();
        dispatch();
        if (later) UNLOCK(&a);
        if (!later) expect_report(VIGIL_CHECK_ORDER);
        vigil_check_forget(&a, sizeof a);
    }
    expect_quiet(); /* the same two sites as before */
}

/* Conditions. */

static bool ready;

static void *wait_until_ready(void *unused) {
    (void)unused;
    LOCK(&a);
    while (!ready) assert_int_equal(vigil_cond_wait(&cond, &a), VIGIL_OK);
    UNLOCK(&a);
    return NULL;
}

static void who_waits_for_a_condition_does_not_hold_the_mutex(void **state) {
    (void)state;
    pthread_t thread;
    ready = false;
    assert_int_equal(pthread_create(&thread, NULL, wait_until_ready, NULL), 0);
    AWAIT(vigil_waiters(&cond) == 1);
    lock_unseen(&a);
    ready = true;
    assert_int_equal(vigil_cond_signal(&cond), 1);
    UNLOCK(&a);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_quiet();
}

static void a_condition_takes_the_mutex_again(void **state) {
    (void)state;
    LOCK(&a);
    LOCK(&b);
    assert_int_equal(vigil_cond_wait_for(&cond, &b, 1), VIGIL_TIMED_OUT); /* b after a, as before */
    expect_quiet();
    int at, again_at;
    assert_int_equal(vigil_cond_wait_for(&cond, &a, 1), VIGIL_TIMED_OUT), at = __LINE__; /* a after b */
    const char *from = text;
    expect_report(VIGIL_CHECK_ORDER);
    expect_site(&from, " at ", at);
    assert_int_equal(vigil_mutex_lock(&a), VIGIL_EDEADLOCK), again_at = __LINE__;
    from = text;
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    expect_site(&from, "locked at ", at);
    expect_site(&from, "again at ", again_at);
    UNLOCK(&b);
    UNLOCK(&a);
}

static void a_loop_that_waits_does_not_hold_it_either(void **state) {
    (void)state;
    vigil_request request = {0};
    LOCK(&a);
    int status = vigil_cond_wait_async(agent, &request, &cond, &a, VIGIL_FOREVER, on_granted);
    assert_int_equal(status, VIGIL_PENDING);
    lock_unseen(&a);
    in_another_thread(unlock_a);
    assert_int_equal(vigil_cond_signal(&cond), 1);
    granted = 0;
    dispatch();
    assert_int_equal(granted, 1);
    in_another_thread(unlock_a);
    expect_quiet();
}

/* Read-write locks. */

#define OK(call) assert_int_equal((call), VIGIL_OK)

static void a_writer_waits_for_itself(void **state) {
    (void)state;
    OK(vigil_rwlock_write_lock(&rwlock));
    assert_int_equal(vigil_rwlock_write_lock(&rwlock), VIGIL_EDEADLOCK);
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    assert_int_equal(vigil_rwlock_read_lock(&rwlock), VIGIL_EDEADLOCK);
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    assert_int_equal(vigil_rwlock_read_trylock(&rwlock), VIGIL_TIMED_OUT);
    OK(vigil_rwlock_downgrade(&rwlock));
    assert_int_equal(vigil_rwlock_write_lock(&rwlock), VIGIL_EDEADLOCK);
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    OK(vigil_rwlock_read_unlock(&rwlock));
    OK(vigil_rwlock_write_lock(&rwlock));
    OK(vigil_rwlock_write_unlock(&rwlock));
    expect_quiet();
}

static void reading_again_is_reported_before_a_writer_comes(void **state) {
    (void)state;
    int first, again;
    for (int i = 0; i < 2; i++) {
        OK(vigil_rwlock_read_lock(&rwlock)), first = __LINE__;
        assert_int_equal(vigil_rwlock_read_trylock(&rwlock), VIGIL_OK); /* which does not wait */
        expect_quiet();
        OK(vigil_rwlock_read_lock(&rwlock)), again = __LINE__;
        if (i == 0) { /* not reported a second time */
            const char *from = text;
            expect_report(VIGIL_CHECK_READ_AGAIN);
            expect_site(&from, "locked at ", first);
            expect_site(&from, "again at ", again);
        }
        for (int reads = 0; reads < 3; reads++) OK(vigil_rwlock_read_unlock(&rwlock));
    }
    OK(vigil_rwlock_read_lock(&rwlock));
    OK(vigil_rwlock_read_unlock(&rwlock));
    expect_quiet();
}

static void *write_when_it_is_free(void *unused) {
    OK((vigil_rwlock_write_lock)(&rwlock));
    OK((vigil_rwlock_write_unlock)(&rwlock));
    return unused;
}

static pthread_t let_a_writer_wait(void) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_when_it_is_free, NULL), 0);
    AWAIT(vigil_waiters(&rwlock) == 1);
    return thread;
}

static void reading_again_behind_a_writer_is_a_self_deadlock(void **state) {
    (void)state;
    int first, again;
    OK(vigil_rwlock_read_lock(&rwlock)), first = __LINE__;
    pthread_t thread = let_a_writer_wait();
    AWAIT(LOAD(rwlock.word) & 8u); /* from now on new readers do not pass it */
    assert_int_equal(vigil_rwlock_read_lock(&rwlock), VIGIL_EDEADLOCK), again = __LINE__;
    const char *from = text;
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    expect_site(&from, "locked at ", first);
    expect_site(&from, "again at ", again);
    OK(vigil_rwlock_read_unlock(&rwlock));
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_quiet();
}

static void where_readers_pass_reading_again_is_right(void **state) {
    (void)state;
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_READERS_PASS;
    OK(vigil_rwlock_read_lock(&rwlock));
    OK(vigil_rwlock_read_lock(&rwlock));
    pthread_t thread = let_a_writer_wait();
    OK(vigil_rwlock_read_lock(&rwlock));
    for (int reads = 0; reads < 3; reads++) OK(vigil_rwlock_read_unlock(&rwlock));
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_quiet();
}

static void *stop_writing(void *unused) {
    (void)unused;
    OK(vigil_rwlock_write_unlock(&rwlock));
    return NULL;
}

static void *stop_reading(void *unused) {
    (void)unused;
    OK(vigil_rwlock_read_unlock(&rwlock));
    return NULL;
}

static void a_writers_stranger_is_reported(void **state) {
    (void)state;
    OK(vigil_rwlock_write_lock(&rwlock));
    in_another_thread(stop_writing);
    expect_report(VIGIL_CHECK_STRANGER);
    OK(vigil_rwlock_read_lock(&rwlock));
    in_another_thread(stop_reading); /* perhaps one of several readers */
    expect_quiet();
}

static void read_write_locks_have_an_order(void **state) {
    (void)state;
    OK(vigil_rwlock_read_lock(&rwlock));
    LOCK(&a);
    UNLOCK(&a);
    OK(vigil_rwlock_read_unlock(&rwlock));
    LOCK(&a);
    OK(vigil_rwlock_write_lock(&rwlock));
    expect_report(VIGIL_CHECK_ORDER);
    OK(vigil_rwlock_write_unlock(&rwlock));
    UNLOCK(&a);
}

/* Where it is reported. */

static void without_a_handler_it_goes_to_stderr(void **state) {
    (void)state;
    FILE *file = tmpfile();
    int before = dup(2);
    char line[256];
    assert_non_null(file);
    vigil_check_on_problem(NULL);
    LOCK(&a);
    assert_true(dup2(fileno(file), 2) == 2);
    int status = vigil_mutex_lock(&a);
    dup2(before, 2);
    close(before);
    assert_int_equal(status, VIGIL_EDEADLOCK);
    UNLOCK(&a);
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(strncmp(line, "vigil: self-deadlock: ", strlen("vigil: self-deadlock: ")), 0);
    fclose(file);
}

/* A thread may be inside a check at the moment of the fork: the child is not. */

static bool enough;

static void *check_a_lot(void *unused) {
    (void)unused;
    vigil_mutex mine = VIGIL_MUTEX_INIT;
    while (!LOAD(enough)) {
        LOCK(&mine);
        UNLOCK(&mine);
    }
    return NULL;
}

static void the_child_of_a_fork_can_go_on(void **state) {
    (void)state;
    pthread_t thread;
    STORE(enough, false);
    assert_int_equal(pthread_create(&thread, NULL, check_a_lot, NULL), 0);
    LOCK(&a);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) {
            bool right = vigil_mutex_unlock(&a) == VIGIL_OK && vigil_mutex_lock(&a) == VIGIL_OK;
            _exit(right && vigil_mutex_lock(&a) == VIGIL_EDEADLOCK && reports == 1 ? 0 : 1);
        }
        int status;
        assert_true(waitpid(child, &status, 0) == child);
        assert_int_equal(status, 0);
    }
    UNLOCK(&a);
    STORE(enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_quiet();
}

/* Many at once, all in order. */

enum { BUSY_ROUNDS = 2000 };
static unsigned shared_by_all;

static void count_up(vigil_op *op, int status) {
    (void)op;
    assert_int_equal(status, VIGIL_OK);
    shared_by_all++;
}

static void *be_busy(void *unused) {
    (void)unused;
    vigil_agent *loop = new_agent(0);
    for (int i = 0; i < BUSY_ROUNDS; i++) {
        vigil_request request = {0};
        OK(vigil_rwlock_read_lock(&rwlock));
        LOCK(&a);
        shared_by_all++;
        if (i % 4 == 0) assert_int_equal(vigil_cond_wait_for(&cond, &a, 1), VIGIL_TIMED_OUT);
        LOCK(&b);
        bool tried = vigil_mutex_trylock(&c) == VIGIL_OK;
        UNLOCK(&a);
        if (tried) UNLOCK(&c);
        UNLOCK(&b);
        OK(vigil_rwlock_read_unlock(&rwlock));
        assert_true(vigil_mutex_execute(loop, &request, &a, VIGIL_FOREVER, count_up) >= 0);
        OK(vigil_agent_run(loop));
    }
    end_agent(loop);
    return NULL;
}

static void many_threads_in_order_are_not_blamed(void **state) {
    (void)state;
    pthread_t threads[4];
    shared_by_all = 0;
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, NULL), 0);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared_by_all, 2 * COUNT_OF(threads) * BUSY_ROUNDS);
    expect_quiet();
}

/* Holders that have ended. */

static void *give_both_up(void *unused) {
    if (vigil_mutex_abandon(&a) != VIGIL_OK) abort();
    if (vigil_rwlock_write_abandon(&rwlock) != VIGIL_OK) abort();
    return unused;
}

static void what_was_given_up_is_not_held(void **state) {
    (void)state;
    vigil_request request = {0};
    a = (vigil_mutex)VIGIL_MUTEX_ROBUST;
    assert_int_equal(vigil_mutex_lock_async(agent, &request, &a, VIGIL_FOREVER, on_granted), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_lock(&rwlock), VIGIL_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, give_both_up, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_quiet();
    assert_int_equal(vigil_rwlock_write_lock(&rwlock), VIGIL_OWNER_DIED); /* no self-deadlock */
    assert_int_equal(vigil_rwlock_write_unlock(&rwlock), VIGIL_OK);
    assert_int_equal(vigil_mutex_lock(&b), VIGIL_OK);
    assert_int_equal(vigil_mutex_abandon(&b), VIGIL_EINVAL);
    assert_int_equal(vigil_mutex_lock(&b), VIGIL_EDEADLOCK); /* it is held as before */
    expect_report(VIGIL_CHECK_SELF_DEADLOCK);
    assert_int_equal(vigil_mutex_unlock(&b), VIGIL_OK);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(who_waits_for_itself_is_told),
        TEST(trying_is_not_waiting),
        TEST(errors_are_as_always),
        TEST(ones_own_lock_that_is_another_one_now_is_free),
        TEST(a_stranger_is_reported),
        TEST(anothers_lock_that_is_another_one_now_is_free),
        TEST(what_is_forgotten_may_be_handed_over),
        TEST(what_a_loop_was_granted_may_be_unlocked_anywhere),
        TEST(also_while_its_callback_runs),
        TEST(a_loop_gets_a_lock_that_is_another_one_now),
        TEST(a_thread_that_ends_with_a_lock_is_reported),
        TEST(all_that_it_holds_is_named),
        TEST(a_robust_mutex_is_not_reported),
        TEST(what_was_given_up_is_not_held),
        TEST(two_orders_are_reported_with_both),
        TEST(a_circle_of_three_is_reported),
        TEST(the_same_order_is_right),
        TEST(to_try_has_no_order),
        TEST(what_is_forgotten_has_no_order),
        TEST(many_locks_are_no_problem),
        TEST(execute_holds_the_lock),
        TEST(callbacks_have_an_order),
        TEST(who_waits_for_a_condition_does_not_hold_the_mutex),
        TEST(a_condition_takes_the_mutex_again),
        TEST(a_loop_that_waits_does_not_hold_it_either),
        TEST(a_writer_waits_for_itself),
        TEST(reading_again_is_reported_before_a_writer_comes),
        TEST(reading_again_behind_a_writer_is_a_self_deadlock),
        TEST(where_readers_pass_reading_again_is_right),
        TEST(a_writers_stranger_is_reported),
        TEST(read_write_locks_have_an_order),
        TEST(without_a_handler_it_goes_to_stderr),
        TEST(the_child_of_a_fork_can_go_on),
        TEST(many_threads_in_order_are_not_blamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
