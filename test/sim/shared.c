/* SPDX-License-Identifier: MIT */
/*
 * Scenarios with the lines and the mutex of a segment, and one process that is killed at any time: in the middle of an
 * enqueue, a notification, a release, a repair. The survivors must carry on.
 *
 * In each, what the survivors wait for happens eventually, whatever the victim was doing. So a lost waiter sleeps
 * forever, and the simulator reports it.
 */
#include "base/word_lock.h"
#include "recovery/recovery.h"
#include "scenario.h"
#include "shm/events.h"
#include "vigil/barrier.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/once.h"
#include "sync/rwlock.h"
#include "vigil/rwlock.h"
#include "vigil/segment.h"
#include "vigil/sem.h"

#define WORD  (&shared[0])
#define MUTEX ((vigil_mutex *)(void *)&shared[16])
#define COND  ((vigil_cond *)(void *)&shared[17])

static uint32_t victims_number; /* its member number */
static bool death_seen, unused_at_death, victim_returned;
static const struct slot *victims_loop_slot; /* through which its event loop is told, in its own lot */

static void begin_line(uint32_t members, bool with_victim) {
    begin_shared(members);
    if (with_victim) sim_victim(VICTIM);
    victims_number = 0;
    victims_loop_slot = NULL;
    death_seen = unused_at_death = victim_returned = false;
}

/* Processes killed while they join are in processes.c; here the process has joined already. */
static void go_joined(unsigned process, const char *name, void (*fiber)(void *)) {
    join_before(process);
    go_in(process, name, fiber);
}

/* After a sweep nothing of the dead process is left. */
static void balance_shared(void) {
    struct lot *lot = lot_in(observed->segment);
    segment_strike_off_all(observed->segment);
    recovery_run(lot, PRIM_NEVER);
    for (uint32_t i = 1; i < lot->share->slots; i++) {
        sim_check(!lot->share->claims[i], "slot %u is not given back", (unsigned)i);
    }
    for (uint32_t i = 0; i < 1u << lot->bucket_bits; i++) {
        sim_check(!lot->buckets[i].word && !lot->buckets[i].line, "bucket %u is not empty", (unsigned)i);
    }
    balance();
}

/*
 * Slots with that word's key: those in line for it; or, unless in_line_only, those of that member, in line or told and
 * not yet used.
 */
static int64_t count_slots_of(const void *word, bool in_line_only, uint32_t number) {
    const struct segment_layout *at = &observed->segment->layout;
    struct slot *slots = (struct slot *)(void *)(observed->segment->base + at->slots_at);
    uint32_t *claims = (uint32_t *)(void *)(observed->segment->base + at->claims_at);
    uint64_t key = (uint64_t)((const unsigned char *)word - observed->segment->base);
    int64_t count = 0;
    for (uint32_t i = 1; i < at->slots; i++) {
        bool counts = in_line_only ? undecided(slots[i].state) : claim_number(claims[i]) == number;
        count += claims[i] && slots[i].key == key && counts;
    }
    return count;
}

static int64_t count_slots(bool in_line_only, uint32_t number) {
    return count_slots_of(WORD, in_line_only, number);
}

static int64_t waiting_for_word(void) {
    return count_slots(true, 0);
}

/* Evaluated after every step, so it sees what the victim had when it was killed. */
static void look_at_victim(void) {
    if (!sim_dead(VICTIM) || death_seen) return;
    death_seen = true;
    bool not_heard = victims_loop_slot && victims_loop_slot->kind == SLOT_AWAY; /* the loop has not read it yet */
    unused_at_death = not_heard || (victims_number && count_slots(false, victims_number));
}

/* That many survivors are in line, and the victim is too or never will be. */
static bool line_is_there(void *survivors) {
    look_at_victim();
    int64_t all = waiting_for_word(), victims = victims_number ? count_slots(false, victims_number) : 0;
    return all - victims >= (intptr_t)survivors && (victims || sim_dead(VICTIM));
}

/* ---- Waiters ---- */

static bool somebody_waits(void *unused) {
    (void)unused;
    return waiting_for_word() || *WORD;
}

FIBER(shared_waiter) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    wait_while_zero(WORD, VIGIL_FOREVER);
    leave_segment(buffer);
}

static bool victim_is_over(void *unused) {
    (void)unused;
    look_at_victim();
    return victim_returned || sim_dead(VICTIM);
}

/* Whether the notification that the victim may have received will not be passed on. */
static bool used_by_victim(void) {
    sim_until(victim_is_over, NULL);
    return !unused_at_death;
}

static void victim_joined(void) {
    victims_number = vigil__holder / SEGMENT_HOLDER;
}

FIBER(victim_waiter) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    victim_joined();
    wait_while_zero(WORD, VIGIL_FOREVER);
    victim_returned = true;
    leave_segment(buffer);
}

static void wait_as_loop(uint32_t *word) {
    vigil_buffer *buffer = join_segment();
    vigil_agent *agent = new_agent();
    start(agent, &requests[0], word, VIGIL_FOREVER);
    run(agent);
    destroy(agent);
    leave_segment(buffer);
}

FIBER(shared_async_waiter) {
    (void)argument;
    wait_as_loop(WORD);
}

FIBER(victim_async_waiter) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    vigil_agent *agent = new_agent();
    victim_joined();
    start(agent, &requests[1], WORD, VIGIL_FOREVER);
    victims_loop_slot = requests[1].pending ? &lot_private()->slots[requests[1].op.slot] : NULL;
    run(agent);
    victim_returned = true;
    destroy(agent);
    leave_segment(buffer);
}

FIBER(shared_notifier_all) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    change_and_notify(WORD, VIGIL_ALL);
    leave_segment(buffer);
}

static void notify_across(void) {
    begin_line(3, false);
    go_joined(SURVIVOR, "waiter", shared_waiter);
    go_joined(OTHER, "notifier", shared_notifier_all);
}

static void notify_across_async(void) {
    begin_line(3, false);
    go_joined(SURVIVOR, "loop", shared_async_waiter);
    go_joined(OTHER, "notifier", shared_notifier_all);
}

/* One notification; one more for the survivor only if the victim has used the first. */
FIBER(one_for_each_living) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(line_is_there, (void *)1);
    notify(WORD, 1);
    if (used_by_victim()) notify(WORD, 1);
    leave_segment(buffer);
}

/* Behind the victim, if the victim gets there. */
FIBER(waiter_behind) {
    (void)argument;
    sim_until(line_is_there, (void *)0);
    shared_waiter(argument);
}

FIBER(loop_behind) {
    (void)argument;
    sim_until(line_is_there, (void *)0);
    shared_async_waiter(argument);
}

static void waiter_killed(void) {
    begin_line(4, true);
    go_joined(VICTIM, "victim", victim_waiter);
    go_joined(SURVIVOR, "waiter", waiter_behind);
    go_joined(OTHER, "notifier", one_for_each_living);
}

static void waiter_killed_before_loop(void) {
    begin_line(4, true);
    go_joined(VICTIM, "victim", victim_waiter);
    go_joined(SURVIVOR, "loop", loop_behind);
    go_joined(OTHER, "notifier", one_for_each_living);
}

