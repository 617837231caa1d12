/* SPDX-License-Identifier: MIT */
/* Descriptors of others behind the agent's: vigil_agent_watch. */
#include "support.h"

#include "agent_fixture.h"

#include <errno.h>

#if PRIM_SEGMENTS

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    vigil_watch watch;
    int ends[2]; /* of a pipe */
    int calls;
    unsigned events;
    struct pair *victim; /* to be unwatched by its callback */
};

static void on_ready(vigil_watch *watch, unsigned events) {
    struct pair *pair = watch->data;
    pair->calls++;
    pair->events = events;
    if (pair->victim) assert_int_equal(vigil_agent_unwatch(&pair->victim->watch), VIGIL_OK);
}

static void pair_open(struct pair *pair) {
    *pair = (struct pair){.watch = {.data = pair}};
    assert_int_equal(pipe2(pair->ends, O_NONBLOCK | O_CLOEXEC), 0);
}

static void pair_close(struct pair *pair) {
    close(pair->ends[0]);
    close(pair->ends[1]);
}

static void pair_fill(struct pair *pair) {
    assert_int_equal(write(pair->ends[1], "x", 1), 1);
}

static void pair_watch(struct pair *pair) {
    assert_int_equal(vigil_agent_watch(agent, &pair->watch, pair->ends[0], VIGIL_READABLE, on_ready), VIGIL_OK);
}

static bool agent_readable(void) {
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    return poll(&seat, 1, 0) == 1;
}

static void refusals(void **state) {
    (void)state;
    struct pair pair, other;
    pair_open(&pair), pair_open(&other);
    vigil_agent *second;
    int fd = pair.ends[0];
    assert_int_equal(vigil_agent_watch(NULL, &pair.watch, fd, VIGIL_READABLE, on_ready), VIGIL_ENULL);
    assert_int_equal(vigil_agent_watch(agent, NULL, fd, VIGIL_READABLE, on_ready), VIGIL_ENULL);
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, fd, VIGIL_READABLE, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, fd, 0, on_ready), VIGIL_EINVAL);
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, fd, 4, on_ready), VIGIL_EINVAL);
    errno = 0;
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, -1, VIGIL_READABLE, on_ready), VIGIL_ESYSTEM);
    assert_int_equal(errno, EBADF);
    assert_int_equal(vigil_agent_unwatch(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_EIDLE);
    pair_watch(&pair);
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, other.ends[0], VIGIL_READABLE, on_ready), VIGIL_EINUSE);
    assert_int_equal(vigil_agent_watch(agent, &other.watch, fd, VIGIL_READABLE, on_ready), VIGIL_ESYSTEM);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(vigil_agent_create(&second, 0), VIGIL_OK);
    assert_int_equal(vigil_agent_watch(second, &pair.watch, fd, VIGIL_READABLE, on_ready), VIGIL_EINUSE);
    assert_int_equal(vigil_agent_destroy(second), VIGIL_OK);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_EIDLE);
    pair_close(&pair), pair_close(&other);
}

static void *on_another_thread(void *argument) {
    struct pair *pair = argument;
    assert_int_equal(vigil_agent_watch(agent, &pair->watch, pair->ends[0], VIGIL_WRITABLE, on_ready),
                     VIGIL_EWRONGTHREAD);
    assert_int_equal(vigil_agent_unwatch(&pair->watch), VIGIL_EWRONGTHREAD);
    return NULL;
}

static void another_thread_may_not(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair_watch(&pair);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, &pair), 0);
    pthread_join(thread, NULL);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    pair_close(&pair);
}

/* While the descriptor is ready, each dispatch calls; when it is read, and after unwatch, none does. */
static void dispatch_calls_while_ready(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair_watch(&pair);
    assert_false(agent_readable());
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    pair_fill(&pair);
    assert_true(agent_readable());
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(pair.calls, 2);
    assert_int_equal(pair.events, VIGIL_READABLE);
    char byte;
    assert_int_equal(read(pair.ends[0], &byte, 1), 1);
    assert_false(agent_readable());
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    pair_fill(&pair);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    assert_false(agent_readable());
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    assert_int_equal(pair.calls, 2);
    pair_close(&pair);
}

static void events_can_change(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    int fd = pair.ends[1];
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, fd, VIGIL_READABLE, on_ready), VIGIL_OK);
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, fd, VIGIL_WRITABLE, on_ready), VIGIL_OK);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(pair.events, VIGIL_WRITABLE);
    close(pair.ends[0]); /* an error on the end to write counts as ready for what is asked */
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, fd, VIGIL_READABLE, on_ready), VIGIL_OK);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(pair.events, VIGIL_READABLE);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    close(fd);
}

static void a_hang_up_is_readable(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair_watch(&pair);
    close(pair.ends[1]);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(pair.events, VIGIL_READABLE);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    close(pair.ends[0]);
}

