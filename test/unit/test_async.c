/* SPDX-License-Identifier: MIT */
/* Asynchronous waits: starting, ending, cancelling, and one line with threads. */
#include "support.h"

static uint64_t storage[64];
static uint32_t *const word = (uint32_t *)storage;
static vigil_agent *agent; /* this thread's, for every test */

static int set_up(void **state) {
    (void)state;
    memset(storage, 0, sizeof storage);
    return vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK;
}

static int tear_down(void **state) {
    (void)state;
    return vigil_agent_destroy(agent) != VIGIL_OK || vigil_forget(storage, sizeof storage) != 0;
}

static int64_t dispatch(void) {
    return vigil_agent_dispatch(agent);
}

/* Starting. */

static void null_arguments_are_refused(void **state) {
    (void)state;
    struct noted noted = {0};
    assert_int_equal(vigil_wait32_async(NULL, &noted.op, word, 0, 1, note), VIGIL_ENULL);
    assert_int_equal(vigil_wait32_async(agent, NULL, word, 0, 1, note), VIGIL_ENULL);
    assert_int_equal(vigil_wait32_async(agent, &noted.op, NULL, 0, 1, note), VIGIL_ENULL);
    assert_int_equal(vigil_wait32_async(agent, &noted.op, word, 0, 1, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_wait64_async(agent, &noted.op, NULL, 1, 0, note), VIGIL_ENULL);
    assert_int_equal(vigil_cancel(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_ref(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_unref(NULL), VIGIL_ENULL);
    assert_int_equal(dispatch(), 0);
}

static void misaligned_addresses_are_refused(void **state) {
    (void)state;
    struct noted noted = {0};
    const char *bytes = (const char *)storage;
    for (int offset = 1; offset < 8; offset++) {
        int expected32 = offset % 4 ? VIGIL_EMISALIGNED : VIGIL_TIMED_OUT;
        assert_int_equal(vigil_wait32_async(agent, &noted.op, bytes + offset, 0, 0, note), expected32);
        assert_int_equal(vigil_wait64_async(agent, &noted.op, bytes + offset, 0, 0, note), VIGIL_EMISALIGNED);
    }
}

static void another_value_is_answered_at_once(void **state) {
    (void)state;
    struct noted noted = {0};
    const int64_t timeouts_ns[] = {VIGIL_FOREVER, SECOND, 1, 0, -1};
    for (size_t i = 0; i < COUNT_OF(timeouts_ns); i++) {
        assert_int_equal(vigil_wait32_async(agent, &noted.op, word, 1, timeouts_ns[i], note), VIGIL_NOT_EQUAL);
        assert_int_equal(vigil_wait64_async(agent, &noted.op, word, UINT64_C(1) << 40, timeouts_ns[i], note),
                         VIGIL_NOT_EQUAL);
    }
    assert_int_equal(waiters_in_line(word), 0);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_EIDLE);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(noted.calls, 0);
}

static void zero_and_less_time_out_without_joining(void **state) {
    (void)state;
    struct noted noted = {0};
    const int64_t timeouts_ns[] = {0, -1, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(timeouts_ns); i++) {
        assert_int_equal(noted_start(agent, &noted, word, timeouts_ns[i]), VIGIL_TIMED_OUT);
        assert_int_equal(waiters_in_line(word), 0);
        assert_int_equal(vigil_cancel(&noted.op), VIGIL_EIDLE);
    }
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 0);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(noted.calls, 0);
}

static void an_operation_in_use_is_refused(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(noted_start(agent, &noted, word, VIGIL_FOREVER), VIGIL_EINUSE);
    assert_int_equal(noted_start(agent, &noted, word + 1, 0), VIGIL_EINUSE);
    assert_int_equal(vigil_wait64_async(agent, &noted.op, word, 0, 1, note), VIGIL_EINUSE);
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(noted_start(agent, &noted, word, VIGIL_FOREVER), VIGIL_EINUSE); /* until its callback */
    assert_int_equal(dispatch(), 1);
    assert_int_equal(noted.calls, 1);
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
}

struct elsewhere {
    vigil_op *pending;
    int start, cancel, ref, unref;
};

static void *on_another_thread(void *argument) {
    struct elsewhere *answers = argument;
    struct noted noted = {0};
    answers->start = noted_start(agent, &noted, word, VIGIL_FOREVER);
    answers->cancel = vigil_cancel(answers->pending);
    answers->ref = vigil_ref(answers->pending);
    answers->unref = vigil_unref(answers->pending);
    return NULL;
}

static void another_thread_is_refused(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    struct elsewhere answers = {.pending = &noted.op};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, &answers), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(answers.start, VIGIL_EWRONGTHREAD);
    assert_int_equal(answers.cancel, VIGIL_EWRONGTHREAD);
    assert_int_equal(answers.ref, VIGIL_EWRONGTHREAD);
    assert_int_equal(answers.unref, VIGIL_EWRONGTHREAD);
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
}

