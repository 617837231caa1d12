/* SPDX-License-Identifier: MIT */
/* The read-write lock: exclusion, one line of threads and an event loop, and which of them is next. */
#include "support.h"

#include "vigil/rwlock.h"

#include "requesters.h"
#include "takers.h"

static vigil_rwlock locks[64]; /* one for each test */
static unsigned lock_number;
#define rwlock locks[lock_number]

static const void *new_lock(void) {
    assert_true(++lock_number < COUNT_OF(locks));
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_INIT;
    return &rwlock;
}

enum share { READ, WRITE };

static int take(uint32_t share, int64_t timeout_ns) {
    return share == WRITE ? vigil_rwlock_write_lock_for(&rwlock, timeout_ns)
                          : vigil_rwlock_read_lock_for(&rwlock, timeout_ns);
}

static int try_lock(enum share share) {
    return share == WRITE ? vigil_rwlock_write_trylock(&rwlock) : vigil_rwlock_read_trylock(&rwlock);
}

static void lock(enum share share) {
    assert_int_equal(share == WRITE ? vigil_rwlock_write_lock(&rwlock) : vigil_rwlock_read_lock(&rwlock), VIGIL_OK);
}

static void unlock(enum share share) {
    assert_int_equal(share == WRITE ? vigil_rwlock_write_unlock(&rwlock) : vigil_rwlock_read_unlock(&rwlock), VIGIL_OK);
}

typedef int starter(vigil_agent *agent, vigil_request *request, vigil_rwlock *lock, int64_t timeout_ns,
                    vigil_callback *callback);
static starter *const starters[] = {[READ] = vigil_rwlock_read_lock_async, [WRITE] = vigil_rwlock_write_lock_async};

static int ask(struct requester *requester, uint32_t share, int64_t timeout_ns) {
    return starters[share](agent, &requester->request, &rwlock, timeout_ns, answer);
}

/* Exclusion. */

static void readers_share_and_writers_do_not(void **state) {
    (void)state;
    lock(READ);
    lock(READ);
    assert_int_equal(try_lock(READ), VIGIL_OK);
    assert_int_equal(take(READ, 0), VIGIL_OK);
    assert_int_equal(try_lock(WRITE), VIGIL_TIMED_OUT);
    for (int i = 0; i < 4; i++) unlock(READ);
    assert_int_equal(LOAD(rwlock.word), 0);
    lock(WRITE);
    assert_int_equal(try_lock(WRITE), VIGIL_TIMED_OUT);
    assert_int_equal(try_lock(READ), VIGIL_TIMED_OUT);
    assert_int_equal(take(READ, 0), VIGIL_TIMED_OUT);
    assert_int_equal(take(WRITE, -1), VIGIL_TIMED_OUT);
    unlock(WRITE);
    assert_int_equal(LOAD(rwlock.word), 0);
    assert_int_equal(try_lock(WRITE), VIGIL_OK);
    unlock(WRITE);
}