static void loop_killed(void) {
    begin_line(4, true);
    go_joined(VICTIM, "victim", victim_async_waiter);
    go_joined(SURVIVOR, "waiter", waiter_behind);
    go_joined(OTHER, "notifier", one_for_each_living);
}

/* Two survivors behind the victim: what is passed on goes to one of them only. */
static int64_t served[2], serving;

FIBER(second_waiter) {
    (void)argument;
    wait_while_zero(WORD, VIGIL_FOREVER);
    served[1] = ++serving;
    prim_store_release(&shared[30], 1u);
}

static bool has_ended(void *unused) {
    (void)unused;
    return shared[30];
}

FIBER(two_waiters) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(line_is_there, (void *)0);
    sim_go("second", second_waiter, NULL);
    wait_while_zero(WORD, VIGIL_FOREVER);
    served[0] = ++serving;
    sim_until(has_ended, NULL);
    while (!prim_load_acquire(&shared[30])) prim_pause(); /* acquire: sees what it did */
    leave_segment(buffer);
}

static bool one_is_served(void *unused) {
    (void)unused;
    return serving >= 1;
}

FIBER(one_at_a_time) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(line_is_there, (void *)2);
    int64_t told = notify(WORD, 1);
    sim_check(told == 1, "no waiter was notified");
    if (used_by_victim()) notify(WORD, 1);
    sim_until(one_is_served, NULL);
    change_and_notify(WORD, VIGIL_ALL); /* wakes the other one */
    leave_segment(buffer);
}

static void passed_on_once(void) {
    begin_line(4, true);
    serving = 0;
    go_joined(VICTIM, "victim", victim_waiter);
    go_joined(SURVIVOR, "waiters", two_waiters);
    go_joined(OTHER, "notifier", one_at_a_time);
}

/* ---- A process is killed while it looks at a line, and the line is rebuilt ---- */

static bool two_in_line(void *unused) {
    (void)unused;
    return waiting_for_word() == 2;
}

FIBER(victim_looks) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(two_in_line, NULL);
    sim_check(vigil_waiters(WORD) <= 2, "more waiters than there are");
    victim_is_done();
    leave_segment(buffer);
}

FIBER(second_in_line) {
    (void)argument;
    sim_until(somebody_waits, NULL);
    wait_at(WORD, VIGIL_FOREVER, 2);
    prim_store_release(&shared[30], 1u);
}

FIBER(in_order) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_go("second", second_in_line, NULL);
    wait_at(WORD, VIGIL_FOREVER, 1);
    sim_until(has_ended, NULL);
    while (!prim_load_acquire(&shared[30])) prim_pause();
    leave_segment(buffer);
}

FIBER(one_by_one) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(two_in_line, NULL);
    await_victim();
    sim_check(notify(WORD, 1) == 1, "no waiter was notified");
    sim_check(notify(WORD, 1) == 1, "no waiter was notified");
    leave_segment(buffer);
}

static void order_kept(void) {
    begin_line(4, true);
    go_joined(SURVIVOR, "first", in_order);
    go_joined(VICTIM, "victim", victim_looks);
    go_joined(OTHER, "notifier", one_by_one);
}

/* The same, but always killed while it has the bucket. */
static bool victim_is_inside;

FIBER(victim_inside) {
    (void)argument;
    struct lot *lot = lot_in(join_segment()->segment);
    sim_until(two_in_line, NULL);
    struct bucket *bucket = lot->buckets; /* of the two buckets, the one with the line */
    while (!prim_load_acquire(&bucket->word)) bucket = bucket == lot->buckets ? bucket + 1 : lot->buckets;
    while (!word_trylock(&bucket->word, lot->number)) prim_pause();
    victim_is_inside = true;
    for (;;) prim_park_shared(&shared[0], 0, PRIM_NEVER);
}

static bool is_inside(void *unused) {
    (void)unused;
    return victim_is_inside;
}

FIBER(kills_who_is_inside) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(is_inside, NULL);
    sim_kill(VICTIM);
    sim_check(notify(WORD, 1) == 1, "no waiter was notified");
    sim_check(notify(WORD, 1) == 1, "no waiter was notified");
    leave_segment(buffer);
}

static void killed_inside(void) {
    begin_line(4, false);
    victim_is_inside = false;
    go_joined(SURVIVOR, "first", in_order);
    go_joined(VICTIM, "victim", victim_inside);
    go_joined(OTHER, "killer", kills_who_is_inside);
}

/* ---- A notifier is killed ---- */

FIBER(victim_notifier) {
    shared_notifier_all(argument);
    victim_is_done();
}

FIBER(notifier_after_victim) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    await_victim();
    change_and_notify(WORD, VIGIL_ALL);
    leave_segment(buffer);
}

static void notifier_killed(void) {
    begin_line(4, true);
    go_joined(SURVIVOR, "waiter", shared_waiter);
    go_joined(VICTIM, "notifier", victim_notifier);
    go_joined(OTHER, "after it", notifier_after_victim);
}

static void notifier_killed_loop(void) {
    begin_line(4, true);
    go_joined(SURVIVOR, "loop", shared_async_waiter);
    go_joined(VICTIM, "notifier", victim_notifier);
    go_joined(OTHER, "after it", notifier_after_victim);
}

/* ---- A loop waits again with the same slot, while its process looks in vain for what it has been told ---- */

static vigil_agent *waits_again;

static bool first_has_ended(void *unused) {
    (void)unused;
    return books.ended[VIGIL_OK] > 0;
}

static void wait_once_more(struct request *request) {
    (void)request;
    start(waits_again, &requests[1], WORD, VIGIL_FOREVER);
}

static void notify_when_in_line(void) {
    sim_until(somebody_waits, NULL);
    sim_check(notify(WORD, 1) == 1, "the waiter was not notified");
}

FIBER(notifies_twice) {
    (void)argument;
    notify_when_in_line();
    sim_until(first_has_ended, NULL);
    notify_when_in_line();
}

FIBER(looks_for_its_own) {
    sim_until(first_has_ended, NULL);
    recovery_own(argument, PRIM_NEVER);
}

FIBER(loop_waits_twice) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    waits_again = new_agent();
    requests[0].then = wait_once_more;
    start(waits_again, &requests[0], WORD, VIGIL_FOREVER);
    sim_go("notifier", notifies_twice, NULL);
    sim_go("looks", looks_for_its_own, lot_in(buffer->segment));
    run(waits_again);
    destroy(waits_again);
    sim_kill(SURVIVOR); /* its other threads may still be running */
}

static void slot_used_again(void) {
    begin_line(3, false);
    go_joined(SURVIVOR, "loop", loop_waits_twice);
}

/* ---- Stopped ---- */

/* The victim has no bucket that others would have to wait for. */
static bool victim_is_outside(void) {
    struct bucket *buckets = (struct bucket *)(void *)(observed->segment->base + observed->segment->layout.buckets_at);
    bool outside = true;
    for (uint32_t i = 0; i < observed->segment->layout.buckets; i++) {
        outside &= buckets[i].word / SEGMENT_HOLDER != victims_number;
    }
    return outside;
}

