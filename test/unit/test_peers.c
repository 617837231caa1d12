/* SPDX-License-Identifier: MIT */
/*
 * Bugs that other projects had in waiting, notifying, cancelling and event loops: each is named where it is tested
 * for.
 */
#include "support.h"

#include "agent_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_t start_thread(void *(*main)(void *), void *argument) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, main, argument), 0);
    return thread;
}

/* tokio#1898: a waiter that was aborted stayed in the queue and wedged all waiters behind it. */
static void an_aborted_waiter_wedges_nobody(void **state) {
    (void)state;
    struct noted aborted[3] = {{.calls = 0}};
    struct sleeper behind;
    for (int i = 0; i < 3; i++) noted_pending(agent, &aborted[i], word);
    sleeper_start(&behind, word, false);
    for (int i = 0; i < 3; i++) assert_int_equal(vigil_cancel(&aborted[i].op), VIGIL_OK);
    memset(aborted, 0xEE, sizeof aborted); /* its memory may be reused */
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(sleeper_join(&behind), VIGIL_OK);
}

/* embassy#6964: when the head of the queue was cancelled, the next waiter was not woken. */
static void a_cancelled_head_makes_way(void **state) {
    (void)state;
    struct noted head = {0}, next = {0};
    noted_pending(agent, &head, word);
    noted_pending(agent, &next, word);
    assert_int_equal(vigil_cancel(&head.op), VIGIL_OK);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(next.status, VIGIL_OK);
}

/* moonbitlang/async#160: granted, then cancelled before it ran: the permit was lost. */
static void what_was_granted_cannot_be_cancelled_away(void **state) {
    (void)state;
    struct noted granted = {0}, next = {0};
    noted_pending(agent, &granted, word);
    noted_pending(agent, &next, word);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_cancel(&granted.op), VIGIL_ETOOLATE);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(granted.status, VIGIL_OK); /* its owner has the permit, and can pass it on */
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(next.status, VIGIL_OK);
}

/* A thread that notifies in a loop and counts. */
static uint32_t stop;

static void *notify_and_count(void *unused) {
    (void)unused;
    int64_t notified = 0;
    while (!LOAD(stop)) notified += vigil_notify(word, 1);
    return (void *)(intptr_t)notified;
}

/* repoprompt-ce#492: cancel and unlock raced, and both won. */
static void cancel_and_notify_never_both_win(void **state) {
    (void)state;
    STORE(stop, 0);
    pthread_t notifier = start_thread(notify_and_count, NULL);
    struct noted noted = {0};
    int64_t cancelled = 0;
    const int64_t rounds = 20000;
    for (int64_t i = 0; i < rounds; i++) {
        noted_pending(agent, &noted, word);
        int status = vigil_cancel(&noted.op);
        if (status == VIGIL_OK) cancelled++;
        else assert_int_equal(status, VIGIL_ETOOLATE);
        unsigned before = noted.calls;
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(noted.calls - before, status == VIGIL_OK ? 0 : 1);
    }
    STORE(stop, 1);
    void *notified;
    pthread_join(notifier, &notified);
    assert_int_equal(cancelled + (intptr_t)notified, rounds);
}

/* folly, timeout() around co_lock: both the deadline and the grant won, and the lock was never released. */
static void deadline_and_notify_never_both_win(void **state) {
    (void)state;
    STORE(stop, 0);
    pthread_t notifier = start_thread(notify_and_count, NULL);
    struct noted noted = {0};
    int64_t late = 0, ok = 0;
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(noted_start(agent, &noted, word, 1 + i % 1000), VIGIL_PENDING);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        if (noted.status == VIGIL_OK) ok++;
        else late += noted.status == VIGIL_TIMED_OUT;
    }
    STORE(stop, 1);
    void *notified;
    pthread_join(notifier, &notified);
    assert_int_equal(ok, (intptr_t)notified);
    assert_int_equal(ok + late, 20000);
    assert_int_equal(noted.calls, 20000);
}

static void *notify_two(void *unused) {
    (void)unused;
    for (int64_t left = 2; left;) left -= vigil_notify(word, left);
    return NULL;
}

/* emscripten#25670: a blocking acquire right after an asynchronous one, on the same thread, deadlocked. */
static void a_blocking_wait_behind_ones_own_asynchronous_one(void **state) {
    (void)state;
    struct noted noted = {0};
    noted_pending(agent, &noted, word);
    pthread_t notifier = start_thread(notify_two, NULL);
    assert_int_equal(vigil_wait32(word, 0, VIGIL_FOREVER), VIGIL_OK); /* although no loop of ours runs meanwhile */
    pthread_join(notifier, NULL);
    assert_int_equal(noted.calls, 0);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(noted.status, VIGIL_OK);
}

