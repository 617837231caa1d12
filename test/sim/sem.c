/* SPDX-License-Identifier: MIT */
/*
 * Scenarios for the semaphore, which threads and event loops share.
 *
 * There are `supply` permits, some of which are held at first. No more permits may be held than there are. A waiter
 * without a deadline must get its permits, or the execution never ends. At the end all permits must be available
 * again, and the line empty.
 */
#include "vigil/sem.h"

#include "scenario.h"

#define WAITERS  1u
#define RESERVED 2u
#define SAVED    4u
#define PERMIT   16u

/* ---- Parts ---- */

static vigil_sem sem;
static uint32_t supply, held;
static uint32_t written; /* by each holder of the only permit */
static uint32_t entered;
static int had; /* how many threads have had their permits */
static bool had_loop;

static void begin_with(uint32_t all, uint32_t held_at_first) {
    begin();
    sem.word = (all - held_at_first) * PERMIT;
    supply = all;
    held = held_at_first;
    written = entered = 0;
    had = 0;
    had_loop = false;
    sim_name(&sem, sizeof sem, "sem");
    sim_name(&written, sizeof written, "written");
}

static void all_over(void) {
    sim_check(held == 0, "%u permits are still held", held);
    sim_check(sem.word / PERMIT == supply, "at the end there are %u permits", sem.word / PERMIT);
    sim_check(!(sem.word & (RESERVED | SAVED)), "at the end the word is %#x", sem.word);
    balance();
}

static void hold(uint32_t permits) {
    held += permits;
    sim_check(held <= supply, "%u permits of %u are held", held, supply);
    if (supply == 1) { /* used as a mutex */
        sim_check(prim_load_relaxed(&written) == entered, "what the previous holder wrote is not visible");
        prim_store_relaxed(&written, ++entered);
    }
}

static void release(uint32_t permits) {
    held -= permits;
    expect(vigil_sem_release(&sem, permits), VIGIL_OK, "release");
}

/* The number of permits, passed as a fiber's argument. */
static uint32_t count_of(void *argument) {
    return (uint32_t)(uintptr_t)argument;
}

FIBER(thread) {
    expect(vigil_sem_acquire(&sem, count_of(argument)), VIGIL_OK, "acquire");
    hold(count_of(argument));
    had++;
    release(count_of(argument));
}

FIBER(second_thread) {
    await_in_line(1);
    thread(argument);
}

/* Holds permits from the beginning, and releases them one by one. */
FIBER(holder) {
    for (uint32_t i = count_of(argument); i; i--) release(1);
}

FIBER(holder_at_once) {
    release(count_of(argument));
}

FIBER(holder_of_two_in_line) {
    await_in_line(2);
    holder(argument);
}

static void come(vigil_op *op, int status) {
    struct turn *turn = turn_ends(op, status);
    if (status == VIGIL_OK) {
        hold(turn->wants);
        had_loop = true;
        release(turn->wants);
    }
}

static void ask(vigil_agent *agent, struct turn *turn, uint32_t permits, int64_t timeout_ns) {
    turn->wants = permits;
    int status = vigil_sem_acquire_async(agent, turn_begins(turn), &sem, permits, timeout_ns, come);
    turn_answered(turn, status, timeout_ns, come);
}

static void loop_until(uint32_t permits, bool (*may_run)(void *)) {
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], permits, VIGIL_FOREVER);
    if (may_run) sim_until(may_run, NULL);
    run(agent);
    destroy(agent);
}

FIBER(loop) {
    loop_until(count_of(argument), NULL);
}

/* ---- All or nothing, and no waiter forgotten ---- */

static void sem_as_mutex(void) {
    begin_with(1, 0);
    go_with("thread 1", thread, 1);
    go_with("thread 2", thread, 1);
    go_with("thread 3", thread, 1);
}

static void sem_two_of_three(void) {
    begin_with(2, 0);
    go_with("thread 1", thread, 1);
    go_with("thread 2", thread, 1);
    go_with("thread 3", thread, 1);
}

static void sem_mixed_sizes(void) {
    begin_with(3, 1);
    go_with("thread of 2", thread, 2);
    go_with("thread of 3", thread, 3);
    go_with("thread of 1", thread, 1);
    go_with("holder", holder, 1);
}

static void sem_one_by_one(void) {
    begin_with(2, 2);
    go_with("thread of 2", thread, 2);
    go_with("thread of 1", second_thread, 1);
    go_with("holder", holder_of_two_in_line, 2);
}

