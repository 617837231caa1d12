/* SPDX-License-Identifier: MIT */
/* Agents: their life, their descriptor, dispatch, run, post, ref. */
#include "support.h"

#include "agent_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lot/seat.h"

static void run_on_another_thread(void *(*main)(void *), void *argument) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, main, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Creating. */

static void create_refuses(void **state) {
    (void)state;
    vigil_agent *none = NULL;
    assert_int_equal(vigil_agent_create(NULL, 0), VIGIL_ENULL);
    assert_int_equal(vigil_agent_create(&none, 2), VIGIL_EINVAL);
    assert_int_equal(vigil_agent_create(&none, VIGIL_AGENT_MAY_NOT_BLOCK | 0x80000000u), VIGIL_EINVAL);
    assert_null(none);
}

static void create_without_descriptors(void **state) {
    (void)state;
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    vigil_agent *refused = NULL;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 0;
    int created = vigil_agent_create(&refused, 0), why_not_created = errno;
    errno = 0;
    int fd = vigil_agent_fd(agent), why_no_fd = errno;
    vigil_worker *worker = NULL;
    int started = vigil_worker_start(&worker, NULL, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(created, VIGIL_ESYSTEM);
    assert_int_equal(why_not_created, EMFILE);
    assert_null(refused);
    if (PRIM_SEGMENTS) { /* else the bell is a pipe, which has its descriptor from the beginning */
        assert_int_equal(fd, VIGIL_ESYSTEM);
        assert_int_equal(why_no_fd, EMFILE);
    }
    assert_int_equal(started, VIGIL_ESYSTEM);
    assert_null(worker);
    assert_true(vigil_agent_fd(agent) >= 0); /* and it may be called again */
}

/* All 65535 agents: set by hand, since they would need as many descriptors. */
static void create_when_all_seats_are_taken(void **state) {
    (void)state;
    struct lot *lot = lot_private();
    uint32_t used = lot->seats_used;
    struct seat nobody = {0};
    for (uint32_t i = 1; i < PRIM_SEAT_LIMIT; i++) {
        if (!lot->seats[i]) lot->seats[i] = &nobody;
    }
    lot->seats_used = PRIM_SEAT_LIMIT;
    vigil_agent *refused = NULL;
    int created = vigil_agent_create(&refused, 0);
    vigil_worker *worker = NULL;
    int started = vigil_worker_start(&worker, NULL, NULL);
    for (uint32_t i = 1; i < PRIM_SEAT_LIMIT; i++) {
        if (lot->seats[i] == &nobody) lot->seats[i] = NULL;
    }
    lot->seats_used = used;
    assert_int_equal(created, VIGIL_ELIMIT);
    assert_null(refused);
    assert_int_equal(started, VIGIL_ELIMIT);
    assert_null(worker);
}

static int lowest_free_descriptor(void) {
    int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
}

static void destroy_gives_descriptors_and_seats_back(void **state) {
    (void)state;
    int before = lowest_free_descriptor();
    vigil_agent *other = new_agent(0);
    assert_true(vigil_agent_fd(other) >= 0);
    end_agent(other);
    uint32_t seats_used = lot_private()->seats_used;
    for (int i = 0; i < 1000; i++) {
        other = new_agent(i % 2 ? VIGIL_AGENT_MAY_NOT_BLOCK : 0);
        if (i % 3) vigil_agent_fd(other);
        end_agent(other);
    }
    assert_int_equal(lot_private()->seats_used, seats_used);
    assert_int_equal(lowest_free_descriptor(), before);
}

static void null_agents_are_refused(void **state) {
    (void)state;
    assert_int_equal(vigil_agent_destroy(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_fd(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_dispatch(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_run(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_run_until(NULL, 0), VIGIL_ENULL);
    assert_int_equal(vigil_agent_stop(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_ref(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_unref(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_agent_on_alive(NULL, NULL, NULL), VIGIL_ENULL);
    assert_false(vigil_agent_alive(NULL));
    assert_int_equal(vigil_agent_post(agent, NULL, NULL), VIGIL_ENULL);
}

static int64_t answers_elsewhere[8];

static void *call_all(void *unused) {
    (void)unused;
    answers_elsewhere[0] = vigil_agent_destroy(agent);
    answers_elsewhere[1] = vigil_agent_fd(agent);
    answers_elsewhere[2] = vigil_agent_dispatch(agent);
    answers_elsewhere[3] = vigil_agent_run(agent);
    answers_elsewhere[4] = vigil_agent_run_until(agent, 0);
    answers_elsewhere[5] = vigil_agent_ref(agent);
    answers_elsewhere[6] = vigil_agent_unref(agent);
    answers_elsewhere[7] = vigil_agent_on_alive(agent, NULL, NULL);
    return NULL;
}

static void other_threads_are_refused(void **state) {
    (void)state;
    run_on_another_thread(call_all, NULL);
    for (int i = 0; i < 8; i++) assert_int_equal(answers_elsewhere[i], VIGIL_EWRONGTHREAD);
}

/* Post. */

static int posted[2000];
static int posted_count;

static void take_down(vigil_agent *on, void *argument) {
    if (on == agent) posted[posted_count++] = (int)(intptr_t)argument;
}

static void posts_run_once_and_in_order(void **state) {
    (void)state;
    posted_count = 0;
    for (intptr_t i = 0; i < 100; i++) assert_int_equal(vigil_agent_post(agent, take_down, (void *)i), VIGIL_OK);
    assert_int_equal(posted_count, 0);
    assert_int_equal(vigil_agent_dispatch(agent), 100);
    assert_int_equal(posted_count, 100);
    for (int i = 0; i < 100; i++) assert_int_equal(posted[i], i);
    assert_int_equal(vigil_agent_dispatch(agent), 0);
}

static void *post_500(void *argument) {
    intptr_t poster = (intptr_t)argument;
    for (intptr_t i = 0; i < 500; i++) {
        if (vigil_agent_post(agent, take_down, (void *)(poster * 500 + i)) != VIGIL_OK) abort();
    }
    return NULL;
}

static void posts_of_each_thread_keep_their_order(void **state) {
    (void)state;
    enum { POSTERS = 4 };
    pthread_t posters[POSTERS];
    posted_count = 0;
    for (intptr_t i = 0; i < POSTERS; i++) assert_int_equal(pthread_create(&posters[i], NULL, post_500, (void *)i), 0);
    AWAIT((vigil_agent_dispatch(agent), posted_count == POSTERS * 500));
    int next[POSTERS] = {0};
    for (int i = 0; i < posted_count; i++) {
        int poster = posted[i] / 500;
        assert_int_equal(posted[i] % 500, next[poster]++);
    }
    for (int i = 0; i < POSTERS; i++) pthread_join(posters[i], NULL);
}

static void posts_and_notifications_share_one_order(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    posted_count = 0;
    vigil_agent_post(agent, take_down, (void *)1);
    assert_int_equal(vigil_notify(word, 1), 1);
    vigil_agent_post(agent, take_down, (void *)2);
    assert_int_equal(vigil_agent_dispatch(agent), 3);
    assert_int_equal(posted_count, 2);
    assert_int_equal(posted[1], 2);
    assert_int_equal(noted.calls, 1);
}

static int64_t counted_down;

static void count_down(vigil_agent *on, void *argument) {
    intptr_t left = (intptr_t)argument;
    counted_down++;
    if (left) vigil_agent_post(on, count_down, (void *)(left - 1));
}

static bool readable(int fd) {
    struct pollfd seat = {.fd = fd, .events = POLLIN};
    return poll(&seat, 1, 0) == 1;
}

static void posts_that_post_do_not_hold_dispatch_for_ever(void **state) {
    (void)state;
    int fd = vigil_agent_fd(agent);
    counted_down = 0;
    vigil_agent_post(agent, count_down, (void *)999);
    for (int64_t served = 0, more; served < 1000; served += more) {
        assert_true(readable(fd));
        more = vigil_agent_dispatch(agent);
        assert_in_range(more, 1, 500);
    }
    assert_int_equal(counted_down, 1000);
    assert_false(readable(fd));
}

/* Run. */

static void run_ends_when_nothing_is_pending(void **state) {
    (void)state;
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    struct noted noted = {0};
    assert_int_equal(noted_start(agent, &noted, word, MILLISECOND), VIGIL_PENDING);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(noted.status, VIGIL_TIMED_OUT);
}

static void run_serves_all_that_is_posted(void **state) {
    (void)state;
    counted_down = 0;
    vigil_agent_post(agent, count_down, (void *)5000);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(counted_down, 5001);
}

static void *notify_word(void *unused) {
    (void)unused;
    while (vigil_notify(word, 1) == 0) sched_yield();
    return NULL;
}

static void run_sleeps_until_it_is_notified(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct noted noted = {0};
        pthread_t notifier;
        assert_int_equal(pthread_create(&notifier, NULL, notify_word, NULL), 0);
        noted_pending(agent, &noted, word);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(noted.status, VIGIL_OK);
        pthread_join(notifier, NULL);
    }
}

static void run_until_its_deadline_and_not_before(void **state) {
    (void)state;
    struct noted noted = {0}, due = {0};
    noted_pending(agent, &noted, word);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(noted_start(agent, &due, word, 1), VIGIL_PENDING);
        int64_t deadline_ns = vigil_now_ns() + 1 + i * 200 * MICROSECOND;
        assert_int_equal(vigil_agent_run_until(agent, deadline_ns), VIGIL_TIMED_OUT);
        assert_true(vigil_now_ns() >= deadline_ns);
        assert_int_equal(due.calls, i + 1);
    }
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
}

static void run_until_a_time_long_past(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    posted_count = 0;
    const int64_t past_ns[] = {INT64_MIN, -1, 0, 1};
    for (int i = 0; i < 4; i++) {
        vigil_agent_post(agent, take_down, NULL);
        assert_int_equal(vigil_agent_run_until(agent, past_ns[i]), VIGIL_TIMED_OUT);
        assert_int_equal(posted_count, i + 1); /* what was due has run */
    }
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_OK); /* nothing keeps it running */
}

static void a_deadline_wakes_run_before_its_own(void **state) {
    (void)state;
    struct noted noted = {0};
    assert_int_equal(noted_start(agent, &noted, word, MILLISECOND), VIGIL_PENDING);
    assert_int_equal(vigil_agent_run_until(agent, vigil_now_ns() + 3600 * SECOND), VIGIL_OK);
    assert_int_equal(noted.status, VIGIL_TIMED_OUT);
}

static void stop_before_run(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_agent_stop(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT); /* it stopped one run, not all */
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
}

static void stop_before_run_but_dispatched(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_agent_stop(agent), VIGIL_OK);
    vigil_agent_dispatch(agent);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
}

static void stop_lets_run_what_was_posted_before(void **state) {
    (void)state;
    posted_count = 0;
    vigil_agent_ref(agent);
    vigil_agent_post(agent, take_down, NULL);
    vigil_agent_stop(agent);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(posted_count, 1);
    vigil_agent_unref(agent);
}

static void stop_agent(vigil_op *op, int status) {
    note(op, status);
    vigil_agent_stop(agent);
}

static void stop_from_a_callback(void **state) {
    (void)state;
    struct noted stopper = {0}, other = {0};
    assert_int_equal(vigil_wait32_async(agent, &stopper.op, word, 0, MILLISECOND, stop_agent), VIGIL_PENDING);
    noted_pending(agent, &other, word);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(stopper.calls, 1);
    assert_int_equal(vigil_cancel(&other.op), VIGIL_OK);
}

static void *stop_from_here(void *unused) {
    (void)unused;
    return vigil_agent_stop(agent) == VIGIL_OK ? NULL : "wrong";
}

static void stop_from_another_thread(void **state) {
    (void)state;
    vigil_agent_ref(agent);
    for (int i = 0; i < 200; i++) {
        pthread_t stopper;
        assert_int_equal(pthread_create(&stopper, NULL, stop_from_here, NULL), 0);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        pthread_join(stopper, NULL);
    }
    vigil_agent_unref(agent);
}

/* Ref and unref. */

static void an_unreferenced_operation_does_not_keep_run_going(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_unref(&noted.op), VIGIL_OK);
    assert_int_equal(vigil_unref(&noted.op), VIGIL_OK); /* not counted */
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_ref(&noted.op), VIGIL_OK);
    assert_int_equal(vigil_ref(&noted.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_unref(&noted.op), VIGIL_OK);
    assert_int_equal(vigil_notify(word, 1), 1); /* it is notified all the same */
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(noted.status, VIGIL_OK);
}

static void an_unref_lasts_until_the_operation_ends(void **state) {
    (void)state;
    struct noted noted = {0};
    for (int i = 0; i < 3; i++) {
        noted_pending(agent, &noted, word);
        assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_unref(&noted.op), VIGIL_OK);
        if (i == 1) assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
        else assert_int_equal(vigil_notify(word, 1), 1);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(vigil_unref(&noted.op), VIGIL_EIDLE);
    }
}

static void agent_refs_are_counted(void **state) {
    (void)state;
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
}

static void an_unref_too_many_is_refused(void **state) {
    (void)state;
    assert_int_equal(vigil_agent_unref(agent), VIGIL_EINVAL);
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_agent_unref(agent), VIGIL_EINVAL); /* the pending wait's reference is not ours to drop */
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_OK);
}