/* parking_lot#515, RustPython#6963: a forked child found the queues of threads that it did not have, and crashed. */
static void no_stale_queues_after_fork(void **state) {
    (void)state;
    struct sleeper sleepers[3];
    for (int i = 0; i < 3; i++) sleeper_start(&sleepers[i], word, false);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        bool clean = vigil_notify(word, VIGIL_ALL) == 0 && vigil_wait32(word, 0, MILLISECOND) == VIGIL_TIMED_OUT &&
                     vigil_notify(word, VIGIL_ALL) == 0;
        _exit(clean ? 0 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
}

static void *wait_again_and_again(void *unused) {
    (void)unused;
    while (!LOAD(stop)) vigil_wait32(word, 0, VIGIL_FOREVER);
    return NULL;
}

/* parking_lot#76: a thread that came back at once was served again and again, and a waiter starved. */
static void nobody_is_overtaken_by_those_who_come_again(void **state) {
    (void)state;
    STORE(stop, 0);
    pthread_t greedy[2];
    for (int i = 0; i < 2; i++) greedy[i] = start_thread(wait_again_and_again, NULL);
    for (int i = 0; i < 500; i++) {
        AWAIT(waiters_in_line(word) == 2);
        struct noted patient = {0};
        noted_pending(agent, &patient, word);
        assert_int_equal(vigil_notify(word, 1), 1);
        assert_int_equal(vigil_notify(word, 1), 1);
        AWAIT(waiters_in_line(word) == 3); /* both have come again, behind the patient one */
        assert_int_equal(vigil_notify(word, 1), 1);
        assert_int_equal(vigil_agent_dispatch(agent), 1);
        assert_int_equal(patient.status, VIGIL_OK);
    }
    STORE(stop, 1);
    int64_t left = 2;
    while (left) left -= vigil_notify(word, left);
    for (int i = 0; i < 2; i++) pthread_join(greedy[i], NULL);
}

/* tokio#6450: handed first to a task that never ran, and all others waited for it. */
static void who_never_runs_holds_nobody_up(void **state) {
    (void)state;
    vigil_agent *never_dispatched = new_agent(0);
    struct noted stuck = {0};
    struct sleeper behind;
    noted_pending(never_dispatched, &stuck, word);
    sleeper_start(&behind, word, false);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_notify(word, 1), 1); /* the next waiter is not held up by it */
    assert_int_equal(sleeper_join(&behind), VIGIL_OK);
    assert_int_equal(stuck.calls, 0);
    end_agent(never_dispatched);
    assert_int_equal(stuck.status, VIGIL_OK);
}

static void wait_while(uint32_t *at, uint32_t value) {
    while (__atomic_load_n(at, __ATOMIC_RELAXED) == value) vigil_wait32(at, value, VIGIL_FOREVER);
}

static void *answer_each(void *rounds) {
    for (uint32_t i = 1; i <= (uint32_t)(uintptr_t)rounds; i++) {
        wait_while(&word[0], i - 1);
        __atomic_store_n(&word[1], i, __ATOMIC_RELAXED);
        vigil_notify(&word[1], 1);
    }
    return NULL;
}

/* llvm#109290, llvm#77659: atomic wait lost wake-ups; so can Moddable XS, which compares before it takes the lock. */
static void no_wake_is_lost_between_two(void **state) {
    (void)state;
    const uint32_t rounds = 30000;
    pthread_t other = start_thread(answer_each, (void *)(uintptr_t)rounds);
    for (uint32_t i = 1; i <= rounds; i++) {
        __atomic_store_n(&word[0], i, __ATOMIC_RELAXED);
        vigil_notify(&word[0], 1);
        wait_while(&word[1], i - 1);
    }
    pthread_join(other, NULL);
}

static void *wait_for_each(void *rounds) {
    for (uint32_t i = 1; i <= (uint32_t)(uintptr_t)rounds; i++) {
        wait_while(&word[0], i - 1);
        if (__atomic_add_fetch(&word[1], 1, __ATOMIC_SEQ_CST) % 4 == 0) vigil_notify(&word[1], VIGIL_ALL);
    }
    return NULL;
}

