/* SPDX-License-Identifier: MIT */
/*
 * Scenarios with signal handlers: a fiber is interrupted at any step of a call, and its handler notifies, releases
 * permits or wakes an agent. What the handler cannot do at once is done when the interrupted call has returned.
 */
#include "base/word_lock.h"
#include "lot/critical.h"
#include "recovery/recovery.h"
#include "scenario.h"
#include "vigil/mutex.h"
#include "vigil/segment.h"
#include "vigil/sem.h"

#define PERMIT 16u

static uint32_t *line, *beside; /* in one bucket */
static vigil_sem *sem;
static vigil_mutex mutex;
static vigil_sem private_sem;
static vigil_agent *woken_agent;
static uint32_t terminate;
static int64_t handled; /* signals */
static int64_t taken;   /* permits */
static bool interrupted_is_done;

static void begin_signals(void) {
    begin();
    line = &words[0];
    beside = &words[2];
    sem = &private_sem;
    private_sem = (vigil_sem)VIGIL_SEM_INIT(0);
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    woken_agent = NULL;
    terminate = 0;
    handled = taken = 0;
    interrupted_is_done = false;
    sim_name(sem, sizeof *sem, "sem");
    sim_name(&mutex, sizeof mutex, "mutex");
}

static void begin_signals_shared(bool leased) {
    begin_signals();
    begin_shared(4);
    line = &shared[0];
    beside = &shared[2];
    sem = (vigil_sem *)(void *)&shared[16];
    if (leased) *sem = (vigil_sem)VIGIL_SEM_LEASED(1);
}

/* ---- Handlers ---- */

/* Refused if there is no room to defer the notification, which happens when handlers nest. */
static void notify_one(void) {
    int64_t told = vigil_notify(line, 1);
    sim_check(told == 0 || told == 1 || told == VIGIL_ELIMIT, "notify: %lld", (long long)told);
    handled += told != VIGIL_ELIMIT;
}

static void change_and_notify_all(void) {
    handled++;
    prim_store_seq_cst(line, 1);
    int64_t told = vigil_notify(line, VIGIL_ALL);
    sim_check(told >= 0, "notify: %lld", (long long)told);
}

static void release_one(void) {
    handled++;
    expect(vigil_sem_release(sem, 1), VIGIL_OK, "release");
}

static bool brought[2];

static void bring_first(void) {
    brought[0] = true;
    release_one();
}

static void bring_second(void) {
    brought[1] = true;
    release_one();
}

static void wake_agent(void) {
    handled++;
    prim_store_relaxed(&terminate, 1);
    expect(vigil_agent_wake(woken_agent), VIGIL_OK, "wake");
}

/* More lines than can be deferred: a refused notification has no effect. */
static int64_t refused;
static void notify_three(void) {
    handled++;
    for (unsigned i = 0; i < 6; i += 2) {
        int64_t told = vigil_notify(&words[i], 1);
        sim_check(told == 0 || told == 1 || told == VIGIL_ELIMIT, "notify: %lld", (long long)told);
        refused += told == VIGIL_ELIMIT;
    }
}

/* ---- Fibers ---- */

static void no_more_signals(void) {
    sim_handle(NULL, 0);
    sim_check(!prim_self()->may_not_block && !prim_self()->deferred, "something was deferred and not done");
    interrupted_is_done = true;
}

FIBER(own_waiter) {
    (void)argument;
    sim_handle(change_and_notify_all, 1);
    int status = vigil_wait32(line, 0, VIGIL_FOREVER);
    sim_check(status == VIGIL_OK || status == VIGIL_NOT_EQUAL, "wait: %s", vigil_status_name(status));
    sim_check(handled == 1, "the wait has ended without a signal");
    no_more_signals();
}

FIBER(own_waiter_timed) {
    (void)argument;
    sim_handle(change_and_notify_all, 1);
    int status = vigil_wait32(line, 0, 10);
    sim_check(status != VIGIL_OK || handled == 1, "notified, without a signal");
    sim_check(status != VIGIL_NOT_EQUAL || handled == 1, "changed, without a signal");
    no_more_signals();
}