/* Both are ready in one dispatch: whichever is called first ends the other, which must not be called any more. */
static void a_callback_ends_another(void **state) {
    (void)state;
    struct pair first, second;
    pair_open(&first), pair_open(&second);
    first.victim = &second, second.victim = &first;
    pair_watch(&first), pair_watch(&second);
    pair_fill(&first), pair_fill(&second);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(first.calls + second.calls, 1);
    struct pair *left = first.calls ? &first : &second;
    left->victim = NULL;
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(left->calls, 2);
    assert_int_equal(vigil_agent_unwatch(&left->watch), VIGIL_OK);
    pair_close(&first), pair_close(&second);
}

static void a_callback_ends_itself(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair.victim = &pair;
    pair_watch(&pair);
    pair_fill(&pair);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    pair_close(&pair);
}

static void narrow(vigil_watch *watch, unsigned events) {
    struct pair *pair = watch->data;
    on_ready(watch, events);
    if (!pair[1].watch.agent) return;
    int fd = pair[1].ends[1];
    assert_int_equal(vigil_agent_watch(agent, &pair[1].watch, fd, VIGIL_READABLE, on_ready), VIGIL_OK);
}

/* An event that was found, but is not asked for any more. The order in which they are called is the kernel's. */
static void a_callback_changes_another(void **state) {
    (void)state;
    struct pair pairs[2];
    pair_open(&pairs[0]), pair_open(&pairs[1]);
    pair_fill(&pairs[0]);
    assert_int_equal(vigil_agent_watch(agent, &pairs[0].watch, pairs[0].ends[0], VIGIL_READABLE, narrow), VIGIL_OK);
    assert_int_equal(vigil_agent_watch(agent, &pairs[1].watch, pairs[1].ends[1], VIGIL_WRITABLE, on_ready), VIGIL_OK);
    int64_t served = vigil_agent_dispatch(agent);
    assert_int_equal(served, 1 + pairs[1].calls);
    int before = pairs[1].calls;
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(pairs[1].calls, before);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(vigil_agent_unwatch(&pairs[i].watch), VIGIL_OK);
        pair_close(&pairs[i]);
    }
}

/* More than one call of the system returns at once: all of them get their turn. */
static void many(void **state) {
    (void)state;
    enum { MANY = 100 };
    static struct pair pairs[MANY];
    for (int i = 0; i < MANY; i++) {
        pair_open(&pairs[i]);
        pair_watch(&pairs[i]);
        pair_fill(&pairs[i]);
    }
    for (int i = 0; i < 2 * MANY; i++) vigil_agent_dispatch(agent);
    for (int i = 0; i < MANY; i++) {
        assert_true(pairs[i].calls > 0);
        assert_int_equal(vigil_agent_unwatch(&pairs[i].watch), VIGIL_OK);
        pair_close(&pairs[i]);
    }
}

/* Run. */

static void *fill_later(void *pair) {
    let_pass(10 * MILLISECOND);
    pair_fill(pair);
    return NULL;
}

static void unref_when_ready(vigil_watch *watch, unsigned events) {
    on_ready(watch, events);
    char byte;
    struct pair *pair = watch->data;
    assert_int_equal(read(pair->ends[0], &byte, 1), 1);
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
}

static void run_sleeps_until_ready(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    assert_int_equal(vigil_agent_watch(agent, &pair.watch, pair.ends[0], VIGIL_READABLE, unref_when_ready), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK); /* the watch alone does not keep it going */
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fill_later, &pair), 0);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    pthread_join(thread, NULL);
    assert_int_equal(pair.calls, 1);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    pair_close(&pair);
}

static void *post_later(void *unused) {
    (void)unused;
    let_pass(10 * MILLISECOND);
    assert_int_equal(vigil_agent_stop(agent), VIGIL_OK);
    return NULL;
}

/* The bell still wakes a run that sleeps on descriptors, and a deadline still ends it. */
static void run_hears_the_bell(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair_watch(&pair);
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, post_later, NULL), 0);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    pthread_join(thread, NULL);
    assert_int_equal(vigil_agent_run_until(agent, vigil_now_ns() + MILLISECOND), VIGIL_TIMED_OUT);
    assert_int_equal(pair.calls, 0);
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    pair_close(&pair);
}

static void count_call(vigil_op *op, int status) {
    (void)status;
    ++*(int *)op->data;
}

/* The descriptor is in use and its alarm has gone off when the run begins: that must neither keep it awake, nor be
 * forgotten at the end. */
static int64_t busy_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

