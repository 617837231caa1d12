/* SPDX-License-Identifier: MIT */
/* Scenarios in which blocking calls are ended by an interruption. */
#include "scenario.h"

#include "vigil/barrier.h"
#include "vigil/cond.h"
#include "vigil/thread.h"
#include "vigil/mutex.h"
#include "vigil/sem.h"

static vigil_thread named;
static int interruptions; /* calls that an interruption has ended */
static vigil_mutex mutex;
static vigil_cond cond;
static vigil_sem sem;
static vigil_barrier barrier;
static int signals, permits, holders;

static void begin_interrupting(void) {
    begin();
    named = 0;
    interruptions = signals = permits = 0;
    mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    cond = (vigil_cond)VIGIL_COND_INIT;
    sem = (vigil_sem)VIGIL_SEM_INIT(0);
    barrier = (vigil_barrier)VIGIL_BARRIER_INIT(2);
}

static bool is_named(void *unused) {
    (void)unused;
    return named;
}

FIBER(interrupter) {
    (void)argument;
    sim_until(is_named, NULL);
    expect(vigil_interrupt(prim_fetch_or_acq_rel(&named, 0)), VIGIL_OK, "interrupt");
}

static void note(int status) {
    if (status == VIGIL_INTERRUPTED) interruptions++;
}

/* Exactly one call was interrupted. */
static void interrupted_once(void) {
    sim_check(interruptions == 1, "%d calls were interrupted", interruptions);
    balance();
}

/* ---- Words ---- */

FIBER(interruptible) {
    (void)argument;
    prim_store_release(&named, vigil_thread_self());
    note(wait_while_zero(&words[0], VIGIL_FOREVER));
    if (!interruptions) { /* notified first: the interruption is pending, or will come */
        note(wait_while_zero(&words[2], VIGIL_FOREVER));
    }
    note(wait_while_zero(&words[2], 500));
}

static void interrupt_alone(void) {
    begin_interrupting();
    go("interruptible", interruptible);
    go("interrupter", interrupter);
}

static void interrupt_and_notify(void) {
    begin_interrupting();
    go("interruptible", interruptible);
    go("interrupter", interrupter);
    go("notifier", bare_notifier);
}

static void interrupt_beside(void) {
    begin_interrupting();
    go("interruptible", interruptible);
    go("interrupter", interrupter);
    go("waiter", waiter);
    go("notifier", notifier_all);
}

static uint32_t *word_in_segment(void) {
    return &shared[0];
}

FIBER(interruptible_in_segment) {
    (void)argument;
    struct vigil_buffer *buffer = join_segment();
    prim_store_release(&named, vigil_thread_self());
    note(wait_while_zero(word_in_segment(), VIGIL_FOREVER));
    note(wait_while_zero(word_in_segment(), interruptions ? 500 : VIGIL_FOREVER));
    expect((int)vigil_buffer_destroy(buffer), VIGIL_OK, "destroy");
}

FIBER(notifier_in_segment) {
    (void)argument;
    struct vigil_buffer *buffer = join_segment();
    notify(word_in_segment(), 1);
    expect((int)vigil_buffer_destroy(buffer), VIGIL_OK, "destroy");
}

static void interrupt_in_segment(void) {
    begin_shared(3);
    named = 0;
    interruptions = 0;
    go_in(SURVIVOR, "interruptible", interruptible_in_segment);
    go_in(SURVIVOR, "interrupter", interrupter);
    go_in(OTHER, "notifier", notifier_in_segment);
}

/* ---- Locks: what is given is taken, by this call or by another ---- */

FIBER(interruptible_for_permit) {
    (void)argument;
    prim_store_release(&named, vigil_thread_self());
    int status = vigil_sem_acquire(&sem, 1);
    permits += status == VIGIL_OK;
    note(status);
    if (!interruptions) note(wait_while_zero(&words[0], VIGIL_FOREVER));
}

FIBER(taker_of_permit) {
    (void)argument;
    expect(vigil_sem_acquire(&sem, 1), VIGIL_OK, "acquire");
    permits++;
}

FIBER(giver_of_permits) {
    (void)argument;
    expect(vigil_sem_release(&sem, 2), VIGIL_OK, "release");
}

static void interrupt_for_permit(void) {
    begin_interrupting();
    go("interruptible", interruptible_for_permit);
    go("taker", taker_of_permit);
    go("giver", giver_of_permits);
    go("interrupter", interrupter);
}

static void all_permits_are_somewhere(void) {
    while (vigil_sem_tryacquire(&sem, 1) == VIGIL_OK) permits++;
    sim_check(permits == 2, "%d permits of 2", permits);
    interrupted_once();
}