/* Notified. */

static void a_callback_runs_in_dispatch_and_not_in_notify(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(noted.calls, 0);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(noted.calls, 1);
    assert_int_equal(noted.status, VIGIL_OK);
    assert_int_equal(vigil_notify(word, 1), 0);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(noted.calls, 1);
}

static void data_is_never_touched(void **state) {
    (void)state;
    struct noted noted = {.op = {.data = &noted}};
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(dispatch(), 1);
    assert_ptr_equal(noted.op.data, &noted);
}

static void one_agent_many_times_in_one_line(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static struct noted noted[MANY];
    memset(noted, 0, sizeof noted);
    for (int i = 0; i < MANY; i++) noted_pending(agent, &noted[i], word);
    assert_int_equal(waiters_in_line(word), MANY);
    unsigned first = notes_taken + 1;
    assert_int_equal(vigil_notify(word, 0), 0);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_notify(word, 499), 499);
    assert_int_equal(dispatch(), 500);
    assert_int_equal(noted[499].calls, 1);
    assert_int_equal(noted[500].calls, 0);
    assert_int_equal(vigil_notify(word, MANY), 500);
    assert_int_equal(dispatch(), 500);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(noted[i].calls, 1);
        assert_int_equal(noted[i].status, VIGIL_OK);
        assert_int_equal(noted[i].rank, first + i);
    }
}

static void both_widths_share_one_line(void **state) {
    (void)state;
    struct noted noted[6] = {{.calls = 0}};
    for (int i = 0; i < 6; i++) {
        int status = i % 2 ? vigil_wait64_async(agent, &noted[i].op, word, 0, VIGIL_FOREVER, note)
                           : vigil_wait32_async(agent, &noted[i].op, word, 0, VIGIL_FOREVER, note);
        assert_int_equal(status, VIGIL_PENDING);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(vigil_notify(word, 1), 1);
        assert_int_equal(dispatch(), 1);
        assert_int_equal(noted[i].calls, 1);
    }
}

static void callbacks_come_in_the_order_of_notification(void **state) {
    (void)state;
    enum { LINES = 4, EACH = 3 };
    struct noted noted[LINES][EACH] = {{{.calls = 0}}};
    for (int i = 0; i < EACH; i++) {
        for (int line = 0; line < LINES; line++) noted_pending(agent, &noted[line][i], word + line);
    }
    unsigned rank = notes_taken;
    for (int line = LINES - 1; line >= 0; line--) assert_int_equal(vigil_notify(word + line, VIGIL_ALL), EACH);
    assert_int_equal(dispatch(), LINES * EACH);
    for (int line = LINES - 1; line >= 0; line--) {
        for (int i = 0; i < EACH; i++) assert_int_equal(noted[line][i].rank, ++rank);
    }
}

/* Threads, this agent and a worker's agent in one line, notified one by one in the order in which they came. */

struct member {
    enum { THREAD, HERE, WORKER } kind;
    struct sleeper sleeper;
    struct noted noted;
};

static void join_on_worker(vigil_agent *worker_agent, void *argument) {
    struct member *member = argument;
    vigil_wait64_async(worker_agent, &member->noted.op, word, 0, VIGIL_FOREVER, note);
}

static bool served(struct member *member) {
    return member->kind == THREAD ? sleeper_up(&member->sleeper) : LOAD(member->noted.calls) != 0;
}

