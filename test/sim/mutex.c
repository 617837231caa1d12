/* SPDX-License-Identifier: MIT */
/*
 * Scenarios for the mutex, which threads and event loops share.
 *
 * Every holder calls work(), which fails if another holder is inside or if what the previous holder wrote is not
 * visible. In most scenarios the mutex is held at first, so that the others have to wait. A waiter without a deadline
 * must get the mutex, or the execution never ends. At the end the mutex must be free, and its line empty.
 */
#include "vigil/mutex.h"

#include "scenario.h"

#define UNLOCKED  0u
#define LOCKED    1u
#define CONTENDED 2u
#define RESERVED  3u
#define FAIR      4u

/* ---- Parts ---- */

static vigil_mutex mutex;
static uint32_t written; /* by each holder */
static uint32_t entered;
static int inside;
static int cancelled;   /* how many requests were called back as cancelled, except by their own agent */
static bool had_thread; /* the thread, or the loop, of a scenario has held the lock */
static bool had_loop;

static void prepare_with(uint32_t word) {
    mutex.word = word;
    written = entered = 0;
    inside = cancelled = 0;
    had_thread = had_loop = false;
    sim_name(&mutex, sizeof mutex, "mutex");
    sim_name(&written, sizeof written, "written");
}

static void begin_with(uint32_t word) {
    begin();
    prepare_with(word);
}

static void all_over(void) {
    sim_check(mutex.word % FAIR == UNLOCKED, "at the end the mutex is %#x", mutex.word);
    balance();
}

static void work(void) {
    sim_check(inside++ == 0, "the lock has two holders");
    sim_check(prim_load_relaxed(&written) == entered, "what the previous holder wrote is not visible");
    prim_store_relaxed(&written, ++entered);
    inside--;
}

static void lock(void) {
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
}

static void unlock(void) {
    expect(vigil_mutex_unlock(&mutex), VIGIL_OK, "unlock");
}

FIBER(thread) {
    (void)argument;
    lock();
    work();
    had_thread = true;
    unlock();
}

FIBER(thread_twice) {
    thread(argument);
    thread(argument);
}

/* Holds the lock from the beginning. */
FIBER(holder) {
    (void)argument;
    work();
    unlock();
}

FIBER(holder_of_line) { /* the argument: how many are in line before it unlocks */
    await_in_line((uintptr_t)argument);
    holder(NULL);
}

static void enter(struct turn *turn) {
    sim_check(vigil_mutex_is_locked(&mutex), "granted, but not locked");
    had_loop = true;
    if (turn->then) turn->then(turn);
    else work();
}

static void come(vigil_op *op, int status) {
    struct turn *turn = turn_ends(op, status);
    cancelled += status == VIGIL_CANCELLED;
    if (status == VIGIL_OK) enter(turn);
}

static void come_and_unlock(vigil_op *op, int status) {
    come(op, status);
    if (status == VIGIL_OK) unlock();
}

static void execute(vigil_agent *agent, struct turn *turn) {
    int status = vigil_mutex_execute(agent, turn_begins(turn), &mutex, VIGIL_FOREVER, come);
    sim_check(status == VIGIL_PENDING || (status == VIGIL_OK && !turn->waiting), "execute returns %s",
              vigil_status_name(status));
}

static void ask(vigil_agent *agent, struct turn *turn, int64_t timeout_ns, vigil_callback *callback) {
    int status = vigil_mutex_lock_async(agent, turn_begins(turn), &mutex, timeout_ns, callback);
    turn_answered(turn, status, timeout_ns, callback);
}

FIBER(loop) { /* the argument: its turn */
    vigil_agent *agent = new_agent();
    execute(agent, argument);
    run(agent);
    destroy(agent);
}

/* ---- One holder at a time, and no waiter forgotten ---- */

static void mutex_two_threads(void) {
    begin_with(UNLOCKED);
    go("thread 1", thread);
    go("thread 2", thread);
}

static void mutex_three_threads(void) {
    begin_with(UNLOCKED);
    go("thread 1", thread);
    go("thread 2", thread);
    go("thread 3", thread);
}

static void mutex_again(void) {
    begin_with(UNLOCKED);
    go("thread 1", thread_twice);
    go("thread 2", thread_twice);
}

static void mutex_two_in_line(void) {
    begin_with(LOCKED);
    go("thread 1", thread);
    go("thread 2", thread);
    sim_go("holder", holder_of_line, (void *)2);
}

static void mutex_loop_and_thread(void) {
    begin_with(UNLOCKED);
    sim_go("loop", loop, &turns[0]);
    go("thread", thread);
}

