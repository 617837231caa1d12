/* SPDX-License-Identifier: MIT */
/*
 * Scenarios for the barrier and for the once.
 *
 * At the barrier, each party records its round before it arrives, and must see the records of all other parties when
 * it goes on. The number of parties that have gone on never exceeds the number that have arrived. A party that takes
 * its arrival back, because of a deadline, a cancel or the end of its agent, arrives again. So every round that has
 * begun is completed, with one VIGIL_LAST.
 *
 * The once's function must never run twice at the same time, nor after it is done. Every caller that is told that it
 * is done must see what the function wrote.
 */
#include "vigil/barrier.h"
#include "vigil/once.h"

#include <stdlib.h>
#include <string.h>

#include "scenario.h"

static int number_of(void *argument) {
    return (int)(intptr_t)argument;
}

/* ---- The parties of a barrier ---- */

#define MOST_PARTIES 3

static struct party {
    vigil_request request; /* of an event loop */
    bool waiting;
    int status; /* of the last callback */
} parties[MOST_PARTIES];

static vigil_barrier barrier;
static uint32_t rounds[MOST_PARTIES]; /* what each party has written */
static bool all_meet;                 /* the parties are always the same: each sees all others */
static unsigned arrivals, gone, last_ones;

static void begin_barrier(uint32_t count) {
    begin();
    barrier = (vigil_barrier)VIGIL_BARRIER_INIT(count);
    memset(parties, 0, sizeof parties);
    memset(rounds, 0, sizeof rounds);
    all_meet = true;
    arrivals = gone = last_ones = 0;
    sim_name(&barrier, sizeof barrier, "barrier");
    sim_name(rounds, sizeof rounds, "rounds");
}

static void all_have_met(void) {
    sim_check(barrier.word % 65536 == 0, "at the end the barrier is %#x", barrier.word);
    sim_check(gone == arrivals, "%u have arrived, and %u gone on", arrivals, gone);
    sim_check(last_ones * barrier.parties == gone, "%u have gone on, %u of them as the last", gone, last_ones);
    for (int i = 0; i < MOST_PARTIES; i++) sim_check(!parties[i].waiting, "party %d has not been called", i);
    balance();
}

static void before_arriving(int party) {
    if (all_meet) prim_store_relaxed(&rounds[party], rounds[party] + 1);
    arrivals++;
}

static void see_the_others(int party) {
    for (uint32_t i = 0; i < barrier.parties; i++) {
        sim_check(prim_load_relaxed(&rounds[i]) >= rounds[party], "what party %u did before is not visible", i);
    }
}

static void go_on(int party, int status) {
    sim_check(status == VIGIL_OK || status == VIGIL_LAST, "wait returns %s", vigil_status_name(status));
    gone++;
    last_ones += status == VIGIL_LAST;
    sim_check(gone <= arrivals / barrier.parties * barrier.parties, "%u have gone on when %u had arrived", gone,
              arrivals);
    if (all_meet) see_the_others(party);
}

FIBER(thread) { /* the argument: which party */
    before_arriving(number_of(argument));
    go_on(number_of(argument), vigil_barrier_wait(&barrier));
}

FIBER(thread_twice) {
    thread(argument);
    thread(argument);
}

static void called(vigil_op *op, int status) {
    struct party *party = op->data;
    sim_check(party->waiting, "a callback that was not expected");
    party->waiting = false;
    party->status = status;
    if (status == VIGIL_OK) go_on((int)(party - parties), status);
}

/* Writes nothing down first: the party may be arriving for the second time. */
static void arrive(vigil_agent *agent, int number, int64_t timeout_ns) {
    struct party *party = &parties[number];
    party->request.op.data = party;
    int status = vigil_barrier_wait_async(agent, &party->request, &barrier, timeout_ns, called);
    if (status == VIGIL_PENDING) {
        party->waiting = true;
    } else {
        party->status = status;
        go_on(number, status);
    }
}

