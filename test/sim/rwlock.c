/* SPDX-License-Identifier: MIT */
/*
 * Scenarios for the read-write lock, which threads and event loops share.
 *
 * Every holder calls enter() and leave(), which fail if a writer is inside together with another holder, or if what
 * the previous writer wrote is not visible. In most scenarios the lock is held at first, so that the others have to
 * wait. A waiter without a deadline must get the lock, or the execution never ends. At the end the lock must be free,
 * and its line empty.
 */
#include "vigil/rwlock.h"

#include "lot/lot.h"
#include "scenario.h"

#define WRITER   1u
#define WAITERS  2u
#define RESERVED 4u
#define SAVED    8u
#define READER   16u
#define READERS  0x0ffffff0u
#define LANES    (1u << 28)
#define CLOSING  (1u << 29)
#define PASS     (1u << 30)

enum { TO_READ, TO_WRITE }; /* what a turn wants */

/* ---- Parts ---- */

static vigil_rwlock rwlock;
static uint32_t written; /* by each writer */
static uint32_t entered;
static int readers, writers;         /* inside */
static int had_readers, had_writers; /* threads that have been inside */
static bool had_loop;

static void begin_with(uint32_t word) {
    begin();
    rwlock.word = word;
    written = entered = 0;
    readers = word == READER;
    writers = word == WRITER;
    had_readers = had_writers = 0;
    had_loop = false;
    sim_name(&rwlock, sizeof rwlock, "rwlock");
    sim_name(&written, sizeof written, "written");
}

static void all_over(void) {
    sim_check(!(rwlock.word & ~(WAITERS | LANES)), "at the end the word is %#x", rwlock.word);
    sim_check(!readers && !writers, "a reader or a writer is still inside");
    balance();
}

static void enter(bool writes) {
    *(writes ? &writers : &readers) += 1;
    sim_check(writers == 0 || writers + readers == 1, "%d writers and %d readers", writers, readers);
    sim_check(prim_load_relaxed(&written) == entered, "what the previous writer wrote is not visible");
    if (writes) prim_store_relaxed(&written, ++entered);
}

static void leave(bool writes) {
    *(writes ? &writers : &readers) -= 1;
    int status = writes ? vigil_rwlock_write_unlock(&rwlock) : vigil_rwlock_read_unlock(&rwlock);
    expect(status, VIGIL_OK, "unlock");
}

static void lock(bool writes) {
    expect(writes ? vigil_rwlock_write_lock(&rwlock) : vigil_rwlock_read_lock(&rwlock), VIGIL_OK, "lock");
    enter(writes);
    *(writes ? &had_writers : &had_readers) += 1;
}

FIBER(reader) {
    (void)argument;
    lock(false);
    leave(false);
}

FIBER(writer) {
    (void)argument;
    lock(true);
    leave(true);
}

FIBER(second_reader) {
    await_in_line(1);
    reader(argument);
}

FIBER(second_writer) {
    await_in_line(1);
    writer(argument);
}

FIBER(third_reader) {
    await_in_line(2);
    reader(argument);
}

/* These fibers hold the lock from the beginning. */
FIBER(writing_holder) {
    (void)argument;
    leave(true);
}

FIBER(reading_holder) {
    (void)argument;
    leave(false);
}

FIBER(writing_holder_of_line) { /* the argument: how many are in line before it unlocks */
    await_in_line((uintptr_t)argument);
    leave(true);
}

FIBER(reading_holder_of_line) {
    await_in_line((uintptr_t)argument);
    leave(false);
}

static void come(vigil_op *op, int status) {
    struct turn *turn = turn_ends(op, status);
    if (status == VIGIL_OK) {
        enter(turn->wants == TO_WRITE);
        had_loop = true;
        leave(turn->wants == TO_WRITE);
    }
}

static void ask(vigil_agent *agent, struct turn *turn, bool writes, int64_t timeout_ns) {
    turn->wants = writes ? TO_WRITE : TO_READ;
    int status = writes ? vigil_rwlock_write_lock_async(agent, turn_begins(turn), &rwlock, timeout_ns, come)
                        : vigil_rwlock_read_lock_async(agent, turn_begins(turn), &rwlock, timeout_ns, come);
    turn_answered(turn, status, timeout_ns, come);
}

static void loop_until(bool writes, bool (*may_run)(void *)) {
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], writes, VIGIL_FOREVER);
    if (may_run) sim_until(may_run, NULL);
    run(agent);
    destroy(agent);
}

FIBER(reading_loop) {
    (void)argument;
    loop_until(false, NULL);
}

FIBER(writing_loop) {
    (void)argument;
    loop_until(true, NULL);
}

/* ---- Readers together, writers alone, no waiter forgotten ---- */

static void rwlock_readers_and_writer(void) {
    begin_with(0);
    go("reader 1", reader);
    go("reader 2", reader);
    go("writer", writer);
}

static void rwlock_writers_and_reader(void) {
    begin_with(0);
    go("writer 1", writer);
    go("writer 2", writer);
    go("reader", reader);
}

static void rwlock_line(void) {
    begin_with(WRITER);
    go("reader 1", reader);
    go("writer", second_writer);
    go("reader 2", third_reader);
    sim_go("holder", writing_holder_of_line, (void *)3);
}

static void rwlock_against_reader(void) {
    begin_with(READER);
    go("writer 1", writer);
    go("writer 2", writer);
    go("reader", reader);
    go("holder", reading_holder);
}

static void rwlock_loop_reads(void) {
    begin_with(WRITER);
    go("loop", reading_loop);
    go("writer", writer);
    go("holder", writing_holder);
}

static void rwlock_loop_writes(void) {
    begin_with(READER);
    go("loop", writing_loop);
    go("reader", reader);
    go("holder", reading_holder);
}

static void rwlock_loop_and_thread_write(void) {
    begin_with(0);
    go("loop", writing_loop);
    go("writer", writer);
}

/* Each reader stays until the other is inside. */
static bool both_read(void *unused) {
    (void)unused;
    return had_readers == 2;
}

FIBER(sociable_reader) {
    (void)argument;
    lock(false);
    sim_until(both_read, NULL);
    leave(false);
}

static void rwlock_together(void) {
    begin_with(WRITER);
    go("reader 1", sociable_reader);
    go("reader 2", sociable_reader);
    go("holder", writing_holder);
}