/* Whether it is alive. */

static unsigned changes;
static bool last_told;

static void note_change(vigil_agent *on, void *argument) {
    assert_ptr_equal(argument, &changes);
    assert_true(last_told != vigil_agent_alive(on));
    last_told = vigil_agent_alive(on);
    changes++;
}

static void expect_told(unsigned so_often, bool alive) {
    assert_int_equal(changes, so_often);
    assert_int_equal(last_told, alive);
    assert_int_equal(vigil_agent_alive(agent), alive);
}

static void each_change_of_being_alive_is_told(void **state) {
    (void)state;
    struct noted noted = {0}, second = {0};
    changes = last_told = 0;
    assert_int_equal(vigil_agent_on_alive(agent, note_change, &changes), VIGIL_OK);
    noted_pending(agent, &noted, word);
    expect_told(1, true);
    noted_pending(agent, &second, word);
    assert_int_equal(vigil_agent_ref(agent), VIGIL_OK);
    assert_int_equal(vigil_cancel(&second.op), VIGIL_OK);
    assert_int_equal(vigil_unref(&noted.op), VIGIL_OK);
    expect_told(1, true);
    assert_int_equal(vigil_agent_unref(agent), VIGIL_OK);
    expect_told(2, false);
    assert_int_equal(vigil_ref(&noted.op), VIGIL_OK);
    expect_told(3, true);
    assert_int_equal(vigil_notify(word, 1), 1);
    expect_told(3, true);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    expect_told(4, false);
    assert_int_equal(vigil_agent_on_alive(agent, NULL, NULL), VIGIL_OK);
    noted_pending(agent, &noted, word);
    assert_int_equal(changes, 4);
    assert_true(vigil_agent_alive(agent));
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
}