FIBER(interruptible_for_mutex) {
    (void)argument;
    prim_store_release(&named, vigil_thread_self());
    while (!interruptions) {
        int status = vigil_mutex_lock(&mutex);
        note(status);
        if (status == VIGIL_OK) {
            vigil_mutex_unlock(&mutex);
            note(wait_while_zero(&words[0], VIGIL_FOREVER));
        }
    }
}

FIBER(holder) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    vigil_mutex_unlock(&mutex);
}

static void interrupt_for_mutex(void) {
    begin_interrupting();
    go("interruptible", interruptible_for_mutex);
    go("holder 1", holder);
    go("holder 2", holder);
    go("interrupter", interrupter);
}

FIBER(interruptible_at_condition) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    prim_store_release(&named, vigil_thread_self());
    int status = vigil_cond_wait(&cond, &mutex);
    signals += status == VIGIL_OK;
    note(status);
    sim_check(vigil_mutex_is_locked(&mutex), "the mutex is not held after a wait");
    vigil_mutex_unlock(&mutex);
    if (!interruptions) note(wait_while_zero(&words[0], VIGIL_FOREVER));
}

FIBER(waiter_at_condition) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    signals += vigil_cond_wait_for(&cond, &mutex, 500) == VIGIL_OK;
    vigil_mutex_unlock(&mutex);
}

FIBER(signaller) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    signals -= (int)vigil_cond_signal(&cond);
    vigil_mutex_unlock(&mutex);
}

static void interrupt_at_condition(void) {
    begin_interrupting();
    go("interruptible", interruptible_at_condition);
    go("waiter", waiter_at_condition);
    go("signaller", signaller);
    go("interrupter", interrupter);
}

/* The deadline has passed, and another thread is in the mutex's line. */
FIBER(late_at_condition) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    prim_store_release(&named, vigil_thread_self());
    expect(vigil_cond_wait_for(&cond, &mutex, 0), VIGIL_TIMED_OUT, "a wait that is late");
    sim_check(!holders++, "the wait returned without the mutex");
    holders--;
    vigil_mutex_unlock(&mutex);
    note(wait_while_zero(&words[0], VIGIL_FOREVER));
}

FIBER(visible_holder) {
    (void)argument;
    expect(vigil_mutex_lock(&mutex), VIGIL_OK, "lock");
    sim_check(!holders++, "two threads hold the mutex");
    prim_load_acquire(&words[1]); /* a step, so that other fibers can run */
    holders--;
    vigil_mutex_unlock(&mutex);
}

static void interrupt_late_at_condition(void) {
    begin_interrupting();
    holders = 0;
    go("late", late_at_condition);
    go("holder", visible_holder);
    go("interrupter", interrupter);
}

static void each_signal_has_arrived(void) {
    sim_check(signals == 0, "%d more signals have arrived than were given", signals);
    interrupted_once();
}

/* ---- Barriers: an interrupted party has not arrived ---- */

FIBER(interruptible_at_barrier) {
    (void)argument;
    prim_store_release(&named, vigil_thread_self());
    int status = vigil_barrier_wait(&barrier);
    note(status);
    if (interruptions) sim_check(vigil_barrier_wait(&barrier) != VIGIL_INTERRUPTED, "interrupted again");
    else note(wait_while_zero(&words[0], VIGIL_FOREVER));
}

FIBER(party) {
    (void)argument;
    int status = vigil_barrier_wait(&barrier);
    sim_check(status == VIGIL_OK || status == VIGIL_LAST, "the other party: %s", vigil_status_name(status));
}

static void interrupt_at_barrier(void) {
    begin_interrupting();
    go("interruptible", interruptible_at_barrier);
    go("party", party);
    go("interrupter", interrupter);
}

const struct sim_scenario interrupt_scenarios[] = {
    {"interrupt_alone", "a wait is interrupted, and no other wait", interrupt_alone, interrupted_once},
    {"interrupt_and_notify", "an interruption against a notification", interrupt_and_notify, interrupted_once},
    {"interrupt_beside", "the same with another waiter", interrupt_beside, interrupted_once},
    {"interrupt_in_segment", "the same in a segment", interrupt_in_segment, interrupted_once},
    {"interrupt_for_permit", "an interruption against permits", interrupt_for_permit, all_permits_are_somewhere},
    {"interrupt_for_mutex", "an interruption against the release of a mutex", interrupt_for_mutex, interrupted_once},
    {"interrupt_at_condition", "an interruption against a signal", interrupt_at_condition, each_signal_has_arrived},
    {"interrupt_late_at_condition", "an interruption of a wait whose deadline has passed", interrupt_late_at_condition,
     interrupted_once},
    {"interrupt_at_barrier", "an interruption against the end of a round", interrupt_at_barrier, interrupted_once},
    {NULL, NULL, NULL, NULL},
};
