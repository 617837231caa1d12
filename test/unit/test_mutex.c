/* SPDX-License-Identifier: MIT */
/*
 * The blocking half of the mutex, on real threads. test_mutex_exported.c runs all of it again with the library's own
 * functions in place of the inline ones.
 */
#include "support.h"

#include "lockers.h"

#include "vigil/atomics.h"

/* The word. */

static void zero_is_unlocked(void **state) {
    (void)state;
    static vigil_mutex zero;
    assert_int_equal(sizeof(vigil_mutex), 4);
    assert_memory_equal(&zero, &mutex, sizeof zero);
    lock(&zero);
    assert_int_equal(zero.word, LOCKED);
    unlock(&zero);
    assert_int_equal(zero.word, UNLOCKED);
}

static void fair_is_four_more(void **state) {
    (void)state;
    assert_int_equal(fair.word, FAIR | UNLOCKED);
    lock(&fair);
    assert_int_equal(fair.word, FAIR | LOCKED);
    unlock(&fair);
    assert_int_equal(fair.word, FAIR | UNLOCKED);
}

static void is_locked_says_whether_somebody_holds_it(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags < 64; flags += FAIR) {
        assert_false(vigil_mutex_is_locked(&(vigil_mutex){flags | UNLOCKED}));
        assert_true(vigil_mutex_is_locked(&(vigil_mutex){flags | LOCKED}));
        assert_true(vigil_mutex_is_locked(&(vigil_mutex){flags | CONTENDED}));
        assert_false(vigil_mutex_is_locked(&(vigil_mutex){flags | RESERVED}));
    }
    assert_false(vigil_mutex_is_locked(NULL));
}

/* A waiter changes the word so that the release wakes it; the last one leaves the word as it was at first. */
static void the_word_says_that_somebody_waits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct locker waits;
        lock(both[i]);
        locker_start(&waits, both[i]);
        assert_int_equal(STATE_OF(both[i]), CONTENDED);
        unlock(both[i]);
        assert_int_equal(locker_join(&waits), VIGIL_OK);
        assert_int_equal(STATE_OF(both[i]), UNLOCKED);
    }
    assert_int_equal(mutex.word, UNLOCKED);
}

/* Trylock, and deadlines. */

static void trylock_does_not_wait(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        assert_int_equal(vigil_mutex_trylock(both[i]), VIGIL_OK);
        uint32_t locked = both[i]->word;
        assert_int_equal(vigil_mutex_trylock(both[i]), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_mutex_lock_for(both[i], 0), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_mutex_lock_for(both[i], -SECOND), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_mutex_lock_for(both[i], INT64_MIN), VIGIL_TIMED_OUT);
        assert_int_equal(both[i]->word, locked); /* a trylock leaves no trace */
        unlock(both[i]);
    }
}

static void a_deadline_is_never_early(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        lock(both[i]);
        for (int64_t timeout_ns = 1; timeout_ns < 20 * MILLISECOND; timeout_ns *= 3) {
            int64_t deadline_ns = vigil_now_ns() + timeout_ns;
            assert_int_equal(vigil_mutex_lock_for(both[i], timeout_ns), VIGIL_TIMED_OUT);
            assert_true(vigil_now_ns() >= deadline_ns);
            assert_int_equal(vigil_waiters(both[i]), 0);
        }
        unlock(both[i]);
        assert_int_equal(STATE_OF(both[i]), UNLOCKED);
    }
}

static void a_distant_deadline_does_not_matter(void **state) {
    (void)state;
    const int64_t distant_ns[] = {3600 * SECOND, INT64_MAX - 1, VIGIL_FOREVER};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (size_t j = 0; j < COUNT_OF(distant_ns); j++) {
            struct locker waits;
            lock(both[i]);
            locker_launch(&waits, both[i], distant_ns[j]);
            AWAIT(vigil_waiters(both[i]) == 1);
            assert_false(locker_through(&waits));
            unlock(both[i]);
            assert_int_equal(locker_join(&waits), VIGIL_OK);
        }
    }
}