static void wait_again(vigil_op *op, int status) {
    note(op, status);
    noted_pending(agent, (struct noted *)op, word);
}

/* A dispatch that ends the only operation and starts another one has changed nothing. */
static void in_a_dispatch_it_is_told_at_the_end(void **state) {
    (void)state;
    static struct noted noted; /* pending until the agent is destroyed */
    changes = last_told = 0;
    assert_int_equal(vigil_wait32_async(agent, &noted.op, word, 0, VIGIL_FOREVER, wait_again), VIGIL_PENDING);
    assert_int_equal(vigil_agent_on_alive(agent, note_change, &changes), VIGIL_OK);
    last_told = true;
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    expect_told(0, true);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    expect_told(1, false);
    noted_pending(agent, &noted, word);
    expect_told(2, true); /* and the end of the agent is not told */
}

/* The descriptor. */

static void the_descriptor_stays_the_same(void **state) {
    (void)state;
    int fd = vigil_agent_fd(agent);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    vigil_agent_post(agent, take_down, NULL);
    vigil_agent_run(agent);
    assert_int_equal(vigil_agent_fd(agent), fd);
}

static void readable_from_post_until_dispatch(void **state) {
    (void)state;
    int fd = vigil_agent_fd(agent);
    for (int i = 0; i < 10; i++) {
        assert_false(readable(fd));
        for (int j = 0; j < i; j++) vigil_agent_post(agent, take_down, NULL);
        posted_count = 0;
        assert_int_equal(readable(fd), i > 0);
        assert_int_equal(vigil_agent_dispatch(agent), i);
    }
    assert_false(readable(fd));
}

