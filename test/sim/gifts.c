/* SPDX-License-Identifier: MIT */
/*
 * Scenarios about gifts: what has been given and is not used yet (lot/gift.h). Processes are killed at any step.
 *
 * Every scenario counts what is given and what arrives. A lost gift leaves a waiter asleep forever, which the simulator
 * reports; a gift that arrives twice makes more waits return than there were signals.
 *
 * WHAT CAN BE GIVEN, AND WHICH SCENARIO SHOWS THAT IT SURVIVES
 *
 * Each cell names a scenario in which the receiver, or the process named in the column, is killed at every step; in
 * brackets the planted bug that the scenario catches.
 *
 *                   one death                 two deaths                  several waiters in     two sweepers
 *                                                                         the process that dies
 *   notification
 *     to a thread   waiter_killed             notified_twice_killed       notified_pool_killed   notified_swept_twice
 *                   [pass_on_forgotten]       [passed_on_unchecked]       [pass_on_forgotten]    [passed_on_unchecked]
 *                                             notifier_and_receiver [half_told_stays]
 *     to a loop     loop_killed               (from here on the same slots and the same steps)
 *                   [handed_on_as_used]
 *   signal
 *     to a thread   signalled_and_killed      signal_heir_killed          signal_pool_killed     signal_swept_twice
 *                   [pass_on_forgotten]       [heir_starts_anew]          [pass_on_forgotten]    [passed_on_unchecked]
 *                                             signaller_and_receiver [signal_noted_late, gift_lost_in_between]
 *                                             signal_sweeper_killed [heir_chosen_again]
 *     to a loop     signalled_loop_killed     signal_loop_heir_killed     signalled_loop_killed, which has two requests
 *                   [carrier_dropped]         [carrier_dropped]
 *
 * The other gifts are not counted. After every death they are examined again, whichever process was called or held
 * them; so one scenario stands for several columns:
 *
 *   call for a lock   contender_killed, loop_killed_before_locker, two_lockers_killed   [no_call_after_death,
 *                                                                                       dead_holder_kept]
 *   share             reader_killed, writer_killed, loop_killed_that_writes, two_writers_killed
 *                                                                                       [hold_kept, hold_not_redone]
 *   leased permit     leaser_killed, leasers_of_three, two_leasers_killed               [hold_kept]
 *   arrival           arrival_killed                                                    [barrier_half_told]
 *   turn of a once    runner_killed, two_runners_killed                                 [once_runner_kept]
 *
 * (Scenarios that are not in this file are in shared.c.)
 */
#include "lot/gift.h"
#include "recovery/recovery.h"
#include "scenario.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"
#include "vigil/segment.h"

#define MUTEX ((vigil_mutex *)(void *)&shared[16])
#define COND  ((vigil_cond *)(void *)&shared[17])
#define WORD  (&shared[0])

/* How many waits of each process have returned. */
static unsigned returned[SIM_PROCESSES];
static uint32_t numbers[SIM_PROCESSES];         /* member numbers */
static unsigned claims_at_death[SIM_PROCESSES]; /* waits that had not returned; UINT32_MAX: the process is alive */
static unsigned given;                          /* signals that have taken a waiter out of line */
static unsigned asked;                          /* signals that were about to: never fewer than have arrived */
static bool plain;                              /* waiters wait for a notification, without a mutex */

/* ---- Inspection, between steps ---- */

static struct slot *slots(void) {
    return (struct slot *)(void *)(observed->segment->base + observed->segment->layout.slots_at);
}

static uint32_t *claims(void) {
    return (uint32_t *)(void *)(observed->segment->base + observed->segment->layout.claims_at);
}

static uint64_t key(const void *word) {
    return (uint64_t)((const unsigned char *)word - observed->segment->base);
}

static bool is_of(uint32_t index, unsigned process) {
    return numbers[process] && claim_number(claims()[index]) == numbers[process];
}

/* Waiters in that line, of all processes or, if `process` is not zero, of that one. */
static unsigned in_line_of(const void *word, unsigned process) {
    unsigned count = 0;
    for (uint32_t i = 1; i < observed->segment->layout.slots; i++) {
        bool counts = claims()[i] && slots()[i].key == key(word) && undecided(slots()[i].state);
        count += counts && (!process || is_of(i, process));
    }
    return count;
}