/* A reader that does not wait is counted for a moment, and a writer may see that. */
FIBER(hasty_reader) {
    (void)argument;
    if (vigil_rwlock_read_lock_for(&rwlock, 0) == VIGIL_OK) {
        enter(false);
        leave(false);
    }
}

static void rwlock_counted_for_a_moment(void) {
    begin_with(WRITER);
    go("reader", hasty_reader);
    go("writer", writer);
    go("holder", writing_holder);
}

/* ---- New readers wait behind a writer that has waited for long ---- */

static bool is_saved(void *unused) {
    (void)unused;
    return rwlock.word & SAVED;
}

FIBER(passing_reader) {
    (void)argument;
    sim_until(is_saved, NULL);
    if (vigil_rwlock_read_trylock(&rwlock) == VIGIL_OK) {
        sim_check(had_writers || had_loop, "a reader passed a writer");
        enter(false);
        leave(false);
    }
    leave(false); /* for the reader that was there at first */
}

static void rwlock_writer_before_reader(void) {
    begin_with(READER);
    go("writer", writer);
    go("reader", passing_reader);
}

static void rwlock_writing_loop_before_reader(void) {
    begin_with(READER);
    go("loop", writing_loop);
    go("reader", passing_reader);
}

/* ---- A writer that leaves lets in the readers that wait behind it, while another reader holds the lock ---- */

static bool a_reader_had_it(void *unused) {
    (void)unused;
    return had_readers > 0;
}

FIBER(staying_holder) {
    (void)argument;
    sim_until(a_reader_had_it, NULL);
    leave(false);
}

static bool writer_is_through;

/* Long enough to keep new readers out. */
#define LONG_NS (PATIENCE + 500)

FIBER(patient_writer) {
    (void)argument;
    int64_t due_ns = vigil_now_ns() + LONG_NS;
    int status = vigil_rwlock_write_lock_for(&rwlock, LONG_NS);
    if (status == VIGIL_OK) {
        enter(true);
        leave(true);
    } else {
        expect(status, VIGIL_TIMED_OUT, "write_lock_for");
        sim_check(vigil_now_ns() >= due_ns, "timed out too early");
    }
    writer_is_through = true;
}

FIBER(patient_writing_loop) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, LONG_NS);
    run(agent);
    writer_is_through = true;
    destroy(agent);
}

/* Until a reader is in line behind it, or was faster. */
static bool two_in_line(void *unused) {
    (void)unused;
    return in_line() >= 2 || had_readers;
}

static void wait_until_saved(vigil_agent *agent) {
    vigil_agent_run_until(agent, vigil_now_ns() + LONG_NS);
    sim_until(two_in_line, NULL);
}

FIBER(writing_loop_cancels) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, VIGIL_FOREVER);
    wait_until_saved(agent);
    cancel_turn(&turns[0]);
    run(agent);
    writer_is_through = true;
    destroy(agent);
}

FIBER(writing_loop_destroyed) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, VIGIL_FOREVER);
    wait_until_saved(agent);
    destroy(agent);
}

/* It does not join the line, which stays empty. */
FIBER(writing_loop_tries) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, 0);
    reader(NULL);
    destroy(agent);
}

/* Behind the writer, if the writer is still there. */
static bool is_saved_or_over(void *unused) {
    return is_saved(unused) || writer_is_through;
}

FIBER(reader_behind) {
    sim_until(is_saved_or_over, NULL);
    reader(argument);
}

static void leaves_behind_reader(const char *name, void (*fiber)(void *)) {
    begin_with(READER);
    writer_is_through = false;
    sim_moment(1500);
    sim_moment(1000 + LONG_NS);
    go(name, fiber);
    go("reader", reader_behind);
    go("holder", staying_holder);
}

static void rwlock_timeout(void) {
    leaves_behind_reader("writer", patient_writer);
}

static void rwlock_async_timeout(void) {
    leaves_behind_reader("loop", patient_writing_loop);
}

static void rwlock_cancel(void) {
    leaves_behind_reader("loop", writing_loop_cancels);
}

static void rwlock_destroy(void) {
    leaves_behind_reader("loop", writing_loop_destroyed);
}

static void rwlock_async_try(void) {
    begin_with(READER);
    go("loop", writing_loop_tries);
    go("holder", staying_holder);
}

/* The same when the writer may have been called. */
static void leaves_when_called(const char *name, void (*fiber)(void *)) {
    begin_with(READER);
    sim_moment(1500);
    go(name, fiber);
    go("writer", writer);
    go("holder", reading_holder);
}

static void rwlock_timeout_when_called(void) {
    leaves_when_called("patient writer", patient_writer);
}

static void rwlock_async_timeout_when_called(void) {
    leaves_when_called("loop", patient_writing_loop);
}

FIBER(writing_loop_cancels_soon) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, VIGIL_FOREVER);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

FIBER(writing_loop_destroyed_soon) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, VIGIL_FOREVER);
    destroy(agent);
}

static void rwlock_cancel_when_called(void) {
    leaves_when_called("loop", writing_loop_cancels_soon);
}

static void rwlock_destroy_when_called(void) {
    leaves_when_called("loop", writing_loop_destroyed_soon);
}

/* ---- A queue of one loop ---- */

FIBER(loop_of_three) {
    (void)argument;
    vigil_agent *agent = new_agent();
    for (int i = 0; i < 3; i++) ask(agent, &turns[i], i == 1, VIGIL_FOREVER);
    run(agent);
    destroy(agent);
}

static void rwlock_queue(void) {
    begin_with(WRITER);
    go("loop", loop_of_three);
    go("writer", writer);
    go("holder", writing_holder);
}

/*
 * The first request is for writing. The next, which inherits its place, is for reading: it gets the lock while another
 * reader holds it.
 */
static bool loop_had_it(void *unused) {
    (void)unused;
    return had_loop;
}

FIBER(loop_with_heir) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, VIGIL_FOREVER);
    ask(agent, &turns[1], false, VIGIL_FOREVER);
    cancel_turn(&turns[0]);
    run(agent);
    destroy(agent);
}

FIBER(holder_for_loop) {
    (void)argument;
    sim_until(loop_had_it, NULL);
    leave(false);
}