static void mutex_loop_and_threads(void) {
    begin_with(LOCKED);
    sim_go("loop", loop, &turns[0]);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_two_loops(void) {
    begin_with(LOCKED);
    sim_go("loop 1", loop, &turns[0]);
    sim_go("loop 2", loop, &turns[1]);
    go("holder", holder);
}

static void mutex_fair_for_all(void) {
    begin_with(FAIR | LOCKED);
    sim_go("loop", loop, &turns[0]);
    go("thread", thread);
    go("holder", holder);
}

/* ---- Unlocked by another thread than the one that locked ---- */

static void work_and_tell(struct turn *turn) {
    (void)turn;
    work();
    prim_store_release(&words[1], 1u);
}

static bool told(void *unused) {
    (void)unused;
    return had_loop;
}

FIBER(loop_leaves_it_locked) {
    (void)argument;
    vigil_agent *agent = new_agent();
    turns[0].then = work_and_tell;
    ask(agent, &turns[0], VIGIL_FOREVER, come);
    run(agent);
    destroy(agent);
}

FIBER(unlocker) {
    (void)argument;
    sim_until(told, NULL);
    while (!prim_load_acquire(&words[1])) prim_pause();
    unlock();
}

static void mutex_unlocked_elsewhere(void) {
    begin_with(UNLOCKED);
    go("loop", loop_leaves_it_locked);
    go("thread", thread);
    go("unlocker", unlocker);
}

/* ---- Deadlines ---- */

FIBER(thread_500) {
    (void)argument;
    int64_t due_ns = vigil_now_ns() + 500;
    int status = vigil_mutex_lock_for(&mutex, 500);
    if (status == VIGIL_OK) {
        work();
        unlock();
    } else {
        expect(status, VIGIL_TIMED_OUT, "lock_for");
        sim_check(vigil_now_ns() >= due_ns, "timed out too early");
    }
}

FIBER(loop_500) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int64_t due_ns = vigil_now_ns() + 500;
    ask(agent, &turns[0], 500, come_and_unlock);
    run(agent);
    sim_check(turns[0].status == VIGIL_OK || turns[0].status == VIGIL_TIMED_OUT, "the turn ended with %s",
              vigil_status_name(turns[0].status));
    sim_check(turns[0].status == VIGIL_OK || vigil_now_ns() >= due_ns, "timed out too early");
    destroy(agent);
}

static void mutex_timeout(void) {
    begin_with(LOCKED);
    sim_moment(1500);
    go("impatient", thread_500);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_async_timeout(void) {
    begin_with(LOCKED);
    sim_moment(1500);
    go("impatient", loop_500);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_fair_timeouts(void) {
    begin_with(FAIR | LOCKED);
    sim_moment(1500);
    go("impatient", thread_500);
    go("loop", loop_500);
    go("holder", holder);
}

/* ---- Cancel, and agents that end ---- */

FIBER(loop_cancels) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], VIGIL_FOREVER, come_and_unlock);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

/* Never dispatches: it may have been granted the lock, or have been woken to try. */
FIBER(loop_destroyed) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], VIGIL_FOREVER, come_and_unlock);
    destroy(agent);
}