/* The gift of the slot is used up, and the slot is about to be returned. */
static bool is_over(const struct slot *slot) {
    return !slot->key && slot->gift < GIFT_GIVEN;
}

/* Waits of the process that have a slot. A loop's place in the line of a mutex is not counted. */
static unsigned slots_of(unsigned process, bool loop) {
    unsigned count = 0;
    for (uint32_t i = 1; i < observed->segment->layout.slots; i++) {
        count += is_of(i, process) && !is_over(&slots()[i]) && (!loop || slots()[i].kind == SLOT_COND);
    }
    return count;
}

/* Requests of a loop that have not been called back, except one that has the mutex and so has used its signal. */
static unsigned requests_of(unsigned process) {
    unsigned count = 0;
    for (unsigned i = 0; i < 2; i++) count += turns[i].waiting && turns[i].process == process;
    bool has_mutex = MUTEX->word / SEGMENT_HOLDER == numbers[process];
    return has_mutex && slots_of(process, true) < count ? count - 1 : count;
}

static bool loops[SIM_PROCESSES];

static void look_at_death(unsigned process) {
    claims_at_death[process] = loops[process] ? requests_of(process) : slots_of(process, false);
}

/* How many waits of the process have used their gift; of a dead process: had used it when it was killed. */
static unsigned used_by(unsigned process, unsigned had_waiting) {
    return sim_dead(process) ? had_waiting - claims_at_death[process] : returned[process];
}

static const void *line(void) {
    return plain ? (const void *)WORD : COND;
}

/* ---- Waiters ---- */

static void note_number(void) {
    numbers[sim_process] = vigil__holder / SEGMENT_HOLDER;
}

static void lock(void) {
    int status = plain ? VIGIL_OK : vigil_mutex_lock(MUTEX);
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "lock: %s", vigil_status_name(status));
    if (status == VIGIL_OWNER_DIED) vigil_mutex_consistent(MUTEX);
}

static void unlock(void) {
    if (!plain) expect(vigil_mutex_unlock(MUTEX), VIGIL_OK, "unlock");
}

static void has_returned(int status) {
    sim_check(status == VIGIL_OK || status == VIGIL_OWNER_DIED, "wait: %s", vigil_status_name(status));
    returned[sim_process]++;
    unsigned all = 0;
    for (unsigned i = 0; i < SIM_PROCESSES; i++) all += returned[i];
    sim_check(all <= asked, "%u waits have returned after %u signals", all, asked);
    if (status == VIGIL_OWNER_DIED) vigil_mutex_consistent(MUTEX);
    unlock();
}

static void wait_for_signal(void) {
    lock();
    has_returned(plain ? vigil_wait32(WORD, 0, VIGIL_FOREVER) : vigil_cond_wait(COND, MUTEX));
}

FIBER(one_thread) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    note_number();
    wait_for_signal();
    leave_segment(buffer);
}

static uint32_t more_done[SIM_PROCESSES]; /* one bit for each additional thread */

FIBER(thread_more) {
    wait_for_signal();
    prim_fetch_or_acq_rel(&more_done[sim_process], 1u << (uintptr_t)argument);
}

static bool more_have_ended(void *all) {
    return more_done[sim_process] == (uint32_t)(uintptr_t)all;
}

static void wait_for_more(uint32_t all) {
    sim_until(more_have_ended, (void *)(uintptr_t)all);
    while (prim_load_acquire(&more_done[sim_process]) != all) prim_pause(); /* acquire: sees what they did */
}

FIBER(two_threads) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    note_number();
    sim_go("second", thread_more, NULL);
    wait_for_signal();
    wait_for_more(1);
    leave_segment(buffer);
}

static void loop_returned(vigil_op *op, int status) {
    turn_ends(op, VIGIL_OK);
    has_returned(status);
}

/* Makes `count` requests: the second waits while the first is served. */
static void wait_as_loop(unsigned count) {
    vigil_buffer *buffer = join_segment();
    vigil_agent *agent = new_agent();
    note_number();
    for (unsigned i = 0; i < count; i++) {
        lock();
        vigil_request *request = turn_begins(&turns[i]);
        expect(vigil_cond_wait_async(agent, request, COND, MUTEX, VIGIL_FOREVER, loop_returned), VIGIL_PENDING, "wait");
    }
    run(agent);
    destroy(agent);
    leave_segment(buffer);
}

