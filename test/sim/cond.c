/* SPDX-License-Identifier: MIT */
/*
 * Scenarios for condition variables. The waiters wait for tokens, which change only under the mutex. A waiter
 * without a deadline must get a token, or the execution never ends.
 */
#include "vigil/cond.h"

#include <stdlib.h>

#include "scenario.h"

#define UNLOCKED 0u
#define LOCKED   1u
#define FAIR     4u

static vigil_mutex mutex;
static vigil_cond cond, other_cond;
static int tokens;        /* not atomic: the simulator reports a race if the mutex does not protect it */
static int taken;         /* by waiters */
static int timed_out;     /* waiters with a deadline */
static int64_t told;      /* return values of signal and broadcast, in total */
static int64_t signalled; /* waits that ended by a signal */
static int64_t loops_timeout_ns;

static void begin_with(uint32_t word) {
    begin();
    mutex.word = word;
    cond.word = other_cond.word = 0;
    tokens = taken = timed_out = 0;
    told = signalled = 0;
    loops_timeout_ns = VIGIL_FOREVER;
    sim_name(&mutex, sizeof mutex, "mutex");
    sim_name(&cond, sizeof cond, "cond");
}

static void all_over(void) {
    sim_check(mutex.word % FAIR == UNLOCKED, "at the end the mutex is %#x", mutex.word);
    sim_check(tokens == 0, "%d tokens are left", tokens);
    sim_check(told == signalled, "signals reported %d waiters, but %d were signalled", (int)told, (int)signalled);
    balance();
}

static void lock(void) {
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
}

static void unlock(void) {
    expect(vigil_mutex_unlock(&mutex), VIGIL_OK, "unlock");
}

/* ---- Waiters ---- */

static void take(void) {
    tokens--;
    taken++;
}

static void take_at_deadline(void) {
    if (tokens) take();
    else timed_out++;
}

static void lock_and_take(void) {
    lock();
    while (!tokens) {
        expect(vigil_cond_wait(&cond, &mutex), VIGIL_OK, "cond_wait");
        signalled++;
    }
    take();
}

FIBER(taker) {
    (void)argument;
    lock_and_take();
    unlock();
}

/* Leaves without a token at its deadline. */
FIBER(taker_500) {
    (void)argument;
    int64_t due_ns = vigil_now_ns() + 500;
    lock();
    while (!tokens) {
        int status = vigil_cond_wait_for(&cond, &mutex, due_ns - vigil_now_ns());
        if (status == VIGIL_TIMED_OUT) {
            sim_check(vigil_now_ns() >= due_ns, "timed out too early");
            break;
        }
        expect(status, VIGIL_OK, "cond_wait_for");
        signalled++;
    }
    take_at_deadline();
    unlock();
}

static void look(struct turn *turn, vigil_agent *agent);

static void look_again(vigil_op *op, int status) {
    struct turn *turn = turn_ends(op, status);
    if (status == VIGIL_CANCELLED) return;
    if (status == VIGIL_TIMED_OUT) {
        take_at_deadline();
        unlock();
        return;
    }
    expect(status, VIGIL_OK, "a condition's callback");
    signalled++;
    look(turn, op->agent);
}

/* Called with the mutex held. */
static void look(struct turn *turn, vigil_agent *agent) {
    if (tokens) {
        take();
        unlock();
        return;
    }
    int status = vigil_cond_wait_async(agent, turn_begins(turn), &cond, &mutex, loops_timeout_ns, look_again);
    expect(status, VIGIL_PENDING, "cond_wait_async");
}

static void enter(vigil_op *op, int status) {
    struct turn *turn = op->data;
    expect(status, VIGIL_OK, "execute_later's callback");
    look(turn, turn->request.op.agent);
}

static void start_looking(vigil_agent *agent, struct turn *turn) {
    turn->request.op.data = turn;
    turn->request.op.agent = agent; /* for the callback, which may be called at once */
    vigil_mutex_execute_later(agent, &turn->request, &mutex, VIGIL_FOREVER, enter);
}

FIBER(loop) { /* the argument: its turn */
    vigil_agent *agent = new_agent();
    start_looking(agent, argument);
    run(agent);
    destroy(agent);
}

/* ---- Signallers ---- */

static void give(int count, bool all) {
    lock();
    tokens += count;
    told += all ? vigil_cond_broadcast(&cond) : vigil_cond_signal(&cond);
    unlock();
}

FIBER(giver) {
    (void)argument;
    give(1, false);
}

FIBER(giver_of_two) {
    (void)argument;
    give(2, true);
}