static void readable_from_notify_until_dispatch(void **state) {
    (void)state;
    struct noted noted = {0};
    for (int i = 0; i < 3; i++) { /* also if the mail came before the descriptor was requested */
        noted_pending(agent, &noted, word);
        int fd = i ? vigil_agent_fd(agent) : -1;
        if (i) assert_false(readable(fd));
        assert_int_equal(vigil_notify(word, 1), 1);
        fd = vigil_agent_fd(agent);
        assert_true(readable(fd));
        assert_int_equal(vigil_agent_dispatch(agent), 1);
        assert_false(readable(fd));
    }
}

static void *post_here(void *unused) {
    (void)unused;
    vigil_agent_post(agent, take_down, NULL);
    return NULL;
}

static void a_post_wakes_a_poll(void **state) {
    (void)state;
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    for (int i = 0; i < 200; i++) {
        pthread_t poster;
        posted_count = 0;
        assert_int_equal(pthread_create(&poster, NULL, post_here, NULL), 0);
        while (posted_count == 0) {
            assert_int_equal(poll(&seat, 1, -1), 1);
            vigil_agent_dispatch(agent);
        }
        pthread_join(poster, NULL);
    }
}

/* Serves by poll alone until all `count` have ended. */
static void serve_by_poll(struct noted *noted, int count) {
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    for (int done = 0; done < count;) {
        assert_int_equal(poll(&seat, 1, -1), 1);
        assert_true(vigil_agent_dispatch(agent) >= 0);
        done = 0;
        for (int i = 0; i < count; i++) done += noted[i].calls != 0;
    }
}