FIBER(loop_of_two) {
    (void)argument;
    wait_as_loop(2);
}

FIBER(loop_of_one) {
    (void)argument;
    wait_as_loop(1);
}

/* ---- Order in line: the victim's waits first, then the survivor's, then the other's ---- */

static unsigned expected[SIM_PROCESSES]; /* waits */

/*
 * Whether all waits of the processes up to this one are in line. Of a process that was killed earlier, only the waits
 * that it had at its death are expected.
 */
static bool in_line_up_to(void *last) {
    for (unsigned i = 1; i <= (uintptr_t)last; i++) {
        if (sim_dead(i) && expected[i] > claims_at_death[i]) expected[i] = claims_at_death[i];
        if (!sim_dead(i) && in_line_of(line(), i) < expected[i]) return false;
    }
    return true;
}

static void start_in(unsigned process, const char *name, void (*fiber)(void *), unsigned waits) {
    expected[process] = waits;
    join_before(process);
    go_in(process, name, fiber);
}

FIBER(thread_behind) {
    sim_until(in_line_up_to, (void *)(uintptr_t)(sim_process - 1));
    one_thread(argument);
}

FIBER(loop_behind) {
    sim_until(in_line_up_to, (void *)(uintptr_t)(sim_process - 1));
    loop_of_one(argument);
}

/* ---- Signals: as many as needed, and none in place of a gift that must be passed on ---- */

static void signal_once(void) {
    asked++;
    int64_t taken = plain ? vigil_notify(WORD, 1) : vigil_cond_signal(COND);
    sim_check(taken == 0 || taken == 1, "signal: %lld", (long long)taken);
    given += (unsigned)taken;
}

static bool all_are_used(unsigned last) {
    unsigned used = returned[last];
    for (unsigned i = 1; i < last; i++) used += used_by(i, expected[i]);
    return given == used;
}

static unsigned the_last;

static bool one_more_is_needed(void *unused) {
    (void)unused;
    bool waits = in_line_of(line(), the_last);
    return returned[the_last] >= expected[the_last] || (waits && all_are_used(the_last));
}

/* Signals until the last process's wait has returned: one more signal whenever all given ones have been used. */
static void signal_until_last(unsigned last) {
    the_last = last;
    for (;;) {
        sim_until(one_more_is_needed, NULL);
        if (returned[last] >= expected[last]) return;
        lock();
        if (all_are_used(last) && returned[last] < expected[last]) signal_once();
        unlock();
    }
}

FIBER(signals_for_survivor) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(in_line_up_to, (void *)SURVIVOR);
    signal_until_last(SURVIVOR);
    leave_segment(buffer);
}

static void begin_gifts(bool for_notifications) {
    begin_shared(5);
    sim_on_kill(look_at_death);
    for (unsigned i = 0; i < SIM_PROCESSES; i++) {
        returned[i] = expected[i] = numbers[i] = more_done[i] = 0;
        claims_at_death[i] = UINT32_MAX;
        loops[i] = false;
    }
    given = asked = 0;
    plain = for_notifications;
}

static void victim_before_survivor(bool for_notifications, void (*victim)(void *), unsigned waits,
                                   void (*survivor)(void *)) {
    begin_gifts(for_notifications);
    sim_victim(VICTIM);
    loops[VICTIM] = victim == loop_of_two;
    start_in(VICTIM, "victim", victim, waits);
    start_in(SURVIVOR, "survivor", survivor, 1);
    start_in(OTHER, "signaller", signals_for_survivor, 0);
}

static void signal_pool_killed(void) {
    victim_before_survivor(false, two_threads, 2, thread_behind);
}

static void signalled_loop_killed(void) {
    victim_before_survivor(false, loop_of_two, 2, thread_behind);
}

static void signalled_before_loop(void) {
    victim_before_survivor(false, one_thread, 1, loop_behind);
}

static void notified_pool_killed(void) {
    victim_before_survivor(true, two_threads, 2, thread_behind);
}

/* ---- The first receiver is always killed; its heir, or the process that sweeps after it, at any time ---- */

static void recover(vigil_buffer *buffer) {
    segment_strike_off_all(buffer->segment);
    recovery_run(lot_in(buffer->segment), PRIM_NEVER);
}