static void mutex_cancel(void) {
    begin_with(LOCKED);
    go("loop", loop_cancels);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_fair_cancel(void) {
    begin_with(FAIR | LOCKED);
    go("loop", loop_cancels);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_destroy(void) {
    begin_with(LOCKED);
    go("loop", loop_destroyed);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_fair_destroy(void) {
    begin_with(FAIR | LOCKED);
    go("loop", loop_destroyed);
    go("thread", thread);
    go("holder", holder);
}

/* ---- Execute inside execute ---- */

static void work_and_execute(struct turn *turn) {
    work();
    execute(turn->request.op.agent, &turns[1]);
    sim_check(turns[1].waiting, "execute inside execute did not wait");
    work();
}

FIBER(loop_nests) {
    (void)argument;
    vigil_agent *agent = new_agent();
    turns[0].request.op.agent = agent; /* for the callback, which may be called at once */
    turns[0].then = work_and_execute;
    execute(agent, &turns[0]);
    run(agent);
    destroy(agent);
}

static void mutex_nested(void) {
    begin_with(UNLOCKED);
    go("loop", loop_nests);
    go("thread", thread);
}

/* ---- Patience ---- */

static bool somebody_in_line(void *unused) {
    (void)unused;
    return in_line() > 0;
}

/* Takes the lock ahead of the waiter that it has just woken. When that waiter has waited for long, it tries again. */
FIBER(barger) {
    (void)argument;
    await_in_line(1);
    unlock();
    if (vigil_mutex_trylock(&mutex) != VIGIL_OK) return; /* the waiter was faster */
    work();
    if (!had_thread && !had_loop) {
        sim_until(somebody_in_line, NULL);
        let_pass(PATIENCE);
    }
    unlock();
    if (vigil_mutex_trylock(&mutex) == VIGIL_OK) {
        sim_check(had_thread || had_loop, "the lock was not handed over");
        work();
        unlock();
    }
}

static void mutex_patience(void) {
    begin_with(LOCKED);
    go("barger", barger);
    go("thread", thread);
}

static void mutex_patience_of_loop(void) {
    begin_with(LOCKED);
    go("barger", barger);
    sim_go("loop", loop, &turns[0]);
}

/* A called waiter is not passed over forever, even if it is not scheduled. */
FIBER(passer) {
    (void)argument;
    await_in_line(1);
    unlock();
    for (unsigned i = 0; i < PRIM_PASSES + 3; i++) {
        if (vigil_mutex_trylock(&mutex) != VIGIL_OK) continue;
        bool coming = mutex.word & 8; /* called, and not here yet; beside this bit the passes are counted */
        unsigned passed = coming ? mutex.word % (1 << 20) / 16 : 0;
        sim_check(passed <= PRIM_PASSES, "passed over %u times", passed);
        work();
        unlock();
    }
}

static void mutex_passed_by(void) {
    begin_with(LOCKED);
    go("passer", passer);
    go("thread", thread);
}

/* ---- First come, first served ---- */

static intptr_t last_served;
static int64_t began_ns;

/* After a second, a waiter may lose its turn. */
static void serve(intptr_t place) {
    bool in_turn = place == last_served + 1 || vigil_now_ns() >= began_ns + FAIR_PATIENCE;
    sim_check(in_turn, "number %d is served after number %d", (int)place, (int)last_served);
    last_served = place;
    work();
}

FIBER(thread_in_place) { /* the argument: its place in line */
    await_in_line((uintptr_t)argument - 1);
    lock();
    serve((intptr_t)argument);
    unlock();
}

static void serve_second(struct turn *turn) {
    (void)turn;
    serve(2);
}

FIBER(loop_second) {
    await_in_line(1);
    turns[0].then = serve_second;
    loop(argument);
}

FIBER(holder_again) { /* locks again at once, and is the last */
    (void)argument;
    await_in_line(3);
    unlock();
    lock();
    serve(4);
    unlock();
}

static void mutex_fair_line(void) {
    begin_with(FAIR | LOCKED);
    last_served = 0;
    began_ns = vigil_now_ns();
    sim_go("first", thread_in_place, (void *)1);
    sim_go("second", loop_second, &turns[0]);
    sim_go("third", thread_in_place, (void *)3);
    go("holder", holder_again);
}

/* The loop's second request is older than the thread, but has no place of its own before the first is served. */
static bool both_asked, thread_came;

static bool both_have_asked(void *unused) {
    (void)unused;
    return both_asked;
}

static bool thread_in_line(void *unused) {
    (void)unused;
    return thread_came && in_line() == 2;
}

static void serve_first(struct turn *turn) {
    (void)turn;
    serve(1);
}

FIBER(loop_first_and_second) {
    (void)argument;
    vigil_agent *agent = new_agent();
    turns[0].then = serve_first;
    turns[1].then = serve_second;
    execute(agent, &turns[0]);
    execute(agent, &turns[1]);
    both_asked = true;
    run(agent);
    destroy(agent);
}

FIBER(thread_third) {
    (void)argument;
    sim_until(both_have_asked, NULL);
    let_pass(1); /* so it is younger than the requests */
    thread_came = true;
    lock();
    serve(3);
    unlock();
}

FIBER(holder_until_thread_in_line) {
    sim_until(thread_in_line, NULL);
    holder(argument);
}

static void mutex_fair_next_of_loop(void) {
    begin_with(FAIR | LOCKED);
    last_served = 0;
    began_ns = vigil_now_ns();
    both_asked = thread_came = false;
    go("first two", loop_first_and_second);
    go("third", thread_third);
    go("holder", holder_until_thread_in_line);
}

/* ---- A loop that runs late ---- */

static bool thread_had_it(void *unused) {
    (void)unused;
    return had_thread;
}

FIBER(slow_loop) {
    (void)argument;
    vigil_agent *agent = new_agent();
    execute(agent, &turns[0]);
    sim_until(thread_had_it, NULL);
    run(agent);
    destroy(agent);
}

FIBER(second_thread) {
    await_in_line(1);
    thread(argument);
}

static void mutex_slow_loop(void) {
    begin_with(LOCKED);
    go("loop", slow_loop);
    go("thread", second_thread);
    sim_go("holder", holder_of_line, (void *)2);
}

static void mutex_fair_slow_loop(void) {
    begin_with(FAIR | LOCKED);
    go("loop", slow_loop);
    go("thread", second_thread);
    sim_go("holder", holder_of_line, (void *)2);
}

/* A loop that does not run before a thread has held the mutex, and one more thread behind that one. */
static void mutex_slow_loops(void) {
    begin_with(LOCKED);
    go("loop 1", slow_loop);
    go("thread 1", second_thread);
    go("thread 2", second_thread);
    sim_go("holder", holder_of_line, (void *)2);
}

/* The loop that does not run is alone in line when the mutex is reserved for it; the thread comes after that. */
static bool reserved(void *unused) {
    (void)unused;
    return mutex.word % FAIR == RESERVED;
}

FIBER(thread_when_reserved) {
    sim_until(reserved, NULL);
    thread(argument);
}

static void mutex_reserved_for_slow_loop(void) {
    begin_with(FAIR | LOCKED);
    go("loop", slow_loop);
    go("thread", thread_when_reserved);
    sim_go("holder", holder_of_line, (void *)1);
}

/* A thread of an event loop blocks behind its own request: the request cannot be served before the thread is. */
FIBER(loop_that_blocks) {
    (void)argument;
    vigil_agent *agent = new_agent();
    execute(agent, &turns[0]);
    thread(NULL);
    run(agent);
    destroy(agent);
}

static void mutex_behind_itself(void) {
    begin_with(LOCKED);
    go("loop", loop_that_blocks);
    go("holder", holder);
}

static void mutex_fair_behind_itself(void) {
    begin_with(FAIR | LOCKED);
    go("loop", loop_that_blocks);
    go("holder", holder);
}

/* One loop never reads its mail before the other has held the lock. */
static bool other_had_it(void *unused) {
    (void)unused;
    return turns[1].request.op.data && !turns[1].waiting;
}

FIBER(slower_loop) {
    (void)argument;
    vigil_agent *agent = new_agent();
    execute(agent, &turns[0]);
    sim_until(other_had_it, NULL);
    run(agent);
    destroy(agent);
}

FIBER(second_loop) {
    await_in_line(1);
    loop(argument);
}

static void mutex_slow_loop_before_loop(void) {
    begin_with(LOCKED);
    go("slow loop", slower_loop);
    sim_go("loop", second_loop, &turns[1]);
    sim_go("holder", holder_of_line, (void *)2);
}

static void mutex_fair_slow_loop_before_loop(void) {
    begin_with(FAIR | LOCKED);
    go("slow loop", slower_loop);
    sim_go("loop", second_loop, &turns[1]);
    sim_go("holder", holder_of_line, (void *)2);
}

/*
 * The guard of a reservation for a loop that does not run has a deadline of its own, and another thread waits behind
 * it.
 */
static bool guard_left;

FIBER(guard) {
    (void)argument;
    await_in_line(1);
    if (vigil_mutex_lock_for(&mutex, PATIENCE + 500) == VIGIL_OK) {
        work();
        unlock();
    }
    guard_left = true;
}

static bool three_in_line(void *unused) {
    (void)unused;
    return in_line() == (guard_left ? 2 : 3);
}

FIBER(third_thread) {
    await_in_line(2);
    thread(argument);
}

FIBER(holder_for_long) {
    sim_until(three_in_line, NULL);
    let_pass(PATIENCE);
    holder(argument);
}

static void mutex_guard_with_deadline(void) {
    begin_with(LOCKED);
    guard_left = false;
    go("loop", slow_loop);
    go("guard", guard);
    go("thread", third_thread);
    go("holder", holder_for_long);
}

/* A loop that does not run is called for one lock more than the table of guards has room for. */
#define LOCKS (PRIM_GUARDS + 1)

static vigil_mutex locks[LOCKS];
static unsigned threads_through;

static void take_and_unlock(vigil_op *op, int status) {
    struct turn *turn = turn_ends(op, status);
    expect(status, VIGIL_OK, "lock");
    expect(vigil_mutex_unlock(&locks[turn - turns]), VIGIL_OK, "unlock");
}

static bool threads_had_them(void *unused) {
    (void)unused;
    return threads_through == LOCKS;
}

FIBER(loop_of_locks) {
    (void)argument;
    vigil_agent *agent = new_agent();
    for (unsigned i = 0; i < LOCKS; i++) {
        int status = vigil_mutex_lock_async(agent, turn_begins(&turns[i]), &locks[i], VIGIL_FOREVER, take_and_unlock);
        expect(status, VIGIL_PENDING, "lock");
    }
    sim_until(threads_had_them, NULL);
    run(agent);
    destroy(agent);
}

FIBER(thread_of_lock) {
    await_in_line(LOCKS);
    expect(vigil_mutex_lock(argument), VIGIL_OK, "lock");
    threads_through++;
    expect(vigil_mutex_unlock(argument), VIGIL_OK, "unlock");
}

FIBER(holder_of_locks) {
    (void)argument;
    await_in_line(2 * LOCKS);
    for (unsigned i = 0; i < LOCKS; i++) expect(vigil_mutex_unlock(&locks[i]), VIGIL_OK, "unlock");
}

static void mutex_guards_overflow(void) {
    begin_with(UNLOCKED);
    threads_through = 0;
    go("loop", loop_of_locks);
    for (unsigned i = 0; i < LOCKS; i++) {
        locks[i].word = LOCKED;
        sim_go("thread", thread_of_lock, &locks[i]);
    }
    go("holder", holder_of_locks);
}

/* ---- A queue of one loop ---- */

FIBER(loop_of_three) {
    (void)argument;
    vigil_agent *agent = new_agent();
    for (int i = 0; i < 3; i++) execute(agent, &turns[i]);
    run(agent);
    destroy(agent);
}

static void mutex_queue(void) {
    begin_with(LOCKED);
    go("loop", loop_of_three);
    go("thread", thread);
    go("holder", holder);
}

/* The first request, which holds the place in line, leaves it to the next. */
FIBER(loop_cancels_first) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], 500, come_and_unlock);
    ask(agent, &turns[1], VIGIL_FOREVER, come_and_unlock);
    ask(agent, &turns[2], 500, come_and_unlock);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

static void mutex_queue_cancel(void) {
    begin_with(LOCKED);
    sim_moment(1500);
    go("loop", loop_cancels_first);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_fair_queue_cancel(void) {
    begin_with(FAIR | LOCKED);
    sim_moment(1500);
    go("loop", loop_cancels_first);
    go("thread", thread);
    go("holder", holder);
}

/* A reservation for a request that is gone, or for an agent that ends, does not remain. */
FIBER(loop_cancels_when_reserved) {
    (void)argument;
    vigil_agent *agent = new_agent();
    execute(agent, &turns[0]);
    sim_until(reserved, NULL);
    cancel_turn(&turns[0]);
    vigil_agent_dispatch(agent);
    destroy(agent);
}

static void mutex_orphan(void) {
    begin_with(FAIR | LOCKED);
    go("loop", loop_cancels_when_reserved);
    sim_go("holder", holder_of_line, (void *)1);
}

FIBER(loop_ends_when_reserved) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], VIGIL_FOREVER, come_and_unlock);
    sim_until(reserved, NULL);
    destroy(agent);
}