static void stop_victim(void) {
    for (sim_stop(VICTIM); !victim_is_outside(); sim_stop(VICTIM)) {
        sim_continue(VICTIM);
        prim_pause();
    }
}

FIBER(stopper) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(somebody_waits, NULL);
    stop_victim();
    let_pass(60000000); /* three scans of the members */
    sim_check(vigil_waiters(WORD) == 1, "a stopped waiter has lost its place");
    change_and_notify(WORD, VIGIL_ALL);
    sim_continue(VICTIM);
    leave_segment(buffer);
}

FIBER(timed_waiter) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(somebody_waits, NULL);
    wait_while_zero(&shared[1], 50000000); /* so that there is a watcher */
    leave_segment(buffer);
}

static void waiter_stopped(void) {
    begin_line(4, false);
    go_joined(VICTIM, "stopped", victim_waiter);
    go_joined(SURVIVOR, "watched", timed_waiter);
    go_joined(OTHER, "stopper", stopper);
}

/*
 * A process is stopped inside a bucket, where a thread of another process is in line. The keeper of that other process
 * must still deliver what is meant for a loop of its process.
 */
#define BESIDE ((vigil_mutex *)(void *)&shared[1]) /* in another bucket than its neighbour */
static bool loop_has_heard;

FIBER(loop_that_hears) {
    shared_async_waiter(argument);
    loop_has_heard = true;
}

static bool beside_is_locked(void *unused) {
    (void)unused;
    return BESIDE->word != 0;
}

FIBER(locks_beside) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(beside_is_locked, NULL);
    expect(vigil_mutex_lock(BESIDE), VIGIL_OK, "lock");
    expect(vigil_mutex_unlock(BESIDE), VIGIL_OK, "unlock");
    leave_segment(buffer);
}

static bool heard(void *unused) {
    (void)unused;
    return loop_has_heard;
}

static bool both_wait(void *unused) {
    (void)unused;
    return waiting_for_word() == 1 && count_slots_of(BESIDE, true, 0) == 1;
}

/* Locks the bucket that has a line for that word. */
static uint32_t *enter_bucket(const struct lot *lot, const void *word) {
    struct bucket *bucket = lot->buckets;
    uint32_t line = bucket->line;
    while (line && lot->slots[line].key != key_of(lot, word)) line = lot->slots[line].next_line;
    if (!line) bucket++; /* there are two buckets */
    while (!word_trylock(&bucket->word, lot->number)) prim_pause();
    return &bucket->word;
}

FIBER(stops_inside) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    struct lot *lot = lot_in(buffer->segment);
    expect(vigil_mutex_lock(BESIDE), VIGIL_OK, "lock");
    sim_until(both_wait, NULL);
    uint32_t *bucket = enter_bucket(lot, BESIDE);
    victim_is_inside = true;
    sim_until(heard, NULL);
    if (word_unlock_only(bucket, true)) prim_wake_shared(bucket);
    expect(vigil_mutex_unlock(BESIDE), VIGIL_OK, "unlock");
    leave_segment(buffer);
}

FIBER(notifies_meanwhile) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(is_inside, NULL);
    let_pass(250000000); /* all lines of locks are scanned twice */
    change_and_notify(WORD, VIGIL_ALL);
    leave_segment(buffer);
}

static void stopped_inside(void) {
    begin_line(4, false);
    victim_is_inside = loop_has_heard = false;
    go_joined(SURVIVOR, "loop", loop_that_hears);
    go_in(SURVIVOR, "in line beside", locks_beside);
    go_joined(VICTIM, "stopped", stops_inside);
    go_joined(OTHER, "notifier", notifies_meanwhile);
}

/*
 * The same where a process dies that has been signalled and moved. Its sweeper must enter the condition's bucket, now
 * or later, because the signal belongs to another waiter.
 */
#define NEIGHBOUR (&shared[18]) /* in the bucket of the mutex, not in that of the condition */

FIBER(loop_beside) {
    (void)argument;
    wait_as_loop(NEIGHBOUR);
    loop_has_heard = true;
}

FIBER(dies_signalled) {
    (void)argument;
    join_segment();
    expect(vigil_mutex_lock(MUTEX), VIGIL_OK, "lock");
    vigil_cond_wait(COND, MUTEX);
    sim_fail("the wait returned, but the mutex was never free");
}

static bool victim_waits(void *unused) {
    (void)unused;
    return count_slots_of(COND, true, 0) == 1;
}

static bool second_is_through;

static bool second_through(void *unused) {
    (void)unused;
    return second_is_through;
}

FIBER(second_for_condition) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(victim_waits, NULL);
    expect(vigil_mutex_lock(MUTEX), VIGIL_OK, "lock");
    expect(vigil_cond_wait(COND, MUTEX), VIGIL_OK, "wait");
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
    second_is_through = true;
    leave_segment(buffer);
}

static bool all_wait_there(void *unused) {
    (void)unused;
    return count_slots_of(COND, true, 0) == 2 && count_slots_of(NEIGHBOUR, true, 0) == 1;
}

static bool is_moved(void *unused) {
    (void)unused;
    return count_slots_of(MUTEX, true, 0) == 1;
}

FIBER(signals_and_stops) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    struct lot *lot = lot_in(buffer->segment);
    sim_until(all_wait_there, NULL);
    expect(vigil_mutex_lock(MUTEX), VIGIL_OK, "lock");
    sim_check(vigil_cond_signal(COND) == 1, "no waiter was signalled");
    sim_until(is_moved, NULL);
    uint32_t *bucket = enter_bucket(lot, COND);
    sim_kill(VICTIM);
    let_pass(250000000);
    sim_check(notify(NEIGHBOUR, 1) == 1, "no waiter was notified");
    sim_until(heard, NULL);
    if (word_unlock_only(bucket, true)) prim_wake_shared(bucket);
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
    sim_until(second_through, NULL); /* leaving before that would make every process scan again */
    leave_segment(buffer);
}

static void stopped_beside_the_dead(void) {
    begin_line(4, false);
    MUTEX->word = 0;
    loop_has_heard = second_is_through = false;
    go_joined(SURVIVOR, "loop", loop_beside);
    go_in(SURVIVOR, "second in line", second_for_condition);
    go_joined(VICTIM, "victim", dies_signalled);
    go_joined(OTHER, "stopped", signals_and_stops);
}

/* ---- The mutex ---- */

static unsigned holder; /* the process inside, plus one */
static bool half_done;  /* the data that the mutex protects is */
static unsigned owners_died;

static void begin_mutex(uint32_t members, uint32_t word, bool with_victim) {
    begin_line(members, with_victim);
    holder = owners_died = 0;
    half_done = false;
    MUTEX->word = word;
}

static bool somebody_is_dead(void) {
    return sim_dead(VICTIM) || sim_dead(SURVIVOR);
}