FIBER(plain_waiter) {
    expect(vigil_wait32((uint32_t *)argument, 0, VIGIL_FOREVER), VIGIL_OK, "wait");
}

/* Joins a line in the same bucket, and leaves it again. Exactly as many waiters are notified as there were signals. */
static void join_and_leave(intptr_t waiters, unsigned signals) {
    await_in_line((uintptr_t)waiters);
    sim_handle(notify_one, signals);
    expect(vigil_wait32(beside, 0, 10), VIGIL_TIMED_OUT, "wait");
    no_more_signals();
    int64_t left = vigil_waiters(line);
    sim_check(left == waiters - handled, "%d signals, and %d waiters are left", (int)handled, (int)left);
    sim_check(vigil_notify(line, VIGIL_ALL) == left, "some waiters are missing");
}

FIBER(passer_by) {
    (void)argument;
    expect(vigil_wait32(beside, 0, 10), VIGIL_TIMED_OUT, "wait"); /* in the same bucket */
}

FIBER(joiner) {
    join_and_leave((intptr_t)argument, 2);
}

FIBER(joiner_three) {
    join_and_leave((intptr_t)argument, 3);
}

/* One waiter in each of two lines; the handler notifies the other line. */
FIBER(notifier) {
    (void)argument;
    await_in_line(2);
    sim_handle(notify_one, 1);
    sim_check(vigil_notify(beside, 1) == 1, "the waiter was missed");
    no_more_signals();
    sim_check(vigil_waiters(line) == 1 - handled, "%d signals", (int)handled);
    vigil_notify(line, VIGIL_ALL);
}

FIBER(joiner_of_three_lines) {
    (void)argument;
    await_in_line(3);
    sim_handle(notify_three, 1);
    expect(vigil_wait32(&words[6], 0, 10), VIGIL_TIMED_OUT, "wait");
    no_more_signals();
    int64_t left = vigil_waiters(&words[0]) + vigil_waiters(&words[2]) + vigil_waiters(&words[4]);
    sim_check(left == 3 - 3 * handled + refused, "%d are left, and %d were refused", (int)left, (int)refused);
    sim_check(refused <= 1, "%d were refused", (int)refused);
    for (unsigned i = 0; i < 6; i += 2) vigil_notify(&words[i], 1);
}

FIBER(own_acquirer) {
    sim_handle(release_one, (unsigned)(uintptr_t)argument);
    expect(vigil_sem_acquire(sem, (uint32_t)(uintptr_t)argument), VIGIL_OK, "acquire");
    taken += (intptr_t)argument;
    no_more_signals();
}

/* One of two threads; the handler of each releases a permit. Each thread may get either permit. */
FIBER(one_of_two) {
    bool second = argument != NULL;
    sim_handle(second ? bring_second : bring_first, 1);
    expect(vigil_sem_acquire(sem, 1), VIGIL_OK, "acquire");
    taken++;
    no_more_signals();
    if (!brought[second]) release_one();
}

FIBER(own_acquirer_timed) {
    sim_handle(release_one, 1);
    int status = vigil_sem_acquire_for(sem, 1, 10);
    taken += status == VIGIL_OK;
    no_more_signals();
    (void)argument;
}

FIBER(acquirer) {
    (void)argument;
    expect(vigil_sem_acquire(sem, 1), VIGIL_OK, "acquire");
    taken++;
}

/* Releases the permits that the signals did not. */
static void release_rest(int64_t all) {
    no_more_signals();
    if (handled < all) expect(vigil_sem_release(sem, (uint32_t)(all - handled)), VIGIL_OK, "release");
}

FIBER(locker) {
    (void)argument;
    sim_handle(release_one, 1);
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    expect(vigil_mutex_unlock(&mutex), VIGIL_OK, "unlock");
    release_rest(1);
}

FIBER(other_locker) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    expect(vigil_mutex_unlock(&mutex), VIGIL_OK, "unlock");
}

/* Calls a loop, with a thread behind it, and is interrupted while it does. */
FIBER(releaser) {
    (void)argument;
    await_in_line(2);
    sim_handle(release_one, 1);
    expect(vigil_sem_release(sem, 1), VIGIL_OK, "release");
    release_rest(1);
}