static void rwlock_heir(void) {
    begin_with(READER);
    go("loop", loop_with_heir);
    go("holder", holder_for_loop);
}

/* Two requests to read that are older than a writer are let in together: the first stays until the second is in. */
static bool both_asked, writer_came;

static bool both_have_asked(void *unused) {
    (void)unused;
    return both_asked;
}

static bool writer_in_line(void *unused) {
    (void)unused;
    return writer_came && in_line() == 2;
}

static void come_and_stay(vigil_op *op, int status) {
    struct turn *turn = turn_ends(op, status);
    expect(status, VIGIL_OK, "read_lock_async's callback");
    enter(false);
    if (turn == &turns[1]) {
        sim_check(readers == 2, "the first reader is not there");
        leave(false);
        leave(false);
    }
}

FIBER(loop_reads_twice) {
    (void)argument;
    vigil_agent *agent = new_agent();
    for (int i = 0; i < 2; i++) {
        int status = vigil_rwlock_read_lock_async(agent, turn_begins(&turns[i]), &rwlock, VIGIL_FOREVER, come_and_stay);
        expect(status, VIGIL_PENDING, "read_lock_async");
    }
    both_asked = true;
    run(agent);
    destroy(agent);
}

FIBER(writer_after_both) {
    sim_until(both_have_asked, NULL);
    let_pass(1); /* so it is younger than the requests */
    writer_came = true;
    writer(argument);
}

FIBER(holder_until_writer_in_line) {
    (void)argument;
    sim_until(writer_in_line, NULL);
    leave(true);
}

static void rwlock_loop_reads_together(void) {
    begin_with(WRITER);
    both_asked = writer_came = false;
    go("loop", loop_reads_twice);
    go("writer", writer_after_both);
    go("holder", holder_until_writer_in_line);
}

/* ---- A loop that runs late ---- */

static bool a_thread_had_it(void *unused) {
    (void)unused;
    return had_readers + had_writers > 0;
}

FIBER(slow_reading_loop) {
    (void)argument;
    loop_until(false, a_thread_had_it);
}

FIBER(slow_writing_loop) {
    (void)argument;
    loop_until(true, a_thread_had_it);
}

FIBER(holder_for_long) {
    await_in_line((uintptr_t)argument);
    let_pass(PATIENCE);
    leave(true);
}

static void rwlock_slow_reading_loop(void) {
    begin_with(WRITER);
    go("loop", slow_reading_loop);
    go("writer", second_writer);
    sim_go("holder", writing_holder_of_line, (void *)2);
}

static void rwlock_slow_writing_loop(void) {
    begin_with(READER);
    go("loop", slow_writing_loop);
    go("writer", second_writer);
    sim_go("holder", reading_holder_of_line, (void *)2);
}

static void rwlock_reserved_for_slow_reading_loop(void) {
    begin_with(WRITER);
    go("loop", slow_reading_loop);
    go("writer", second_writer);
    sim_go("holder", holder_for_long, (void *)2);
}

static void rwlock_reserved_for_slow_writing_loop(void) {
    begin_with(WRITER);
    go("loop", slow_writing_loop);
    go("reader", second_reader);
    sim_go("holder", holder_for_long, (void *)2);
}

/* A thread of an event loop blocks behind the loop's own request. */
FIBER(loop_that_blocks) {
    (void)argument;
    vigil_agent *agent = new_agent();
    ask(agent, &turns[0], true, VIGIL_FOREVER);
    reader(NULL);
    run(agent);
    destroy(agent);
}

static void rwlock_behind_itself(void) {
    begin_with(READER);
    go("loop", loop_that_blocks);
    go("holder", reading_holder);
}

/* Reserved for a loop that asked to write, but does not run before two threads behind it read together. */
FIBER(very_slow_writing_loop) {
    (void)argument;
    loop_until(true, both_read);
}

FIBER(second_sociable_reader) {
    await_in_line(1);
    sociable_reader(argument);
}

static void rwlock_further(void) {
    begin_with(WRITER);
    go("loop", very_slow_writing_loop);
    go("reader 1", second_sociable_reader);
    go("reader 2", second_sociable_reader);
    sim_go("holder", holder_for_long, (void *)3);
}

/*
 * The guard of a reservation for a loop that does not run has a deadline of its own, and another thread waits behind
 * it.
 */
static bool guard_left;

FIBER(guard) {
    (void)argument;
    await_in_line(1);
    if (vigil_rwlock_write_lock_for(&rwlock, PATIENCE + 500) == VIGIL_OK) {
        enter(true);
        leave(true);
    }
    guard_left = true;
}

static bool three_in_line(void *unused) {
    (void)unused;
    return in_line() == (guard_left ? 2 : 3);
}

FIBER(holder_of_three_for_long) {
    (void)argument;
    sim_until(three_in_line, NULL);
    let_pass(PATIENCE);
    leave(true);
}

static void rwlock_guard_with_deadline(void) {
    begin_with(WRITER);
    guard_left = false;
    go("loop", slow_writing_loop);
    go("guard", guard);
    go("reader", third_reader);
    go("holder", holder_of_three_for_long);
}

/* ---- Patience ---- */

/* Once a waiter has waited for long, no newcomer gets the lock before it. */
FIBER(barger) {
    (void)argument;
    await_in_line(1);
    let_pass(PATIENCE);
    leave(true);
    if (vigil_rwlock_write_trylock(&rwlock) == VIGIL_OK) {
        sim_check(had_readers || had_writers || had_loop, "a newcomer took a reserved lock to write");
        enter(true);
        leave(true);
    }
}

FIBER(reading_barger) {
    (void)argument;
    await_in_line(1);
    let_pass(PATIENCE);
    leave(true);
    if (vigil_rwlock_read_trylock(&rwlock) == VIGIL_OK) {
        sim_check(had_writers, "a newcomer took a reserved lock to read");
        enter(false);
        leave(false);
    }
}

static void rwlock_patience_of_writer(void) {
    begin_with(WRITER);
    go("writer", writer);
    go("barger", reading_barger);
}

static void rwlock_patience_of_reader(void) {
    begin_with(WRITER);
    go("reader", reader);
    go("barger", barger);
}