/* False if the machine was so slow that the run saw the second alarm, too. */
static bool run_between_two_alarms(void) {
    int calls = 0;
    vigil_op early = {.data = &calls}, late = {.data = &calls};
    assert_int_equal(vigil_wait32_async(agent, &early, word, 0, MICROSECOND, count_call), VIGIL_PENDING);
    AWAIT(agent_readable());
    int64_t late_ns = vigil_now_ns() + 100 * MILLISECOND;
    assert_int_equal(vigil_wait32_async(agent, &late, word, 0, 100 * MILLISECOND, count_call), VIGIL_PENDING);
    int64_t begun_ns = vigil_now_ns(), begun_busy_ns = busy_ns();
    assert_int_equal(vigil_agent_run_until(agent, begun_ns + 50 * MILLISECOND), VIGIL_TIMED_OUT);
    assert_true(busy_ns() - begun_busy_ns < (vigil_now_ns() - begun_ns) * 4 / 5);
    bool in_time = vigil_now_ns() < late_ns;
    if (in_time) {
        assert_int_equal(calls, 1);
        AWAIT(agent_readable());
    }
    while (calls < 2) vigil_agent_dispatch(agent);
    return in_time;
}

static void run_with_an_alarm(void **state) {
    (void)state;
    struct pair pair;
    pair_open(&pair);
    pair_watch(&pair);
    assert_true(vigil_agent_fd(agent) >= 0);
    AWAIT(run_between_two_alarms());
    assert_int_equal(vigil_agent_unwatch(&pair.watch), VIGIL_OK);
    pair_close(&pair);
}

/* The end. */

static vigil_agent *ending;
static struct pair ended[3];

static void on_end(vigil_watch *watch, unsigned events) {
    on_ready(watch, events);
    assert_int_equal(vigil_agent_watch(ending, watch, 0, VIGIL_READABLE, on_end), VIGIL_ECLOSING);
}

static void destroy_ends_each(void **state) {
    (void)state;
    assert_int_equal(vigil_agent_create(&ending, 0), VIGIL_OK);
    for (int i = 0; i < 3; i++) {
        pair_open(&ended[i]);
        pair_fill(&ended[i]);
        int fd = ended[i].ends[0];
        assert_int_equal(vigil_agent_watch(ending, &ended[i].watch, fd, VIGIL_READABLE, on_end), VIGIL_OK);
        ended[i].events = 7;
    }
    ended[2].victim = &ended[0]; /* it is the last one, and called first */
    assert_int_equal(vigil_agent_destroy(ending), VIGIL_OK);
    assert_int_equal(ended[0].calls, 0);
    assert_int_equal(ended[1].calls, 1);
    assert_int_equal(ended[1].events, 0);
    assert_int_equal(ended[2].calls, 1);
    assert_int_equal(ended[2].events, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vigil_agent_unwatch(&ended[i].watch), VIGIL_EIDLE);
        pair_close(&ended[i]);
    }
}

/* Fork. */

static pid_t forked;

static void fork_when_ready(vigil_watch *watch, unsigned events) {
    on_ready(watch, events);
    fflush(NULL);
    forked = fork();
}

static int child_after(struct pair *pairs, int64_t status) {
    if (status != VIGIL_EFORKED || pairs[0].calls + pairs[1].calls != 1) return 1;
    if (vigil_agent_unwatch(&pairs[0].watch) != VIGIL_EFORKED) return 2;
    if (vigil_agent_watch(agent, &pairs[0].watch, pairs[0].ends[0], 1, on_ready) != VIGIL_EFORKED) return 3;
    if (vigil_agent_destroy(agent) != VIGIL_OK) return 4;
    return pairs[0].calls + pairs[1].calls == 1 ? 0 : 5;
}

/* The first callback of two forks: the child does not call the other, and the parent does. */
static void fork_in_a_callback(void **state) {
    (void)state;
    struct pair pairs[2];
    for (int i = 0; i < 2; i++) {
        pair_open(&pairs[i]);
        pair_fill(&pairs[i]);
    }
    for (int i = 0; i < 2; i++) {
        int fd = pairs[i].ends[0];
        assert_int_equal(vigil_agent_watch(agent, &pairs[i].watch, fd, VIGIL_READABLE, fork_when_ready), VIGIL_OK);
    }
    forked = -1;
    pid_t children[2];
    int64_t status = vigil_agent_dispatch(agent);
    if (forked == 0) _exit(child_after(pairs, status));
    assert_int_equal(status, 2);
    children[1] = forked;
    int outcome;
    assert_int_equal(waitpid(children[1], &outcome, 0), children[1]);
    children[0] = wait(&outcome);
    assert_true(children[0] > 0);
    assert_int_equal(outcome, 0); /* of the first; the second has been called twice by then */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(vigil_agent_unwatch(&pairs[i].watch), VIGIL_OK);
        pair_close(&pairs[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_thread_may_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dispatch_calls_while_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(events_can_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hang_up_is_readable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_callback_ends_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_callback_ends_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_callback_changes_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run_sleeps_until_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run_hears_the_bell, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run_with_an_alarm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(destroy_ends_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fork_in_a_callback, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void absent(void **state) {
    (void)state;
    vigil_watch watch = {0};
    errno = 0;
    assert_int_equal(vigil_agent_watch(agent, &watch, 0, VIGIL_READABLE, (vigil_watch_callback *)abort), VIGIL_ESYSTEM);
    assert_int_equal(errno, ENOSYS);
    assert_int_equal(vigil_agent_unwatch(&watch), VIGIL_EIDLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(absent, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