static void one_line_for_threads_and_agents(void **state) {
    (void)state;
    enum { MEMBERS = 24 };
    static struct member members[MEMBERS];
    memset(members, 0, sizeof members);
    vigil_worker *worker;
    assert_int_equal(vigil_worker_start(&worker, NULL, NULL), VIGIL_OK);
    uint64_t seed = 20261;
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct member *member = &members[i];
        member->kind = random_next(&seed) % 3;
        if (member->kind == THREAD) {
            sleeper_start(&member->sleeper, word, i % 2);
        } else if (member->kind == HERE) {
            noted_pending(agent, &member->noted, word);
        } else {
            assert_int_equal(vigil_agent_post(vigil_worker_agent(worker), join_on_worker, member), VIGIL_OK);
        }
        AWAIT(waiters_in_line(word) == i + 1);
    }
    for (unsigned next = 0; next < MEMBERS;) {
        unsigned step = 1 + next % 3, end = next + step < MEMBERS ? next + step : MEMBERS;
        assert_int_equal(vigil_notify(word, step), end - next);
        for (; next < end; next++) AWAIT((dispatch(), served(&members[next])));
        for (unsigned i = end; i < MEMBERS; i++) assert_false(served(&members[i]));
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (members[i].kind == THREAD) assert_int_equal(sleeper_join(&members[i].sleeper), VIGIL_OK);
        else assert_int_equal(members[i].noted.status, VIGIL_OK);
    }
    assert_int_equal(vigil_worker_stop(worker), VIGIL_OK);
    end_agent(agent); /* join blocks, which this agent forbids */
    assert_int_equal(vigil_worker_join(worker), VIGIL_OK);
    agent = new_agent(0);
}

/* Deadlines. */

static void run_to_the_end(void) {
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
}

static void a_deadline_is_never_early(void **state) {
    (void)state;
    enum { MANY = 300 };
    static struct noted noted[MANY];
    static int64_t deadline_ns[MANY];
    memset(noted, 0, sizeof noted);
    uint64_t seed = 5;
    for (int i = 0; i < MANY; i++) {
        int64_t timeout_ns = 1 + (int64_t)(random_next(&seed) % (uint64_t)(5 * MILLISECOND)) / (i % 7 ? 1 : 10000);
        deadline_ns[i] = vigil_now_ns() + timeout_ns;
        assert_int_equal(noted_start(agent, &noted[i], word + i % 3, timeout_ns), VIGIL_PENDING);
    }
    run_to_the_end();
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(noted[i].calls, 1);
        assert_int_equal(noted[i].status, VIGIL_TIMED_OUT);
        assert_true(noted[i].ended_ns >= deadline_ns[i]);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(waiters_in_line(word + i), 0);
}

static void deadlines_pass_in_their_order(void **state) {
    (void)state;
    enum { MANY = 50 };
    static struct noted noted[MANY];
    memset(noted, 0, sizeof noted);
    unsigned rank = notes_taken;
    for (int i = 0; i < MANY; i++) { /* the last to start is the first to end */
        int64_t timeout_ns = (2 * MANY - i) * 100 * MICROSECOND;
        assert_int_equal(noted_start(agent, &noted[i], word, timeout_ns), VIGIL_PENDING);
    }
    run_to_the_end();
    for (int i = MANY - 1; i > 0; i--) {
        if (noted[i].op.deadline_ns < noted[i - 1].op.deadline_ns) assert_true(noted[i].rank < noted[i - 1].rank);
    }
    assert_int_equal(notes_taken, rank + MANY);
}

static void one_that_has_passed_unseen_leaves_its_place_in_line(void **state) {
    (void)state;
    struct noted late = {0}, next = {0};
    assert_int_equal(noted_start(agent, &late, word, 1), VIGIL_PENDING);
    noted_pending(agent, &next, word);
    AWAIT(dispatch() == 1);
    assert_int_equal(late.status, VIGIL_TIMED_OUT);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(next.status, VIGIL_OK);
}

static void notified_before_a_passed_deadline_was_seen_is_ok(void **state) {
    (void)state;
    struct noted noted = {0};
    int64_t start_ns = vigil_now_ns();
    assert_int_equal(noted_start(agent, &noted, word, MICROSECOND), VIGIL_PENDING);
    AWAIT(vigil_now_ns() > start_ns + MILLISECOND);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(noted.status, VIGIL_OK);
    assert_int_equal(dispatch(), 0);
    assert_int_equal(noted.calls, 1);
}

static void forever_has_no_deadline(void **state) {
    (void)state;
    struct noted noted[2] = {{.calls = 0}};
    assert_int_equal(noted_start(agent, &noted[0], word, VIGIL_FOREVER), VIGIL_PENDING);
    assert_int_equal(noted_start(agent, &noted[1], word, VIGIL_FOREVER - 1), VIGIL_PENDING);
    assert_int_equal(vigil_agent_run_until(agent, vigil_now_ns() + 3 * MILLISECOND), VIGIL_TIMED_OUT);
    assert_int_equal(noted[0].calls + noted[1].calls, 0);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 2);
    assert_int_equal(dispatch(), 2);
}