/* The lock is reserved for a writer that finds a reader which is counted for a moment, and gives up. */
static bool writer_has_waited(void *unused) {
    (void)unused;
    return writer_is_through || in_line() == 1;
}

FIBER(holder_for_patient_writer) {
    (void)argument;
    sim_until(writer_has_waited, NULL);
    let_pass(PATIENCE);
    leave(true);
}

static bool is_reserved_or_over(void *unused) {
    (void)unused;
    return (rwlock.word & RESERVED) || writer_is_through;
}

FIBER(hasty_reader_of_reserved) {
    sim_until(is_reserved_or_over, NULL);
    hasty_reader(argument);
}

static void rwlock_patience_in_vain(void) {
    begin_with(WRITER);
    writer_is_through = false;
    sim_moment(1000 + LONG_NS);
    go("writer", patient_writer);
    go("reader", hasty_reader_of_reserved);
    go("holder", holder_for_patient_writer);
}

static void rwlock_patience_of_loop(void) {
    begin_with(WRITER);
    go("loop", writing_loop);
    go("barger", barger);
}

/* ---- Downgrade ---- */

static void downgrade(void) {
    uint32_t before = entered;
    writers--;
    readers++;
    expect(vigil_rwlock_downgrade(&rwlock), VIGIL_OK, "downgrade");
    sim_check(entered == before && !writers, "another writer came in during the downgrade");
}

FIBER(downgrading_writer) {
    (void)argument;
    lock(true);
    downgrade();
    leave(false);
}

static void rwlock_downgrade(void) {
    begin_with(0);
    go("downgrading", downgrading_writer);
    go("writer", writer);
    go("reader", reader);
}

/* A waiting reader is let in, although the lock is not released. */
FIBER(downgrading_holder) {
    (void)argument;
    await_in_line(1);
    downgrade();
    sim_until(a_reader_had_it, NULL);
    leave(false);
}

FIBER(downgrading_holder_of_two) {
    await_in_line(2);
    downgrading_holder(argument);
}

static void rwlock_downgrade_lets_in(void) {
    begin_with(WRITER);
    go("reader", reader);
    go("holder", downgrading_holder);
}

/* ---- Not held ---- */

static int unlocked;

static void count_unlock(int status) {
    unlocked += status == VIGIL_OK;
    sim_check(status == VIGIL_OK || status == VIGIL_ENOTHELD, "unlock returns %s", vigil_status_name(status));
}

FIBER(read_unlocks) {
    (void)argument;
    count_unlock(vigil_rwlock_read_unlock(&rwlock));
}

FIBER(write_unlocks) {
    (void)argument;
    count_unlock(vigil_rwlock_write_unlock(&rwlock));
}

static void unlocked_twice(uint32_t word, void (*unlocker)(void *)) {
    begin_with(word);
    readers = writers = unlocked = 0;
    go("one", unlocker);
    go("other", unlocker);
}

static void rwlock_read_unlocked_twice(void) {
    unlocked_twice(READER, read_unlocks);
}

static void rwlock_write_unlocked_twice(void) {
    unlocked_twice(WRITER, write_unlocks);
}

static void rwlock_contended_unlocked_twice(void) {
    unlocked_twice(READER | WAITERS, read_unlocks);
}

static void unlocked_once(void) {
    sim_check(unlocked == 1, "unlocked %d times", unlocked);
    all_over();
}

/* ---- Forget ---- */

static int64_t forgotten;
static int cancelled;

FIBER(reader_or_forgotten) {
    (void)argument;
    int status = vigil_rwlock_read_lock(&rwlock);
    if (status == VIGIL_OK) {
        enter(false);
        leave(false);
    } else {
        expect(status, VIGIL_CANCELLED, "read_lock");
        cancelled++;
    }
}

FIBER(loop_or_forgotten) {
    writing_loop(argument);
    cancelled += turns[0].status == VIGIL_CANCELLED;
}

FIBER(forgetter) {
    (void)argument;
    forgotten = vigil_forget(&rwlock, sizeof rwlock);
}

static void rwlock_forget(void) {
    begin_with(WRITER);
    forgotten = cancelled = 0;
    go("reader", reader_or_forgotten);
    go("loop", loop_or_forgotten);
    go("forgetter", forgetter);
    go("holder", writing_holder);
}

static void forgotten_are_cancelled(void) {
    sim_check(forgotten == cancelled, "forget returns %d, but %d were cancelled", (int)forgotten, cancelled);
    all_over();
}

/* ---- A reader for which the lock was reserved lets in the readers that came meanwhile ---- */

static bool both_are_in(void *unused) {
    (void)unused;
    return had_readers == 2;
}

FIBER(reader_that_stays) {
    (void)argument;
    lock(false);
    int64_t since_ns = vigil_now_ns();
    sim_until(both_are_in, NULL);
    sim_check(vigil_now_ns() < since_ns + PATIENCE, "the other reader came in only when its patience had ended");
    leave(false);
}

static bool is_released(void *unused) {
    (void)unused;
    return !(rwlock.word & WRITER);
}

FIBER(reader_after_release) {
    sim_until(is_released, NULL);
    reader(argument);
}

FIBER(holder_until_reserved) {
    (void)argument;
    await_in_line(1);
    let_pass(2 * PATIENCE);
    leave(true);
}

static void reader_lets_in(void) {
    begin_with(WRITER);
    go("holder", holder_until_reserved);
    go("reader", reader_that_stays);
    go("newcomer", reader_after_release);
}

/* ---- A lock that lets readers pass ---- */

/* Reads again while a writer waits. */
FIBER(holder_reads_again) {
    (void)argument;
    await_in_line(1);
    lock(false);
    leave(false);
    leave(false);
}

static void begin_with_passing(uint32_t word) {
    begin_with(word);
    rwlock.word |= PASS;
}

static void all_over_passing(void) {
    sim_check(rwlock.word & PASS, "at the end readers may not pass");
    rwlock.word &= ~PASS;
    all_over();
}

static void pass_reads_again(void) {
    begin_with_passing(READER);
    go("writer", writer);
    go("holder", holder_reads_again);
}

static void pass_reads_again_before_loop(void) {
    begin_with_passing(READER);
    go("loop", writing_loop);
    go("holder", holder_reads_again);
}

static void pass_readers_and_writers(void) {
    begin_with_passing(0);
    go("reader 1", reader);
    go("reader 2", reader);
    go("writer", writer);
}