static void with_the_mutex(int status) {
    bool was_held = holder != 0;
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "lock: %s", vigil_status_name(status));
    sim_check(!was_held || sim_dead(holder - 1), "the mutex has two holders");
    sim_check(!was_held || status == VIGIL_OWNER_DIED, "not told that the owner died");
    sim_check(status == VIGIL_OK || somebody_is_dead(), "told that the owner died, but no process died");
    if (status == VIGIL_OWNER_DIED) {
        owners_died++;
        expect(vigil_mutex_consistent(MUTEX), VIGIL_OK, "consistent");
    }
    holder = sim_process + 1;
    half_done = true;
    uint32_t count = prim_load_relaxed(&shared[20]); /* moments to be killed at */
    prim_store_relaxed(&shared[20], count + 1);
    half_done = false;
    holder = 0;
}

static void lock_and_unlock(void) {
    with_the_mutex(vigil_mutex_lock(MUTEX));
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
}

FIBER(locker) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    lock_and_unlock();
    leave_segment(buffer);
}

FIBER(locks_twice) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    lock_and_unlock();
    lock_and_unlock();
    leave_segment(buffer);
}

static void mutex_free_again(void) {
    sim_check(!vigil_mutex_is_locked(MUTEX) || somebody_is_dead(), "it is still locked");
    balance_shared();
}

static void holder_killed(void) {
    begin_mutex(3, 0, true);
    go_joined(VICTIM, "victim", locker);
    go_joined(SURVIVOR, "survivor", locker);
}

/* A process that has patrolled, and has been called, is stopped: another keeper patrols, and calls the next in line. */
static unsigned through;

static bool line_is(void *processes) {
    return count_slots_of(MUTEX, true, 0) == (intptr_t)processes;
}

static bool has_been_patrolled(void *unused) {
    (void)unused;
    return segment_header(observed->segment)->patrolled_ns && victim_is_outside();
}

static bool one_is_through(void *unused) {
    (void)unused;
    return through;
}

static bool is_locked(void *unused) {
    (void)unused;
    return MUTEX->word != 0;
}

FIBER(is_called_when_stopped) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    victim_joined();
    sim_until(is_locked, NULL);
    lock_and_unlock();
    leave_segment(buffer);
}

FIBER(locks_behind) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(line_is, (void *)1);
    lock_and_unlock();
    through++;
    leave_segment(buffer);
}

FIBER(calls_the_stopped) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_mutex_lock(MUTEX), VIGIL_OK, "lock");
    sim_until(line_is, (void *)2);
    sim_until(has_been_patrolled, NULL);
    sim_stop(VICTIM);
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
    sim_until(one_is_through, NULL);
    sim_continue(VICTIM);
    leave_segment(buffer);
}

static void patroller_stopped(void) {
    begin_mutex(4, 0, false);
    through = 0;
    go_joined(OTHER, "holder", calls_the_stopped);
    go_joined(SURVIVOR, "behind", locks_behind);
    go_joined(VICTIM, "stopped", is_called_when_stopped);
}

/* A thread ends holding a robust mutex while its process lives on, or is killed at that moment. */
static bool taken_and_not_unlocked, succeeded;

static bool has_succeeded(void *unused) {
    (void)unused;
    return succeeded;
}

FIBER(thread_that_ends) {
    (void)argument;
    int status = vigil_mutex_lock(MUTEX);
    expect(status, VIGIL_OK, "lock");
    taken_and_not_unlocked = true;
}

FIBER(process_of_thread) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    struct prim_handle *thread;
    prim_thread_start(&thread, thread_that_ends, NULL, false);
    prim_thread_join(thread);
    sim_until(has_succeeded, NULL);
    leave_segment(buffer);
}

static bool mutex_taken(void *unused) {
    (void)unused;
    return taken_and_not_unlocked || sim_dead(VICTIM);
}

FIBER(successor) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(mutex_taken, NULL);
    int status = vigil_mutex_lock(MUTEX);
    sim_check(status == VIGIL_OWNER_DIED || (status == VIGIL_OK && !taken_and_not_unlocked), "lock: %s",
              vigil_status_name(status));
    if (status == VIGIL_OWNER_DIED) expect(vigil_mutex_consistent(MUTEX), VIGIL_OK, "consistent");
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
    succeeded = true;
    leave_segment(buffer);
}

static void begin_thread_ends(bool with_victim) {
    begin_mutex(3, ((vigil_mutex)VIGIL_MUTEX_ROBUST).word, with_victim);
    taken_and_not_unlocked = succeeded = false;
    go_joined(VICTIM, "process", process_of_thread);
    go_joined(SURVIVOR, "successor", successor);
}

static void thread_ends(void) {
    begin_thread_ends(false);
}

static void thread_ends_or_process(void) {
    begin_thread_ends(true);
}

static void contender_killed(void) {
    begin_mutex(4, 0, true);
    go_joined(VICTIM, "victim", locker);
    go_joined(SURVIVOR, "survivor", locks_twice);
    go_joined(OTHER, "other", locker);
}

static void fair_contender_killed(void) {
    begin_mutex(4, 4, true);
    go_joined(VICTIM, "victim", locker);
    go_joined(SURVIVOR, "survivor", locker);
    go_joined(OTHER, "other", locker);
}

static void granted(vigil_op *op, int status) {
    turn_ends(op, VIGIL_OK);
    with_the_mutex(status);
}

FIBER(loop_that_locks) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    vigil_agent *agent = new_agent();
    int status = vigil_mutex_execute(agent, turn_begins(&turns[0]), MUTEX, VIGIL_FOREVER, granted);
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED || status == VIGIL_PENDING, "execute: %s",
              vigil_status_name(status));
    run(agent);
    destroy(agent);
    leave_segment(buffer);
}

static void two_lockers_killed(void) {
    begin_mutex(4, 0, true);
    sim_victim(SURVIVOR);
    go_joined(VICTIM, "victim", locker);
    go_joined(SURVIVOR, "loop", loop_that_locks);
    go_joined(OTHER, "other", locks_twice);
}

static void holder_killed_loop(void) {
    begin_mutex(3, 0, true);
    go_joined(VICTIM, "victim", locker);
    go_joined(SURVIVOR, "loop", loop_that_locks);
}

static void loop_killed_before_locker(void) {
    begin_mutex(4, 0, true);
    go_joined(VICTIM, "victim", loop_that_locks);
    go_joined(SURVIVOR, "survivor", locker);
    go_joined(OTHER, "other", locker);
}

FIBER(tries_until_it_has_it) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    int status, in_vain = 0; /* it may see an old value of the word */
    await_victim();
    while ((status = vigil_mutex_trylock(MUTEX)) == VIGIL_TIMED_OUT) {
        sim_check(!sim_dead(VICTIM) || ++in_vain < 5, "no living process holds it");
        prim_pause();
    }
    with_the_mutex(status);
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
    leave_segment(buffer);
}

FIBER(victim_locker) {
    locker(argument);
    victim_is_done();
}

static void tried_after_death(void) {
    begin_mutex(3, 0, true);
    go_joined(VICTIM, "victim", victim_locker);
    go_joined(SURVIVOR, "survivor", tries_until_it_has_it);
}