/* Cancel. */

static void cancelled_in_line(void **state) {
    (void)state;
    struct noted noted[5] = {{.calls = 0}};
    for (int leaver = 0; leaver < 5; leaver++) {
        for (int i = 0; i < 5; i++) noted_start(agent, &noted[i], word, i % 2 ? SECOND : VIGIL_FOREVER);
        assert_int_equal(vigil_cancel(&noted[leaver].op), VIGIL_OK);
        assert_int_equal(vigil_cancel(&noted[leaver].op), VIGIL_EIDLE);
        assert_int_equal(waiters_in_line(word), 4);
        unsigned rank = notes_taken;
        assert_int_equal(vigil_notify(word, VIGIL_ALL), 4);
        assert_int_equal(dispatch(), 4);
        for (int i = 0; i < 5; i++) {
            if (i != leaver) assert_int_equal(noted[i].rank, ++rank);
        }
        assert_int_equal(noted[leaver].calls, leaver); /* by the earlier turns */
    }
}

static void too_late_after_notify(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_ETOOLATE);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_ETOOLATE);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(noted.status, VIGIL_OK);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_EIDLE);
}

static void too_late_after_forget(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    assert_int_equal(vigil_forget(word, 4), 1);
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_ETOOLATE);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(noted.status, VIGIL_CANCELLED);
}

static void idle_when_never_started(void **state) {
    (void)state;
    struct noted noted = {0};
    assert_int_equal(vigil_cancel(&noted.op), VIGIL_EIDLE);
    assert_int_equal(vigil_ref(&noted.op), VIGIL_EIDLE);
    assert_int_equal(vigil_unref(&noted.op), VIGIL_EIDLE);
}

static void a_cancelled_deadline_never_passes(void **state) {
    (void)state;
    struct noted cancelled = {0}, other = {0};
    int64_t start_ns = vigil_now_ns();
    assert_int_equal(noted_start(agent, &cancelled, word, MILLISECOND), VIGIL_PENDING);
    assert_int_equal(noted_start(agent, &other, word, 3 * MILLISECOND), VIGIL_PENDING);
    assert_int_equal(vigil_cancel(&cancelled.op), VIGIL_OK);
    run_to_the_end();
    assert_true(vigil_now_ns() - start_ns >= 3 * MILLISECOND);
    assert_int_equal(cancelled.calls, 0);
    assert_int_equal(other.calls, 1);
}

/* Callbacks. */

static struct noted *victim;
static int victim_answer;

static void cancel_victim(vigil_op *op, int status) {
    note(op, status);
    victim_answer = vigil_cancel(&victim->op);
}

static void a_callback_cancels_one_in_line(void **state) {
    (void)state;
    struct noted killer = {0}, innocent = {0};
    victim = &innocent;
    assert_int_equal(vigil_wait32_async(agent, &killer.op, word, 0, VIGIL_FOREVER, cancel_victim), VIGIL_PENDING);
    noted_pending(agent, &innocent, word);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(victim_answer, VIGIL_OK);
    assert_int_equal(vigil_notify(word, 1), 0);
    assert_int_equal(innocent.calls, 0);
}

static void a_callback_is_too_late_for_the_next_in_the_mail(void **state) {
    (void)state;
    struct noted killer = {0}, innocent = {0};
    victim = &innocent;
    assert_int_equal(vigil_wait32_async(agent, &killer.op, word, 0, VIGIL_FOREVER, cancel_victim), VIGIL_PENDING);
    noted_pending(agent, &innocent, word);
    assert_int_equal(vigil_notify(word, 2), 2);
    assert_int_equal(dispatch(), 2);
    assert_int_equal(victim_answer, VIGIL_ETOOLATE);
    assert_int_equal(innocent.status, VIGIL_OK);
    assert_int_equal(innocent.calls, 1);
}