/* A waiter that gives up leaves no gap: those before and behind it are served. */
static void a_deadline_in_the_middle_of_the_line(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct locker before, gives_up, behind;
        lock(both[i]);
        locker_start(&before, both[i]);
        locker_launch(&gives_up, both[i], 20 * MILLISECOND);
        AWAIT(vigil_waiters(both[i]) == 2 || locker_through(&gives_up));
        locker_launch(&behind, both[i], VIGIL_FOREVER);
        assert_int_equal(locker_join(&gives_up), VIGIL_TIMED_OUT);
        AWAIT(vigil_waiters(both[i]) == 2);
        unlock(both[i]);
        assert_int_equal(locker_join(&before), VIGIL_OK);
        assert_int_equal(locker_join(&behind), VIGIL_OK);
    }
}

/* Unlocking. */

static void unlocking_what_is_not_held_changes_nothing(void **state) {
    (void)state;
    const uint32_t not_held[] = {UNLOCKED, RESERVED, FAIR | UNLOCKED, FAIR | RESERVED, 24 | FAIR | RESERVED};
    for (size_t i = 0; i < COUNT_OF(not_held); i++) {
        vigil_mutex free = {not_held[i]};
        assert_int_equal(vigil_mutex_unlock(&free), VIGIL_ENOTHELD);
        assert_int_equal(vigil__mutex_unlock_slowly(&free), VIGIL_ENOTHELD);
        assert_int_equal(free.word, not_held[i]);
    }
    lock(&mutex);
    unlock(&mutex);
    assert_int_equal(vigil_mutex_unlock(&mutex), VIGIL_ENOTHELD);
    lock(&mutex);
}

static void a_contended_one_nobody_waits_for_any_more(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags <= FAIR; flags += FAIR) {
        vigil_mutex left = {flags | CONTENDED};
        unlock(&left);
        assert_int_equal(STATE_OF(&left), UNLOCKED);
        assert_int_equal(vigil_mutex_unlock(&left), VIGIL_ENOTHELD);
    }
}

static void *unlock_elsewhere(void *which) {
    return (void *)(intptr_t)vigil_mutex_unlock(which);
}

static void what_was_locked_here_is_unlocked_there(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int contended = 0; contended < 2; contended++) {
            pthread_t other;
            void *status;
            struct locker waits;
            lock(both[i]);
            if (contended) locker_start(&waits, both[i]);
            assert_int_equal(pthread_create(&other, NULL, unlock_elsewhere, both[i]), 0);
            assert_int_equal(pthread_join(other, &status), 0);
            assert_int_equal((intptr_t)status, VIGIL_OK);
            if (contended) assert_int_equal(locker_join(&waits), VIGIL_OK);
            assert_int_equal(STATE_OF(both[i]), UNLOCKED);
        }
    }
}

/* Mistakes of callers. */

static void null_and_misaligned(void **state) {
    (void)state;
    assert_int_equal(vigil_mutex_lock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_mutex_lock_for(NULL, 0), VIGIL_ENULL);
    assert_int_equal(vigil_mutex_trylock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil_mutex_unlock(NULL), VIGIL_ENULL);
    assert_int_equal(vigil__mutex_lock_slowly(NULL, 0), VIGIL_ENULL);
    assert_int_equal(vigil__mutex_unlock_slowly(NULL), VIGIL_ENULL);
    char *bytes = (char *)both;
    for (int i = 1; i < 4; i++) {
        vigil_mutex *askew = (vigil_mutex *)(void *)(bytes + i);
        assert_int_equal(vigil__mutex_lock_slowly(askew, VIGIL_FOREVER), VIGIL_EMISALIGNED);
        assert_int_equal(vigil__mutex_unlock_slowly(askew), VIGIL_EMISALIGNED);
#ifdef VIGIL_NO_INLINE /* inline, the address is dereferenced before it is checked */
        assert_int_equal(vigil_mutex_lock(askew), VIGIL_EMISALIGNED);
        assert_int_equal(vigil_mutex_lock_for(askew, 0), VIGIL_EMISALIGNED);
        assert_int_equal(vigil_mutex_trylock(askew), VIGIL_EMISALIGNED);
        assert_int_equal(vigil_mutex_unlock(askew), VIGIL_EMISALIGNED);
#endif
    }
}