static void a_poll_wakes_at_the_deadline_and_not_before(void **state) {
    (void)state;
    struct pollfd seat = {.fd = vigil_agent_fd(agent), .events = POLLIN};
    for (int i = 0; i < 30; i++) {
        struct noted noted = {0};
        int64_t deadline_ns = vigil_now_ns() + i * 100 * MICROSECOND + 1;
        assert_int_equal(noted_start(agent, &noted, word, i * 100 * MICROSECOND + 1), VIGIL_PENDING);
        assert_int_equal(poll(&seat, 1, -1), 1);
        assert_true(vigil_now_ns() >= deadline_ns);
        assert_int_equal(vigil_agent_dispatch(agent), 1);
        assert_int_equal(noted.status, VIGIL_TIMED_OUT);
        assert_true(noted.ended_ns >= deadline_ns);
        assert_false(readable(seat.fd));
    }
}

static void many_deadlines_through_the_descriptor(void **state) {
    (void)state;
    enum { MANY = 100 };
    static struct noted noted[MANY];
    memset(noted, 0, sizeof noted);
    uint64_t seed = 77;
    int64_t deadline_ns[MANY];
    vigil_agent_fd(agent);
    for (int i = 0; i < MANY; i++) { /* sometimes earlier than all before: the alarm moves forward */
        int64_t timeout_ns = 1 + (int64_t)(random_next(&seed) % (uint64_t)(10 * MILLISECOND));
        deadline_ns[i] = vigil_now_ns() + timeout_ns;
        assert_int_equal(noted_start(agent, &noted[i], word, timeout_ns), VIGIL_PENDING);
    }
    serve_by_poll(noted, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(noted[i].status, VIGIL_TIMED_OUT);
        assert_true(noted[i].ended_ns >= deadline_ns[i]);
    }
    assert_false(readable(vigil_agent_fd(agent)));
}

static void a_deadline_started_before_the_descriptor(void **state) {
    (void)state;
    struct noted noted = {0};
    assert_int_equal(noted_start(agent, &noted, word, MILLISECOND), VIGIL_PENDING);
    serve_by_poll(&noted, 1);
    assert_int_equal(noted.status, VIGIL_TIMED_OUT);
}

static void start_another(vigil_op *op, int status) {
    note(op, status);
    struct noted *next = op->data;
    if (next) noted_start(agent, next, word, MILLISECOND);
}

static void a_deadline_started_in_a_callback(void **state) {
    (void)state;
    struct noted noted[2] = {{.op = {.data = &noted[1]}}};
    vigil_agent_fd(agent);
    assert_int_equal(vigil_wait32_async(agent, &noted[0].op, word, 0, 1, start_another), VIGIL_PENDING);
    serve_by_poll(noted, 2);
    assert_int_equal(noted[1].status, VIGIL_TIMED_OUT);
}

static void a_deadline_whose_operation_is_gone_does_not_keep_it_readable(void **state) {
    (void)state;
    struct noted noted = {0};
    int fd = vigil_agent_fd(agent);
    assert_int_equal(noted_start(agent, &noted, word, MILLISECOND), VIGIL_PENDING);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
    int64_t late_ns = vigil_now_ns() + 2 * MILLISECOND;
    AWAIT(vigil_now_ns() > late_ns);
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    assert_false(readable(fd));
    assert_int_equal(noted_start(agent, &noted, word, MILLISECOND), VIGIL_PENDING); /* and the alarm works again */
    serve_by_poll(&noted, 1);
}