static void come(vigil_op *op, int status) {
    turn_ends(op, status);
    expect(status, VIGIL_OK, "request");
    taken++;
}

static void acquire_by_loop(void) {
    vigil_agent *agent = new_agent();
    int status = vigil_sem_acquire_async(agent, turn_begins(&turns[0]), sem, 1, VIGIL_FOREVER, come);
    turn_answered(&turns[0], status, VIGIL_FOREVER, come);
    taken += status == VIGIL_OK;
    run(agent);
    destroy(agent);
}

FIBER(loop) {
    (void)argument;
    acquire_by_loop();
}

/* ---- In a segment ---- */

FIBER(shared_own_waiter) {
    vigil_buffer *buffer = join_segment();
    own_waiter(argument);
    leave_segment(buffer);
}

FIBER(shared_waiter) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    plain_waiter(line);
    leave_segment(buffer);
}

FIBER(shared_joiner) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    join_and_leave(1, 1);
    leave_segment(buffer);
}

FIBER(shared_own_acquirer) {
    vigil_buffer *buffer = join_segment();
    own_acquirer(argument);
    vigil_sem_release(sem, 1); /* for the other process */
    leave_segment(buffer);
}

FIBER(shared_acquirer) {
    vigil_buffer *buffer = join_segment();
    acquirer(argument);
    vigil_sem_release(sem, 1); /* a leased permit must come back */
    leave_segment(buffer);
}

FIBER(shared_loop) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    acquire_by_loop();
    vigil_sem_release(sem, 1);
    leave_segment(buffer);
}

/*
 * Holds the only permit. It waits in a line beside the semaphore, and is interrupted by a signal that releases the
 * permit.
 */
FIBER(shared_leaser) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_sem_acquire(sem, 1), VIGIL_OK, "acquire");
    sim_handle(release_one, 1);
    expect(vigil_wait32(beside, 0, 10), VIGIL_TIMED_OUT, "wait");
    release_rest(1);
    leave_segment(buffer);
}

FIBER(shared_releaser) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_handle(release_one, 1);
    expect(vigil_wait32(beside, 0, 10), VIGIL_TIMED_OUT, "wait");
    release_rest(1);
    leave_segment(buffer);
}

/*
 * A process is stopped in a bucket. A thread of another process waits for that bucket and is interrupted by an
 * unrelated signal: what its handler defers is done all the same.
 */
static bool stopped_in_bucket;

static bool is_stopped(void *unused) {
    (void)unused;
    return stopped_in_bucket;
}

FIBER(stopper) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    struct lot *lot = lot_in(buffer->segment);
    uint32_t buckets = 1u << lot->bucket_bits; /* any number works, so all of them */
    for (uint32_t i = 0; i < buckets; i++) shared_trylock(lot, &lot->buckets[i], PRIM_NEVER);
    stopped_in_bucket = true;
    sim_stop(VICTIM);
    for (uint32_t i = 0; i < buckets; i++) {
        if (word_unlock_only(&lot->buckets[i].word, false)) prim_wake_shared(&lot->buckets[i].word);
        critical_leave();
    }
    leave_segment(buffer);
}

FIBER(blocked) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(is_stopped, NULL);
    sim_handle(release_one, 1);
    expect(vigil_wait32(line, 0, 10), VIGIL_TIMED_OUT, "wait");
    no_more_signals();
    leave_segment(buffer);
}

FIBER(rescuer) {
    acquirer(argument);
    sim_continue(VICTIM);
}

/* ---- Agents ---- */

static void note(vigil_agent *agent, void *argument) {
    (void)agent;
    (void)argument;
    books.ran++;
}

FIBER(poster) {
    (void)argument;
    post(woken_agent, note, NULL);
    interrupted_is_done = true;
}

static bool posted(void *unused) {
    (void)unused;
    return interrupted_is_done;
}