/* The same with a crowd: in each round all threads must wake. */
static void no_wake_is_lost_among_many(void **state) {
    (void)state;
    const uint32_t rounds = 3000;
    pthread_t crowd[4];
    for (int i = 0; i < 4; i++) crowd[i] = start_thread(wait_for_each, (void *)(uintptr_t)rounds);
    for (uint32_t i = 1; i <= rounds; i++) {
        __atomic_store_n(&word[0], i, __ATOMIC_RELAXED);
        vigil_notify(&word[0], VIGIL_ALL);
        for (uint32_t up; (up = __atomic_load_n(&word[1], __ATOMIC_RELAXED)) < 4 * i;) {
            vigil_wait32(&word[1], up, VIGIL_FOREVER);
        }
    }
    for (int i = 0; i < 4; i++) pthread_join(crowd[i], NULL);
}

/* V8 a777999: each thread had one wait node, and a wait inside a wait reused it. Here: in a signal handler. */

static int nested_status;

static void wait_in_handler(int signal_number) {
    (void)signal_number;
    STORE(nested_status, vigil_wait32(word + 8, 0, VIGIL_FOREVER));
}

static void wait_inside_a_wait(bool inner_first) {
    struct sigaction action = {.sa_handler = wait_in_handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
    STORE(nested_status, UNDECIDED);
    struct sleeper outer;
    sleeper_start(&outer, word, false);
    AWAIT(asleep(word) == 1);
    assert_int_equal(pthread_kill(outer.thread, SIGUSR2), 0);
    AWAIT(waiters_in_line(word + 8) == 1);
    assert_int_equal(waiters_in_line(word), 1);
    assert_int_equal(vigil_notify(inner_first ? word + 8 : word, VIGIL_ALL), 1);
    if (inner_first) AWAIT(LOAD(nested_status) == VIGIL_OK);
    assert_false(sleeper_up(&outer));
    assert_int_equal(vigil_notify(inner_first ? word : word + 8, VIGIL_ALL), 1);
    assert_int_equal(sleeper_join(&outer), VIGIL_OK);
    assert_int_equal(nested_status, VIGIL_OK);
}

static void a_wait_inside_a_wait(void **state) {
    (void)state;
    if (UNDER_TSAN) return; /* it delays handlers while the thread sleeps */
    for (int i = 0; i < 20; i++) wait_inside_a_wait(i % 2);
}

static long resident_pages(void) {
    long total = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%ld %ld", &total, &resident), 2);
    fclose(statm);
    return resident;
}

static void wait_on_each(uint32_t *words, size_t count) {
    struct noted noted = {0};
    for (size_t i = 0; i < count; i++) {
        noted_pending(agent, &noted, &words[i]);
        if (i % 2) assert_int_equal(vigil_notify(&words[i], 1), 1);
        else assert_int_equal(vigil_cancel(&noted.op), VIGIL_OK);
        vigil_agent_dispatch(agent);
    }
}

/* WebAssembly/threads#176: every address ever waited on left something behind, and memory grew without bound. */
static void memory_is_bounded_by_those_who_wait(void **state) {
    (void)state;
    const size_t count = 200000;
    uint32_t *words = calloc(2 * count, sizeof *words);
    for (size_t i = 0; i < 2 * count; i += 256) ((volatile uint32_t *)words)[i] = 0; /* already resident */
    wait_on_each(words, count);
    uint32_t slots = slots_ever_used();
    long pages = resident_pages();
    wait_on_each(words, count);
    assert_true(resident_pages() - pages < 256 || UNDER_ASAN || UNDER_TSAN); /* sanitizers keep what they watched */
    wait_on_each(words + count, count);
    assert_int_equal(slots_ever_used(), slots);
    free(words);
}

/* node#44729, node#61941, deno#15358, bun#34911: does a pending wait keep the loop alive? Users want to choose. */
static void whether_a_pending_wait_keeps_the_loop_alive(void **state) {
    (void)state;
    struct noted keeps = {0}, does_not = {0};
    noted_pending(agent, &keeps, word);
    noted_pending(agent, &does_not, word + 1);
    assert_int_equal(vigil_unref(&does_not.op), VIGIL_OK);
    assert_int_equal(vigil_agent_run_until(agent, 0), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_notify(word, 1), 1);
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    assert_int_equal(keeps.calls, 1);
    assert_int_equal(vigil_cancel(&does_not.op), VIGIL_OK);
}

/*
 * WAMR: last in, first out; and two quick notifications of one both counted the same waiter, which was not yet awake.
 */
static void two_quick_notifications_are_two(void **state) {
    (void)state;
    struct sleeper sleepers[2];
    struct noted noted[2] = {{.calls = 0}};
    for (int i = 0; i < 2; i++) {
        noted_pending(agent, &noted[i], word);
        sleeper_start(&sleepers[i], word + 2, false);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(vigil_notify(word, 1), 1);
        assert_int_equal(vigil_notify(word + 2, 1), 1);
    }
    assert_int_equal(vigil_notify(word, 1), 0);
    assert_int_equal(vigil_notify(word + 2, 1), 0);
    assert_int_equal(vigil_agent_dispatch(agent), 2);
    assert_true(noted[0].rank < noted[1].rank);
    for (int i = 0; i < 2; i++) assert_int_equal(sleeper_join(&sleepers[i]), VIGIL_OK);
}

/* Emscripten: cancelling one asynchronous waiter woke all waiters at its address. */
static void cancel_disturbs_nobody_else(void **state) {
    (void)state;
    struct noted cancelled = {0}, other = {0};
    struct sleeper sleeper;
    noted_pending(agent, &cancelled, word);
    noted_pending(agent, &other, word);
    sleeper_start(&sleeper, word, false);
    assert_int_equal(vigil_cancel(&cancelled.op), VIGIL_OK);
    assert_int_equal(vigil_agent_dispatch(agent), 0);
    assert_int_equal(waiters_in_line(word), 2);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 2);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
}