static void fits_level_and_edge_triggered_epoll(void **state) {
    (void)state;
    const uint32_t modes[] = {EPOLLIN, EPOLLIN | EPOLLET};
    for (size_t mode = 0; mode < COUNT_OF(modes); mode++) {
        int loop = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = modes[mode]};
        assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, vigil_agent_fd(agent), &event), 0);
        for (int i = 0; i < 100; i++) {
            struct noted noted = {0};
            assert_int_equal(noted_start(agent, &noted, word, i % 2 ? 50 * MICROSECOND : VIGIL_FOREVER), VIGIL_PENDING);
            pthread_t notifier;
            bool notify = i % 2 == 0;
            if (notify) assert_int_equal(pthread_create(&notifier, NULL, notify_word, NULL), 0);
            while (noted.calls == 0) {
                assert_int_equal(epoll_wait(loop, &event, 1, -1), 1);
                vigil_agent_dispatch(agent);
            }
            if (notify) pthread_join(notifier, NULL);
        }
        close(loop);
    }
}

static void run_and_descriptor_may_take_turns(void **state) {
    (void)state;
    int fd = vigil_agent_fd(agent);
    for (int i = 0; i < 20; i++) {
        struct noted noted = {0};
        assert_int_equal(noted_start(agent, &noted, word, 100 * MICROSECOND), VIGIL_PENDING);
        if (i % 2) assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        else serve_by_poll(&noted, 1);
        assert_int_equal(noted.calls, 1);
        assert_false(readable(fd));
    }
}

/* From inside callbacks. */

static int64_t answers_inside[4];

static void call_inside(vigil_agent *on, void *unused) {
    (void)unused;
    answers_inside[0] = vigil_agent_dispatch(on);
    answers_inside[1] = vigil_agent_run(on);
    answers_inside[2] = vigil_agent_run_until(on, 0);
    answers_inside[3] = vigil_agent_destroy(on);
}

static void callbacks_cannot_dispatch_run_or_destroy(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(answers_inside, 0, sizeof answers_inside);
        vigil_agent_post(agent, call_inside, NULL);
        if (i) assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        else assert_int_equal(vigil_agent_dispatch(agent), 1);
        for (int j = 0; j < 4; j++) assert_int_equal(answers_inside[j], VIGIL_EREENTRANT);
    }
}

static void dispatch_other(vigil_agent *on, void *other) {
    (void)on;
    answers_inside[0] = vigil_agent_dispatch(other);
}

static void callbacks_may_dispatch_another_agent(void **state) {
    (void)state;
    vigil_agent *other = new_agent(0);
    posted_count = 0;
    vigil_agent_post(other, take_down, NULL);
    vigil_agent_post(agent, dispatch_other, other);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(answers_inside[0], 1);
    end_agent(other);
}

static void wait_inside(vigil_agent *on, void *unused) {
    (void)on, (void)unused;
    answers_inside[0] = vigil_wait32(word, 0, MILLISECOND);
}

static void callbacks_may_block_where_the_agent_may(void **state) {
    (void)state;
    vigil_agent_post(agent, wait_inside, NULL);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(answers_inside[0], VIGIL_TIMED_OUT);
    vigil_agent *strict = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    vigil_agent_post(strict, wait_inside, NULL);
    assert_int_equal(vigil_agent_run(strict), VIGIL_OK);
    assert_int_equal(answers_inside[0], VIGIL_EMAYNOTBLOCK);
    end_agent(strict);
}

/* Destroying. */

static void destroy_ends_what_is_pending(void **state) {
    (void)state;
    enum { MANY = 200 };
    static struct noted noted[MANY];
    memset(noted, 0, sizeof noted);
    vigil_agent *other = new_agent(0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(noted_start(other, &noted[i], word + i % 4, i % 2 ? SECOND : VIGIL_FOREVER), VIGIL_PENDING);
    }
    for (int i = 0; i < MANY; i += 10) assert_int_equal(vigil_unref(&noted[i].op), VIGIL_OK);
    assert_int_equal(vigil_notify(word, 7), 7);
    assert_int_equal(vigil_forget(word + 1, 4), MANY / 4);
    counted_down = 0;
    vigil_agent_post(other, count_down, NULL);
    end_agent(other);
    assert_int_equal(counted_down, 1);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(noted[i].calls, 1);
        assert_int_equal(noted[i].status, i % 4 == 0 && i < 7 * 4 ? VIGIL_OK : VIGIL_CANCELLED);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(vigil_notify(word + i, VIGIL_ALL), 0);
}