/* Both deadlines have passed, but the second is still in line when the first's callback runs. */
static void a_callback_cancels_one_whose_deadline_has_passed(void **state) {
    (void)state;
    struct noted killer = {0}, innocent = {0};
    victim = &innocent;
    int64_t start_ns = vigil_now_ns();
    assert_int_equal(vigil_wait32_async(agent, &killer.op, word, 0, MICROSECOND, cancel_victim), VIGIL_PENDING);
    assert_int_equal(noted_start(agent, &innocent, word, 20 * MILLISECOND), VIGIL_PENDING);
    AWAIT(vigil_now_ns() > start_ns + 25 * MILLISECOND);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(killer.status, VIGIL_TIMED_OUT);
    assert_int_equal(victim_answer, VIGIL_OK);
    assert_int_equal(innocent.calls, 0);
    assert_int_equal(waiters_in_line(word), 0);
}

static void a_callback_cannot_cancel_its_own(void **state) {
    (void)state;
    struct noted own = {0};
    victim = &own;
    assert_int_equal(vigil_wait32_async(agent, &own.op, word, 0, VIGIL_FOREVER, cancel_victim), VIGIL_PENDING);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(dispatch(), 1);
    assert_int_equal(victim_answer, VIGIL_EIDLE); /* the caller owns it again */
}

static void start_again(vigil_op *op, int status) {
    note(op, status);
    struct noted *noted = (struct noted *)op;
    if (noted->calls < 5) vigil_wait32_async(agent, op, word, 0, (int64_t)(intptr_t)op->data, start_again);
}

static void a_callback_starts_its_own_operation_again(void **state) {
    (void)state;
    struct noted noted = {.op = {.data = (void *)(intptr_t)VIGIL_FOREVER}};
    assert_int_equal(vigil_wait32_async(agent, &noted.op, word, 0, VIGIL_FOREVER, start_again), VIGIL_PENDING);
    for (unsigned turn = 1; turn <= 5; turn++) {
        assert_int_equal(vigil_notify(word, 1), 1);
        assert_int_equal(dispatch(), 1);
        assert_int_equal(noted.calls, turn);
    }
    assert_int_equal(waiters_in_line(word), 0);
}

static void a_deadlines_callback_starts_again(void **state) {
    (void)state;
    struct noted noted = {.op = {.data = (void *)(intptr_t)(100 * MICROSECOND)}};
    int64_t start_ns = vigil_now_ns();
    assert_int_equal(vigil_wait32_async(agent, &noted.op, word, 0, 100 * MICROSECOND, start_again), VIGIL_PENDING);
    run_to_the_end();
    assert_int_equal(noted.calls, 5);
    assert_true(vigil_now_ns() - start_ns >= 500 * MICROSECOND);
}

static void free_own(vigil_op *op, int status) {
    if (status == VIGIL_OK) free(op);
}

static void a_callback_frees_its_operation(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) {
        vigil_op *op = calloc(1, sizeof *op);
        int64_t timeout_ns = i % 2 ? SECOND : VIGIL_FOREVER;
        assert_int_equal(vigil_wait32_async(agent, op, word, 0, timeout_ns, free_own), VIGIL_PENDING);
    }
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 10);
    assert_int_equal(dispatch(), 10);
}

static int64_t passed_on;

static void pass_on(vigil_op *op, int status) {
    note(op, status);
    passed_on += vigil_notify(word, 1);
}

static void callbacks_notify_each_other(void **state) {
    (void)state;
    enum { MANY = 10 };
    struct noted noted[MANY] = {{.calls = 0}};
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(vigil_wait32_async(agent, &noted[i].op, word, 0, VIGIL_FOREVER, pass_on), VIGIL_PENDING);
    }
    passed_on = 0;
    assert_int_equal(vigil_notify(word, 1), 1);
    for (int64_t served_before = 0, more; served_before < MANY; served_before += more) {
        more = dispatch();
        assert_true(more > 0);
    }
    assert_int_equal(passed_on, MANY - 1);
    for (int i = 0; i < MANY; i++) assert_int_equal(noted[i].calls, 1);
}

/* Forget. */

static void forget_cancels_and_counts(void **state) {
    (void)state;
    struct noted noted[4] = {{.calls = 0}}, other = {0};
    for (int i = 0; i < 4; i++) noted_start(agent, &noted[i], word + 2 * i, i % 2 ? SECOND : VIGIL_FOREVER);
    noted_pending(agent, &other, word + 8);
    struct sleeper sleeper;
    sleeper_start(&sleeper, word, false);
    assert_int_equal(vigil_forget(word, 8 * sizeof *word), 5);
    assert_int_equal(noted[0].calls, 0); /* as with notify: on its own loop */
    assert_int_equal(dispatch(), 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(noted[i].calls, 1);
        assert_int_equal(noted[i].status, VIGIL_CANCELLED);
    }
    assert_int_equal(sleeper_join(&sleeper), VIGIL_CANCELLED);
    assert_int_equal(other.calls, 0);
    assert_int_equal(vigil_cancel(&other.op), VIGIL_OK);
}