FIBER(giver_outside) {
    (void)argument;
    lock();
    tokens++;
    unlock();
    told += vigil_cond_signal(&cond);
}

FIBER(giver_of_two_outside) {
    (void)argument;
    lock();
    tokens += 2;
    unlock();
    told += vigil_cond_broadcast(&cond);
}

static void cond_one(void) {
    begin_with(UNLOCKED);
    go("taker", taker);
    go("giver", giver);
}

static void cond_outside(void) {
    begin_with(UNLOCKED);
    go("taker", taker);
    go("giver", giver_outside);
}

static void cond_two_signals(void) {
    begin_with(UNLOCKED);
    go("taker 1", taker);
    go("taker 2", taker);
    go("giver 1", giver);
    go("giver 2", giver_outside);
}

static void cond_broadcast(void) {
    begin_with(UNLOCKED);
    go("taker 1", taker);
    go("taker 2", taker);
    go("giver", giver_of_two);
}

static void cond_broadcast_outside(void) {
    begin_with(UNLOCKED);
    go("taker 1", taker);
    go("taker 2", taker);
    go("giver", giver_of_two_outside);
}

static void cond_fair(void) {
    begin_with(FAIR);
    go("taker 1", taker);
    go("taker 2", taker);
    go("giver", giver_of_two_outside);
}

static void cond_loop(void) {
    begin_with(UNLOCKED);
    sim_go("loop", loop, &turns[0]);
    go("giver", giver);
}

static void cond_loop_and_thread(void) {
    begin_with(UNLOCKED);
    sim_go("loop", loop, &turns[0]);
    go("taker", taker);
    go("giver", giver_of_two);
}

static void cond_fair_loop_and_thread(void) {
    begin_with(FAIR);
    sim_go("loop", loop, &turns[0]);
    go("taker", taker);
    go("giver", giver_of_two_outside);
}

/* ---- With code that changes the word of the mutex itself if that takes no waiting ---- */

static void plain_lock(void) {
    uint32_t seen = UNLOCKED;
    if (!prim_cas_acquire(&mutex.word, &seen, LOCKED)) expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
}

static void plain_unlock(void) {
    uint32_t seen = LOCKED;
    if (!prim_cas_release(&mutex.word, &seen, UNLOCKED)) expect(vigil_mutex_unlock(&mutex), VIGIL_OK, "unlock");
}

/* The waiters that it calls were moved to the mutex's line by its own broadcast. */
FIBER(plain_giver_of_two) {
    (void)argument;
    await_in_line(2);
    plain_lock();
    tokens += 2;
    told += vigil_cond_broadcast(&cond);
    plain_unlock();
}

static void cond_plain_giver(void) {
    begin_with(UNLOCKED);
    go("taker 1", taker);
    go("taker 2", taker);
    go("plain", plain_giver_of_two);
}

/* ---- Deadlines: a token is taken, or no waiter came in time and it stays ---- */

static void taken_or_timed_out(int takers) {
    sim_check(taken + timed_out == takers && tokens == timed_out, "%d taken, %d timed out, %d left", taken, timed_out,
              tokens);
    tokens = 0;
    all_over();
}

static void one_or_timed_out(void) {
    taken_or_timed_out(1);
}

static void two_or_timed_out(void) {
    taken_or_timed_out(2);
}

static void cond_timeout(void) {
    begin_with(UNLOCKED);
    sim_moment(1500);
    go("taker", taker_500);
    go("giver", giver);
}

static void cond_async_timeout(void) {
    begin_with(UNLOCKED);
    sim_moment(1500);
    loops_timeout_ns = 500;
    sim_go("loop", loop, &turns[0]);
    go("giver", giver_outside);
}

/* One of the two may time out. If it has received a signal, it uses it. */
static void cond_timeout_beside(void) {
    begin_with(UNLOCKED);
    sim_moment(1500);
    go("impatient", taker_500);
    go("taker", taker);
    go("giver", giver);
    go("giver 2", giver_outside);
}

/* ---- A deadline that has passed before the wait begins: the mutex goes to its waiters ---- */

static bool late_holds;
static int late_turns;

/* The usual loop, with the mutex held. The thread that makes the condition true is in the mutex's line. */
static void late_loop(void) {
    for (; !tokens; late_turns++) {
        sim_check(!late_turns, "the waiter in the mutex's line was passed over");
        expect(vigil_cond_wait_for(&cond, &mutex, 0), VIGIL_TIMED_OUT, "cond_wait_for");
    }
    take();
    unlock();
}

FIBER(late_taker) {
    (void)argument;
    lock();
    late_holds = true;
    await_in_line(1);
    late_loop();
}