static void destroy_leaves_others_in_line(void **state) {
    (void)state;
    vigil_agent *other = new_agent(0);
    struct noted mine = {0}, theirs[2] = {{.calls = 0}};
    struct sleeper sleeper;
    noted_pending(other, &theirs[0], word);
    noted_pending(agent, &mine, word);
    noted_pending(other, &theirs[1], word);
    sleeper_start(&sleeper, word, false);
    end_agent(other);
    assert_int_equal(mine.calls, 0);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 2);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
}

static void start_in_vain(vigil_op *op, int status) {
    vigil_agent *closing = op->data;
    note(op, status);
    struct noted another = {0};
    answers_inside[0] = vigil_wait32_async(closing, op, word, 0, VIGIL_FOREVER, note);
    answers_inside[1] = noted_start(closing, &another, word, VIGIL_FOREVER);
    answers_inside[2] = vigil_agent_post(closing, take_down, NULL);
    answers_inside[3] = vigil_agent_destroy(closing);
}

static void callbacks_of_destroy_cannot_start_anything(void **state) {
    (void)state;
    vigil_agent *other = new_agent(0);
    struct noted noted = {.op = {.data = other}};
    assert_int_equal(vigil_wait32_async(other, &noted.op, word, 0, VIGIL_FOREVER, start_in_vain), VIGIL_PENDING);
    end_agent(other);
    assert_int_equal(noted.calls, 1);
    assert_int_equal(noted.status, VIGIL_CANCELLED);
    for (int i = 0; i < 3; i++) assert_int_equal(answers_inside[i], VIGIL_ECLOSING);
    assert_int_equal(answers_inside[3], VIGIL_EREENTRANT);
}

static struct noted *next_victim;

static void notify_and_cancel(vigil_op *op, int status) {
    note(op, status);
    answers_inside[0] = vigil_notify(word + 1, 1);
    answers_inside[1] = vigil_cancel(&next_victim->op);
}

/* The callback of a wait that is being cancelled notifies a second and cancels a third: those end accordingly. */
static void callbacks_of_destroy_may_notify_and_cancel(void **state) {
    (void)state;
    vigil_agent *other = new_agent(0);
    struct noted first = {0}, second = {0}, third = {0};
    next_victim = &third;
    assert_int_equal(vigil_wait32_async(other, &first.op, word, 0, VIGIL_FOREVER, notify_and_cancel), VIGIL_PENDING);
    noted_pending(other, &second, word + 1);
    noted_pending(other, &third, word + 2);
    assert_int_equal(vigil_notify(word, 1), 1);
    end_agent(other);
    assert_int_equal(first.status, VIGIL_OK);
    assert_int_equal(answers_inside[0], 1);
    assert_int_equal(second.calls, 1);
    assert_int_equal(second.status, VIGIL_OK);
    assert_int_equal(answers_inside[1], VIGIL_OK);
    assert_int_equal(third.calls, 0);
}

static unsigned freed;

static void free_own(vigil_op *op, int status) {
    if (status == VIGIL_CANCELLED) freed++;
    free(op);
}

static void callbacks_of_destroy_may_free_their_operations(void **state) {
    (void)state;
    vigil_agent *other = new_agent(0);
    freed = 0;
    for (int i = 0; i < 10; i++) {
        vigil_op *op = calloc(1, sizeof *op);
        int64_t timeout_ns = i % 2 ? SECOND : VIGIL_FOREVER;
        assert_int_equal(vigil_wait32_async(other, op, word, 0, timeout_ns, free_own), VIGIL_PENDING);
    }
    end_agent(other);
    assert_int_equal(freed, 10);
}

/* Life and death beside other threads. */

struct mayfly {
    vigil_agent *agent; /* stored when it can be posted to */
    uint32_t posted;
};

static void end_mayfly(vigil_agent *on, void *argument) {
    (void)on;
    ((struct mayfly *)argument)->posted = 1;
}

/* Destroyed as soon as the post has run, while the poster may still be returning from the post. */
static void *live_for_one_post(void *argument) {
    struct mayfly *mayfly = argument;
    vigil_agent *mine;
    if (vigil_agent_create(&mine, 0) != VIGIL_OK) abort();
    vigil_agent_ref(mine);
    STORE(mayfly->agent, mine);
    while (!mayfly->posted) vigil_agent_run_until(mine, vigil_now_ns() + 100 * MICROSECOND);
    if (vigil_agent_destroy(mine) != VIGIL_OK) abort();
    return NULL;
}