FIBER(waits_last) {
    sim_until(in_line_up_to, (void *)SURVIVOR);
    thread_more(argument);
}

/* Signalled with the mutex held, the first receiver is in the mutex's line, and cannot have used its signal. */
static void signal_and_kill(void) {
    lock();
    signal_once();
    if (!sim_dead(VICTIM)) sim_kill(VICTIM);
    unlock();
}

/* It has as many threads waiting behind all others as are expected of it. */
FIBER(kills_the_first) {
    vigil_buffer *buffer = join_segment();
    bool clears_up_too = argument;
    note_number();
    for (uintptr_t i = 0; i < expected[OTHER]; i++) sim_go("last", waits_last, (void *)i);
    sim_until(in_line_up_to, (void *)OTHER);
    signal_and_kill();
    if (clears_up_too) recover(buffer);
    signal_until_last(OTHER);
    wait_for_more((1u << expected[OTHER]) - 1);
    leave_segment(buffer);
}

static void two_receivers_killed(bool for_notifications, void (*heir)(void *)) {
    begin_gifts(for_notifications);
    sim_victim(SURVIVOR);
    loops[SURVIVOR] = heir == loop_behind;
    start_in(VICTIM, "first", one_thread, 1);
    start_in(SURVIVOR, "heir", heir, 1);
    start_in(OTHER, "signaller", kills_the_first, 1);
}

static void signal_heir_killed(void) {
    two_receivers_killed(false, thread_behind);
}

static void signal_loop_heir_killed(void) {
    two_receivers_killed(false, loop_behind);
}

static void notified_twice_killed(void) {
    two_receivers_killed(true, thread_behind);
}

static bool first_is_dead(void *unused) {
    (void)unused;
    return sim_dead(VICTIM);
}

FIBER(clears_up) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    note_number();
    sim_until(first_is_dead, NULL);
    recover(buffer);
    leave_segment(buffer);
}

/* Two processes wait, and one signal has been given: only one of the two may return before there is another signal. */
static void two_heirs(bool for_notifications, bool sweeper_is_killed) {
    begin_gifts(for_notifications);
    if (sweeper_is_killed) sim_victim(SURVIVOR);
    start_in(VICTIM, "first", one_thread, 1);
    start_in(SURVIVOR, "sweeper", clears_up, 0);
    expected[OTHER] = 2;
    join_before(OTHER);
    sim_go_in(OTHER, "signaller", kills_the_first, (void *)1);
}

static void signal_swept_twice(void) {
    two_heirs(false, false);
}

static void notified_swept_twice(void) {
    two_heirs(true, false);
}

static void signal_sweeper_killed(void) {
    two_heirs(false, true);
}

/* ---- The giver is killed at any time ---- */

static bool giver_has_begun, giver_is_over;

FIBER(gives_once) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    sim_until(in_line_up_to, (void *)OTHER);
    giver_has_begun = true;
    lock();
    signal_once();
    unlock();
    leave_segment(buffer);
    giver_is_over = true;
}

static bool giver_has_ended(void *unused) {
    (void)unused;
    return giver_is_over || (sim_dead(VICTIM) && (giver_has_begun || in_line_up_to((void *)OTHER)));
}

/* The repair wakes a waiter that has been given something but is still in line. */
static bool nobody_is_half_told(void *unused) {
    (void)unused;
    for (uint32_t i = 1; i < observed->segment->layout.slots; i++) {
        const struct slot *slot = &slots()[i];
        if (claims()[i] && slot->gift >= GIFT_GIVEN && slot->key == key(line()) && undecided(slot->state)) return false;
    }
    return true;
}

/* Unless the receiver has returned it still has its gift. Now it is killed, and the last waiter gets the gift. */
static void kill_receiver(vigil_buffer *buffer, bool in_effect) {
    if (!returned[SURVIVOR] && slots_of(SURVIVOR, false)) {
        sim_kill(SURVIVOR);
        given = in_effect;
        expected[SURVIVOR] = claims_at_death[SURVIVOR];
    } else {
        given = 1; /* used, and its process leaves */
    }
    recover(buffer);
}