static void mutex_end_when_reserved(void) {
    begin_with(FAIR | LOCKED);
    go("loop", loop_ends_when_reserved);
    sim_go("holder", holder_of_line, (void *)1);
}

/* ---- Not held ---- */

static int unlocked;

FIBER(unlocks_too) {
    (void)argument;
    int status = vigil_mutex_unlock(&mutex);
    unlocked += status == VIGIL_OK;
    sim_check(status == VIGIL_OK || status == VIGIL_ENOTHELD, "unlock returns %s", vigil_status_name(status));
}

static void mutex_unlocked_twice(void) {
    begin_with(LOCKED);
    unlocked = 0;
    go("one", unlocks_too);
    go("other", unlocks_too);
}

static void mutex_contended_unlocked_twice(void) {
    begin_with(CONTENDED);
    unlocked = 0;
    go("one", unlocks_too);
    go("other", unlocks_too);
}

static void unlocked_once(void) {
    sim_check(unlocked == 1, "unlocked %d times", unlocked);
    all_over();
}

/* Both may have seen that it was held. */
static void unlocked_by_any(void) {
    sim_check(unlocked >= 1, "not unlocked");
    all_over();
}

/* ---- Forget ---- */

static int64_t forgotten;

FIBER(thread_or_forgotten) {
    (void)argument;
    int status = vigil_mutex_lock(&mutex);
    if (status == VIGIL_OK) {
        work();
        unlock();
    } else {
        expect(status, VIGIL_CANCELLED, "lock");
        cancelled++;
    }
}