static void pass_line(void) {
    begin_with_passing(WRITER);
    go("writer", writer);
    go("reader", second_sociable_reader);
    go("loop", reading_loop);
    sim_go("holder", writing_holder_of_line, (void *)2);
    go("newcomer", sociable_reader);
}

/* Two readers that stay until both are in: one in line behind a writer, the other comes when the lock is free. */
FIBER(sociable_reader_after_writer) {
    (void)argument;
    await_in_line(2);
    leave(true);
    sociable_reader(NULL);
}

static void pass_behind_a_writer(void) {
    begin_with_passing(WRITER);
    go("writer", writer);
    go("reader", second_sociable_reader);
    go("holder", sociable_reader_after_writer);
}

/* The same when the lock may be reserved for the writer, or for a loop that does not run before that. */
FIBER(sociable_reader_after_long) {
    (void)argument;
    await_in_line(2);
    let_pass(PATIENCE);
    leave(true);
    sociable_reader(NULL);
}

static void pass_behind_a_slow_loop(void) {
    begin_with_passing(WRITER);
    go("loop", very_slow_writing_loop);
    go("reader", second_sociable_reader);
    go("holder", sociable_reader_after_long);
}

static void pass_downgrade(void) {
    begin_with_passing(WRITER);
    go("writer", writer);
    go("reader", second_reader);
    go("holder", downgrading_holder_of_two);
}

/* ---- Readers in lanes: src/sync/lanes.h. There are four lanes, with one place each ---- */

static void lanes_readers_and_writer(void) {
    begin_with(LANES);
    go("reader 1", reader);
    go("reader 2", reader);
    go("writer", writer);
}

static void lanes_reader_and_writers(void) {
    begin_with(LANES);
    go("reader", reader);
    go("writer 1", writer);
    go("writer 2", writer);
}

/* By threads that have not ended. */
static void use_lanes(uint32_t count) {
    struct lot *lot = lot_private();
    lot->lanes_used = count;
    for (uint32_t i = 0; i < count; i++) lot->lane_threads[i] = 1;
}

/* The third shares a lane with the first. */
static void lanes_shared(void) {
    begin_with(LANES);
    use_lanes(PRIM_LANES - 1);
    go("reader 1", reader);
    go("reader 2", reader);
    go("reader 3", reader);
    go("writer", writer);
}

static void lanes_pass(void) {
    begin_with_passing(LANES);
    go("reader 1", reader);
    go("reader 2", reader);
    go("writer", writer);
}

/* The lanes are opened by readers that meet. */
FIBER(reader_twice) {
    reader(argument);
    reader(argument);
}

static void lanes_opened(void) {
    begin_with(READER);
    go("reader 1", reader_twice);
    go("writer", writer);
    go("holder", reading_holder);
}

static void lanes_loop_writes(void) {
    begin_with(LANES);
    go("loop", writing_loop);
    go("reader", reader_twice);
}

static void lanes_loop_reads(void) {
    begin_with(LANES);
    go("loop", reading_loop);
    go("reader", reader);
    go("writer", writer);
}

/* A reader stays until the writer is in line, and must call it. */
FIBER(reader_until_in_line) {
    (void)argument;
    lock(false);
    await_in_line(1);
    leave(false);
}

static bool a_reader_is_inside(void *unused) {
    (void)unused;
    return had_readers > 0;
}

FIBER(writer_behind_reader) {
    sim_until(a_reader_is_inside, NULL);
    writer(argument);
}

static void lanes_line(void) {
    begin_with(LANES);
    go("reader", reader_until_in_line);
    go("writer", writer_behind_reader);
}

/* A writer that gives up has closed the lanes, and readers behind it are let in. */
static void lanes_timeout(void) {
    begin_with(LANES);
    sim_moment(1500);
    go("reader 1", reader);
    go("writer", patient_writer);
    go("reader 2", reader);
}

FIBER(hasty_writer) {
    (void)argument;
    if (vigil_rwlock_write_trylock(&rwlock) == VIGIL_OK) {
        enter(true);
        leave(true);
    }
}

static void lanes_tried(void) {
    begin_with(LANES);
    go("reader", reader_twice);
    go("hasty", hasty_writer);
    go("writer", writer);
}

/* What one thread has locked, another unlocks. */
static uint32_t handed_over, taken_over;

static bool is_handed_over(void *unused) {
    (void)unused;
    return handed_over > taken_over;
}

FIBER(locking_reader) {
    (void)argument;
    lock(false);
    prim_fetch_add_acq_rel(&handed_over, 1u);
}

FIBER(unlocking_reader) {
    (void)argument;
    sim_until(is_handed_over, NULL);
    taken_over++;
    prim_fetch_add_acq_rel(&handed_over, 0u);
    leave(false);
}

static void lanes_handed_over(void) {
    begin_with(LANES);
    handed_over = taken_over = 0;
    go("locks", locking_reader);
    go("unlocks", unlocking_reader);
    go("writer", writer);
}

static void lanes_two_handed_over(void) {
    begin_with(LANES);
    handed_over = taken_over = 0;
    go("locks 1", locking_reader);
    go("locks 2", locking_reader);
    go("unlocks 1", unlocking_reader);
    go("unlocks 2", unlocking_reader);
    go("writer", writer);
}

/* The same: they are in lanes from the beginning, and the threads that unlock have others. */
static void begin_with_two_in_lanes(void) {
    begin_with(LANES);
    struct lot *lot = lot_private();
    readers = 2;
    use_lanes(2);
    lot->lanes[0].locks[0] = lot->lanes[1].locks[0] = (uintptr_t)&rwlock.word;
}

static void lanes_two_and_two(void) {
    begin_with_two_in_lanes();
    go("unlocks 1", reading_holder);
    go("unlocks 2", reading_holder);
    go("writer 1", writer);
    go("writer 2", writer);
}

/* The same with three, while a trylock closes the lanes: one leaves by the closer's unit, then one by its place after
 * that has been counted. The next must not have the last unit. */
#define TOO_MANY (1u << 27)
static int left;
static bool closed;

static bool is_closing(void *unused) {
    (void)unused;
    return closed || (rwlock.word & CLOSING);
}