static void sem_two_at_once(void) {
    begin_with(2, 2);
    go_with("thread 1", thread, 1);
    go_with("thread 2", thread, 1);
    go_with("holder", holder_at_once, 2);
}

static void sem_loop_and_thread(void) {
    begin_with(1, 0);
    go_with("loop", loop, 1);
    go_with("thread", thread, 1);
}

static void sem_loop_of_two(void) {
    begin_with(2, 1);
    go_with("loop of 2", loop, 2);
    go_with("thread", thread, 1);
    go_with("holder", holder, 1);
}

static void sem_loop_and_large_thread(void) {
    begin_with(2, 1);
    go_with("loop", loop, 1);
    go_with("thread of 2", thread, 2);
    go_with("holder", holder, 1);
}

/* ---- A waiter for two permits leaves: the waiters behind it get the one that is available ---- */

FIBER(thread_of_two_500) {
    (void)argument;
    int64_t due_ns = vigil_now_ns() + 500;
    expect(vigil_sem_acquire_for(&sem, 2, 500), VIGIL_TIMED_OUT, "acquire_for");
    sim_check(vigil_now_ns() >= due_ns, "timed out too early");
}

FIBER(loop_of_two_500) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 2, 500);
    run(agent);
    expect(turns[0].status, VIGIL_TIMED_OUT, "acquire_async");
    destroy(agent);
}

/* Until another waiter is in line behind it, or was faster. */
static bool two_in_line(void *unused) {
    (void)unused;
    return in_line() >= 2 || had;
}

FIBER(loop_of_two_cancels) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 2, VIGIL_FOREVER);
    sim_until(two_in_line, NULL);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

FIBER(loop_of_two_destroyed) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 2, VIGIL_FOREVER);
    sim_until(two_in_line, NULL);
    destroy(agent);
    expect(turns[0].status, VIGIL_CANCELLED, "acquire_async");
}

static void before_thread(const char *name, void (*fiber)(void *)) {
    begin_with(1, 1);
    sim_moment(1500);
    go(name, fiber);
    go_with("thread", thread, 1);
    go_with("holder", holder, 1);
}

static void sem_timeout(void) {
    before_thread("thread of 2", thread_of_two_500);
}

static void sem_async_timeout(void) {
    before_thread("loop of 2", loop_of_two_500);
}

static void sem_cancel(void) {
    before_thread("loop of 2", loop_of_two_cancels);
}

static void sem_destroy(void) {
    before_thread("loop of 2", loop_of_two_destroyed);
}

/* The same where there are enough permits: at every step the thread may have them, or have been called. */
FIBER(thread_500) {
    (void)argument;
    int status = vigil_sem_acquire_for(&sem, 1, 500);
    if (status == VIGIL_OK) {
        hold(1);
        release(1);
    } else {
        expect(status, VIGIL_TIMED_OUT, "acquire_for");
    }
}

FIBER(loop_500) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 1, 500);
    run(agent);
    destroy(agent);
}

FIBER(loop_cancels) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 1, VIGIL_FOREVER);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

FIBER(loop_destroyed) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 1, VIGIL_FOREVER);
    destroy(agent);
}

static void sem_timeout_when_called(void) {
    before_thread("thread 500", thread_500);
}

static void sem_async_timeout_when_called(void) {
    before_thread("loop 500", loop_500);
}

static void sem_cancel_when_called(void) {
    before_thread("loop", loop_cancels);
}

static void sem_destroy_when_called(void) {
    before_thread("loop", loop_destroyed);
}

/* ---- A queue of one loop ---- */

/* The first request is for two permits, of which one is available. The next, which inherits its place, is for one. */
FIBER(loop_with_heir) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 2, VIGIL_FOREVER);
    ask(agent, &turns[1], 1, VIGIL_FOREVER);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

static void sem_heir(void) {
    begin_with(1, 1);
    go("loop", loop_with_heir);
    go_with("holder", holder, 1);
}

/* The same, but the loop does not run before the thread has held its permit. */
static bool a_thread_had_it(void *unused) {
    (void)unused;
    return had > 0;
}

FIBER(slow_loop_with_heir) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 2, VIGIL_FOREVER);
    ask(agent, &turns[1], 1, VIGIL_FOREVER);
    cancel_turn(&turns[0]);
    sim_until(a_thread_had_it, NULL);
    run(agent);
    destroy(agent);
}