FIBER(forgetter) {
    (void)argument;
    forgotten = vigil_forget(&mutex, sizeof mutex);
}

static void mutex_forget(void) {
    begin_with(LOCKED);
    forgotten = 0;
    go("thread", thread_or_forgotten);
    sim_go("loop", loop, &turns[0]);
    go("forgetter", forgetter);
    go("holder", holder);
}

static void forgotten_are_cancelled(void) {
    sim_check(forgotten == cancelled, "forget returns %d, but %d were cancelled", (int)forgotten, cancelled);
    all_over();
}

/* ---- With code that changes the word itself if that takes no waiting ---- */

static void plain_lock(void) {
    uint32_t seen = UNLOCKED;
    if (!prim_cas_acquire(&mutex.word, &seen, LOCKED)) expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
}

static void plain_unlock(void) {
    uint32_t seen = LOCKED;
    if (!prim_cas_release(&mutex.word, &seen, UNLOCKED)) unlock();
}

FIBER(plain_thread) {
    (void)argument;
    plain_lock();
    work();
    plain_unlock();
}

static void mutex_plain_and_thread(void) {
    begin_with(UNLOCKED);
    go("plain", plain_thread);
    go("thread", thread);
}

static void mutex_plain_and_threads(void) {
    begin_with(LOCKED);
    go("plain", plain_thread);
    go("thread", thread);
    go("holder", holder);
}

static void mutex_plain_and_loop(void) {
    begin_with(LOCKED);
    go("plain", plain_thread);
    sim_go("loop", loop, &turns[0]);
    go("holder", holder);
}

/* ---- A robust mutex, and the end of the thread that holds it ---- */

#define ROBUST 0x20000000u

static bool abandoned; /* a thread ended holding it, and it has not been held since */
static bool has_it;    /* the thread that will end */

static void begin_robust(uint32_t word) {
    begin_with(word | ROBUST);
    abandoned = has_it = false;
}

/* The mutex may pass to the next holder once the thread has ended, but not before. */
FIBER(thread_that_ends) { /* the argument: how many are in line before that */
    int status = vigil_mutex_lock(&mutex);
    expect(status, VIGIL_OK, "lock");
    work();
    inside++;
    has_it = true;
    await_in_line((uintptr_t)argument);
    inside--;
    abandoned = true;
}

static void take_over(int status) {
    expect(status, abandoned ? VIGIL_OWNER_DIED : VIGIL_OK, "lock");
    if (status == VIGIL_OWNER_DIED) expect(vigil_mutex_consistent(&mutex), VIGIL_OK, "consistent");
    abandoned = false;
    work();
}

FIBER(successor) {
    (void)argument;
    take_over(vigil_mutex_lock(&mutex));
    unlock();
}

static void come_to_abandoned(vigil_op *op, int status) {
    turn_ends(op, VIGIL_OK);
    take_over(status);
    unlock();
}

FIBER(succeeding_loop) {
    (void)argument;
    vigil_agent *agent = new_agent();
    int status = vigil_mutex_lock_async(agent, turn_begins(&turns[0]), &mutex, VIGIL_FOREVER, come_to_abandoned);
    if (status != VIGIL_PENDING) come_to_abandoned(&turns[0].request.op, status);
    run(agent);
    destroy(agent);
}