FIBER(runner) {
    vigil_agent *agent = woken_agent = new_agent();
    expect(vigil_agent_ref(agent), VIGIL_OK, "ref");
    if (argument) sim_go("poster", poster, NULL);
    sim_handle(wake_agent, 1);
    run(agent);
    sim_check(prim_load_relaxed(&terminate), "run returned, and what was done before the wake is not visible");
    sim_handle(NULL, 0);
    if (argument) sim_until(posted, NULL);
    destroy(agent);
}

FIBER(poller) {
    vigil_agent *agent = woken_agent = new_agent();
    int fd = vigil_agent_fd(agent);
    if (argument) sim_go("poster", poster, NULL);
    sim_handle(wake_agent, 1);
    while (!prim_load_relaxed(&terminate)) {
        sim_poll(fd, PRIM_NEVER);
        vigil_agent_dispatch(agent);
    }
    sim_handle(NULL, 0);
    if (argument) sim_until(posted, NULL);
    destroy(agent);
}

/* Wakes an agent of another thread, which has mail at the same time. */
FIBER(waker) {
    (void)argument;
    post(woken_agent, note, NULL);
    wake_agent();
    interrupted_is_done = true;
}

FIBER(woken_runner) {
    (void)argument;
    vigil_agent *agent = woken_agent = new_agent();
    expect(vigil_agent_ref(agent), VIGIL_OK, "ref");
    sim_go("waker", waker, NULL);
    run(agent);
    sim_check(books.ran == 1, "run returned before what was posted before the wake has run");
    sim_until(posted, NULL);
    destroy(agent);
}

/* ---- Scenarios ---- */

static void handler_ends_own_wait(void) {
    begin_signals();
    go("waiter", own_waiter);
}

static void handler_ends_own_wait_with_others(void) {
    begin_signals();
    go("waiter", own_waiter);
    go("other", passer_by);
}

static void handler_and_deadline(void) {
    begin_signals();
    go("waiter", own_waiter_timed);
}

static void handler_counts(void) {
    begin_signals();
    for (int i = 0; i < 3; i++) go_with("waiter", plain_waiter, (intptr_t)line);
    go_with("interrupted", joiner, 3);
}

static void handlers_nest(void) {
    begin_signals();
    for (int i = 0; i < 3; i++) go_with("waiter", plain_waiter, (intptr_t)line);
    go_with("interrupted", joiner_three, 3);
}

static void handler_in_notify(void) {
    begin_signals();
    go_with("waiter", plain_waiter, (intptr_t)line);
    go_with("other waiter", plain_waiter, (intptr_t)beside);
    go("notifier", notifier);
}

static void handler_defers_too_much(void) {
    begin_signals();
    refused = 0;
    for (int i = 0; i < 6; i += 2) go_with("waiter", plain_waiter, (intptr_t)&words[i]);
    go("interrupted", joiner_of_three_lines);
}

static void handler_brings_permits(void) {
    begin_signals();
    go_with("acquirer", own_acquirer, 2);
}

static void handler_brings_permits_to_two(void) {
    begin_signals();
    brought[0] = brought[1] = false;
    go_with("first", one_of_two, 0);
    go_with("second", one_of_two, 1);
}

static void handler_brings_permit_late(void) {
    begin_signals();
    go("acquirer", own_acquirer_timed);
}

static void handler_in_mutex(void) {
    begin_signals();
    go("acquirer", acquirer);
    go("locker", locker);
    go("other locker", other_locker);
}

static void handler_calls_loop(void) {
    begin_signals();
    go("loop", loop);
    go("thread", acquirer);
    go("releaser", releaser);
}

static void go_joined(unsigned process, const char *name, void (*fiber)(void *)) {
    join_before(process);
    go_in(process, name, fiber);
}

static void handler_in_segment(void) {
    begin_signals_shared(false);
    go_joined(VICTIM, "waiter", shared_own_waiter);
}

static void handler_notifies_process(void) {
    begin_signals_shared(false);
    go_joined(VICTIM, "interrupted", shared_joiner);
    go_joined(SURVIVOR, "waiter", shared_waiter);
}