static void unlocking_what_is_not_held_changes_nothing(void **state) {
    (void)state;
    assert_int_equal(vigil_rwlock_read_unlock(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_write_unlock(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_downgrade(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(LOAD(rwlock.word), 0);
    lock(READ);
    uint32_t read = LOAD(rwlock.word);
    assert_int_equal(vigil_rwlock_write_unlock(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_downgrade(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(LOAD(rwlock.word), read);
    struct taker writer;
    taker_start(&writer, WRITE);
    read = LOAD(rwlock.word) | 8u; /* SAVED, which the writer may set meanwhile */
    assert_int_equal(vigil_rwlock_write_unlock(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_downgrade(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(LOAD(rwlock.word) | 8u, read);
    unlock(READ);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    uint32_t written = LOAD(rwlock.word);
    assert_int_equal(vigil_rwlock_read_unlock(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(LOAD(rwlock.word), written);
    unlock(WRITE);
}

static void there_can_be_too_many_readers(void **state) {
    (void)state;
    struct requester requester = {0};
    const uint32_t full = UINT32_C(1) << 27;
    rwlock.word = full - 16;
    lock(READ);
    assert_int_equal(LOAD(rwlock.word), full);
    assert_int_equal(vigil_rwlock_read_lock(&rwlock), VIGIL_ELIMIT);
    assert_int_equal(try_lock(READ), VIGIL_ELIMIT);
    assert_int_equal(ask(&requester, READ, VIGIL_FOREVER), VIGIL_ELIMIT);
    assert_int_equal(try_lock(WRITE), VIGIL_TIMED_OUT);
    assert_int_equal(LOAD(rwlock.word), full);
    unlock(READ);
    lock(READ);
    assert_int_equal(LOAD(rwlock.word), full);
}

static void wrong_arguments(void **state) {
    (void)state;
    struct requester requester = {0};
    assert_int_equal(vigil_rwlock_read_lock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_read_lock_for(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_read_trylock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_read_unlock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_write_lock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_write_lock_for(NULL, 1), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_write_trylock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_write_unlock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_rwlock_downgrade(NULL), VIGIL_ENULL);
    vigil_rwlock two[2] = {{0}, {0}};
    for (int i = 1; i < 4; i++) {
        vigil_rwlock *askew = (vigil_rwlock *)(void *)((char *)two + i);
        assert_int_equal(vigil__rwlock_read_lock_slowly(askew, 0), VIGIL_EMISALIGNED);
        assert_int_equal(vigil__rwlock_read_unlock_slowly(askew), VIGIL_EMISALIGNED);
        assert_int_equal(vigil__rwlock_write_lock_slowly(askew, 0), VIGIL_EMISALIGNED);
        assert_int_equal(vigil__rwlock_write_unlock_slowly(askew), VIGIL_EMISALIGNED);
        assert_int_equal(vigil_rwlock_downgrade(askew), VIGIL_EMISALIGNED);
    }
    for (size_t i = 0; i < COUNT_OF(starters); i++) {
        vigil_rwlock *askew = (vigil_rwlock *)(void *)((char *)two + 1);
        assert_int_equal(starters[i](NULL, &requester.request, &rwlock, 1, answer), VIGIL_ENULL);
        assert_int_equal(starters[i](agent, NULL, &rwlock, 1, answer), VIGIL_ENULL);
        assert_int_equal(starters[i](agent, &requester.request, NULL, 1, answer), VIGIL_ENULL);
        assert_int_equal(starters[i](agent, &requester.request, &rwlock, 1, NULL), VIGIL_ENULL);
        assert_int_equal(starters[i](agent, &requester.request, askew, 1, answer), VIGIL_EMISALIGNED);
    }
    assert_int_equal(LOAD(rwlock.word), 0);
}

static void where_blocking_is_refused_only_waiting_is(void **state) {
    (void)state;
    vigil_agent *strict = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    lock(WRITE);
    uint32_t locked = LOAD(rwlock.word);
    assert_int_equal(vigil_rwlock_read_lock(&rwlock), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(vigil_rwlock_write_lock(&rwlock), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(take(READ, 1), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(LOAD(rwlock.word), locked);
    unlock(WRITE);
    end_agent(strict);
}

/* Threads in line. */

static void deadlines_are_kept(void **state) {
    (void)state;
    lock(WRITE);
    for (int share = READ; share <= WRITE; share++) {
        int64_t due_ns = vigil_now_ns() + 2 * MILLISECOND;
        assert_int_equal(take((enum share)share, 2 * MILLISECOND), VIGIL_TIMED_OUT);
        assert_true(vigil_now_ns() >= due_ns);
    }
    unlock(WRITE);
    assert_int_equal(LOAD(rwlock.word), 0);
    assert_int_equal(take(WRITE, 2 * MILLISECOND), VIGIL_OK);
    unlock(WRITE);
}

static void readers_at_the_head_are_let_in_together(void **state) {
    (void)state;
    struct taker readers[3], writer, last;
    lock(WRITE);
    for (size_t i = 0; i < COUNT_OF(readers); i++) taker_start(&readers[i], READ);
    taker_start(&writer, WRITE);
    taker_start(&last, READ);
    unlock(WRITE);
    for (size_t i = 0; i < COUNT_OF(readers); i++) assert_int_equal(taker_join(&readers[i]), VIGIL_OK);
    assert_false(taker_through(&writer) || taker_through(&last));
    for (size_t i = 0; i < COUNT_OF(readers); i++) unlock(READ);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    assert_false(taker_through(&last));
    unlock(WRITE);
    assert_int_equal(taker_join(&last), VIGIL_OK);
    unlock(READ);
}

#define SAVED 8u

/* Waits until a writer has waited for half a millisecond: then new readers have to wait. */
static void until_saved(void) {
    while (!(LOAD(rwlock.word) & SAVED)) dispatch();
}

/* A loop that does not run cannot keep readers out. */
static void new_readers_pass_a_writer_at_first(void **state) {
    (void)state;
    struct requester requester;
    lock(READ);
    ask_pending(&requester, WRITE, VIGIL_FOREVER);
    assert_int_equal(try_lock(READ), VIGIL_OK);
    unlock(READ);
    unlock(READ);
    until_answered(&requester, VIGIL_OK);
    unlock(WRITE);
}

static void new_readers_wait_behind_a_writer(void **state) {
    (void)state;
    struct taker writer, reader;
    struct requester requester = {0};
    lock(READ);
    taker_start(&writer, WRITE);
    until_saved();
    assert_int_equal(try_lock(READ), VIGIL_TIMED_OUT);
    assert_int_equal(take(READ, 0), VIGIL_TIMED_OUT);
    assert_int_equal(ask(&requester, READ, 0), VIGIL_TIMED_OUT);
    assert_int_equal(take(READ, MILLISECOND), VIGIL_TIMED_OUT); /* nor does waiting longer help */
    taker_start(&reader, READ);
    unlock(READ);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    assert_false(taker_through(&reader));
    unlock(WRITE);
    assert_int_equal(taker_join(&reader), VIGIL_OK);
    unlock(READ);
}

/* A lock that lets readers pass. */

static void let_readers_pass(void) {
    rwlock = (vigil_rwlock)VIGIL_RWLOCK_READERS_PASS;
}

static bool is_free(void) {
    return LOAD(rwlock.word) == ((vigil_rwlock)VIGIL_RWLOCK_READERS_PASS).word;
}

static void a_reader_that_may_pass_reads_again_while_a_writer_waits(void **state) {
    (void)state;
    struct taker writer, reader;
    struct requester requester = {0};
    let_readers_pass();
    lock(READ);
    taker_start(&writer, WRITE);
    assert_int_equal(take(READ, SECOND), VIGIL_OK);
    assert_int_equal(try_lock(READ), VIGIL_OK);
    taker_launch(&reader, READ, SECOND);
    assert_int_equal(taker_join(&reader), VIGIL_OK);
    assert_int_equal(ask(&requester, READ, SECOND), VIGIL_OK);
    assert_false(taker_through(&writer));
    for (int i = 0; i < 5; i++) unlock(READ);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    assert_int_equal(try_lock(READ), VIGIL_TIMED_OUT);
    unlock(WRITE);
    assert_true(is_free());
}

static void unlocking_changes_nothing_of_what_lets_readers_pass(void **state) {
    (void)state;
    let_readers_pass();
    assert_int_equal(vigil_rwlock_read_unlock(&rwlock), VIGIL_ENOTHELD);
    assert_int_equal(vigil_rwlock_write_unlock(&rwlock), VIGIL_ENOTHELD);
    assert_true(is_free());
    lock(WRITE);
    assert_int_equal(vigil_rwlock_read_unlock(&rwlock), VIGIL_ENOTHELD);
    unlock(WRITE);
    assert_true(is_free());
}

/* When the lock is taken to read, all readers in line are let in, including those behind a writer. */
static void readers_in_line_pass_a_writer_in_line(void **state) {
    (void)state;
    for (int downgrades = 0; downgrades < 2; downgrades++) {
        struct taker first, writer, last;
        struct requester requester;
        let_readers_pass();
        lock(WRITE);
        taker_start(&first, READ);
        taker_start(&writer, WRITE);
        taker_start(&last, READ);
        ask_pending(&requester, READ, VIGIL_FOREVER);
        if (downgrades) assert_int_equal(vigil_rwlock_downgrade(&rwlock), VIGIL_OK);
        else unlock(WRITE);
        assert_int_equal(taker_join(&first), VIGIL_OK);
        assert_int_equal(taker_join(&last), VIGIL_OK);
        until_answered(&requester, VIGIL_OK);
        assert_false(taker_through(&writer));
        for (int i = 0; i < 3 + downgrades; i++) unlock(READ);
        assert_int_equal(taker_join(&writer), VIGIL_OK);
        unlock(WRITE);
        assert_true(is_free());
    }
}

static void a_writing_loop_gets_its_turn_after_those_that_pass(void **state) {
    (void)state;
    struct requester requester;
    let_readers_pass();
    lock(READ);
    ask_pending(&requester, WRITE, VIGIL_FOREVER);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(take(READ, SECOND), VIGIL_OK);
        unlock(READ);
    }
    dispatch();
    assert_int_equal(requester.calls, 0);
    unlock(READ);
    until_answered(&requester, VIGIL_OK);
    unlock(WRITE);
    assert_true(is_free());
}

static void a_writer_that_leaves_lets_readers_in(void **state) {
    (void)state;
    struct taker writer, reader;
    lock(READ);
    taker_launch(&writer, WRITE, 50 * MILLISECOND);
    AWAIT((LOAD(rwlock.word) & SAVED) || taker_through(&writer));
    taker_launch(&reader, READ, VIGIL_FOREVER);
    assert_int_equal(taker_join(&writer), VIGIL_TIMED_OUT);
    assert_int_equal(taker_join(&reader), VIGIL_OK); /* while we read */
    assert_int_equal(try_lock(READ), VIGIL_OK);
    for (int i = 0; i < 3; i++) unlock(READ);
}

/* A writer that was called can find a reader that is counted in error, and go back to the line: the lock is still
 * reserved, for no other. If the writer gives up there, before it could look again, so does the reservation. */
static void a_reservation_ends_with_the_last_waiter(void **state) {
    (void)state;
    const uint32_t reader = 16, reserved = 4;
    STORE(rwlock.word, reader | reserved);
    assert_int_equal(vigil_rwlock_write_lock_for(&rwlock, 1), VIGIL_TIMED_OUT); /* 1 ns */
    assert_int_equal(LOAD(rwlock.word), reader);
    assert_int_equal(vigil_rwlock_read_unlock(&rwlock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_trylock(&rwlock), VIGIL_OK);
    assert_int_equal(vigil_rwlock_write_unlock(&rwlock), VIGIL_OK);
}

static void what_was_locked_here_is_unlocked_there(void **state) {
    (void)state;
    struct taker reader, writer;
    taker_launch(&reader, READ, VIGIL_FOREVER);
    assert_int_equal(taker_join(&reader), VIGIL_OK);
    unlock(READ);
    taker_launch(&writer, WRITE, VIGIL_FOREVER);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    unlock(WRITE);
    assert_int_equal(LOAD(rwlock.word), 0);
}

static void who_waits_on_forgotten_memory_is_cancelled(void **state) {
    (void)state;
    struct taker taker;
    struct requester requester;
    lock(WRITE);
    taker_start(&taker, READ);
    ask_pending(&requester, WRITE, VIGIL_FOREVER);
    assert_int_equal(vigil_forget(&rwlock, sizeof rwlock), 2);
    assert_int_equal(taker_join(&taker), VIGIL_CANCELLED);
    until_answered(&requester, VIGIL_CANCELLED);
    unlock(WRITE);
    assert_int_equal(LOAD(rwlock.word), 0);
}

/* Code that knows nothing of shares waits for a change of the word: behind a reader, and behind a writer. */
static void a_plain_wait_ends_with_an_unlock(void **state) {
    (void)state;
    for (int share = READ; share <= WRITE; share++) {
        struct requester requester;
        struct sleeper sleeper = {.address = &rwlock, .timeout_ns = VIGIL_FOREVER};
        struct noted noted = {0};
        lock((enum share)share);
        ask_pending(&requester, WRITE, VIGIL_FOREVER); /* otherwise the unlock would not look at the line */
        sleeper.expected = LOAD(rwlock.word);
        int status = vigil_wait32_async(agent, &noted.op, &rwlock, LOAD(rwlock.word), VIGIL_FOREVER, note);
        assert_int_equal(status, VIGIL_PENDING);
        sleeper_launch(&sleeper);
        AWAIT(waiters_in_line(&rwlock) == 3);
        unlock((enum share)share);
        assert_int_equal(sleeper_join(&sleeper), VIGIL_OK);
        until_answered(&requester, VIGIL_OK);
        assert_int_equal(noted.calls, 1);
        assert_int_equal(noted.status, VIGIL_OK);
        unlock(WRITE);
    }
}

/* Downgrade. */

static void a_downgraded_lock_is_read(void **state) {
    (void)state;
    lock(WRITE);
    assert_int_equal(vigil_rwlock_downgrade(&rwlock), VIGIL_OK);
    assert_int_equal(try_lock(WRITE), VIGIL_TIMED_OUT);
    assert_int_equal(try_lock(READ), VIGIL_OK);
    unlock(READ);
    assert_int_equal(vigil_rwlock_downgrade(&rwlock), VIGIL_ENOTHELD);
    unlock(READ);
    assert_int_equal(LOAD(rwlock.word), 0);
}

static void downgrade_lets_in_readers_at_the_head_only(void **state) {
    (void)state;
    struct taker reader, writer, last;
    lock(WRITE);
    taker_start(&reader, READ);
    taker_start(&writer, WRITE);
    taker_start(&last, READ);
    assert_int_equal(vigil_rwlock_downgrade(&rwlock), VIGIL_OK);
    assert_int_equal(taker_join(&reader), VIGIL_OK);
    until_saved();
    assert_int_equal(try_lock(READ), VIGIL_TIMED_OUT); /* a writer waits */
    assert_false(taker_through(&writer) || taker_through(&last));
    unlock(READ);
    unlock(READ);
    assert_int_equal(taker_join(&writer), VIGIL_OK);
    unlock(WRITE);
    assert_int_equal(taker_join(&last), VIGIL_OK);
    unlock(READ);
}

/* The event loop. */

static void a_free_lock_is_had_at_once(void **state) {
    (void)state;
    struct requester requester = {0};
    assert_int_equal(ask(&requester, READ, VIGIL_FOREVER), VIGIL_OK);
    assert_int_equal(ask(&requester, READ, 0), VIGIL_OK);
    assert_int_equal(ask(&requester, WRITE, 0), VIGIL_TIMED_OUT);
    assert_int_equal(try_lock(READ), VIGIL_OK); /* no writer waits */
    for (int i = 0; i < 3; i++) unlock(READ);
    assert_int_equal(ask(&requester, WRITE, VIGIL_FOREVER), VIGIL_OK);
    unlock(WRITE);
    dispatch();
    assert_int_equal(requester.calls, 0);
    assert_int_equal(LOAD(rwlock.word), 0);
}

static void a_loop_is_served_in_order(void **state) {
    (void)state;
    struct requester readers[2], writer;
    lock(WRITE);
    ask_pending(&readers[0], READ, VIGIL_FOREVER);
    ask_pending(&readers[1], READ, VIGIL_FOREVER);
    ask_pending(&writer, WRITE, VIGIL_FOREVER);
    assert_int_equal(ask(&writer, WRITE, VIGIL_FOREVER), VIGIL_EINUSE);
    assert_int_equal(vigil_waiters(&rwlock), 1);
    unlock(WRITE);
    until_answered(&readers[0], VIGIL_OK);
    until_answered(&readers[1], VIGIL_OK);
    dispatch();
    assert_int_equal(writer.calls, 0);
    unlock(READ);
    unlock(READ);
    until_answered(&writer, VIGIL_OK);
    unlock(WRITE);
}

static void a_request_to_write_that_goes_lets_readers_in(void **state) {
    (void)state;
    for (int how = 0; how < WAYS_TO_GO; how++) {
        struct requester requester;
        struct taker reader;
        lock(READ);
        ask_pending(&requester, WRITE, how == AT_ITS_DEADLINE ? 50 * MILLISECOND : VIGIL_FOREVER);
        while (!(LOAD(rwlock.word) & SAVED) && !requester.calls) dispatch();
        taker_launch(&reader, READ, VIGIL_FOREVER);
        AWAIT(waiters_in_line(&rwlock) == 2 || taker_through(&reader));
        requester_goes(&requester, how);
        assert_int_equal(taker_join(&reader), VIGIL_OK);
        assert_int_equal(try_lock(READ), VIGIL_OK);
        for (int i = 0; i < 3; i++) unlock(READ);
    }
}

static void a_request_to_read_inherits_the_place_of_one_to_write(void **state) {
    (void)state;
    struct requester writer, reader;
    lock(READ);
    ask_pending(&writer, WRITE, VIGIL_FOREVER);
    until_saved();
    ask_pending(&reader, READ, VIGIL_FOREVER);
    assert_int_equal(vigil_cancel(&writer.request.op), VIGIL_OK);
    until_answered(&reader, VIGIL_OK);
    assert_int_equal(writer.calls, 0);
    unlock(READ);
    unlock(READ);
}

static void what_was_for_a_cancelled_request_goes_on(void **state) {
    (void)state;
    for (int share = READ; share <= WRITE; share++) {
        struct requester requester;
        lock(WRITE);
        ask_pending(&requester, (enum share)share, VIGIL_FOREVER);
        let_pass(MILLISECOND);
        unlock(WRITE); /* it has been called, and the lock is reserved */
        assert_int_equal(try_lock(WRITE), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
        dispatch();
        assert_int_equal(requester.calls, 0);
        assert_int_equal(try_lock(WRITE), VIGIL_OK);
        unlock(WRITE);
    }
}

static void a_loop_that_does_not_run_keeps_nobody_from_it(void **state) {
    (void)state;
    for (int share = READ; share <= WRITE; share++) {
        struct requester requester;
        struct taker other;
        lock(WRITE);
        ask_pending(&requester, (enum share)share, VIGIL_FOREVER);
        taker_start(&other, share == READ ? WRITE : READ);
        let_pass(MILLISECOND);
        unlock(WRITE); /* reserved for the loop, which does not run */
        assert_int_equal(taker_join(&other), VIGIL_OK);
        unlock((enum share)other.wanted);
        until_answered(&requester, VIGIL_OK);
        unlock((enum share)share);
    }
}

/* Forgotten, and freed before the loop is told: the address sanitizer checks. */

static vigil_rwlock *new_and_written(void) {
    vigil_rwlock *new = calloc(1, sizeof *new);
    assert_int_equal(vigil_rwlock_write_lock(new), VIGIL_OK);
    return new;
}

static void start_on(vigil_rwlock *which, struct requester *requester, int share, vigil_callback *callback) {
    *requester = (struct requester){0};
    assert_int_equal(starters[share](agent, &requester->request, which, VIGIL_FOREVER, callback), VIGIL_PENDING);
}

static void forget_and_free(vigil_rwlock *which) {
    assert_int_equal(vigil_forget(which, sizeof *which), 1);
    free(which);
}

static void a_request_goes_that_was_for_freed_memory(void **state) {
    (void)state;
    for (int how = CANCELLED; how < WAYS_TO_GO; how++) {
        for (int share = READ; share <= WRITE; share++) {
            struct requester requester, next;
            vigil_rwlock *gone = new_and_written();
            start_on(gone, &requester, share, answer);
            forget_and_free(gone);
            requester_goes(&requester, how);
            dispatch();
            gone = new_and_written();
            start_on(gone, &requester, share, answer);
            start_on(gone, &next, READ, answer);
            forget_and_free(gone);
            requester_goes(&requester, how); /* and its place goes to the next */
            until_answered(&next, VIGIL_CANCELLED);
            assert_int_equal(requester.calls, how == CANCELLED ? 0 : 1);
        }
    }
}

static struct requester victim;

static void cancel_the_victim(vigil_op *op, int status) {
    answer(op, status);
    assert_int_equal(vigil_cancel(&victim.request.op), VIGIL_OK);
}

static void who_hears_of_it_cancels_the_next(void **state) {
    (void)state;
    for (int share = READ; share <= WRITE; share++) {
        struct requester requester;
        vigil_rwlock *gone = new_and_written();
        start_on(gone, &requester, share, cancel_the_victim);
        start_on(gone, &victim, READ, answer);
        forget_and_free(gone);
        until_answered(&requester, VIGIL_CANCELLED);
        assert_int_equal(vigil_agent_run(agent), VIGIL_OK);
        assert_int_equal(victim.calls, 0);
    }
}

/* All together. */

#define ROUNDS (UNDER_TSAN ? 2000 : 10000)

static uint64_t pair[2]; /* both the same for every reader: only the lock ensures it */
static uint64_t writes;

static bool visit(enum share share) {
    bool same = pair[0] == pair[1];
    if (share == WRITE) {
        pair[0]++;
        pair[1]++;
        writes++;
    }
    return same;
}

static void *visitor_main(void *seed) {
    uint64_t random = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < ROUNDS; i++) {
        enum share share = random_next(&random) % 4 ? READ : WRITE;
        int64_t timeout_ns = random_next(&random) % 4 ? VIGIL_FOREVER : 10 * MICROSECOND;
        int status = take(share, timeout_ns);
        if (status == VIGIL_TIMED_OUT && timeout_ns != VIGIL_FOREVER) continue;
        if (status != VIGIL_OK) return "lock";
        if (!visit(share)) return "torn";
        if (share == WRITE && i % 2) {
            if (vigil_rwlock_downgrade(&rwlock) != VIGIL_OK) return "downgrade";
            share = READ;
            if (!visit(share)) return "torn";
        }
        status = share == WRITE ? vigil_rwlock_write_unlock(&rwlock) : vigil_rwlock_read_unlock(&rwlock);
        if (status != VIGIL_OK) return "unlock";
    }
    return NULL;
}

static void visit_and_unlock(vigil_op *op, int status) {
    answer(op, status);
    if (status != VIGIL_OK) return;
    assert_true(visit(WRITE));
    unlock(WRITE);
}

static void a_writer_is_alone(void **state) {
    (void)state;
    pthread_t visitors[3];
    pair[0] = pair[1] = writes = 0;
    launch_all(visitors, COUNT_OF(visitors), visitor_main);
    for (int i = 0; i < ROUNDS; i++) {
        struct requester requester = {0};
        int status = vigil_rwlock_write_lock_async(agent, &requester.request, &rwlock, VIGIL_FOREVER, visit_and_unlock);
        if (status == VIGIL_OK) visit_and_unlock(&requester.request.op, status);
        else if (i % 3 == 0) assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_OK);
        else until_answered(&requester, VIGIL_OK);
    }
    join_all(visitors, COUNT_OF(visitors));
    assert_int_equal(pair[0], writes);
    assert_int_equal(pair[1], writes);
    lock(WRITE);
    unlock(WRITE);
    assert_int_equal(LOAD(rwlock.word), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(readers_share_and_writers_do_not),
        TEST(unlocking_what_is_not_held_changes_nothing),
        TEST(there_can_be_too_many_readers),
        TEST(wrong_arguments),
        TEST(where_blocking_is_refused_only_waiting_is),
        TEST(deadlines_are_kept),
        TEST(readers_at_the_head_are_let_in_together),
        TEST(new_readers_pass_a_writer_at_first),
        TEST(new_readers_wait_behind_a_writer),
        TEST(a_reader_that_may_pass_reads_again_while_a_writer_waits),
        TEST(unlocking_changes_nothing_of_what_lets_readers_pass),
        TEST(readers_in_line_pass_a_writer_in_line),
        TEST(a_writing_loop_gets_its_turn_after_those_that_pass),
        TEST(a_writer_that_leaves_lets_readers_in),
        TEST(a_reservation_ends_with_the_last_waiter),
        TEST(what_was_locked_here_is_unlocked_there),
        TEST(who_waits_on_forgotten_memory_is_cancelled),
        TEST(a_plain_wait_ends_with_an_unlock),
        TEST(a_downgraded_lock_is_read),
        TEST(downgrade_lets_in_readers_at_the_head_only),
        TEST(a_free_lock_is_had_at_once),
        TEST(a_loop_is_served_in_order),
        TEST(a_request_to_write_that_goes_lets_readers_in),
        TEST(a_request_to_read_inherits_the_place_of_one_to_write),
        TEST(what_was_for_a_cancelled_request_goes_on),
        TEST(a_loop_that_does_not_run_keeps_nobody_from_it),
        TEST(a_request_goes_that_was_for_freed_memory),
        TEST(who_hears_of_it_cancels_the_next),
        TEST(a_writer_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