static bool late_taker_holds(void *unused) {
    (void)unused;
    return late_holds;
}

FIBER(giver_to_late) {
    (void)argument;
    sim_until(late_taker_holds, NULL);
    give(1, false);
}

static void begin_late(uint32_t word) {
    begin_with(word);
    late_holds = false;
    late_turns = 0;
}

static void cond_late(void) {
    begin_late(UNLOCKED);
    go("late", late_taker);
    go("giver", giver_to_late);
}

static void cond_late_fair(void) {
    begin_late(FAIR);
    go("late", late_taker);
    go("giver", giver_to_late);
}

/* The waiter in the mutex's line has been signalled, and adds a token. */
FIBER(moved_giver) {
    (void)argument;
    lock();
    expect(vigil_cond_wait(&other_cond, &mutex), VIGIL_OK, "cond_wait");
    tokens++;
    unlock();
}

FIBER(late_signaller) {
    (void)argument;
    await_in_line(1);
    lock();
    sim_check(vigil_cond_signal(&other_cond) == 1, "the waiter in line was missed");
    late_loop();
}

static void cond_late_moved(void) {
    begin_late(UNLOCKED);
    go("giver", moved_giver);
    go("late", late_signaller);
}

/* A loop with a deadline that has passed releases the mutex, and acquires it again. */
static void cond_late_loop(void) {
    begin_with(UNLOCKED);
    loops_timeout_ns = 0;
    sim_go("loop", loop, &turns[0]);
    go("giver", giver_outside);
}

/* ---- A signal to a waiter that has left goes on to the next one ---- */

static bool waiting_for_mutex(void *unused) {
    (void)unused;
    return signalled > 0; /* set by the loop that cancels */
}

static bool loop_waited;

static bool loop_waits(void *unused) {
    (void)unused;
    loop_waited = loop_waited || (turns[0].waiting && in_line() == 2);
    return loop_waited;
}

/*
 * Cancels its first request after its signal has arrived, while it waits for the mutex; or before that, or not at all.
 */
FIBER(loop_that_cancels) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start_looking(agent, &turns[0]);
    sim_until(loop_waits, NULL);
    for (int i = 0; i < 2; i++) {
        vigil_agent_dispatch(agent);
        if (turns[0].waiting && vigil_cancel(&turns[0].request.op) == VIGIL_OK) turns[0].waiting = false;
    }
    signalled++; /* whether or not it was signalled: see below */
    run(agent);
    destroy(agent);
}

FIBER(second_taker) {
    (void)argument;
    await_in_line(1);
    lock();
    while (!tokens) expect(vigil_cond_wait(&cond, &mutex), VIGIL_OK, "cond_wait");
    tokens--;
    unlock();
}

FIBER(signaller) {
    (void)argument;
    sim_until(loop_waits, NULL);
    lock();
    tokens++;
    vigil_cond_signal(&cond);
    sim_until(waiting_for_mutex, NULL);
    unlock();
}

static void cond_cancel(void) {
    begin_with(UNLOCKED);
    loop_waited = false;
    go("loop", loop_that_cancels);
    go("taker", second_taker);
    go("signaller", signaller);
}

FIBER(loop_that_ends) {
    (void)argument;
    vigil_agent *agent = new_agent();
    start_looking(agent, &turns[0]);
    sim_until(loop_waits, NULL);
    vigil_agent_dispatch(agent);
    destroy(agent);
    signalled++;
}

static void cond_end(void) {
    begin_with(UNLOCKED);
    loop_waited = false;
    go("loop", loop_that_ends);
    go("taker", second_taker);
    go("signaller", signaller);
}

static void signalled_one_way_or_other(void) {
    told = signalled;
    all_over();
}

/* ---- A robust mutex: a waiter holds it again after its wait, and if the waiter ends the next holder is told ---- */

#define ROBUST 0x20000000u
static bool ended_with_it;

static void hold_as_successor(int status) {
    bool died = ended_with_it;
    expect(status, died ? VIGIL_OWNER_DIED : VIGIL_OK, "a successor");
    ended_with_it = false;
    if (died) expect(vigil_mutex_consistent(&mutex), VIGIL_OK, "consistent");
}

FIBER(taker_that_ends) {
    (void)argument;
    lock_and_take();
    ended_with_it = true;
}

FIBER(robust_giver) {
    (void)argument;
    hold_as_successor(vigil_mutex_lock(&mutex));
    tokens++;
    told += vigil_cond_signal(&cond);
    unlock();
    hold_as_successor(vigil_mutex_lock(&mutex));
    unlock();
}