static void where_blocking_is_refused_only_waiting_is(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        vigil_agent *strict = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
        lock(both[i]);
        uint32_t locked = both[i]->word;
        assert_int_equal(vigil_mutex_lock(both[i]), VIGIL_EMAYNOTBLOCK);
        assert_int_equal(vigil_mutex_lock_for(both[i], 1), VIGIL_EMAYNOTBLOCK);
        assert_int_equal(vigil_mutex_lock_for(both[i], 0), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_mutex_trylock(both[i]), VIGIL_TIMED_OUT);
        assert_int_equal(both[i]->word, locked);
        unlock(both[i]);
        assert_int_equal(vigil_mutex_trylock(both[i]), VIGIL_OK);
        end_agent(strict);
        assert_int_equal(vigil_mutex_lock_for(both[i], 1), VIGIL_TIMED_OUT);
        unlock(both[i]);
    }
}

/* A mutex on an element of a view. */

static vigil_view view_of(vigil_buffer *buffer, enum vigil_type type, uint64_t byte_offset, uint64_t length) {
    vigil_view view;
    assert_int_equal(vigil_view_init(&view, buffer, type, byte_offset, length), VIGIL_OK);
    return view;
}

static void a_mutex_lies_on_32_bit_elements_only(void **state) {
    (void)state;
    vigil_buffer *buffer;
    vigil_mutex *laid = NULL;
    assert_int_equal(vigil_buffer_create(&buffer, 64, 64), VIGIL_OK);
    for (enum vigil_type type = VIGIL_I8; type <= VIGIL_U64; type++) {
        bool fits = type == VIGIL_I32 || type == VIGIL_U32;
        int expected = fits ? VIGIL_OK : VIGIL_ETYPE;
        assert_int_equal(vigil_mutex_in(view_of(buffer, type, 0, VIGIL_TO_END), 0, &laid), expected);
    }
    assert_int_equal(vigil_mutex_in((vigil_view){0}, 0, &laid), VIGIL_ETYPE);
    assert_int_equal(vigil_mutex_in(view_of(buffer, VIGIL_I32, 0, 4), 0, NULL), VIGIL_ENULL);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void a_mutex_lies_where_the_element_does(void **state) {
    (void)state;
    vigil_buffer *buffer;
    vigil_mutex *laid = NULL, *same = NULL;
    assert_int_equal(vigil_buffer_create(&buffer, 64, 64), VIGIL_OK);
    vigil_view whole = view_of(buffer, VIGIL_I32, 0, VIGIL_TO_END), part = view_of(buffer, VIGIL_U32, 16, 3);
    assert_int_equal(vigil_mutex_in(part, 2, &laid), VIGIL_OK);
    assert_int_equal(vigil_mutex_in(whole, 6, &same), VIGIL_OK);
    assert_ptr_equal(laid, same);
    int64_t element;
    lock(laid);
    assert_int_equal(vigil_atomics_load(whole, 6, &element), VIGIL_OK);
    assert_int_equal(element, LOCKED);
    assert_int_equal(vigil_mutex_trylock(same), VIGIL_TIMED_OUT);
    unlock(same);
    assert_int_equal(vigil_mutex_in(part, 3, &same), VIGIL_ERANGE);
    assert_int_equal(vigil_mutex_in(whole, 16, &same), VIGIL_ERANGE);
    assert_int_equal(vigil_mutex_in(whole, UINT64_MAX, &same), VIGIL_ERANGE);
    assert_int_equal(vigil_mutex_in(whole, UINT64_MAX / 4 + 1, &same), VIGIL_ERANGE);
    assert_ptr_equal(laid, same); /* an error changes nothing */
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void a_mutex_in_a_buffer_that_grows(void **state) {
    (void)state;
    vigil_buffer *buffer;
    vigil_mutex *laid = NULL, *before = NULL, *after = NULL;
    assert_int_equal(vigil_buffer_create(&buffer, 6, 4096), VIGIL_OK);
    vigil_view view = view_of(buffer, VIGIL_I32, 0, VIGIL_TO_END);
    assert_int_equal(vigil_mutex_in(view, 0, &before), VIGIL_OK);
    assert_int_equal(vigil_mutex_in(view, 1, &laid), VIGIL_ERANGE); /* only half of the mutex fits */
    lock(before);
    assert_int_equal(vigil_buffer_grow(buffer, 4096), VIGIL_OK);
    assert_int_equal(vigil_mutex_in(view, 0, &after), VIGIL_OK);
    assert_ptr_equal(before, after);
    assert_true(vigil_mutex_is_locked(after));
    assert_int_equal(vigil_mutex_in(view, 1023, &laid), VIGIL_OK);
    assert_int_equal(vigil_mutex_in(view, 1024, &before), VIGIL_ERANGE);
    lock(laid);
    unlock(laid);
    assert_int_equal(vigil_buffer_destroy(buffer), 0);
}

static void the_end_of_a_buffer_cancels_who_waits(void **state) {
    (void)state;
    vigil_buffer *buffer;
    vigil_mutex *laid = NULL;
    struct locker waits;
    assert_int_equal(vigil_buffer_create(&buffer, 64, 64), VIGIL_OK);
    assert_int_equal(vigil_mutex_in(view_of(buffer, VIGIL_U32, 0, VIGIL_TO_END), 3, &laid), VIGIL_OK);
    lock(laid);
    locker_start(&waits, laid);
    assert_int_equal(vigil_buffer_destroy(buffer), 1);
    assert_int_equal(locker_join(&waits), VIGIL_CANCELLED);
}

/* Forget. */

static void who_waits_on_forgotten_memory_is_cancelled(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        struct locker waits[3];
        lock(both[i]);
        for (int j = 0; j < 3; j++) locker_start(&waits[j], both[i]);
        assert_int_equal(vigil_forget(both[i], sizeof *both[i]), 3);
        for (int j = 0; j < 3; j++) assert_int_equal(locker_join(&waits[j]), VIGIL_CANCELLED);
        assert_true(vigil_mutex_is_locked(both[i])); /* still held by us */
        unlock(both[i]);
    }
}

/* One holder at a time. */

#define TURNS_EACH 20000

static unsigned plain_counter; /* not atomic: two holders at once are a data race, and lose an update */

static void *count_under_lock(void *which) {
    for (int i = 0; i < TURNS_EACH; i++) {
        if (vigil_mutex_lock(which) != VIGIL_OK) abort();
        plain_counter++;
        if (vigil_mutex_unlock(which) != VIGIL_OK) abort();
    }
    return NULL;
}

static void *count_with_deadlines(void *which) {
    for (int i = 0; i < TURNS_EACH;) {
        int status = vigil_mutex_lock_for(which, i % 7 * 3000);
        if (status == VIGIL_TIMED_OUT) continue;
        if (status != VIGIL_OK) abort();
        plain_counter++;
        i++;
        if (vigil_mutex_unlock(which) != VIGIL_OK) abort();
    }
    return NULL;
}

static void two_never_hold_it(vigil_mutex *which) {
    pthread_t threads[4];
    plain_counter = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, i ? count_under_lock : count_with_deadlines, which), 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_equal(plain_counter, 4 * TURNS_EACH);
    assert_int_equal(STATE_OF(which), UNLOCKED);
    assert_int_equal(vigil_waiters(which), 0);
}