static bool have_left(void *count) {
    return left >= (int)(intptr_t)count;
}

static bool have_left_and_counted(void *unused) {
    (void)unused;
    return left == 2 && (closed || (rwlock.word & READERS));
}

static bool have_all_left(void *unused) {
    (void)unused;
    sim_check(!(rwlock.word & TOO_MANY), "the count of readers is below zero");
    return left == 3 && closed;
}

/* Its own lane does not have the lock. */
static void leave_from_elsewhere(void) {
    struct lot *lot = lot_private();
    prim_self()->lane = &lot->lanes[3];
    prim_fetch_add_acq_rel(&lot->lane_threads[3], 1u);
    leave(false);
    left++;
}

FIBER(first_to_leave) {
    (void)argument;
    sim_until(is_closing, NULL);
    leave_from_elsewhere();
}

FIBER(second_to_leave) {
    (void)argument;
    sim_until(have_left, (void *)1);
    leave_from_elsewhere();
}

FIBER(third_to_leave) {
    (void)argument;
    sim_until(have_left_and_counted, NULL);
    leave_from_elsewhere();
}

FIBER(closer) {
    hasty_writer(argument);
    closed = true;
}

FIBER(watcher) {
    (void)argument;
    sim_until(have_all_left, NULL);
}

static void lanes_three_handed_over(void) {
    begin_with_two_in_lanes();
    struct lot *lot = lot_private();
    readers = 3;
    left = 0;
    closed = false;
    use_lanes(3);
    lot->lanes[2].locks[0] = lot->lanes[0].locks[0];
    go("leaves first", first_to_leave);
    go("leaves second", second_to_leave);
    go("leaves third", third_to_leave);
    go("closer", closer);
    go("watcher", watcher);
}

/* A writer sees what the readers before it have read: they leave something behind. */
static uint32_t read_by;

FIBER(noting_reader) {
    (void)argument;
    lock(false);
    prim_store_relaxed(&read_by, 1u);
    leave(false);
}

FIBER(noting_writer) {
    (void)argument;
    sim_until(a_reader_is_inside, NULL);
    lock(true);
    sim_check(prim_load_relaxed(&read_by) == 1, "what a reader did before is not visible");
    leave(true);
}

static void lanes_noted(void) {
    begin_with(LANES);
    read_by = 0;
    go("reader", noting_reader);
    go("writer", noting_writer);
}

/* A writer that joins while the lanes are being closed keeps new readers out in the end. */
FIBER(holder_until_saved) {
    (void)argument;
    sim_until(is_saved, NULL);
    leave(false);
}

static void lanes_saved(void) {
    begin_with_two_in_lanes();
    go("unlocks", reading_holder);
    go("stays", holder_until_saved);
    go("hasty", hasty_writer);
    go("writer", writer);
}

/* The lanes are opened again at once. */
static void open_lanes(void) {
    uint32_t seen = prim_load_relaxed(&rwlock.word);
    if (!(seen & ~(READERS | PASS))) prim_cas_acq_rel(&rwlock.word, &seen, seen | LANES);
}

/* The reader has a place, or waits, or was there before. */
static const uint64_t *first_place;

static bool a_reader_has_come(void *unused) {
    (void)unused;
    return *first_place || (rwlock.word & WAITERS) || had_readers;
}

FIBER(writer_opens_and_closes) {
    lock(true);
    sim_until(a_reader_has_come, NULL);
    leave(true);
    open_lanes();
    hasty_writer(argument);
}

static void lanes_reopened(void) {
    begin_with(LANES);
    first_place = &lot_private()->lanes[0].locks[0];
    go("reader", reader);
    go("writer", writer_opens_and_closes);
}

FIBER(holder_opens) {
    await_in_line(2);
    leave(true);
    open_lanes();
    reader(argument);
}

/* Where readers pass, a thread in a lane can always read once more. A reader that has been called before the lanes were
 * opened comes, leaves, and calls the writer behind it. */
FIBER(holder_reads_twice) {
    (void)argument;
    await_in_line(2);
    leave(true);
    open_lanes();
    lock(false);
    expect(vigil_rwlock_read_trylock(&rwlock), VIGIL_OK, "trylock");
    expect(vigil_rwlock_read_unlock(&rwlock), VIGIL_OK, "unlock");
    leave(false);
}

static void lanes_read_again(void) {
    begin_with_passing(WRITER);
    go("reader", reader);
    go("writer", second_writer);
    go("holder", holder_reads_twice);
}

static void lanes_called_reader(void) {
    begin_with(WRITER);
    go("reader", reader);
    go("writer", second_writer);
    go("holder", holder_opens);
}

static void lanes_called_loop(void) {
    begin_with(WRITER);
    go("loop", reading_loop);
    go("writer", second_writer);
    go("holder", holder_opens);
}

/* A writer downgrades, the other readers go back to lanes. */
static void lanes_downgrade(void) {
    begin_with(LANES);
    go("downgrading", downgrading_writer);
    go("reader", reader_twice);
}

/* One reader inside, two unlocks. */
FIBER(reader_and_unlocks) {
    (void)argument;
    expect(vigil_rwlock_read_lock(&rwlock), VIGIL_OK, "lock");
    count_unlock(vigil_rwlock_read_unlock(&rwlock));
}

static void lanes_unlocked_twice(void) {
    begin_with(LANES);
    unlocked = 0;
    go("reader", reader_and_unlocks);
    go("other", read_unlocks);
}

static void lanes_never_locked(void) {
    begin_with(LANES);
    unlocked = 0;
    go("one", read_unlocks);
}

/* The same beside a writer, which may join the line before that unlock has closed the lanes. */
static void lanes_closed_by_another(void) {
    lanes_never_locked();
    go("writer", writer);
}

static void unlocked_never(void) {
    sim_check(unlocked == 0, "unlocked %d times", unlocked);
    all_over();
}

/* ---- A writer ends, and another thread gives up what it held ---- */

#define DIED 0x80000000u

static bool abandoned; /* and no writer has been inside since */

/* In place of the writer, which has held it from the beginning. */
FIBER(abandoner) { /* the argument: how many are in line before that */
    await_in_line((uintptr_t)argument);
    writers--;
    abandoned = true;
    expect(vigil_rwlock_write_abandon(&rwlock), VIGIL_OK, "write_abandon");
}