static void those_notified_are_not_forgotten(void **state) {
    (void)state;
    struct noted notified = {0}, forgotten = {0};
    noted_pending(agent, &notified, word);
    noted_pending(agent, &forgotten, word);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_forget(word, 4), 1);
    assert_int_equal(dispatch(), 2);
    assert_int_equal(notified.status, VIGIL_OK);
    assert_int_equal(forgotten.status, VIGIL_CANCELLED);
}

static void forgotten_memory_can_be_waited_on_again(void **state) {
    (void)state;
    struct noted noted = {0};
    for (int64_t turn = 1; turn <= 3; turn++) {
        noted_pending(agent, &noted, word);
        assert_int_equal(turn % 2 ? vigil_forget(word, sizeof storage) : vigil_forget(storage, INT64_C(1) << 40), 1);
        assert_int_equal(dispatch(), 1);
        assert_int_equal(noted.calls, turn);
    }
}

/* Memory order: the word never changes, so only the notification orders the plain accesses to `message`. */

static uint64_t message;

static void *send_messages(void *unused) {
    (void)unused;
    for (uint64_t i = 1; i <= 1000; i++) {
        message = i;
        while (vigil_notify(word, 1) == 0) sched_yield();
        if (vigil_wait32(word + 1, 0, VIGIL_FOREVER) != VIGIL_OK || message != i + 1000000) return "wrong";
    }
    return NULL;
}

static void receive(vigil_op *op, int status) {
    struct noted *noted = (struct noted *)op;
    note(op, status);
    if (message != noted->calls) return; /* and the sender waits forever */
    message += 1000000;
    while (vigil_notify(word + 1, 1) == 0) sched_yield();
    if (noted->calls < 1000) vigil_wait32_async(agent, op, word, 0, VIGIL_FOREVER, receive);
}

static void what_was_written_before_notify_is_seen(void **state) {
    (void)state;
    struct noted noted = {0};
    pthread_t sender;
    void *wrong;
    message = 0;
    assert_int_equal(vigil_wait32_async(agent, &noted.op, word, 0, VIGIL_FOREVER, receive), VIGIL_PENDING);
    assert_int_equal(pthread_create(&sender, NULL, send_messages, NULL), 0);
    run_to_the_end();
    assert_int_equal(noted.calls, 1000);
    assert_int_equal(pthread_join(sender, &wrong), 0);
    assert_null(wrong);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(null_arguments_are_refused),
        TEST(misaligned_addresses_are_refused),
        TEST(another_value_is_answered_at_once),
        TEST(zero_and_less_time_out_without_joining),
        TEST(an_operation_in_use_is_refused),
        TEST(another_thread_is_refused),
        TEST(a_callback_runs_in_dispatch_and_not_in_notify),
        TEST(data_is_never_touched),
        TEST(one_agent_many_times_in_one_line),
        TEST(both_widths_share_one_line),
        TEST(callbacks_come_in_the_order_of_notification),
        TEST(one_line_for_threads_and_agents),
        TEST(a_deadline_is_never_early),
        TEST(deadlines_pass_in_their_order),
        TEST(one_that_has_passed_unseen_leaves_its_place_in_line),
        TEST(notified_before_a_passed_deadline_was_seen_is_ok),
        TEST(forever_has_no_deadline),
        TEST(cancelled_in_line),
        TEST(too_late_after_notify),
        TEST(too_late_after_forget),
        TEST(idle_when_never_started),
        TEST(a_cancelled_deadline_never_passes),
        TEST(a_callback_cancels_one_in_line),
        TEST(a_callback_is_too_late_for_the_next_in_the_mail),
        TEST(a_callback_cancels_one_whose_deadline_has_passed),
        TEST(a_callback_cannot_cancel_its_own),
        TEST(a_callback_starts_its_own_operation_again),
        TEST(a_deadlines_callback_starts_again),
        TEST(a_callback_frees_its_operation),
        TEST(callbacks_notify_each_other),
        TEST(forget_cancels_and_counts),
        TEST(those_notified_are_not_forgotten),
        TEST(forgotten_memory_can_be_waited_on_again),
        TEST(what_was_written_before_notify_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