/* A process gives up what one of its holders held that has ended, or is killed at that moment. */
FIBER(gives_mutex_up) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_mutex_lock(MUTEX), VIGIL_OK, "lock");
    taken_and_not_unlocked = true;
    expect(vigil_mutex_abandon(MUTEX), VIGIL_OK, "abandon");
    sim_until(has_succeeded, NULL);
    leave_segment(buffer);
}

static void begin_giving_up(bool with_victim) {
    begin_mutex(3, 0, with_victim);
    taken_and_not_unlocked = succeeded = false;
    go_joined(VICTIM, "process", gives_mutex_up);
    go_joined(SURVIVOR, "successor", successor);
}

static void mutex_given_up(void) {
    begin_giving_up(false);
}

static void mutex_given_up_or_killed(void) {
    begin_giving_up(true);
}

/* ---- Conditions ---- */

static bool condition;

FIBER(waits_for_condition) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    int status = vigil_mutex_lock(MUTEX);
    if (status == VIGIL_OWNER_DIED) vigil_mutex_consistent(MUTEX);
    while (!condition) {
        status = vigil_cond_wait(COND, MUTEX);
        sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "cond_wait: %s", vigil_status_name(status));
        if (status == VIGIL_OWNER_DIED) vigil_mutex_consistent(MUTEX);
    }
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
    leave_segment(buffer);
}

static void signal_condition(void) {
    int status = vigil_mutex_lock(MUTEX);
    if (status == VIGIL_OWNER_DIED) vigil_mutex_consistent(MUTEX);
    condition = true;
    sim_check(vigil_cond_broadcast(COND) >= 0, "broadcast");
    expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
}

FIBER(signals) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    signal_condition();
    leave_segment(buffer);
    victim_is_done();
}

FIBER(signals_after_victim) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    await_victim();
    signal_condition();
    leave_segment(buffer);
}

static void begin_cond(void) {
    begin_mutex(4, 0, true);
    condition = false;
}

static void signaller_killed(void) {
    begin_cond();
    go_joined(SURVIVOR, "waiter", waits_for_condition);
    go_joined(VICTIM, "signaller", signals);
    go_joined(OTHER, "after it", signals_after_victim);
}

static void cond_waiter_killed(void) {
    begin_cond();
    go_joined(VICTIM, "victim", waits_for_condition);
    go_joined(SURVIVOR, "waiter", waits_for_condition);
    go_joined(OTHER, "signaller", signals);
}

/* One signal for each living waiter, and no condition to test: a lost signal leaves a waiter asleep forever. */
static bool in_line_for_cond[4]; /* by process: about to wait, with the mutex held */

static void wait_for_one_signal(void) {
    int status = vigil_mutex_lock(MUTEX);
    if (status == VIGIL_OWNER_DIED) vigil_mutex_consistent(MUTEX);
    in_line_for_cond[sim_process] = true;
    status = vigil_cond_wait(COND, MUTEX);
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "cond_wait: %s", vigil_status_name(status));
    if (sim_process == VICTIM) victim_returned = true;
    vigil_mutex_unlock(MUTEX);
}

FIBER(victim_signalled) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    wait_for_one_signal();
    leave_segment(buffer);
}

static bool victim_waits_for_cond(void *unused) {
    (void)unused;
    return in_line_for_cond[VICTIM] || sim_dead(VICTIM);
}

FIBER(signalled_behind) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(victim_waits_for_cond, NULL);
    wait_for_one_signal();
    leave_segment(buffer);
}

static bool survivor_waits_for_cond(void *unused) {
    (void)unused;
    return in_line_for_cond[SURVIVOR];
}

static void signal_one(void) {
    int status = vigil_mutex_lock(MUTEX);
    if (status == VIGIL_OWNER_DIED) vigil_mutex_consistent(MUTEX);
    vigil_cond_signal(COND);
    vigil_mutex_unlock(MUTEX);
}

/* A signal that the victim used before it was killed is not passed on. So the second signal follows in every case. */
FIBER(signals_one_by_one) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(survivor_waits_for_cond, NULL);
    signal_one();
    sim_until(victim_is_over, NULL);
    signal_one();
    leave_segment(buffer);
}

static void signalled_and_killed(void) {
    begin_mutex(4, 0, true);
    for (int i = 0; i < 4; i++) in_line_for_cond[i] = false;
    go_joined(VICTIM, "victim", victim_signalled);
    go_joined(SURVIVOR, "behind it", signalled_behind);
    go_joined(OTHER, "signaller", signals_one_by_one);
}

/* ---- A slot of a dead process is moved while it is swept ---- */

static bool cond_waiter_sleeps(void *unused) {
    (void)unused;
    struct slot *slots = (struct slot *)(void *)(observed->segment->base + observed->segment->layout.slots_at);
    bool asleep = false;
    for (uint32_t i = 1; i < observed->segment->layout.slots; i++) {
        asleep |= slots[i].key && slots[i].kind == SLOT_COND && slots[i].state == SLOT_ASLEEP;
    }
    return asleep && MUTEX->word == 0;
}

FIBER(kills_and_sweeps) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(cond_waiter_sleeps, NULL);
    sim_kill(VICTIM);
    segment_strike_off_all(buffer->segment);
    recovery_run(lot_in(buffer->segment), PRIM_NEVER);
    leave_segment(buffer);
}

static bool victim_is_dead(void *unused) {
    (void)unused;
    return sim_dead(VICTIM);
}

FIBER(signals_the_dead) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(victim_is_dead, NULL);
    sim_check(vigil_cond_signal(COND) >= 0, "signal");
    leave_segment(buffer);
}

static void moved_while_swept(void) {
    begin_mutex(4, 0, false);
    condition = false;
    go_joined(VICTIM, "victim", waits_for_condition);
    go_joined(SURVIVOR, "sweeper", kills_and_sweeps);
    go_joined(OTHER, "signaller", signals_the_dead);
}

/* ---- A barrier for two, and a once ---- */

#define BARRIER ((vigil_barrier *)(void *)&shared[32])
#define ONCE    ((vigil_once *)(void *)&shared[36])

static unsigned last_ones, came_through;
static bool survivor_is_through;

static bool arrive(int64_t timeout_ns) {
    int status = vigil_barrier_wait_for(BARRIER, timeout_ns);
    bool timed_out = status == VIGIL_TIMED_OUT && timeout_ns != VIGIL_FOREVER;
    sim_check(status == VIGIL_OK || status == VIGIL_LAST || timed_out, "barrier: %s", vigil_status_name(status));
    last_ones += status == VIGIL_LAST;
    came_through += !timed_out;
    return !timed_out;
}

FIBER(arrives) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    arrive(VIGIL_FOREVER);
    if (sim_process == SURVIVOR) survivor_is_through = true;
    leave_segment(buffer);
}

FIBER(victim_arrives) {
    arrives(argument);
    victim_is_done();
}

/*
 * Stands in for the victim if the victim did not arrive. Not if the round is over and this process did not end it:
 * then the survivor must be told. (It may complete a round with a process that has just died, as if that had died
 * right afterwards.)
 */