FIBER(kills_the_receiver) {
    (void)argument;
    vigil_buffer *buffer = join_segment();
    note_number();
    sim_go("last", waits_last, NULL);
    sim_until(giver_has_ended, NULL);
    recover(buffer);
    sim_until(nobody_is_half_told, NULL);
    kill_receiver(buffer, !in_line_of(line(), SURVIVOR));
    unsigned asked_before = asked;
    signal_until_last(OTHER);
    wait_for_more(1);
    sim_check(asked > asked_before || given, "a gift that was not given");
    leave_segment(buffer);
}

static void giver_and_receiver_killed(bool for_notifications) {
    begin_gifts(for_notifications);
    giver_has_begun = giver_is_over = false;
    sim_victim(VICTIM);
    start_in(VICTIM, "giver", gives_once, 0);
    start_in(SURVIVOR, "receiver", one_thread, 1);
    start_in(OTHER, "last", kills_the_receiver, 1);
}

static void signaller_and_receiver(void) {
    giver_and_receiver_killed(false);
}

static void notifier_and_receiver(void) {
    giver_and_receiver_killed(true);
}

/* ---- A death is noticed by its pulse, without a scan ---- */

static unsigned keepers; /* that sleep, and will not scan, since there are no waiters */

static bool keeper_is_idle(void *lot) {
    return ((struct lot *)lot)->share->keeping.idle;
}

/* The keeper starts with the first wait, and stops scanning after a long time without waiters. */
static vigil_buffer *wait_and_go_on(void) {
    vigil_buffer *buffer = join_segment();
    struct lot *lot = lot_in(buffer->segment);
    note_number();
    expect(vigil_wait32(WORD, 0, 1000), VIGIL_TIMED_OUT, "wait");
    sim_until(keeper_is_idle, lot);
    keepers++;
    return buffer;
}

static bool is_struck_off(void *unused) {
    (void)unused;
    const struct segment *segment = observed->segment;
    for (uint32_t i = 0; i < segment->members; i++) {
        const struct segment_member *row = segment_member(segment, i);
        if (row->number == numbers[VICTIM] && (row->life & SEGMENT_JOINED)) return false;
    }
    return true;
}

FIBER(victim) {
    (void)argument;
    wait_and_go_on();
    sim_until(first_is_dead, NULL);
}

static bool both_sleep(void *unused) {
    (void)unused;
    return keepers == 2;
}

FIBER(watches) {
    (void)argument;
    wait_and_go_on();
    sim_until(both_sleep, NULL);
    sim_kill(VICTIM);
    sim_until(is_struck_off, NULL);
    sim_kill(SURVIVOR); /* without leaving, which would take more steps */
}

static void noticed_by_pulse(void) {
    begin_gifts(true);
    keepers = 0;
    start_in(SURVIVOR, "watches", watches, 0);
    start_in(VICTIM, "victim", victim, 0);
}

/* ---- The system wakes one sleeper on a pulse: here a keeper that no longer watches that member ---- */

static struct segment_member *row_of(unsigned process) {
    struct segment_member *row = segment_member(observed->segment, 0);
    while (row->number != numbers[process]) row++;
    return row;
}

static void leave_at_once(void) {
    leave_segment(join_segment());
}

/* The victim has a pulse, and is not in a bucket in which the others would have to wait for it. */
static bool victim_may_stop(void *unused) {
    (void)unused;
    const struct segment_layout *at = &observed->segment->layout;
    const struct bucket *buckets = (const struct bucket *)(void *)(observed->segment->base + at->buckets_at);
    bool inside = false;
    for (uint32_t i = 0; i < at->buckets; i++) inside |= buckets[i].word / SEGMENT_HOLDER == numbers[VICTIM];
    return row_of(VICTIM)->keeping && !inside;
}

/* Stopped, so that its keeper does not keep asking about the observer. */
FIBER(victim_stopped) {
    (void)argument;
    join_segment();
    note_number();
    expect(vigil_wait32(WORD, 0, 1000), VIGIL_TIMED_OUT, "wait");
    sim_until(victim_may_stop, NULL);
    sim_stop(VICTIM);
}

static bool first_sleeps(void *unused) {
    (void)unused;
    return keepers == 1 && (row_of(SURVIVOR)->relay & SEGMENT_RESTING);
}

FIBER(watches_first) {
    (void)argument;
    wait_and_go_on();
    sim_until(is_struck_off, NULL);
    sim_kill(SURVIVOR);
}