static void take_over(bool writes, int status) {
    expect(status, abandoned ? VIGIL_OWNER_DIED : VIGIL_OK, "lock");
    enter(writes);
    if (writes && abandoned) expect(vigil_rwlock_consistent(&rwlock), VIGIL_OK, "consistent");
    if (writes) abandoned = false;
    leave(writes);
}

static void begin_abandoned(void) {
    begin_with(WRITER);
    abandoned = false;
}

static void abandoned_over(void) {
    sim_check(!(rwlock.word & ~(WAITERS | DIED | LANES)), "at the end the word is %#x", rwlock.word);
    sim_check(!(rwlock.word & DIED) == !abandoned, "at the end the word is %#x", rwlock.word);
    sim_check(!readers && !writers, "a reader or a writer is still inside");
    balance();
}

FIBER(reading_successor) {
    (void)argument;
    take_over(false, vigil_rwlock_read_lock(&rwlock));
}

FIBER(writing_successor) {
    (void)argument;
    take_over(true, vigil_rwlock_write_lock(&rwlock));
}

static void come_to_abandoned(vigil_op *op, int status) {
    take_over(turn_ends(op, VIGIL_OK)->wants == TO_WRITE, status);
}

static void succeed_as_loop(bool writes) {
    vigil_agent *agent = new_agent();
    vigil_request *request = turn_begins(&turns[0]);
    turns[0].wants = writes ? TO_WRITE : TO_READ;
    int status = writes ? vigil_rwlock_write_lock_async(agent, request, &rwlock, VIGIL_FOREVER, come_to_abandoned)
                        : vigil_rwlock_read_lock_async(agent, request, &rwlock, VIGIL_FOREVER, come_to_abandoned);
    if (status != VIGIL_PENDING) come_to_abandoned(&request->op, status);
    run(agent);
    destroy(agent);
}

FIBER(reading_loop_succeeds) {
    (void)argument;
    succeed_as_loop(false);
}

FIBER(writing_loop_succeeds) {
    (void)argument;
    succeed_as_loop(true);
}

FIBER(impatient_successor) {
    (void)argument;
    int status = vigil_rwlock_write_lock_for(&rwlock, 500);
    if (status != VIGIL_TIMED_OUT) take_over(true, status);
}

FIBER(trying_successor) {
    (void)argument;
    int status = vigil_rwlock_read_trylock(&rwlock);
    if (status != VIGIL_TIMED_OUT) take_over(false, status);
}

static void abandon_reader(void) {
    begin_abandoned();
    go("abandoner", abandoner);
    go("reader", reading_successor);
}

static void abandon_writer_and_reader(void) {
    begin_abandoned();
    go("abandoner", abandoner);
    go("writer", writing_successor);
    go("reader", reading_successor);
}

static void abandon_line(void) {
    begin_abandoned();
    sim_go("abandoner", abandoner, (void *)2);
    go("loop", writing_loop_succeeds);
    go("reader", reading_successor);
}

static void abandon_reading_loop(void) {
    begin_abandoned();
    go("abandoner", abandoner);
    go("loop", reading_loop_succeeds);
    go("writer", writing_successor);
}

static void abandon_deadline(void) {
    begin_abandoned();
    sim_moment(1500);
    go("abandoner", abandoner);
    go("impatient", impatient_successor);
    go("reader", reading_successor);
}

static void abandon_trylock(void) {
    begin_abandoned();
    go("abandoner", abandoner);
    go("trying", trying_successor);
    go("writer", writing_successor);
}