FIBER(arrives_after_victim) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    await_victim();
    for (bool came = false; !survivor_is_through && (came || !BARRIER->word);) came |= arrive(50000000);
    leave_segment(buffer);
}

static void arrival_killed(void) {
    begin_line(4, true);
    last_ones = came_through = 0;
    survivor_is_through = false;
    *BARRIER = (vigil_barrier)VIGIL_BARRIER_INIT(2);
    go_joined(VICTIM, "victim", victim_arrives);
    go_joined(SURVIVOR, "survivor", arrives);
    go_joined(OTHER, "after it", arrives_after_victim);
}

static void arrivals_counted(void) {
    bool one_round = came_through == 2 && last_ones == 1;
    sim_check(one_round || sim_dead(VICTIM), "%u came through, %u of them last", came_through, last_ones);
    sim_check(came_through <= 2 * last_ones + 1, "%u came through, %u of them last", came_through, last_ones);
    balance_shared();
}

static unsigned runs_begun, runs_ended;

static int run_once(void *unused) {
    (void)unused;
    runs_begun++;
    prim_store_relaxed(&shared[40], runs_begun); /* a moment to be killed at */
    runs_ended++;
    return VIGIL_OK;
}

FIBER(calls_once) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_once_call(ONCE, run_once, NULL), VIGIL_OK, "once");
    sim_check(runs_ended, "it is not done");
    leave_segment(buffer);
}

static void runner_killed(void) {
    begin_line(4, true);
    runs_begun = runs_ended = 0;
    go_joined(VICTIM, "victim", calls_once);
    go_joined(SURVIVOR, "survivor", calls_once);
    go_joined(OTHER, "other", calls_once);
}

static void two_runners_killed(void) {
    runner_killed();
    sim_victim(SURVIVOR);
}

static void ran_once(void) {
    unsigned dead = sim_dead(VICTIM) + sim_dead(SURVIVOR);
    sim_check(vigil_once_is_done(ONCE), "it is not done");
    sim_check(runs_begun <= 1 + dead, "it was called %u times", runs_begun);
    balance_shared();
}

/* ---- Read-write locks, and semaphores with leased permits ---- */

#define RWLOCK ((vigil_rwlock *)(void *)&shared[24])
#define SEM    ((vigil_sem *)(void *)&shared[28])
#define SUPPLY 2u

static unsigned reads[4], write_holder; /* by process; and the writing process, plus one */

static void begin_holdings(uint32_t members) {
    begin_line(members, true);
    for (int i = 0; i < 4; i++) reads[i] = 0;
    write_holder = 0;
    SEM->word = ((vigil_sem)VIGIL_SEM_LEASED(SUPPLY)).word;
}

static bool other_readers(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < 4; i++) count += !sim_dead(i) ? reads[i] : 0;
    return count;
}

static void with_the_rwlock(bool writes, int status) {
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "lock: %s", vigil_status_name(status));
    sim_check(!write_holder || sim_dead(write_holder - 1), "another process writes");
    sim_check(!write_holder || status == VIGIL_OWNER_DIED, "not told that the writer died");
    sim_check(status == VIGIL_OK || somebody_is_dead(), "told that the writer died, but no process died");
    sim_check(!writes || !other_readers(), "another process reads");
    if (writes) {
        if (status == VIGIL_OWNER_DIED) expect(vigil_rwlock_consistent(RWLOCK), VIGIL_OK, "consistent");
        write_holder = sim_process + 1;
    } else {
        reads[sim_process]++;
    }
    uint32_t count = prim_load_relaxed(&shared[20]); /* moments to be killed at */
    prim_store_relaxed(&shared[20], count + 1);
    if (writes) write_holder = 0;
    else reads[sim_process]--;
    expect(writes ? vigil_rwlock_write_unlock(RWLOCK) : vigil_rwlock_read_unlock(RWLOCK), VIGIL_OK, "unlock");
}

FIBER(sharer) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    with_the_rwlock(false, vigil_rwlock_read_lock(RWLOCK));
    leave_segment(buffer);
}

FIBER(loner) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    with_the_rwlock(true, vigil_rwlock_write_lock(RWLOCK));
    leave_segment(buffer);
}

FIBER(downgrader) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    int status = vigil_rwlock_write_lock(RWLOCK);
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "lock: %s", vigil_status_name(status));
    if (status == VIGIL_OWNER_DIED) expect(vigil_rwlock_consistent(RWLOCK), VIGIL_OK, "consistent");
    expect(vigil_rwlock_downgrade(RWLOCK), VIGIL_OK, "downgrade");
    expect(vigil_rwlock_read_unlock(RWLOCK), VIGIL_OK, "unlock");
    leave_segment(buffer);
}

static bool loop_writes;
static void granted_share(vigil_op *op, int status) {
    turn_ends(op, VIGIL_OK);
    with_the_rwlock(loop_writes, status);
}

static void share_loop(bool writes) {
    vigil_buffer *buffer = join_segment();
    vigil_agent *agent = new_agent();
    loop_writes = writes;
    vigil_request *request = turn_begins(&turns[0]);
    int status = writes ? vigil_rwlock_write_lock_async(agent, request, RWLOCK, VIGIL_FOREVER, granted_share)
                        : vigil_rwlock_read_lock_async(agent, request, RWLOCK, VIGIL_FOREVER, granted_share);
    if (status != VIGIL_PENDING) granted_share(&request->op, status);
    run(agent);
    destroy(agent);
    leave_segment(buffer);
}

FIBER(loop_that_shares) {
    (void)argument;
    share_loop(false);
}

FIBER(loop_that_writes) {
    (void)argument;
    share_loop(true);
}

FIBER(tries_to_write) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    int status, in_vain = 0;
    await_victim();
    while ((status = vigil_rwlock_write_trylock(RWLOCK)) == VIGIL_TIMED_OUT) {
        sim_check(!sim_dead(VICTIM) || ++in_vain < 5, "no living process holds it");
        prim_pause();
    }
    with_the_rwlock(true, status);
    leave_segment(buffer);
}

FIBER(victim_sharer) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    with_the_rwlock(false, vigil_rwlock_read_lock(RWLOCK));
    with_the_rwlock(true, vigil_rwlock_write_lock(RWLOCK));
    leave_segment(buffer);
    victim_is_done();
}

/* Its writer has ended, and the process gives up what it held, or is killed at that moment. */
static bool wrote;

static bool has_written(void *unused) {
    (void)unused;
    return wrote || sim_dead(VICTIM);
}

FIBER(gives_rwlock_up) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_rwlock_write_lock(RWLOCK), VIGIL_OK, "lock");
    wrote = true;
    expect(vigil_rwlock_write_abandon(RWLOCK), VIGIL_OK, "abandon");
    leave_segment(buffer);
}

FIBER(reads_after_it) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(has_written, NULL);
    int status = vigil_rwlock_read_lock(RWLOCK);
    sim_check(status == VIGIL_OWNER_DIED || (status == VIGIL_OK && !wrote), "lock: %s", vigil_status_name(status));
    expect(vigil_rwlock_read_unlock(RWLOCK), VIGIL_OK, "unlock");
    leave_segment(buffer);
}