/* Node 20: 28 of 200 asynchronous timeouts fired early; QuickJS only has whole milliseconds. */
static void of_200_timeouts_none_is_early(void **state) {
    (void)state;
    static struct noted noted[200];
    static int64_t deadline_ns[200];
    memset(noted, 0, sizeof noted);
    for (int i = 0; i < 200; i++) {
        int64_t timeout_ns = 100 * MICROSECOND + i * 7001;
        deadline_ns[i] = vigil_now_ns() + timeout_ns;
        assert_int_equal(noted_start(agent, &noted[i], word, timeout_ns), VIGIL_PENDING);
    }
    assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(noted[i].status, VIGIL_TIMED_OUT);
        assert_true(noted[i].ended_ns >= deadline_ns[i]);
    }
}

/* Moddable XS: notify without a count wakes twenty. */
static void all_is_not_twenty(void **state) {
    (void)state;
    static struct noted noted[50];
    memset(noted, 0, sizeof noted);
    for (int i = 0; i < 50; i++) noted_pending(agent, &noted[i], word);
    assert_int_equal(vigil_notify(word, VIGIL_ALL), 50);
    assert_int_equal(vigil_agent_dispatch(agent), 50);
}

/* V8: the waiters of a freed buffer stayed in line until the address was used again. */
static void forgotten_memory_has_no_waiters(void **state) {
    (void)state;
    uint32_t *buffer = calloc(16, sizeof *buffer);
    struct noted noted = {0};
    noted_pending(agent, &noted, &buffer[3]);
    assert_int_equal(vigil_forget(buffer, 16 * sizeof *buffer), 1);
    assert_int_equal(waiters_in_line(&buffer[3]), 0);
    free(buffer);
    assert_int_equal(vigil_agent_dispatch(agent), 1);
    assert_int_equal(noted.status, VIGIL_CANCELLED);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_aborted_waiter_wedges_nobody),
        TEST(a_cancelled_head_makes_way),
        TEST(what_was_granted_cannot_be_cancelled_away),
        TEST(cancel_and_notify_never_both_win),
        TEST(deadline_and_notify_never_both_win),
        TEST(a_blocking_wait_behind_ones_own_asynchronous_one),
        TEST(no_stale_queues_after_fork),
        TEST(nobody_is_overtaken_by_those_who_come_again),
        TEST(who_never_runs_holds_nobody_up),
        TEST(no_wake_is_lost_between_two),
        TEST(no_wake_is_lost_among_many),
        TEST(a_wait_inside_a_wait),
        TEST(memory_is_bounded_by_those_who_wait),
        TEST(whether_a_pending_wait_keeps_the_loop_alive),
        TEST(two_quick_notifications_are_two),
        TEST(cancel_disturbs_nobody_else),
        TEST(of_200_timeouts_none_is_early),
        TEST(all_is_not_twenty),
        TEST(forgotten_memory_has_no_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