const struct sim_scenario rwlock_scenarios[] = {
    {"lanes_readers_and_writer", "two readers in lanes, and a writer", lanes_readers_and_writer, all_over},
    {"lanes_reader_and_writers", "a reader in a lane, and two writers", lanes_reader_and_writers, all_over},
    {"lanes_shared", "three readers in two lanes, and a writer", lanes_shared, all_over},
    {"lanes_pass", "two readers in lanes that may pass, and a writer", lanes_pass, all_over_passing},
    {"lanes_opened", "readers that meet open the lanes, a writer closes them", lanes_opened, all_over},
    {"lanes_loop_writes", "a loop writes, a reader in a lane comes back", lanes_loop_writes, all_over},
    {"lanes_loop_reads", "a loop reads, a reader in a lane, and a writer", lanes_loop_reads, all_over},
    {"lanes_line", "a reader in a lane leaves when a writer is in line", lanes_line, all_over},
    {"lanes_timeout", "a writer with a deadline closes the lanes", lanes_timeout, all_over},
    {"lanes_tried", "a trylock, a writer, and a reader that comes back", lanes_tried, all_over},
    {"lanes_handed_over", "a reader in a lane is unlocked by another thread", lanes_handed_over, all_over},
    {"lanes_two_handed_over", "the same with two of them", lanes_two_handed_over, all_over},
    {"lanes_two_and_two", "two in lanes are unlocked by other threads, two writers", lanes_two_and_two, all_over},
    {"lanes_three_handed_over", "three in lanes are unlocked by others, a trylock closes the lanes",
     lanes_three_handed_over, all_over},
    {"lanes_noted", "a reader in a lane leaves something for a writer", lanes_noted, all_over},
    {"lanes_saved", "a writer joins while a trylock closes the lanes", lanes_saved, all_over},
    {"lanes_reopened", "the lanes are closed twice while a reader enters", lanes_reopened, all_over},
    {"lanes_read_again", "a thread in a lane reads again, past a writer", lanes_read_again, all_over_passing},
    {"lanes_called_reader", "a called reader comes after the lanes were opened", lanes_called_reader, all_over},
    {"lanes_called_loop", "the same with a loop", lanes_called_loop, all_over},
    {"lanes_downgrade", "a writer downgrades, a reader comes back", lanes_downgrade, all_over},
    {"lanes_unlocked_twice", "one reader, two unlocks", lanes_unlocked_twice, unlocked_once},
    {"lanes_never_locked", "an unlock of what no reader holds", lanes_never_locked, unlocked_never},
    {"lanes_closed_by_another", "the same, and a writer", lanes_closed_by_another, all_over},
    {"rwlock_abandon_reader", "a writer ends, a reader waits", abandon_reader, abandoned_over},
    {"rwlock_abandon_writer_and_reader", "a writer ends, two wait", abandon_writer_and_reader, abandoned_over},
    {"rwlock_abandon_line", "a writer ends, a loop and a reader in line", abandon_line, abandoned_over},
    {"rwlock_abandon_reading_loop", "a writer ends, a loop reads, a thread writes", abandon_reading_loop,
     abandoned_over},
    {"rwlock_abandon_deadline", "a deadline against the end of the writer", abandon_deadline, abandoned_over},
    {"rwlock_abandon_trylock", "a trylock against the end of the writer", abandon_trylock, abandoned_over},
    {"rwlock_pass_reads_again", "a reader reads again while a writer waits", pass_reads_again, all_over_passing},
    {"rwlock_pass_reads_again_before_loop", "the same with a loop", pass_reads_again_before_loop, all_over_passing},
    {"rwlock_pass_readers_and_writers", "two readers that may pass, and a writer", pass_readers_and_writers,
     all_over_passing},
    {"rwlock_pass_line", "two readers that stay for each other, a loop that reads, and a writer", pass_line,
     all_over_passing},
    {"rwlock_pass_behind_a_writer", "a reader behind a writer is let in to another reader", pass_behind_a_writer,
     all_over_passing},
    {"rwlock_pass_behind_a_slow_loop", "the same behind a loop that does not run", pass_behind_a_slow_loop,
     all_over_passing},
    {"rwlock_pass_downgrade", "a reader behind a writer is let in by a downgrade", pass_downgrade, all_over_passing},
    {"rwlock_reader_lets_in", "a reader lets in the readers held up by its reservation", reader_lets_in, all_over},
    {"rwlock_readers_and_writer", "two readers, one writer", rwlock_readers_and_writer, all_over},
    {"rwlock_writers_and_reader", "two writers, one reader", rwlock_writers_and_reader, all_over},
    {"rwlock_line", "a reader, a writer and a reader in line", rwlock_line, all_over},
    {"rwlock_against_reader", "two writers and a reader against a reader", rwlock_against_reader, all_over},
    {"rwlock_loop_reads", "a loop reads, two threads write", rwlock_loop_reads, all_over},
    {"rwlock_loop_writes", "a loop writes, two threads read", rwlock_loop_writes, all_over},
    {"rwlock_loop_and_thread_write", "a loop and a thread write", rwlock_loop_and_thread_write, all_over},
    {"rwlock_together", "two in line read together", rwlock_together, all_over},
    {"rwlock_counted_for_a_moment", "a reader that does not wait, and two writers", rwlock_counted_for_a_moment,
     all_over},
    {"rwlock_writer_before_reader", "a reader comes while a writer waits", rwlock_writer_before_reader, all_over},
    {"rwlock_writing_loop_before_reader", "the same with a loop", rwlock_writing_loop_before_reader, all_over},
    {"rwlock_timeout", "a writer's deadline, and a reader behind it", rwlock_timeout, all_over},
    {"rwlock_async_timeout", "the same for a loop", rwlock_async_timeout, all_over},
    {"rwlock_cancel", "a loop cancels its request to write, and a reader behind it", rwlock_cancel, all_over},
    {"rwlock_destroy", "a loop with a request to write ends, and a reader behind it", rwlock_destroy, all_over},
    {"rwlock_async_try", "a loop tries to write, and then its thread reads", rwlock_async_try, all_over},
    {"rwlock_timeout_when_called", "a writer's deadline against unlock", rwlock_timeout_when_called, all_over},
    {"rwlock_async_timeout_when_called", "the same for a loop", rwlock_async_timeout_when_called, all_over},
    {"rwlock_cancel_when_called", "cancel against unlock", rwlock_cancel_when_called, all_over},
    {"rwlock_destroy_when_called", "an agent's end against unlock", rwlock_destroy_when_called, all_over},
    {"rwlock_queue", "three requests of one loop beside a writer", rwlock_queue, all_over},
    {"rwlock_heir", "a request to read inherits the place of one to write", rwlock_heir, all_over},
    {"rwlock_loop_reads_together", "two requests to read before a writer", rwlock_loop_reads_together, all_over},
    {"rwlock_slow_reading_loop", "a loop is called, but waits for a writer behind it", rwlock_slow_reading_loop,
     all_over},
    {"rwlock_slow_writing_loop", "a loop is called, but waits for a writer behind it", rwlock_slow_writing_loop,
     all_over},
    {"rwlock_reserved_for_slow_reading_loop", "the same with a reservation", rwlock_reserved_for_slow_reading_loop,
     all_over},
    {"rwlock_reserved_for_slow_writing_loop", "the same with a reservation", rwlock_reserved_for_slow_writing_loop,
     all_over},
    {"rwlock_behind_itself", "a loop's thread blocks behind its own request", rwlock_behind_itself, all_over},
    {"rwlock_further", "two readers behind a loop that does not run", rwlock_further, all_over},
    {"rwlock_guard_with_deadline", "the guard of a reservation gives up", rwlock_guard_with_deadline, all_over},
    {"rwlock_patience_of_writer", "a writer gets what is reserved for it", rwlock_patience_of_writer, all_over},
    {"rwlock_patience_of_reader", "a reader gets what is reserved for it", rwlock_patience_of_reader, all_over},
    {"rwlock_patience_of_loop", "a loop gets what is reserved for it", rwlock_patience_of_loop, all_over},
    {"rwlock_patience_in_vain", "a writer gives up what is reserved for it", rwlock_patience_in_vain, all_over},
    {"rwlock_downgrade", "a writer downgrades, others write and read", rwlock_downgrade, all_over},
    {"rwlock_downgrade_lets_in", "a reader in line is let in", rwlock_downgrade_lets_in, all_over},
    {"rwlock_read_unlocked_twice", "two threads unlock what one reads", rwlock_read_unlocked_twice, unlocked_once},
    {"rwlock_write_unlocked_twice", "two threads unlock what one writes", rwlock_write_unlocked_twice, unlocked_once},
    {"rwlock_contended_unlocked_twice", "two threads unlock what is waited for", rwlock_contended_unlocked_twice,
     unlocked_once},
    {"rwlock_forget", "forget against unlock", rwlock_forget, forgotten_are_cancelled},
    {NULL, NULL, NULL, NULL},
};