static void handler_permits_process(void) {
    begin_signals_shared(false);
    join_before(VICTIM);
    sim_go_in(VICTIM, "acquirer", shared_own_acquirer, (void *)1);
    go_joined(SURVIVOR, "other", shared_acquirer);
}

static void handler_returns_lease(void) {
    begin_signals_shared(true);
    go_joined(VICTIM, "leaser", shared_leaser);
    go_joined(SURVIVOR, "acquirer", shared_acquirer);
}

static void handler_writes_to_loop(void) {
    begin_signals_shared(false);
    go_joined(VICTIM, "releaser", shared_releaser);
    go_joined(SURVIVOR, "loop", shared_loop);
}

static void handler_beside_the_stopped(void) {
    begin_signals_shared(false);
    sem = &private_sem;
    stopped_in_bucket = false;
    go_joined(VICTIM, "stopped", stopper);
    go_joined(SURVIVOR, "blocked", blocked);
    sim_go_in(SURVIVOR, "rescuer", rescuer, NULL);
}

static void handler_ends_run(void) {
    begin_signals();
    go("runner", runner);
}

static void handler_ends_run_with_mail(void) {
    begin_signals();
    go_with("runner", runner, 1);
}

static void handler_ends_poll(void) {
    begin_signals();
    go_with("poller", poller, 1);
}

static void thread_ends_run(void) {
    begin_signals();
    go("runner", woken_runner);
}

/* ---- Finishes ---- */

static void permits_balance(void) {
    int64_t left = sem->word / PERMIT;
    sim_check(left + taken == handled, "%d permits were released, %d acquired, and %d are left", (int)handled,
              (int)taken, (int)left);
    balance();
}

static void one_lease_left(void) {
    sim_check(sem->word / PERMIT == 1, "%u permits are left", sem->word / PERMIT);
    balance();
}

const struct sim_scenario signal_scenarios[] = {
    {"handler_ends_own_wait", "a thread waits for what only its own handler does", handler_ends_own_wait, balance},
    {"handler_ends_with_others", "the same while others use the bucket", handler_ends_own_wait_with_others, balance},
    {"handler_and_deadline", "a deadline and a handler", handler_and_deadline, balance},
    {"handler_counts", "as many waiters are notified as there were signals", handler_counts, balance},
    {"handlers_nest", "the same, and handlers interrupt each other", handlers_nest, balance},
    {"handler_in_notify", "a notification is interrupted by another", handler_in_notify, balance},
    {"handler_defers_too_much", "what cannot be deferred is refused", handler_defers_too_much, balance},
    {"handler_brings_permits", "a thread waits for permits that its own handler releases", handler_brings_permits,
     permits_balance},
    {"handler_brings_to_two", "two threads wait for such permits", handler_brings_permits_to_two, permits_balance},
    {"handler_brings_late", "a thread gives up waiting for such a permit", handler_brings_permit_late, permits_balance},
    {"handler_in_mutex", "a mutex's lock and unlock are interrupted by a release of permits", handler_in_mutex,
     balance},
    {"handler_calls_loop", "a release that calls a loop is interrupted by another release", handler_calls_loop,
     balance},
    {"handler_in_segment", "a thread waits in a segment for what its own handler does", handler_in_segment, balance},
    {"handler_notifies_process", "a handler notifies another process", handler_notifies_process, balance},
    {"handler_permits_process", "a handler releases permits that two processes want", handler_permits_process, balance},
    {"handler_returns_lease", "a handler releases leased permits", handler_returns_lease, one_lease_left},
    {"handler_writes_to_loop", "a handler calls a loop of another process", handler_writes_to_loop, balance},
    {"handler_beside_the_stopped", "a handler's work does not wait for a stopped process", handler_beside_the_stopped,
     permits_balance},
    {"handler_ends_run", "a handler wakes the agent that its thread runs", handler_ends_run, balance},
    {"handler_ends_run_with_mail", "the same, and the agent has mail", handler_ends_run_with_mail, balance},
    {"handler_ends_poll", "the same with the agent's descriptor", handler_ends_poll, balance},
    {"thread_ends_run", "another thread wakes an agent, after a post", thread_ends_run, balance},
    {0},
};