static void rwlock_given_up_or_killed(void) {
    begin_holdings(3);
    wrote = false;
    go_joined(VICTIM, "victim", gives_rwlock_up);
    go_joined(SURVIVOR, "reader", reads_after_it);
}

/*
 * The victim steals the lock from a holder of another process, and unlocks it, or is killed at that. The holder unlocks
 * after that at any time: it must not unlock what another thread of its own process has taken meanwhile.
 */
static bool robbed_holds, thief_is_done, robbed_reads;

static bool is_to_be_robbed(void *unused) {
    (void)unused;
    return robbed_holds;
}

static bool is_over(void *unused) {
    (void)unused;
    return thief_is_done || sim_dead(VICTIM);
}

FIBER(is_robbed) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(robbed_reads ? vigil_rwlock_read_lock(RWLOCK) : vigil_rwlock_write_lock(RWLOCK), VIGIL_OK, "lock");
    uint32_t number = rwlock_number();
    sim_check(rwlock_is_held_by(RWLOCK, number) || sim_dead(VICTIM) || thief_is_done, "robbed too early");
    robbed_holds = true;
    sim_until(is_over, NULL);
    int status = robbed_reads ? rwlock_read_unlock_by(RWLOCK, number) : rwlock_write_unlock_by(RWLOCK, number);
    bool known = status == VIGIL_ENOTHELD || (status == VIGIL_OK && !thief_is_done);
    sim_check(known, "unlock after a steal: %s", vigil_status_name(status));
    sim_check(status == VIGIL_OK || !rwlock_is_held_by(RWLOCK, number), "still held");
    leave_segment(buffer);
}

static void comes_after(bool writes) {
    vigil_buffer *buffer = join_segment();
    sim_until(writes ? is_to_be_robbed : is_over, NULL); /* a reader would be robbed, too */
    with_the_rwlock(writes, writes ? vigil_rwlock_write_lock(RWLOCK) : vigil_rwlock_read_lock(RWLOCK));
    leave_segment(buffer);
}

FIBER(reads_or_writes_after_it) {
    (void)argument;
    comes_after(!robbed_reads);
}

FIBER(writes_after_it) {
    (void)argument;
    comes_after(true);
}

FIBER(thief) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(is_to_be_robbed, NULL);
    expect(rwlock_steal(RWLOCK), VIGIL_OK, "steal");
    uint32_t number = rwlock_number();
    write_holder = sim_process + 1;
    uint32_t count = prim_load_relaxed(&shared[20]); /* moments to be killed at */
    prim_store_relaxed(&shared[20], count + 1);
    sim_check(rwlock_is_held_by(RWLOCK, number), "the thief does not have it");
    write_holder = 0;
    expect(rwlock_write_unlock_by(RWLOCK, number), VIGIL_OK, "unlock by the thief");
    thief_is_done = true;
    leave_segment(buffer);
}

static void steal_from(bool reader, bool another) {
    begin_holdings(4);
    robbed_holds = thief_is_done = false;
    robbed_reads = reader;
    go_joined(SURVIVOR, "robbed", is_robbed);
    go_joined(VICTIM, "thief", thief);
    go_in(SURVIVOR, "comrade", reads_or_writes_after_it);
    if (another) go_joined(OTHER, "writer", writes_after_it);
}

static void writer_robbed(void) {
    steal_from(false, false);
}

static void writer_robbed_of_three(void) {
    steal_from(false, true);
}

static void reader_robbed(void) {
    steal_from(true, false);
}

/* A trylock, and a tryacquire of all permits, must succeed. */
static void all_given_back(void) {
    segment_strike_off_all(observed->segment); /* here no process can wait for a bucket's lock */
    recovery_run(lot_in(observed->segment), PRIM_NEVER);
    int status = vigil_rwlock_write_trylock(RWLOCK);
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "at the end the word is %#x", RWLOCK->word);
    expect(vigil_rwlock_write_unlock(RWLOCK), VIGIL_OK, "unlock");
    sim_check(!(RWLOCK->word & ~(2u | 1u << 31)), "at the end the word is %#x", RWLOCK->word);
    sim_check(vigil_sem_tryacquire(SEM, SUPPLY) == VIGIL_OK, "at the end the word is %#x", SEM->word);
    sim_check(vigil_sem_value(SEM) == 0, "there are more permits");
    expect(vigil_sem_release(SEM, SUPPLY), VIGIL_OK, "release");
    balance_shared();
}

static void reader_killed(void) {
    begin_holdings(3);
    go_joined(VICTIM, "victim", sharer);
    go_joined(SURVIVOR, "writer", loner);
}

static void writer_killed(void) {
    begin_holdings(3);
    go_joined(VICTIM, "victim", loner);
    go_joined(SURVIVOR, "reader", sharer);
}

static void writer_of_three_killed(void) {
    begin_holdings(4);
    go_joined(VICTIM, "victim", loner);
    go_joined(SURVIVOR, "reader", sharer);
    go_joined(OTHER, "writer", loner);
}

static void reader_of_three_killed(void) {
    begin_holdings(4);
    go_joined(VICTIM, "victim", sharer);
    go_joined(SURVIVOR, "reader", sharer);
    go_joined(OTHER, "writer", loner);
}

static void two_writers_killed(void) {
    begin_holdings(4);
    sim_victim(SURVIVOR);
    go_joined(VICTIM, "victim", loner);
    go_joined(SURVIVOR, "reader", sharer);
    go_joined(OTHER, "writer", loner);
}

static void downgrader_killed(void) {
    begin_holdings(3);
    go_joined(VICTIM, "victim", downgrader);
    go_joined(SURVIVOR, "writer", loner);
}

static void writer_killed_loop(void) {
    begin_holdings(3);
    go_joined(VICTIM, "victim", loner);
    go_joined(SURVIVOR, "loop", loop_that_shares);
}

static void loop_killed_that_writes(void) {
    begin_holdings(4);
    go_joined(VICTIM, "victim", loop_that_writes);
    go_joined(SURVIVOR, "reader", sharer);
    go_joined(OTHER, "writer", loner);
}

static void tried_after_all(void) {
    begin_holdings(3);
    go_joined(VICTIM, "victim", victim_sharer);
    go_joined(SURVIVOR, "survivor", tries_to_write);
}

/* The semaphore. */

FIBER(leaser) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_sem_acquire(SEM, 1), VIGIL_OK, "acquire");
    expect(vigil_sem_release(SEM, 1), VIGIL_OK, "release");
    leave_segment(buffer);
}

FIBER(leaser_of_all) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    expect(vigil_sem_acquire(SEM, SUPPLY), VIGIL_OK, "acquire");
    sim_check(vigil_sem_value(SEM) == 0, "there are more permits");
    expect(vigil_sem_release(SEM, SUPPLY), VIGIL_OK, "release");
    leave_segment(buffer);
}