static void robust_over(void) {
    sim_check((mutex.word & ~FAIR) == (abandoned ? ROBUST | 8u : ROBUST), "at the end the mutex is %#x", mutex.word);
    balance();
}

static void robust_thread_ends(void) {
    begin_robust(UNLOCKED);
    go("holder", thread_that_ends);
    go("successor", successor);
}

static bool is_taken(void *unused) {
    (void)unused;
    return has_it;
}

FIBER(later_successor) {
    sim_until(is_taken, NULL);
    successor(argument);
}

FIBER(later_loop) {
    sim_until(is_taken, NULL);
    succeeding_loop(argument);
}

static void robust_line(void) {
    begin_robust(UNLOCKED);
    sim_go("holder", thread_that_ends, (void *)2);
    go("successor", later_successor);
    go("loop", later_loop);
}

static void robust_loop(void) {
    begin_robust(UNLOCKED);
    go("holder", thread_that_ends);
    go("loop", succeeding_loop);
}

static void robust_fair(void) {
    begin_robust(FAIR);
    go("holder", thread_that_ends);
    go("successor 1", successor);
    go("successor 2", successor);
}

/* The note is removed by the unlock: nothing happens when the threads end. */
FIBER(thread_that_unlocks) {
    successor(argument);
    successor(argument);
}

static void robust_threads(void) {
    begin_robust(UNLOCKED);
    go("thread 1", thread_that_unlocks);
    go("thread 2", successor);
    go("thread 3", successor);
}

/* ---- A holder that is not a thread ends, and another thread gives up what it held ---- */

/* In place of the holder, which has held it from the beginning. */
FIBER(abandoner) { /* the argument: how many are in line before that */
    await_in_line((uintptr_t)argument);
    work();
    abandoned = true;
    expect(vigil_mutex_abandon(&mutex), VIGIL_OK, "abandon");
}

static void abandon_thread(void) {
    begin_robust(LOCKED);
    go("abandoner", abandoner);
    go("successor 1", successor);
    go("successor 2", successor);
}

static void abandon_loop(void) {
    begin_robust(LOCKED);
    go("abandoner", abandoner);
    go("loop", succeeding_loop);
}

static void abandon_line(void) {
    begin_robust(LOCKED);
    sim_go("abandoner", abandoner, (void *)2);
    go("successor", successor);
    go("loop", succeeding_loop);
}

static void abandon_fair(void) {
    begin_robust(FAIR | LOCKED);
    sim_go("abandoner", abandoner, (void *)1);
    go("loop", succeeding_loop);
    go("successor", successor);
}

FIBER(impatient_successor) {
    (void)argument;
    int status = vigil_mutex_lock_for(&mutex, 500);
    if (status == VIGIL_TIMED_OUT) return;
    take_over(status);
    unlock();
}

FIBER(trying_successor) {
    (void)argument;
    int status = vigil_mutex_trylock(&mutex);
    if (status == VIGIL_TIMED_OUT) return;
    take_over(status);
    unlock();
}

static void abandon_deadline(void) {
    begin_robust(LOCKED);
    sim_moment(1500);
    go("abandoner", abandoner);
    go("impatient", impatient_successor);
    go("successor", successor);
}

static void abandon_trylock(void) {
    begin_robust(LOCKED);
    go("abandoner", abandoner);
    go("trying", trying_successor);
    go("loop", succeeding_loop);
}

/* Only one of the two releases it. */
FIBER(abandons_too) {
    (void)argument;
    int status = vigil_mutex_abandon(&mutex);
    unlocked += status == VIGIL_OK;
    sim_check(status == VIGIL_OK || status == VIGIL_ENOTHELD, "abandon returns %s", vigil_status_name(status));
}

static void abandon_and_unlock(void) {
    begin_robust(CONTENDED);
    unlocked = 0;
    go("one", abandons_too);
    go("other", unlocks_too);
}

static void released_once(void) {
    sim_check(unlocked == 1, "released %d times", unlocked);
    sim_check((mutex.word & ~8u) == ROBUST, "at the end the mutex is %#x", mutex.word);
    balance();
}

/* What a thread holds by a blocking call, only that thread can give up. */
FIBER(thread_that_gives_up) {
    (void)argument;
    int status = vigil_mutex_lock(&mutex);
    take_over(status);
    has_it = true;
    prim_store_release(&words[1], 1u);
    sim_until(told, NULL);
    abandoned = true;
    expect(vigil_mutex_abandon(&mutex), VIGIL_OK, "abandon");
}

FIBER(stranger_gives_up) {
    (void)argument;
    sim_until(is_taken, NULL);
    while (!prim_load_acquire(&words[1])) prim_pause();
    expect(vigil_mutex_abandon(&mutex), VIGIL_ENOTHELD, "abandon");
    had_loop = true;
}

static void abandon_own(void) {
    begin_robust(UNLOCKED);
    go("thread", thread_that_gives_up);
    go("stranger", stranger_gives_up);
    go("successor", later_successor);
}

/* ---- A robust mutex that other code locks and unlocks by compare-and-exchange, if it need not wait ---- */