static void sem_slow_heir(void) {
    begin_with(1, 1);
    go("loop", slow_loop_with_heir);
    go_with("thread", thread, 1);
    go_with("holder", holder, 1);
}

FIBER(loop_of_three) {
    (void)argument;
    vigil_agent *agent = new_agent();
    for (uint32_t i = 0; i < 3; i++) ask(agent, &turns[i], i % 2 + 1, VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

static void sem_queue(void) {
    begin_with(2, 2);
    go("loop", loop_of_three);
    go_with("thread", thread, 1);
    go_with("holder", holder, 2);
}

/* ---- A loop that runs late ---- */

FIBER(slow_loop) {
    loop_until(count_of(argument), a_thread_had_it);
}

FIBER(holder_for_long) {
    await_in_line(2);
    let_pass(PATIENCE);
    holder_at_once(argument);
}

static void sem_slow_loop(void) {
    begin_with(1, 1);
    go_with("loop", slow_loop, 1);
    go_with("thread", second_thread, 1);
    go_with("holder", holder_of_two_in_line, 1);
}

static void sem_reserved_for_slow_loop(void) {
    begin_with(2, 2);
    go_with("loop", slow_loop, 1);
    go_with("thread", second_thread, 2);
    go_with("holder", holder_for_long, 2);
}

/* A thread of an event loop blocks behind the loop's own request. */
FIBER(loop_that_blocks) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 1, VIGIL_FOREVER);
    thread((void *)1);
    run(agent);
    destroy(agent);
}

static void sem_behind_itself(void) {
    begin_with(1, 1);
    go("loop", loop_that_blocks);
    go_with("holder", holder, 1);
}

/*
 * The guard of a reservation for a loop that does not run has a deadline of its own, and another thread waits behind
 * it.
 */
static bool guard_left;

FIBER(guard) {
    (void)argument;
    await_in_line(1);
    if (vigil_sem_acquire_for(&sem, 1, PATIENCE + 500) == VIGIL_OK) {
        hold(1);
        release(1);
    }
    guard_left = true;
}

FIBER(third_thread) {
    await_in_line(2);
    thread(argument);
}

static bool three_in_line(void *unused) {
    (void)unused;
    return in_line() == (guard_left ? 2 : 3);
}

FIBER(holder_of_three_for_long) {
    sim_until(three_in_line, NULL);
    let_pass(PATIENCE);
    holder(argument);
}

static void sem_guard_with_deadline(void) {
    begin_with(1, 1);
    guard_left = false;
    go_with("loop", slow_loop, 1);
    go_with("guard", guard, 1);
    go_with("thread", third_thread, 1);
    go_with("holder", holder_of_three_for_long, 1);
}

/* ---- What one waiter leaves, the next one gets ---- */

/* Two permits, reserved for a loop that does not run. Two threads get one each, and keep it until both have one. */
static bool two_had_it(void *unused) {
    (void)unused;
    return had == 2;
}

FIBER(keeping_thread) {
    (void)argument;
    expect(vigil_sem_acquire(&sem, 1), VIGIL_OK, "acquire");
    hold(1);
    had++;
    sim_until(two_had_it, NULL);
    release(1);
}

FIBER(very_slow_loop) {
    loop_until(count_of(argument), two_had_it);
}

FIBER(second_keeping_thread) {
    await_in_line(1);
    keeping_thread(argument);
}

FIBER(third_keeping_thread) {
    await_in_line(2);
    keeping_thread(argument);
}

FIBER(holder_of_three_at_once) {
    await_in_line(3);
    let_pass(PATIENCE);
    holder_at_once(argument);
}

static void sem_further(void) {
    begin_with(2, 2);
    go_with("loop", very_slow_loop, 2);
    go_with("thread 1", second_keeping_thread, 1);
    go_with("thread 2", third_keeping_thread, 1);
    go_with("holder", holder_of_three_at_once, 2);
}

/* Two permits are released one by one: the second must not wait for the thread that was called for the first. */
static void sem_one_each(void) {
    begin_with(2, 2);
    go_with("thread 1", keeping_thread, 1);
    go_with("thread 2", second_keeping_thread, 1);
    go_with("holder", holder_of_two_in_line, 2);
}

/* ---- Patience ---- */