static void leaser_killed(void) {
    begin_holdings(3);
    go_joined(VICTIM, "victim", leaser);
    go_joined(SURVIVOR, "survivor", leaser_of_all);
}

static void two_leasers_killed(void) {
    begin_holdings(4);
    sim_victim(SURVIVOR);
    go_joined(VICTIM, "victim", leaser);
    go_joined(SURVIVOR, "second", leaser);
    go_joined(OTHER, "other", leaser_of_all);
}

static void leasers_of_three(void) {
    begin_holdings(4);
    go_joined(VICTIM, "victim", leaser_of_all);
    go_joined(SURVIVOR, "survivor", leaser_of_all);
    go_joined(OTHER, "other", leaser);
}

/* ---- Recorded events ---- */

/* Not more events than the ring has room for: see events.h. */
static void record(const vigil_buffer *buffer, uint32_t number) {
    struct segment_event event = {.type = VIGIL_EVENT_GRANTED, .number = number, .key = number, .count = number};
    event_write(buffer->segment, event);
}

FIBER(records_twice) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    record(buffer, 1);
    record(buffer, 2);
    leave_segment(buffer);
}

FIBER(records_and_reads) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    struct segment_event event;
    record(buffer, 3);
    for (uint64_t turn = 0; turn < 3; turn++) {
        if (!event_read(buffer->segment, turn, &event) || event.type != VIGIL_EVENT_GRANTED) continue;
        sim_check(event.number >= 1 && event.number <= 3, "an event that was not recorded");
        sim_check(event.key == event.number && event.count == event.number, "half of event %u", event.number);
    }
    leave_segment(buffer);
}

static void recorder_killed(void) {
    begin_line(3, true);
    join_before(VICTIM);
    join_before(SURVIVOR);
    segment_header(observed->segment)->record_until_ns = UINT64_MAX;
    go_in(VICTIM, "victim", records_twice);
    go_in(SURVIVOR, "survivor", records_and_reads);
}

const struct sim_scenario shared_scenarios[] = {
    {"stopped_inside", "notifications arrive although a process is stopped in a bucket", stopped_inside,
     balance_shared},
    {"stopped_beside_the_dead", "the same, and a dead process must be swept", stopped_beside_the_dead, balance_shared},
    {"recorder_killed", "killed while it records events", recorder_killed, balance_shared},
    {"notify_across", "a thread of one process waits, a thread of another notifies", notify_across, balance_shared},
    {"notify_across_async", "the same for an event loop", notify_across_async, balance_shared},
    {"waiter_killed", "the victim's notification goes to the next waiter", waiter_killed, balance_shared},
    {"waiter_killed_before_loop", "the same, to an event loop", waiter_killed_before_loop, balance_shared},
    {"loop_killed", "an event loop is killed after it was notified", loop_killed, balance_shared},
    {"passed_on_once", "only one of two behind the victim is notified", passed_on_once, balance_shared},
    {"order_kept", "killed while it looks at a line", order_kept, balance_shared},
    {"killed_inside", "killed while it has a bucket's lock, with two in line", killed_inside, balance_shared},
    {"notifier_killed", "killed while it notifies a thread", notifier_killed, balance_shared},
    {"notifier_killed_loop", "killed while it notifies an event loop", notifier_killed_loop, balance_shared},
    {"slot_used_again", "a loop waits again while its keeper looks for what it missed", slot_used_again,
     balance_shared},
    {"waiter_stopped", "a stopped waiter keeps its place and its notification", waiter_stopped, balance_shared},
    {"holder_killed", "killed while it holds, takes or releases a mutex", holder_killed, mutex_free_again},
    {"patroller_stopped", "a call to a stopped process is passed on by another keeper", patroller_stopped,
     mutex_free_again},
    {"contender_killed", "one of three is killed", contender_killed, mutex_free_again},
    {"fair_contender_killed", "the same, and the mutex is fair", fair_contender_killed, mutex_free_again},
    {"holder_killed_loop", "an event loop waits for the victim's mutex", holder_killed_loop, mutex_free_again},
    {"loop_killed_before_locker", "an event loop is killed after it was called", loop_killed_before_locker,
     mutex_free_again},
    {"tried_after_death", "a trylock gets a dead process's mutex", tried_after_death, mutex_free_again},
    {"signaller_killed", "killed while it moves waiters", signaller_killed, mutex_free_again},
    {"cond_waiter_killed", "killed in the line of a condition, or of its mutex", cond_waiter_killed, mutex_free_again},
    {"signalled_and_killed", "the victim's signal goes to the next waiter", signalled_and_killed, mutex_free_again},
    {"moved_while_swept", "a dead process is signalled while it is swept", moved_while_swept, balance_shared},
    {"arrival_killed", "killed while it arrives at a barrier", arrival_killed, arrivals_counted},
    {"runner_killed", "killed while it runs a once's function", runner_killed, ran_once},
    {"two_lockers_killed", "two of three are killed", two_lockers_killed, mutex_free_again},
    {"two_writers_killed", "the same for a read-write lock", two_writers_killed, all_given_back},
    {"two_leasers_killed", "the same for leased permits", two_leasers_killed, all_given_back},
    {"two_runners_killed", "the same for a once", two_runners_killed, ran_once},
    {"reader_killed", "killed while it takes, holds or releases a read lock", reader_killed, all_given_back},
    {"writer_killed", "the same for a writer", writer_killed, all_given_back},
    {"writer_of_three_killed", "a writer of three processes is killed", writer_of_three_killed, all_given_back},
    {"reader_of_three_killed", "a reader of three processes is killed", reader_of_three_killed, all_given_back},
    {"downgrader_killed", "killed while it changes from writing to reading", downgrader_killed, all_given_back},
    {"writer_killed_loop", "an event loop waits for the victim's write lock", writer_killed_loop, all_given_back},
    {"loop_killed_that_writes", "an event loop is killed while it writes, or after it was called",
     loop_killed_that_writes, all_given_back},
    {"tried_after_all", "a trylock gets a dead process's write lock", tried_after_all, all_given_back},
    {"leaser_killed", "leased permits come back", leaser_killed, all_given_back},
    {"leasers_of_three", "the same among three", leasers_of_three, all_given_back},
    {"thread_ends", "a thread ends holding a robust mutex", thread_ends, mutex_free_again},
    {"mutex_given_up", "a process gives up the mutex of a holder that has ended", mutex_given_up, mutex_free_again},
    {"mutex_given_up_or_killed", "the same, or it is killed", mutex_given_up_or_killed, mutex_free_again},
    {"writer_robbed", "a lock is stolen from a writer, or the thief is killed at that", writer_robbed, all_given_back},
    {"writer_robbed_of_three", "the same, and another process waits", writer_robbed_of_three, all_given_back},
    {"reader_robbed", "the same for a reader", reader_robbed, all_given_back},
    {"rwlock_given_up_or_killed", "the same for a read-write lock", rwlock_given_up_or_killed, all_given_back},
    {"thread_ends_or_process", "the same, or its process is killed", thread_ends_or_process, mutex_free_again},
    {NULL, NULL, NULL, NULL},
};