static void two_never_hold_it_at_once(void **state) {
    (void)state;
    two_never_hold_it(&mutex);
    uint32_t slots = slots_ever_used();
    two_never_hold_it(&mutex);
    assert_true(slots_ever_used() <= slots + 4 * SLOT_CHUNK); /* a chunk for each thread, not for each wait */
}

static void two_never_hold_a_fair_one_at_once(void **state) {
    (void)state;
    two_never_hold_it(&fair);
}

/* No waiter is forgotten. */

static void two_in_line_for_one_that_is_unlocked(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        vigil_mutex *which = both[round % 2];
        struct locker waits[2];
        lock(which);
        for (int i = 0; i < 2; i++) locker_start(&waits[i], which);
        unlock(which);
        for (int i = 0; i < 2; i++) assert_int_equal(locker_join(&waits[i]), VIGIL_OK);
    }
}

/* A third thread takes the mutex between the call and the waiter's attempt. */
static void taken_by_a_third(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct locker waits;
        lock(&mutex);
        locker_start(&waits, &mutex);
        unlock(&mutex);
        lock(&mutex); /* mostly before the waiter is up */
        AWAIT(vigil_waiters(&mutex) == 1 || locker_through(&waits));
        unlock(&mutex);
        assert_int_equal(locker_join(&waits), VIGIL_OK);
    }
}