FIBER(loop) {
    vigil_agent *agent = new_agent();
    before_arriving(number_of(argument));
    arrive(agent, number_of(argument), VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

/* ---- Meeting ---- */

static void barrier_two_threads(void) {
    begin_barrier(2);
    go_with("thread 0", thread, 0);
    go_with("thread 1", thread, 1);
}

static void barrier_three_threads(void) {
    begin_barrier(3);
    go_with("thread 0", thread, 0);
    go_with("thread 1", thread, 1);
    go_with("thread 2", thread, 2);
}

static void barrier_two_rounds(void) {
    begin_barrier(2);
    go_with("thread 0", thread_twice, 0);
    go_with("thread 1", thread_twice, 1);
}

static void barrier_four_for_two(void) {
    begin_barrier(2);
    all_meet = false;
    go_with("thread 0", thread, 0);
    go_with("thread 1", thread, 1);
    go_with("thread 2", thread, 2);
    go_with("thread 3", thread, 0);
}

static void barrier_rounds_wrap(void) {
    begin_barrier(2);
    barrier.word = 0xffff0000u;
    go_with("thread 0", thread_twice, 0);
    go_with("thread 1", thread_twice, 1);
}

static void barrier_loop_and_thread(void) {
    begin_barrier(2);
    go_with("loop", loop, 0);
    go_with("thread", thread, 1);
}

static void barrier_two_loops(void) {
    begin_barrier(2);
    go_with("loop 0", loop, 0);
    go_with("loop 1", loop, 1);
}

static void barrier_loop_and_threads(void) {
    begin_barrier(3);
    go_with("loop", loop, 0);
    go_with("thread 1", thread, 1);
    go_with("thread 2", thread, 2);
}

/* Two requests of one loop are two parties. The loop arrives again from the callback. */
static void called_first(vigil_op *op, int status) {
    called(op, status);
    before_arriving(0);
    arrive(op->agent, 0, VIGIL_FOREVER);
}

FIBER(loop_of_two) {
    (void)argument;
    vigil_agent *agent = new_agent();
    before_arriving(0);
    parties[0].request.op.data = &parties[0];
    parties[0].waiting = true;
    int status = vigil_barrier_wait_async(agent, &parties[0].request, &barrier, VIGIL_FOREVER, called_first);
    sim_check(status == VIGIL_PENDING, "wait_async returns %s", vigil_status_name(status));
    before_arriving(1);
    arrive(agent, 1, VIGIL_FOREVER);
    sim_check(parties[1].status == VIGIL_LAST, "the second is not the last");
    before_arriving(1);
    arrive(agent, 1, VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

static void barrier_loop_alone(void) {
    begin_barrier(2);
    go_with("loop", loop_of_two, 0);
}

/* A loop that does not run does not hold up the parties that met it. */
static bool threads_gone(void *unused) {
    (void)unused;
    return gone == barrier.parties - 1;
}

FIBER(slow_loop) {
    (void)argument;
    vigil_agent *agent = new_agent();
    before_arriving(0);
    arrive(agent, 0, VIGIL_FOREVER);
    sim_until(threads_gone, NULL);
    run(agent);
    destroy(agent);
}

FIBER(second_thread) {
    await_in_line(1);
    thread(argument);
}

static void barrier_slow_loop(void) {
    begin_barrier(3);
    go_with("loop", slow_loop, 0);
    go_with("thread 1", second_thread, 1);
    go_with("thread 2", second_thread, 2);
}

/* ---- Taking an arrival back ---- */

FIBER(thread_500) {
    int64_t due_ns = vigil_now_ns() + 500;
    before_arriving(number_of(argument));
    int status = vigil_barrier_wait_for(&barrier, 500);
    if (status == VIGIL_TIMED_OUT) {
        sim_check(vigil_now_ns() >= due_ns, "timed out too early");
        status = vigil_barrier_wait(&barrier);
    }
    go_on(number_of(argument), status);
}

FIBER(loop_500) {
    vigil_agent *agent = new_agent();
    int64_t due_ns = vigil_now_ns() + 500;
    int number = number_of(argument);
    before_arriving(number);
    arrive(agent, number, 500);
    run(agent);
    if (parties[number].status == VIGIL_TIMED_OUT) {
        sim_check(vigil_now_ns() >= due_ns, "timed out too early");
        arrive(agent, number, VIGIL_FOREVER);
        run(agent);
    }
    destroy(agent);
}

FIBER(loop_cancels) {
    vigil_agent *agent = new_agent();
    int number = number_of(argument);
    before_arriving(number);
    arrive(agent, number, VIGIL_FOREVER);
    int status = vigil_cancel(&parties[number].request.op);
    if (status == VIGIL_OK) {
        parties[number].waiting = false;
        arrive(agent, number, VIGIL_FOREVER);
    } else {
        int expected = parties[number].waiting ? VIGIL_ETOOLATE : VIGIL_EIDLE;
        sim_check(status == expected, "cancel returns %s", vigil_status_name(status));
    }
    run(agent);
    destroy(agent);
}

FIBER(loop_destroyed) {
    vigil_agent *agent = new_agent();
    int number = number_of(argument);
    before_arriving(number);
    arrive(agent, number, VIGIL_FOREVER);
    destroy(agent);
    if (parties[number].status == VIGIL_CANCELLED) go_on(number, vigil_barrier_wait(&barrier));
}

static void barrier_timeout(void) {
    begin_barrier(2);
    sim_moment(1500);
    go_with("impatient", thread_500, 0);
    go_with("thread", thread, 1);
}

static void barrier_timeouts(void) {
    begin_barrier(3);
    sim_moment(1500);
    go_with("impatient 0", thread_500, 0);
    go_with("impatient 1", thread_500, 1);
    go_with("thread", thread, 2);
}

static void barrier_async_timeout(void) {
    begin_barrier(2);
    sim_moment(1500);
    go_with("impatient", loop_500, 0);
    go_with("thread", thread, 1);
}

static void barrier_cancel(void) {
    begin_barrier(2);
    go_with("loop", loop_cancels, 0);
    go_with("thread", thread, 1);
}

static void barrier_cancel_of_three(void) {
    begin_barrier(3);
    go_with("loop", loop_cancels, 0);
    go_with("thread 1", thread, 1);
    go_with("thread 2", thread, 2);
}

static void barrier_destroy(void) {
    begin_barrier(2);
    go_with("loop", loop_destroyed, 0);
    go_with("thread", thread, 1);
}

/* ---- Forgotten: the memory is not touched any more ---- */

static vigil_barrier *on_heap;
static bool forgotten;
static int cancelled;

static bool is_on_heap(void *unused) {
    (void)unused;
    return on_heap != NULL;
}

static bool is_forgotten(void *unused) {
    (void)unused;
    return forgotten;
}

FIBER(forgetter) {
    (void)argument;
    vigil_barrier *mine = malloc(sizeof *mine);
    *mine = (vigil_barrier)VIGIL_BARRIER_INIT(3);
    on_heap = mine;
    await_in_line(2);
    int64_t count = vigil_forget(mine, sizeof *mine);
    sim_check(count == 2, "%d were forgotten", (int)count);
    free(mine);
    forgotten = true;
}

FIBER(forgotten_thread) {
    (void)argument;
    sim_until(is_on_heap, NULL);
    cancelled += vigil_barrier_wait(on_heap) == VIGIL_CANCELLED;
}

static void called_cancelled(vigil_op *op, int status) {
    (void)op;
    cancelled += status == VIGIL_CANCELLED;
}

FIBER(forgotten_loop) { /* the argument: whether it ends without running */
    sim_until(is_on_heap, NULL);
    vigil_agent *agent = new_agent();
    vigil_barrier_wait_async(agent, &parties[0].request, on_heap, VIGIL_FOREVER, called_cancelled);
    sim_until(is_forgotten, NULL);
    if (!argument) run(agent);
    destroy(agent);
}

static void forget_barrier(int loop_just_ends) {
    begin_barrier(3);
    on_heap = NULL;
    forgotten = false;
    cancelled = 0;
    go_with("forgetter", forgetter, 0);
    go_with("loop", forgotten_loop, loop_just_ends);
    go_with("thread", forgotten_thread, 0);
}

static void barrier_forget(void) {
    forget_barrier(0);
}

static void barrier_forget_and_destroy(void) {
    forget_barrier(1);
}

static void both_cancelled(void) {
    sim_check(cancelled == 2, "%d were cancelled", cancelled);
    balance();
}

/* ---- Freed by the last party, while the others are still leaving ---- */

static void free_if_last(int status) {
    sim_check(status == VIGIL_OK || status == VIGIL_LAST, "wait returns %s", vigil_status_name(status));
    gone++;
    if (status == VIGIL_LAST) {
        free(on_heap);
        last_ones++;
    }
}

FIBER(freeing_thread) { /* the argument: whether it makes the barrier */
    if (argument) {
        vigil_barrier *mine = malloc(sizeof *mine);
        *mine = (vigil_barrier)VIGIL_BARRIER_INIT(2);
        on_heap = mine;
    }
    sim_until(is_on_heap, NULL);
    free_if_last(vigil_barrier_wait(on_heap));
}

FIBER(freeing_thread_500) {
    (void)argument;
    sim_until(is_on_heap, NULL);
    int status = vigil_barrier_wait_for(on_heap, 500);
    free_if_last(status == VIGIL_TIMED_OUT ? vigil_barrier_wait(on_heap) : status);
}

static void called_to_free(vigil_op *op, int status) {
    (void)op;
    free_if_last(status);
}

FIBER(freeing_loop) {
    (void)argument;
    sim_until(is_on_heap, NULL);
    vigil_agent *agent = new_agent();
    int status = vigil_barrier_wait_async(agent, &parties[0].request, on_heap, VIGIL_FOREVER, called_to_free);
    if (status != VIGIL_PENDING) free_if_last(status);
    run(agent);
    destroy(agent);
}

static void begin_freeing(void) {
    begin_barrier(2);
    on_heap = NULL;
    go_with("thread 0", freeing_thread, 1);
}

static void barrier_freed(void) {
    begin_freeing();
    go_with("thread 1", freeing_thread, 0);
}

static void barrier_freed_after_timeout(void) {
    begin_freeing();
    sim_moment(1500);
    go_with("impatient", freeing_thread_500, 0);
}

static void barrier_freed_with_loop(void) {
    begin_freeing();
    go_with("loop", freeing_loop, 0);
}

static void freed_once(void) {
    sim_check(gone == 2 && last_ones == 1, "%u have gone on, %u of them as the last", gone, last_ones);
    balance();
}

/* ---- A once ---- */

#define FAILURE (-100)

static vigil_once once;
static uint32_t written; /* by the function, on each call */
static uint32_t attempts;
static uint32_t failures; /* how many attempts must fail */
static unsigned failed;   /* how many calls returned that failure */
static unsigned satisfied;
static bool inside;

static void begin_once(uint32_t fail) {
    begin();
    once = (vigil_once)VIGIL_ONCE_INIT;
    written = attempts = failed = satisfied = 0;
    failures = fail;
    inside = false;
    sim_name(&once, sizeof once, "once");
    sim_name(&written, sizeof written, "written");
}

static void once_is_over(void) {
    sim_check(vigil_once_is_done(&once), "it is not done");
    sim_check(attempts == failures + 1, "the function was called %u times", attempts);
    sim_check(failed == failures, "%u calls returned a failure", failed);
    balance();
}

static int make(void *unused) {
    (void)unused;
    sim_check(!inside, "the function runs twice at the same time");
    inside = true;
    sim_check(prim_load_relaxed(&written) == attempts, "what the previous attempt did is not visible");
    prim_store_relaxed(&written, ++attempts);
    inside = false;
    return attempts <= failures ? FAILURE : VIGIL_OK;
}

/* Runs the function once that many callers are waiting. */
static int make_when_awaited(void *count) {
    await_in_line((uintptr_t)count);
    return make(NULL);
}

static void note_end(int status) {
    if (status == FAILURE) {
        failed++;
    } else if (status == VIGIL_OK) {
        satisfied++;
        sim_check(vigil_once_is_done(&once), "returned as done, but it is not");
        sim_check(prim_load_relaxed(&written) == failures + 1, "what the function did is not visible");
    } else {
        sim_check(status == VIGIL_TIMED_OUT || status == VIGIL_CANCELLED, "call returns %s", vigil_status_name(status));
    }
}

FIBER(caller) {
    (void)argument;
    note_end(vigil_once_call(&once, make, NULL));
}

FIBER(first_caller) { /* the argument: how many callers must be waiting */
    note_end(vigil_once_call(&once, make_when_awaited, argument));
}

static bool has_begun(void *unused) {
    (void)unused;
    return once.word != 0 || attempts;
}

FIBER(later_caller) {
    sim_until(has_begun, NULL);
    caller(argument);
}

FIBER(later_caller_500) {
    (void)argument;
    sim_until(has_begun, NULL);
    int64_t due_ns = vigil_now_ns() + 500;
    int status = vigil_once_call_for(&once, make, NULL, 500);
    sim_check(status != VIGIL_TIMED_OUT || vigil_now_ns() >= due_ns, "timed out too early");
    note_end(status);
}

static void turn_comes(vigil_op *op, int status) {
    turn_ends(op, status);
    note_end(status);
}

static void call_async(vigil_agent *agent, struct turn *turn, int64_t timeout_ns) {
    turn->request.op.data = turn;
    int status = vigil_once_call_async(agent, &turn->request, &once, make, NULL, timeout_ns, turn_comes);
    if (status == VIGIL_PENDING) {
        turn->waiting = true;
    } else {
        turn->status = status;
        note_end(status);
    }
}

FIBER(calling_loop) { /* the argument: its turn */
    vigil_agent *agent = new_agent();
    call_async(agent, &turns[number_of(argument)], VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

FIBER(later_loop) {
    sim_until(has_begun, NULL);
    calling_loop(argument);
}

static void once_two_threads(void) {
    begin_once(0);
    go_with("thread 1", caller, 0);
    go_with("thread 2", caller, 0);
}

static void once_three_threads(void) {
    begin_once(0);
    go_with("thread 1", caller, 0);
    go_with("thread 2", caller, 0);
    go_with("thread 3", caller, 0);
}

static void once_awaited(void) {
    begin_once(0);
    go_with("first", first_caller, 2);
    go_with("thread", later_caller, 0);
    go_with("loop", later_loop, 0);
}

static void once_loop_and_thread(void) {
    begin_once(0);
    go_with("loop", calling_loop, 0);
    go_with("thread", caller, 0);
}

static void once_fails(void) {
    begin_once(1);
    go_with("thread 1", caller, 0);
    go_with("thread 2", caller, 0);
}

static void once_fails_twice(void) {
    begin_once(2);
    go_with("thread 1", caller, 0);
    go_with("thread 2", caller, 0);
    go_with("thread 3", caller, 0);
}

static void once_fails_for_loop(void) {
    begin_once(1);
    go_with("first", first_caller, 1);
    go_with("loop", later_loop, 0);
}

static void once_fails_in_loop(void) {
    begin_once(1);
    go_with("loop", calling_loop, 0);
    go_with("thread", caller, 0);
}

static void once_fails_for_all(void) {
    begin_once(1);
    go_with("first", first_caller, 2);
    go_with("loop", later_loop, 0);
    go_with("thread", later_caller, 0);
}

/* ---- A loop that runs late ---- */

static bool somebody_satisfied(void *unused) {
    (void)unused;
    return satisfied > 0;
}

FIBER(slow_calling_loop) {
    (void)argument;
    sim_until(has_begun, NULL);
    vigil_agent *agent = new_agent();
    call_async(agent, &turns[0], VIGIL_FOREVER);
    sim_until(somebody_satisfied, NULL);
    run(agent);
    destroy(agent);
}

FIBER(caller_behind_loop) {
    await_in_line(1);
    caller(argument);
}

static void once_slow_loop(void) {
    begin_once(1);
    go_with("first", first_caller, 2);
    go_with("loop", slow_calling_loop, 0);
    go_with("thread", caller_behind_loop, 0);
}

/* A loop's thread blocks behind the loop's own request. */
FIBER(loop_behind_itself) {
    (void)argument;
    sim_until(has_begun, NULL);
    vigil_agent *agent = new_agent();
    call_async(agent, &turns[0], VIGIL_FOREVER);
    caller(NULL);
    run(agent);
    destroy(agent);
}

static void once_behind_itself(void) {
    begin_once(1);
    go_with("first", first_caller, 2);
    go_with("loop", loop_behind_itself, 0);
}

/* ---- Deadlines, cancel, and agents that end ---- */

FIBER(later_loop_500) {
    (void)argument;
    sim_until(has_begun, NULL);
    vigil_agent *agent = new_agent();
    int64_t due_ns = vigil_now_ns() + 500;
    call_async(agent, &turns[0], 500);
    run(agent);
    sim_check(turns[0].status != VIGIL_TIMED_OUT || vigil_now_ns() >= due_ns, "timed out too early");
    destroy(agent);
}

FIBER(later_loop_cancels) {
    (void)argument;
    sim_until(has_begun, NULL);
    vigil_agent *agent = new_agent();
    call_async(agent, &turns[0], VIGIL_FOREVER);
    int status = vigil_cancel(&turns[0].request.op);
    int expected = turns[0].waiting ? VIGIL_ETOOLATE : VIGIL_EIDLE;
    sim_check(status == VIGIL_OK || status == expected, "cancel returns %s", vigil_status_name(status));
    if (status == VIGIL_OK) {
        sim_check(turns[0].waiting, "cancelled what was not pending");
        turns[0].waiting = false;
    }
    run(agent);
    destroy(agent);
}

FIBER(later_loop_destroyed) {
    (void)argument;
    sim_until(has_begun, NULL);
    vigil_agent *agent = new_agent();
    call_async(agent, &turns[0], VIGIL_FOREVER);
    destroy(agent);
}

static void once_timeout(void) {
    begin_once(0);
    sim_moment(1500);
    go_with("first", caller, 0);
    go_with("impatient", later_caller_500, 0);
    go_with("thread", caller, 0);
}

static void once_async_timeout(void) {
    begin_once(0);
    sim_moment(1500);
    go_with("first", caller, 0);
    go_with("impatient", later_loop_500, 0);
    go_with("thread", caller, 0);
}

static void once_fails_timeouts(void) {
    begin_once(1);
    sim_moment(1500);
    go_with("first", caller, 0);
    go_with("impatient", later_caller_500, 0);
    go_with("loop", later_loop_500, 0);
    go_with("thread", later_caller, 0);
}

static void once_cancel(void) {
    begin_once(1);
    go_with("first", caller, 0);
    go_with("loop", later_loop_cancels, 0);
    go_with("thread", later_caller, 0);
}

static void once_destroy(void) {
    begin_once(1);
    go_with("first", caller, 0);
    go_with("loop", later_loop_destroyed, 0);
    go_with("thread", later_caller, 0);
}

/*
 * The second attempt lasts until the loop's deadline has passed. The loop has waited for the first attempt and waits
 * again.
 */
static bool loop_has_left(void *unused) {
    (void)unused;
    return !turns[0].waiting;
}

static int make_when_loop_has_left(void *unused) {
    if (attempts) sim_until(loop_has_left, NULL);
    return make(unused);
}

/* True as well if its deadline passed before that. */
static bool loop_has_waited(void *unused) {
    (void)unused;
    return in_line() || attempts || turns[0].status == VIGIL_TIMED_OUT;
}

static int make_when_loop_has_waited(void *unused) {
    sim_until(loop_has_waited, NULL);
    return make(unused);
}

FIBER(caller_for_loop) {
    (void)argument;
    note_end(vigil_once_call(&once, make_when_loop_has_waited, NULL));
}

FIBER(second_caller) {
    (void)argument;
    sim_until(loop_has_waited, NULL);
    note_end(vigil_once_call(&once, make_when_loop_has_left, NULL));
}

static void once_waits_again(void) {
    begin_once(1);
    sim_moment(1500);
    go_with("first", caller_for_loop, 0);
    go_with("impatient", later_loop_500, 0);
    go_with("thread", second_caller, 0);
}

const struct sim_scenario barrier_once_scenarios[] = {
    {"barrier_two_threads", "two threads meet", barrier_two_threads, all_have_met},
    {"barrier_three_threads", "three threads meet", barrier_three_threads, all_have_met},
    {"barrier_two_rounds", "two threads meet twice", barrier_two_rounds, all_have_met},
    {"barrier_rounds_wrap", "the same when the rounds are counted from zero again", barrier_rounds_wrap, all_have_met},
    {"barrier_four_for_two", "four threads meet by twos", barrier_four_for_two, all_have_met},
    {"barrier_loop_and_thread", "a loop and a thread meet", barrier_loop_and_thread, all_have_met},
    {"barrier_two_loops", "two loops meet", barrier_two_loops, all_have_met},
    {"barrier_loop_and_threads", "a loop and two threads meet", barrier_loop_and_threads, all_have_met},
    {"barrier_loop_alone", "two requests of one loop, twice", barrier_loop_alone, all_have_met},
    {"barrier_slow_loop", "a loop goes on after the threads have", barrier_slow_loop, all_have_met},
    {"barrier_timeout", "a thread's deadline against the last party", barrier_timeout, all_have_met},
    {"barrier_timeouts", "two threads' deadlines", barrier_timeouts, all_have_met},
    {"barrier_async_timeout", "a loop's deadline against the last party", barrier_async_timeout, all_have_met},
    {"barrier_cancel", "cancel against the last party", barrier_cancel, all_have_met},
    {"barrier_cancel_of_three", "the same with one more party", barrier_cancel_of_three, all_have_met},
    {"barrier_destroy", "an agent's end against the last party", barrier_destroy, all_have_met},
    {"barrier_forget", "forgotten and freed, with a thread and a loop there", barrier_forget, both_cancelled},
    {"barrier_forget_and_destroy", "the same when the loop ends", barrier_forget_and_destroy, both_cancelled},
    {"barrier_freed", "the last of two threads frees it", barrier_freed, freed_once},
    {"barrier_freed_after_timeout", "the same against a thread's deadline", barrier_freed_after_timeout, freed_once},
    {"barrier_freed_with_loop", "the last party frees it, with a loop there", barrier_freed_with_loop, freed_once},
    {"once_two_threads", "two threads call", once_two_threads, once_is_over},
    {"once_three_threads", "three threads call", once_three_threads, once_is_over},
    {"once_awaited", "a thread and a loop wait for the first caller", once_awaited, once_is_over},
    {"once_loop_and_thread", "a loop and a thread call", once_loop_and_thread, once_is_over},
    {"once_fails", "the first of two fails", once_fails, once_is_over},
    {"once_fails_twice", "the first two of three fail", once_fails_twice, once_is_over},
    {"once_fails_for_loop", "the first fails, and a loop is next", once_fails_for_loop, once_is_over},
    {"once_fails_in_loop", "a loop and a thread, and the first fails", once_fails_in_loop, once_is_over},
    {"once_fails_for_all", "the first fails, and a loop or a thread is next", once_fails_for_all, once_is_over},
    {"once_slow_loop", "the first fails, and the loop in line does not run", once_slow_loop, once_is_over},
    {"once_behind_itself", "a loop's thread blocks behind its own request", once_behind_itself, once_is_over},
    {"once_timeout", "a thread's deadline against the end", once_timeout, once_is_over},
    {"once_async_timeout", "a loop's deadline against the end", once_async_timeout, once_is_over},
    {"once_fails_timeouts", "deadlines against a failure", once_fails_timeouts, once_is_over},
    {"once_cancel", "cancel against a failure", once_cancel, once_is_over},
    {"once_destroy", "an agent's end against a failure", once_destroy, once_is_over},
    {"once_waits_again", "a loop's deadline passes during the second attempt", once_waits_again, once_is_over},
    {NULL, NULL, NULL, NULL},
};