/* The waiter is moved to the mutex's line by a thread that ends holding the mutex. */
FIBER(giver_that_ends) {
    (void)argument;
    lock();
    tokens++;
    told += vigil_cond_signal(&cond);
    ended_with_it = true;
}

FIBER(robust_taker) {
    (void)argument;
    hold_as_successor(vigil_mutex_lock(&mutex));
    while (!tokens) {
        hold_as_successor(vigil_cond_wait(&cond, &mutex));
        signalled++;
    }
    take();
    unlock();
}

static void cond_taker_ends(void) {
    begin_with(ROBUST);
    ended_with_it = false;
    go("taker", taker_that_ends);
    go("giver", robust_giver);
}

static void cond_giver_ends(void) {
    begin_with(ROBUST);
    ended_with_it = false;
    go("taker", robust_taker);
    go("giver", giver_that_ends);
}

/* ---- A waiter frees the mutex when it has returned; the condition stays ---- */

FIBER(last_taker) {
    (void)argument;
    vigil_mutex *own = malloc(sizeof *own);
    own->word = UNLOCKED;
    expect(vigil_mutex_lock(own), VIGIL_OK, "lock");
    expect(vigil_cond_wait(&cond, own), VIGIL_OK, "cond_wait");
    signalled++;
    expect(vigil_mutex_unlock(own), VIGIL_OK, "unlock");
    free(own);
}

FIBER(signaller_behind) {
    (void)argument;
    await_in_line(1);
    told += vigil_cond_signal(&cond);
}

/* A thread that has just taken the mutex releases it while the waiter is moved to it. */
FIBER(waiting_once) {
    (void)argument;
    lock();
    expect(vigil_cond_wait(&cond, &mutex), VIGIL_OK, "cond_wait");
    signalled++;
    unlock();
}

FIBER(passer_by) {
    (void)argument;
    await_in_line(1);
    lock();
    unlock();
}

static void cond_passed_by(void) {
    begin_with(UNLOCKED);
    go("waiter", waiting_once);
    go("signaller", signaller_behind);
    go("passer-by", passer_by);
}

static void cond_freed(void) {
    begin_with(UNLOCKED);
    go("taker", last_taker);
    go("signaller 1", signaller_behind);
    go("signaller 2", signaller_behind);
}

const struct sim_scenario cond_scenarios[] = {
    {"cond_passed_by", "a waiter is moved to a mutex that is taken and released meanwhile", cond_passed_by, all_over},
    {"cond_freed", "two signal, and the waiter frees its mutex", cond_freed, all_over},
    {"cond_taker_ends", "a thread waits, and ends holding a robust mutex", cond_taker_ends, all_over},
    {"cond_giver_ends", "a thread waits, another signals and ends holding it", cond_giver_ends, all_over},
    {"cond_one", "a thread waits, another signals", cond_one, all_over},
    {"cond_outside", "the same without the mutex held", cond_outside, all_over},
    {"cond_two_signals", "two wait, two signal", cond_two_signals, all_over},
    {"cond_broadcast", "two wait, one broadcasts", cond_broadcast, all_over},
    {"cond_broadcast_outside", "the same without the mutex held", cond_broadcast_outside, all_over},
    {"cond_fair", "the same with a fair mutex", cond_fair, all_over},
    {"cond_loop", "a loop waits, a thread signals", cond_loop, all_over},
    {"cond_loop_and_thread", "a loop and a thread wait, one broadcasts", cond_loop_and_thread, all_over},
    {"cond_fair_loop_and_thread", "the same with a fair mutex", cond_fair_loop_and_thread, all_over},
    {"cond_plain_giver", "two wait, the broadcaster locks by compare-and-exchange", cond_plain_giver, all_over},
    {"cond_timeout", "a thread's deadline against a signal", cond_timeout, one_or_timed_out},
    {"cond_async_timeout", "a loop's deadline against a signal", cond_async_timeout, one_or_timed_out},
    {"cond_timeout_beside", "the same with another beside it", cond_timeout_beside, two_or_timed_out},
    {"cond_late", "a deadline that has passed, and a thread that waits for the mutex", cond_late, all_over},
    {"cond_late_fair", "the same with a fair mutex", cond_late_fair, all_over},
    {"cond_late_moved", "the same, and the thread has been signalled", cond_late_moved, all_over},
    {"cond_late_loop", "a loop's deadline that has passed", cond_late_loop, one_or_timed_out},
    {"cond_cancel", "cancel against a signal", cond_cancel, signalled_one_way_or_other},
    {"cond_end", "an agent's end against a signal", cond_end, signalled_one_way_or_other},
    {NULL, NULL, NULL, NULL},
};