/* A large request waits while small ones come by. Once it has waited for long, they get nothing before it does. */
FIBER(barger) {
    (void)argument;
    await_in_line(1);
    let_pass(PATIENCE);
    release(1);
    if (vigil_sem_tryacquire(&sem, 1) == VIGIL_OK) {
        sim_check(had || had_loop, "a newcomer took permits that should be saved");
        hold(1);
        release(1);
    }
    release(1);
    if (vigil_sem_tryacquire(&sem, 1) == VIGIL_OK) {
        sim_check(had || had_loop, "a newcomer took reserved permits");
        hold(1);
        release(1);
    }
}

static void sem_patience(void) {
    begin_with(2, 2);
    go_with("thread of 2", thread, 2);
    go("barger", barger);
}

static void sem_patience_of_loop(void) {
    begin_with(2, 2);
    go_with("loop of 2", loop, 2);
    go("barger", barger);
}

/*
 * A small request waits behind a large one for which permits are being saved. It does not become impatient before the
 * large one can be served.
 */
static bool all_released;

FIBER(small_behind_large) {
    await_in_line(1);
    let_pass(PATIENCE);
    release(1);
    thread(argument);
    sim_check(all_released, "a small request is served before a large one");
}

FIBER(slow_holder) {
    await_in_line(2);
    let_pass(3 * PATIENCE);
    all_released = true;
    holder(argument);
}

static void sem_saved(void) {
    begin_with(2, 2);
    all_released = false;
    go_with("large", thread, 2);
    go_with("small", small_behind_large, 1);
    go_with("holder", slow_holder, 1);
}

/* Permits saved for the head of the line do not delay a request that belongs before it. */

static bool released_some(void *unused) {
    (void)unused;
    return all_released;
}

/*
 * The loop is called, but has cancelled: the thread that was called beside it finds all permits saved for the waiter
 * behind.
 */
FIBER(loop_cancels_when_called) {
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], count_of(argument), VIGIL_FOREVER);
    sim_until(released_some, NULL);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

FIBER(holder_until_thread_had_it) {
    (void)argument;
    await_in_line(3);
    let_pass(PATIENCE);
    release(3);
    all_released = true;
    sim_until(a_thread_had_it, NULL);
    release(2);
}

static void sem_beside_saved(void) {
    begin_with(5, 5);
    all_released = false;
    go_with("loop of 2", loop_cancels_when_called, 2);
    go_with("thread of 2", second_thread, 2);
    go_with("thread of 5", third_thread, 5);
    go("holder", holder_until_thread_had_it);
}

/* The loop's second request has no place of its own when the permits that the first one leaves are saved. */
static bool both_asked, large_came;

static bool both_have_asked(void *unused) {
    (void)unused;
    return both_asked;
}

static bool large_in_line(void *unused) {
    (void)unused;
    return large_came && in_line() == 2;
}

static bool loop_had_both(void *unused) {
    (void)unused;
    return both_asked && !turns[0].waiting && !turns[1].waiting;
}

FIBER(loop_asks_twice) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 1, VIGIL_FOREVER);
    ask(agent, &turns[1], 1, VIGIL_FOREVER);
    both_asked = true;
    run(agent);
    destroy(agent);
}

FIBER(large_after_both) {
    sim_until(both_have_asked, NULL);
    let_pass(1); /* so it is younger than the requests */
    large_came = true;
    thread(argument);
}

FIBER(holder_until_loop_had_both) {
    (void)argument;
    sim_until(large_in_line, NULL);
    let_pass(PATIENCE);
    release(2);
    sim_until(loop_had_both, NULL);
    release(3);
}

static void sem_next_of_loop_before_saved(void) {
    begin_with(5, 5);
    both_asked = large_came = false;
    go("loop", loop_asks_twice);
    go_with("thread of 5", large_after_both, 5);
    go("holder", holder_until_loop_had_both);
}

/* ---- Too many ---- */

static int released;

FIBER(releases_too_many) {
    (void)argument;
    int status = vigil_sem_release(&sem, 1);
    released += status == VIGIL_OK;
    sim_check(status == VIGIL_OK || status == VIGIL_ERANGE, "release returns %s", vigil_status_name(status));
}

static void sem_overflow(void) {
    begin_with(VIGIL_SEM_MAX - 1, 0);
    supply = VIGIL_SEM_MAX;
    sem.word |= WAITERS;
    released = 0;
    go("one", releases_too_many);
    go("other", releases_too_many);
}

static void only_one_released(void) {
    sim_check(released == 1, "%d releases succeeded", released);
    all_over();
}

/* ---- Forget ---- */