static bool fast_exchange(uint32_t from, uint32_t to) {
    return prim_cas_acq_rel(&mutex.word, &from, to);
}

static void fast_unlock(void) {
    if (!fast_exchange(ROBUST | LOCKED, ROBUST)) unlock();
}

static void come_fast(vigil_op *op, int status) {
    turn_ends(op, VIGIL_OK);
    take_over(status);
    fast_unlock();
}

FIBER(fast_loop) { /* the argument: its turn */
    vigil_agent *agent = new_agent();
    struct turn *turn = argument;
    int status = VIGIL_OK;
    vigil_request *request = turn_begins(turn);
    if (!fast_exchange(ROBUST, ROBUST | LOCKED))
        status = vigil_mutex_lock_async(agent, request, &mutex, VIGIL_FOREVER, come_fast);
    if (status != VIGIL_PENDING) come_fast(&request->op, status);
    run(agent);
    destroy(agent);
}

static void fast_and_thread(void) {
    begin_robust(UNLOCKED);
    sim_go("fast loop", fast_loop, &turns[1]);
    go("successor", successor);
}

static void fast_and_loops(void) {
    begin_robust(UNLOCKED);
    sim_go("fast loop 1", fast_loop, &turns[1]);
    sim_go("fast loop 2", fast_loop, &turns[2]);
    go("loop", succeeding_loop);
}

static void fast_and_abandon(void) {
    begin_robust(LOCKED);
    sim_go("fast loop", fast_loop, &turns[1]);
    go("abandoner", abandoner);
    go("successor", successor);
}

/* The same in a process that has opened a segment, and whose number is in the words of its mutexes. */
FIBER(abandoner_beside_segment) {
    vigil_buffer *buffer = join_segment();
    sim_check(vigil__holder != LOCKED, "the process has no number");
    abandoner(argument);
    leave_segment(buffer);
}

static void fast_beside_segment(void) {
    begin_shared(2);
    join_before(SURVIVOR);
    prepare_with(ROBUST | LOCKED);
    abandoned = has_it = false;
    sim_go_in(SURVIVOR, "fast loop", fast_loop, &turns[1]);
    go_in(SURVIVOR, "abandoner", abandoner_beside_segment);
    go_in(SURVIVOR, "successor", successor);
}

/* ---- The memory of a mutex is used for another word ---- */

/* The next holder is the last one: it may free the mutex, though the unlock before has not returned. */
FIBER(last_holder) {
    thread(argument);
    sim_name(&mutex, sizeof mutex, "another word");
    expect(wait_at(&mutex.word, 500, 0), VIGIL_TIMED_OUT, "a wait that no thread ends");
}

static void mutex_used_again(void) {
    begin_with(LOCKED);
    sim_moment(1500);
    go("holder", holder);
    go("last holder", last_holder);
}

/* ---- A segment is closed while a mutex is held whose word has the number of the process ---- */

static vigil_buffer *to_be_closed;

static bool can_close(void *unused) {
    (void)unused;
    return to_be_closed;
}

FIBER(holder_with_number) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    lock();
    to_be_closed = buffer;
    work();
    unlock();
}

FIBER(closer) {
    (void)argument;
    sim_until(can_close, NULL);
    leave_segment(to_be_closed);
}

FIBER(thread_behind) {
    sim_until(can_close, NULL);
    thread(argument);
}

static void mutex_segment_closes(void) {
    begin_shared(2);
    join_before(SURVIVOR);
    prepare_with(UNLOCKED);
    to_be_closed = NULL;
    go_in(SURVIVOR, "holder", holder_with_number);
    go_in(SURVIVOR, "closer", closer);
    go_in(SURVIVOR, "thread", thread_behind);
}