/*
 * Reserved for a loop that does not run, and guarded by a thread with an earlier deadline: the next thread relies on
 * it.
 */
static void a_guard_that_gives_up(void **state) {
    (void)state;
    const int64_t timeout_ns = 5 * MILLISECOND;
    for (int round = 0; round < 20; round++) {
        struct requester slow;
        struct locker guard, behind;
        lock(&mutex);
        ask_pending(&slow, &mutex, VIGIL_FOREVER, answer_and_unlock);
        int64_t began_ns = vigil_now_ns();
        locker_launch(&guard, &mutex, timeout_ns);
        AWAIT(vigil_waiters(&mutex) == 2 || locker_through(&guard));
        locker_launch(&behind, &mutex, VIGIL_FOREVER);
        AWAIT(vigil_waiters(&mutex) == 3 || locker_through(&guard));
        let_pass(began_ns + timeout_ns - PATIENCE / 2 - vigil_now_ns());
        unlock(&mutex);
        assert_int_equal(locker_join(&behind), VIGIL_OK);
        int status = locker_join(&guard);
        assert_true(status == VIGIL_OK || status == VIGIL_TIMED_OUT);
        assert_int_equal(slow.calls, 0);
        dispatch();
        assert_int_equal(slow.calls, 1);
    }
}

/* Which waiter gets it next. */

/* Once the head of the line has waited for half a millisecond, no newcomer gets the mutex before it. */
static void who_has_waited_is_not_overtaken(void **state) {
    (void)state;
    for (unsigned i = 1; i <= 200; i++) {
        struct locker waits;
        lock(&mutex);
        locker_start(&waits, &mutex);
        let_pass(PATIENCE);
        unlock(&mutex);
        if (vigil_mutex_trylock(&mutex) == VIGIL_OK) {
            assert_int_equal(served, i); /* it has locked and unlocked */
            unlock(&mutex);
        }
        assert_int_equal(locker_join(&waits), VIGIL_OK);
    }
}

static void a_fair_one_is_first_come_first_served(void **state) {
    (void)state;
    enum { WAITING = 8 };
    for (int round = 0; round < 20; round++) {
        struct locker waits[WAITING];
        served = 0;
        lock(&fair);
        for (int i = 0; i < WAITING; i++) locker_start(&waits[i], &fair);
        unlock(&fair);
        lock(&fair); /* locks again at once, and is the last */
        assert_int_equal(served, WAITING);
        unlock(&fair);
        for (unsigned i = 0; i < WAITING; i++) {
            assert_int_equal(locker_join(&waits[i]), VIGIL_OK);
            assert_int_equal(waits[i].rank, i + 1);
        }
    }
}

/* A reserved mutex cannot be taken by a newcomer with a short deadline. */
static void a_short_deadline_is_no_way_round_the_line(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        int64_t patience_ns = both[i] == &fair ? FAIR_PATIENCE : PATIENCE;
        struct requester slow;
        lock(both[i]);
        ask_pending(&slow, both[i], VIGIL_FOREVER, answer_and_unlock);
        let_pass(PATIENCE);
        int64_t reserved_ns = vigil_now_ns();
        unlock(both[i]); /* for the event loop of this thread, which does not run yet */
        int status = vigil_mutex_lock_for(both[i], 1);
        bool in_time = vigil_now_ns() < reserved_ns + patience_ns;
        if (status == VIGIL_OK) unlock(both[i]);
        dispatch();
        assert_int_equal(slow.status, VIGIL_OK);
        if (in_time) assert_int_equal(status, VIGIL_TIMED_OUT);
    }
}