static int64_t forgotten;
static int cancelled;

FIBER(thread_or_forgotten) {
    (void)argument;
    int status = vigil_sem_acquire(&sem, 1);
    if (status == VIGIL_OK) {
        hold(1);
        release(1);
    } else {
        expect(status, VIGIL_CANCELLED, "acquire");
        cancelled++;
    }
}

FIBER(loop_or_forgotten) {
    loop(argument);
    cancelled += turns[0].status == VIGIL_CANCELLED;
}

FIBER(forgetter) {
    (void)argument;
    forgotten = vigil_forget(&sem, sizeof sem);
}

static void sem_forget(void) {
    begin_with(1, 1);
    forgotten = cancelled = 0;
    go_with("thread", thread_or_forgotten, 1);
    go_with("loop", loop_or_forgotten, 1);
    go("forgetter", forgetter);
    go_with("holder", holder, 1);
}

static void forgotten_are_cancelled(void) {
    sim_check(forgotten == cancelled, "forget returns %d, but %d were cancelled", (int)forgotten, cancelled);
    all_over();
}

const struct sim_scenario sem_scenarios[] = {
    {"sem_as_mutex", "three threads, one permit", sem_as_mutex, all_over},
    {"sem_two_of_three", "three threads, two permits", sem_two_of_three, all_over},
    {"sem_mixed_sizes", "threads that want two, three and one permits", sem_mixed_sizes, all_over},
    {"sem_one_by_one", "two permits for a thread that wants both, then for one that wants one", sem_one_by_one,
     all_over},
    {"sem_two_at_once", "two in line for two permits that are released", sem_two_at_once, all_over},
    {"sem_loop_and_thread", "a loop and a thread, one permit", sem_loop_and_thread, all_over},
    {"sem_loop_of_two", "a loop that wants more than a thread", sem_loop_of_two, all_over},
    {"sem_loop_and_large_thread", "a thread that wants more than a loop", sem_loop_and_large_thread, all_over},
    {"sem_timeout", "a large request's deadline, and a small one behind it", sem_timeout, all_over},
    {"sem_async_timeout", "the same for a loop", sem_async_timeout, all_over},
    {"sem_cancel", "a large request is cancelled, and a small one behind it", sem_cancel, all_over},
    {"sem_destroy", "a loop with a large request ends, and a small one behind it", sem_destroy, all_over},
    {"sem_timeout_when_called", "a thread's deadline against release", sem_timeout_when_called, all_over},
    {"sem_async_timeout_when_called", "a loop's deadline against release", sem_async_timeout_when_called, all_over},
    {"sem_cancel_when_called", "cancel against release", sem_cancel_when_called, all_over},
    {"sem_destroy_when_called", "an agent's end against release", sem_destroy_when_called, all_over},
    {"sem_heir", "a small request inherits a large one's place", sem_heir, all_over},
    {"sem_slow_heir", "the same for a loop that waits for the next in line", sem_slow_heir, all_over},
    {"sem_queue", "three requests of one loop beside a thread", sem_queue, all_over},
    {"sem_slow_loop", "a loop is called, but waits for the next in line", sem_slow_loop, all_over},
    {"sem_reserved_for_slow_loop", "the same with a reservation", sem_reserved_for_slow_loop, all_over},
    {"sem_behind_itself", "a loop's thread blocks behind its own request", sem_behind_itself, all_over},
    {"sem_guard_with_deadline", "the guard of a reservation gives up", sem_guard_with_deadline, all_over},
    {"sem_further", "two threads get what a loop leaves", sem_further, all_over},
    {"sem_one_each", "two threads get one permit each, and keep it until both have one", sem_one_each, all_over},
    {"sem_patience", "a thread gets what it needs before newcomers", sem_patience, all_over},
    {"sem_patience_of_loop", "a loop gets what it needs before newcomers", sem_patience_of_loop, all_over},
    {"sem_saved", "no request behind a large one is impatient", sem_saved, all_over},
    {"sem_beside_saved", "a loop cancels, and a thread called beside it finds all permits saved", sem_beside_saved,
     all_over},
    {"sem_next_of_loop_before_saved", "a loop's second request is older than a large one",
     sem_next_of_loop_before_saved, all_over},
    {"sem_overflow", "two releases where only one more permit fits", sem_overflow, only_one_released},
    {"sem_forget", "forget against release", sem_forget, forgotten_are_cancelled},
    {NULL, NULL, NULL, NULL},
};