/* Another process has cleared RESTING, and has not woken the keeper yet. So the keeper is not told of this member. */
FIBER(watches_later) {
    (void)argument;
    sim_until(first_sleeps, NULL);
    uint64_t *relay = &row_of(SURVIVOR)->relay, seen = prim_load_relaxed(relay);
    prim_cas_acq_rel(relay, &seen, seen & ~(uint64_t)SEGMENT_RESTING);
    wait_and_go_on();
    sim_kill(VICTIM);
    sim_until(is_struck_off, NULL);
    sim_kill(OTHER);
}

static void pulse_wakes_another(void) {
    begin_gifts(true);
    keepers = 0;
    join_before(SURVIVOR);
    join_before(OTHER); /* its place is between the two others; it leaves, and joins again there */
    join_before(VICTIM);
    sim_within(OTHER, leave_at_once);
    go_in(SURVIVOR, "watches", watches_first);
    go_in(VICTIM, "victim", victim_stopped);
    go_in(OTHER, "watches later", watches_later);
}

/* ---- A member is struck off by a process that does not recover: the keepers do, without a scan ---- */

static bool victim_has_slot(void *unused) {
    (void)unused;
    return keepers == 1 && in_line_of(WORD, VICTIM);
}

static bool victim_has_no_slot(void *unused) {
    (void)unused;
    return !slots_of(VICTIM, false);
}

FIBER(strikes_off) {
    (void)argument;
    vigil_buffer *buffer = wait_and_go_on();
    sim_until(victim_has_slot, NULL);
    sim_kill(VICTIM);
    segment_strike_off_all(buffer->segment);
    sim_until(victim_has_no_slot, NULL);
    sim_kill(SURVIVOR);
}

static void struck_off_by_another(void) {
    begin_gifts(true);
    keepers = 0;
    start_in(SURVIVOR, "strikes off", strikes_off, 0);
    start_in(VICTIM, "victim", one_thread, 0);
}

/* ---- In the end ---- */

static void all_has_arrived(void) {
    recover(observed);
    struct lot *lot = lot_in(observed->segment);
    for (uint32_t i = 1; i < lot->share->slots; i++) sim_check(!claims()[i], "slot %u is not given back", (unsigned)i);
    for (uint32_t i = 0; i < 1u << lot->bucket_bits; i++) {
        sim_check(!lot->buckets[i].word && !lot->buckets[i].line, "bucket %u is not empty", (unsigned)i);
    }
    balance();
}

const struct sim_scenario gift_scenarios[] = {
    {"signal_pool_killed", "two threads of the victim wait for signals", signal_pool_killed, all_has_arrived},
    {"signalled_loop_killed", "an event loop with two requests waits for signals", signalled_loop_killed,
     all_has_arrived},
    {"signalled_before_loop", "a thread waits for signals, and an event loop behind it", signalled_before_loop,
     all_has_arrived},
    {"notified_pool_killed", "two threads of the victim wait for notifications", notified_pool_killed, all_has_arrived},
    {"signal_heir_killed", "a signal's receiver is killed, and so is its heir", signal_heir_killed, all_has_arrived},
    {"signal_loop_heir_killed", "the same, and the heir is an event loop", signal_loop_heir_killed, all_has_arrived},
    {"notified_twice_killed", "the same for a notification", notified_twice_killed, all_has_arrived},
    {"signal_swept_twice", "two processes sweep after a signal's receiver", signal_swept_twice, all_has_arrived},
    {"notified_swept_twice", "the same for a notification", notified_swept_twice, all_has_arrived},
    {"signal_sweeper_killed", "the same, and one of the two is killed", signal_sweeper_killed, all_has_arrived},
    {"signaller_and_receiver", "a signaller is killed, then the receiver", signaller_and_receiver, all_has_arrived},
    {"notifier_and_receiver", "the same for a notification", notifier_and_receiver, all_has_arrived},
    {"noticed_by_pulse", "a death is noticed at once", noticed_by_pulse, all_has_arrived},
    {"pulse_wakes_another", "the same, although a keeper is woken that does not watch", pulse_wakes_another,
     all_has_arrived},
    {"struck_off_by_another", "what the dead left is recovered at once", struck_off_by_another, all_has_arrived},
    {NULL, NULL, NULL, NULL},
};