/* Code of others that changes the word itself if that takes no waiting. */

static uint32_t plain_change(uint32_t from, uint32_t to) {
    __atomic_compare_exchange_n(&mutex.word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return from;
}

static void plain_lock(void) {
    if (plain_change(UNLOCKED, LOCKED) != UNLOCKED) lock(&mutex);
}

static void plain_unlock(void) {
    if (plain_change(LOCKED, UNLOCKED) != LOCKED) unlock(&mutex);
}

static void *count_plainly(void *unused) {
    (void)unused;
    for (int i = 0; i < TURNS_EACH; i++) {
        plain_lock();
        plain_counter++;
        plain_unlock();
    }
    return NULL;
}

/* A plain wait knows nothing of mutexes, and returns what wait.h says. */
static void a_plain_wait_on_a_mutex_is_notified_by_its_unlock(void **state) {
    (void)state;
    struct sleeper sleeper = {.address = &mutex, .expected = CONTENDED, .timeout_ns = VIGIL_FOREVER};
    struct noted noted = {0};
    mutex.word = CONTENDED;
    sleeper_launch(&sleeper);
    AWAIT(vigil_waiters(&mutex) == 1);
    unlock(&mutex);
    int blocking = sleeper_join(&sleeper);
    mutex.word = CONTENDED;
    assert_int_equal(vigil_wait32_async(agent, &noted.op, &mutex, CONTENDED, VIGIL_FOREVER, note), VIGIL_PENDING);
    unlock(&mutex);
    dispatch();
    assert_int_equal(blocking, VIGIL_OK);
    assert_int_equal(noted.calls, 1);
    assert_int_equal(noted.status, VIGIL_OK);
}

static void others_lock_the_same_word(void **state) {
    (void)state;
    pthread_t threads[4];
    plain_counter = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? count_plainly : count_under_lock, &mutex), 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_equal(plain_counter, 4 * TURNS_EACH);
    assert_int_equal(mutex.word, UNLOCKED);
    assert_int_equal(vigil_waiters(&mutex), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(zero_is_unlocked),
        TEST(fair_is_four_more),
        TEST(is_locked_says_whether_somebody_holds_it),
        TEST(the_word_says_that_somebody_waits),
        TEST(trylock_does_not_wait),
        TEST(a_deadline_is_never_early),
        TEST(a_distant_deadline_does_not_matter),
        TEST(a_deadline_in_the_middle_of_the_line),
        TEST(unlocking_what_is_not_held_changes_nothing),
        TEST(a_contended_one_nobody_waits_for_any_more),
        TEST(what_was_locked_here_is_unlocked_there),
        TEST(null_and_misaligned),
        TEST(where_blocking_is_refused_only_waiting_is),
        TEST(a_mutex_lies_on_32_bit_elements_only),
        TEST(a_mutex_lies_where_the_element_does),
        TEST(a_mutex_in_a_buffer_that_grows),
        TEST(the_end_of_a_buffer_cancels_who_waits),
        TEST(who_waits_on_forgotten_memory_is_cancelled),
        TEST(two_never_hold_it_at_once),
        TEST(two_never_hold_a_fair_one_at_once),
        TEST(two_in_line_for_one_that_is_unlocked),
        TEST(taken_by_a_third),
        TEST(a_guard_that_gives_up),
        TEST(who_has_waited_is_not_overtaken),
        TEST(a_fair_one_is_first_come_first_served),
        TEST(a_short_deadline_is_no_way_round_the_line),
        TEST(a_plain_wait_on_a_mutex_is_notified_by_its_unlock),
        TEST(others_lock_the_same_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