static void destroyed_right_after_a_post(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct mayfly mayfly = {0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, live_for_one_post, &mayfly), 0);
        AWAIT(LOAD(mayfly.agent));
        assert_int_equal(vigil_agent_post(LOAD(mayfly.agent), end_mayfly, &mayfly), VIGIL_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

static void *live_while_notified(void *argument) {
    uint32_t *stop = argument;
    uint64_t ok = 0;
    while (!LOAD(*stop)) {
        vigil_agent *mine;
        struct noted noted[4] = {{.calls = 0}};
        if (vigil_agent_create(&mine, 0) != VIGIL_OK) abort();
        for (int i = 0; i < 4; i++) {
            if (noted_start(mine, &noted[i], word, i % 2 ? SECOND : VIGIL_FOREVER) != VIGIL_PENDING) abort();
        }
        if (vigil_agent_destroy(mine) != VIGIL_OK) abort();
        for (int i = 0; i < 4; i++) {
            if (noted[i].calls != 1) abort();
            if (noted[i].status == VIGIL_OK) ok++;
        }
    }
    return (void *)(uintptr_t)ok;
}

static void destroyed_while_notified(void **state) {
    (void)state;
    uint32_t stop = 0;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, live_while_notified, &stop), 0);
    uint64_t notified = 0, ok = 0;
    for (int i = 0; i < 100000; i++) notified += (uint64_t)vigil_notify(word, 1 + i % 3);
    STORE(stop, 1);
    for (int i = 0; i < 2; i++) {
        void *answer;
        pthread_join(threads[i], &answer);
        ok += (uint64_t)(uintptr_t)answer;
    }
    assert_int_equal(notified, ok);
    assert_int_equal(waiters_in_line(word), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(create_refuses),
        TEST(create_without_descriptors),
        TEST(create_when_all_seats_are_taken),
        TEST(destroy_gives_descriptors_and_seats_back),
        TEST(null_agents_are_refused),
        TEST(other_threads_are_refused),
        TEST(posts_run_once_and_in_order),
        TEST(posts_of_each_thread_keep_their_order),
        TEST(posts_and_notifications_share_one_order),
        TEST(posts_that_post_do_not_hold_dispatch_for_ever),
        TEST(run_ends_when_nothing_is_pending),
        TEST(run_serves_all_that_is_posted),
        TEST(run_sleeps_until_it_is_notified),
        TEST(run_until_its_deadline_and_not_before),
        TEST(run_until_a_time_long_past),
        TEST(a_deadline_wakes_run_before_its_own),
        TEST(stop_before_run),
        TEST(stop_before_run_but_dispatched),
        TEST(stop_lets_run_what_was_posted_before),
        TEST(stop_from_a_callback),
        TEST(stop_from_another_thread),
        TEST(an_unreferenced_operation_does_not_keep_run_going),
        TEST(an_unref_lasts_until_the_operation_ends),
        TEST(agent_refs_are_counted),
        TEST(an_unref_too_many_is_refused),
        TEST(each_change_of_being_alive_is_told),
        TEST(in_a_dispatch_it_is_told_at_the_end),
        TEST(the_descriptor_stays_the_same),
        TEST(readable_from_post_until_dispatch),
        TEST(readable_from_notify_until_dispatch),
        TEST(a_post_wakes_a_poll),
        TEST(a_poll_wakes_at_the_deadline_and_not_before),
        TEST(many_deadlines_through_the_descriptor),
        TEST(a_deadline_started_before_the_descriptor),
        TEST(a_deadline_started_in_a_callback),
        TEST(a_deadline_whose_operation_is_gone_does_not_keep_it_readable),
        TEST(fits_level_and_edge_triggered_epoll),
        TEST(run_and_descriptor_may_take_turns),
        TEST(callbacks_cannot_dispatch_run_or_destroy),
        TEST(callbacks_may_dispatch_another_agent),
        TEST(callbacks_may_block_where_the_agent_may),
        TEST(destroy_ends_what_is_pending),
        TEST(destroy_leaves_others_in_line),
        TEST(callbacks_of_destroy_cannot_start_anything),
        TEST(callbacks_of_destroy_may_notify_and_cancel),
        TEST(callbacks_of_destroy_may_free_their_operations),
        TEST(destroyed_right_after_a_post),
        TEST(destroyed_while_notified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