const struct sim_scenario mutex_scenarios[] = {
    {"mutex_segment_closes", "a segment is closed while a mutex is unlocked", mutex_segment_closes, all_over},
    {"mutex_used_again", "an unlock has not returned, the next holder frees it", mutex_used_again, all_over},
    {"mutex_abandon_thread", "a holder ends, two threads wait", abandon_thread, robust_over},
    {"mutex_abandon_loop", "a holder ends, a loop waits", abandon_loop, robust_over},
    {"mutex_abandon_line", "a holder ends, a thread and a loop in line", abandon_line, robust_over},
    {"mutex_abandon_fair", "the same with a fair one", abandon_fair, robust_over},
    {"mutex_abandon_deadline", "a deadline against the end of the holder", abandon_deadline, robust_over},
    {"mutex_abandon_trylock", "a trylock against the end of the holder", abandon_trylock, robust_over},
    {"mutex_abandon_and_unlock", "it is given up and unlocked at once", abandon_and_unlock, released_once},
    {"mutex_abandon_own", "a thread gives up what it holds itself", abandon_own, robust_over},
    {"mutex_fast_and_thread", "other code takes a robust one, beside a thread", fast_and_thread, robust_over},
    {"mutex_fast_and_loops", "the same twice, beside a loop", fast_and_loops, robust_over},
    {"mutex_fast_and_abandon", "other code, a thread, and a holder that ends", fast_and_abandon, robust_over},
    {"mutex_fast_beside_segment", "the same in a process that has a segment open", fast_beside_segment, robust_over},
    {"mutex_robust_thread_ends", "a thread ends holding it, another waits", robust_thread_ends, robust_over},
    {"mutex_robust_loop", "a thread ends holding it, a loop waits", robust_loop, robust_over},
    {"mutex_robust_line", "a thread ends holding it, a thread and a loop wait", robust_line, robust_over},
    {"mutex_robust_fair", "a thread ends holding a fair one, two wait", robust_fair, robust_over},
    {"mutex_robust_threads", "three threads lock and unlock it", robust_threads, robust_over},
    {"mutex_two_threads", "two threads lock", mutex_two_threads, all_over},
    {"mutex_three_threads", "three threads lock", mutex_three_threads, all_over},
    {"mutex_again", "two threads lock twice", mutex_again, all_over},
    {"mutex_two_in_line", "two in line for a mutex that is unlocked", mutex_two_in_line, all_over},
    {"mutex_loop_and_thread", "a loop executes, a thread locks", mutex_loop_and_thread, all_over},
    {"mutex_loop_and_threads", "a loop executes, two threads lock", mutex_loop_and_threads, all_over},
    {"mutex_two_loops", "two loops execute, a thread unlocks", mutex_two_loops, all_over},
    {"mutex_fair_for_all", "a loop and a thread against a fair unlock", mutex_fair_for_all, all_over},
    {"mutex_unlocked_elsewhere", "a loop locks, a thread unlocks", mutex_unlocked_elsewhere, all_over},
    {"mutex_timeout", "a thread's deadline against unlock", mutex_timeout, all_over},
    {"mutex_async_timeout", "a loop's deadline against unlock", mutex_async_timeout, all_over},
    {"mutex_fair_timeouts", "two deadlines against a fair unlock", mutex_fair_timeouts, all_over},
    {"mutex_cancel", "cancel against unlock", mutex_cancel, all_over},
    {"mutex_fair_cancel", "cancel against being handed the lock", mutex_fair_cancel, all_over},
    {"mutex_destroy", "an agent's end against unlock", mutex_destroy, all_over},
    {"mutex_fair_destroy", "an agent's end against being handed the lock", mutex_fair_destroy, all_over},
    {"mutex_nested", "execute inside execute, beside a thread", mutex_nested, all_over},
    {"mutex_patience", "a thread that was overtaken is handed the lock", mutex_patience, all_over},
    {"mutex_patience_of_loop", "a loop that was overtaken is handed the lock", mutex_patience_of_loop, all_over},
    {"mutex_passed_by", "a called thread is passed over", mutex_passed_by, all_over},
    {"mutex_fair_line", "thread, loop, thread and the holder again, in turn", mutex_fair_line, all_over},
    {"mutex_fair_next_of_loop", "two requests of one loop, and a thread after them", mutex_fair_next_of_loop, all_over},
    {"mutex_slow_loop", "a loop is called, but waits for the next in line", mutex_slow_loop, all_over},
    {"mutex_fair_slow_loop", "the same with a reservation", mutex_fair_slow_loop, all_over},
    {"mutex_slow_loops", "the same with two threads behind it", mutex_slow_loops, all_over},
    {"mutex_reserved_for_slow_loop", "a thread comes after it was reserved", mutex_reserved_for_slow_loop, all_over},
    {"mutex_behind_itself", "a loop's thread blocks behind its own request", mutex_behind_itself, all_over},
    {"mutex_fair_behind_itself", "the same with a reservation", mutex_fair_behind_itself, all_over},
    {"mutex_slow_loop_before_loop", "a loop waits for another behind it", mutex_slow_loop_before_loop, all_over},
    {"mutex_fair_slow_loop_before_loop", "the same with a reservation", mutex_fair_slow_loop_before_loop, all_over},
    {"mutex_guard_with_deadline", "the guard of a reservation gives up", mutex_guard_with_deadline, all_over},
    {"mutex_guards_overflow", "a slow loop is called for many locks", mutex_guards_overflow, all_over},
    {"mutex_queue", "three requests of one loop beside a thread", mutex_queue, all_over},
    {"mutex_queue_cancel", "cancel and deadlines in a queue", mutex_queue_cancel, all_over},
    {"mutex_fair_queue_cancel", "the same against a reservation", mutex_fair_queue_cancel, all_over},
    {"mutex_orphan", "a loop is called for a request that is gone", mutex_orphan, all_over},
    {"mutex_end_when_reserved", "an agent ends while it is reserved for it", mutex_end_when_reserved, all_over},
    {"mutex_unlocked_twice", "two threads unlock what is locked once", mutex_unlocked_twice, unlocked_by_any},
    {"mutex_contended_unlocked_twice", "two threads unlock what is contended", mutex_contended_unlocked_twice,
     unlocked_once},
    {"mutex_forget", "forget against unlock", mutex_forget, forgotten_are_cancelled},
    {"mutex_plain_and_thread", "one locks by compare-and-exchange", mutex_plain_and_thread, all_over},
    {"mutex_plain_and_threads", "the same beside two threads", mutex_plain_and_threads, all_over},
    {"mutex_plain_and_loop", "the same beside a loop and a thread", mutex_plain_and_loop, all_over},
    {NULL, NULL, NULL, NULL},
};
