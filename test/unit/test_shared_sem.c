/* SPDX-License-Identifier: MIT */
/* The semaphore in a segment: processes that share it, and permits that come back when their holders are killed. */
#include "support.h"

#include "child.h"
#include "actors.h"

#include "lot/shared.h"
#include "vigil/sem.h"

/* In the segment: semaphores, and a word that tells the actors to stop. */
#define LEASED       0u
#define ORDINARY     64u
#define OTHER_LEASED 128u
#define THIRD_LEASED 192u
#define OVER         256u

#define PERMITS 5u

static vigil_sem *sem(uint32_t where) {
    return at(where);
}

static uint32_t value(uint32_t where) {
    return vigil_sem_value(sem(where));
}

/* Acts. The number is that of the permits. */

static int64_t acquire(const struct order *order) {
    return vigil_sem_acquire(at(order->where), (uint32_t)order->number);
}

static int64_t acquire_at_once(const struct order *order) {
    return vigil_sem_acquire_for(at(order->where), (uint32_t)order->number, 0);
}

static int64_t try_acquire(const struct order *order) {
    return vigil_sem_tryacquire(at(order->where), (uint32_t)order->number);
}

static int64_t release(const struct order *order) {
    return vigil_sem_release(at(order->where), (uint32_t)order->number);
}

static int64_t acquire_async(const struct order *order) {
    return vigil_sem_acquire_async(actors_agent, &actors_ops[order->tag].request, at(order->where),
                                   (uint32_t)order->number, VIGIL_FOREVER, report_outcome);
}

static int64_t try_async(const struct order *order) {
    return vigil_sem_acquire_async(actors_agent, &actors_ops[order->tag].request, at(order->where),
                                   (uint32_t)order->number, 0, report_outcome);
}

static int64_t go_deaf(const struct order *order) {
    (void)order;
    deaf = true;
    return VIGIL_OK;
}

/* Directing the actors. */

static void begin(uint32_t waiters) {
    if (waiters) {
        segment_end(0);
        segment_new(0, &(vigil_segment_options){.waiters = waiters});
    }
    *sem(LEASED) = *sem(OTHER_LEASED) = *sem(THIRD_LEASED) = (vigil_sem)VIGIL_SEM_LEASED(PERMITS);
    *sem(ORDINARY) = (vigil_sem)VIGIL_SEM_INIT(PERMITS);
}

static void does(struct actor *actor, act *what, uint32_t where, uint32_t permits) {
    assert_int_equal(actor_does_with(actor, what, where, permits), VIGIL_OK);
}

static void is_refused(struct actor *actor, act *what, uint32_t where, uint32_t permits, int status) {
    assert_int_equal(actor_does_with(actor, what, where, permits), status);
}

/* Returns once it is in line. */
static void waits(struct actor *actor, act *what, uint32_t where, uint32_t permits) {
    int64_t before = vigil_waiters(at(where));
    actor_order(actor, &(struct order){.act = what, .where = where, .number = permits});
    AWAIT(vigil_waiters(at(where)) > before);
    if (what == acquire_async) assert_hears(actor, VIGIL_PENDING);
}

/* Slots taken by waiters and holds. Those of the dead are free again a moment after the permits that they held. */
static uint32_t slots_taken(void) {
    struct lot *lot = lot_for(at(LEASED));
    uint32_t taken = 0;
    for (uint32_t index = 1; index < lot->share->slots; index++) taken += LOAD(lot->share->claims[index]) != 0;
    return taken;
}

static const uint32_t both[] = {LEASED, ORDINARY};
static act *const ways_to_wait[] = {acquire, acquire_async};
static act *const ways_to_try[] = {acquire_at_once, try_acquire, try_async};

/* The living. */

static void processes_share_the_permits(void **state) {
    (void)state;
    begin(0);
    actors_start(2);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        does(&actors[0], acquire, both[i], 2);
        does(&actors[1], try_acquire, both[i], 1);
        does(&actors[0], try_async, both[i], 1);
        assert_int_equal(value(both[i]), PERMITS - 4);
        for (size_t j = 0; j < COUNT_OF(ways_to_try); j++)
            is_refused(&actors[1], ways_to_try[j], both[i], 2, VIGIL_TIMED_OUT);
        does(&actors[0], release, both[i], 1);
        does(&actors[1], try_acquire, both[i], 2);
        does(&actors[1], release, both[i], 3);
        does(&actors[0], release, both[i], 2);
        assert_int_equal(value(both[i]), PERMITS);
    }
    assert_int_equal(slots_taken(), 0);
}

static void processes_wait_in_one_line(void **state) {
    (void)state;
    begin(0);
    actors_start(4);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        does(&actors[0], acquire, both[i], PERMITS);
        waits(&actors[1], acquire, both[i], 3);
        waits(&actors[2], acquire_async, both[i], 2);
        waits(&actors[3], acquire, both[i], 4);
        does(&actors[0], release, both[i], PERMITS);
        for (int served = 0; served < 3; served++) {
            struct actor *actor = first_to_say(VIGIL_OK);
            does(actor, release, both[i], actor == &actors[1] ? 3 : actor == &actors[2] ? 2 : 4);
        }
        assert_int_equal(value(both[i]), PERMITS);
    }
    assert_int_equal(slots_taken(), 0);
}

static void leased_permits_are_released_by_who_has_them(void **state) {
    (void)state;
    begin(0);
    actors_start(2);
    is_refused(&actors[0], release, LEASED, 1, VIGIL_ENOTHELD);
    does(&actors[0], acquire, LEASED, 3);
    is_refused(&actors[1], release, LEASED, 1, VIGIL_ENOTHELD);
    is_refused(&actors[0], release, LEASED, 4, VIGIL_ENOTHELD);
    assert_int_equal(value(LEASED), PERMITS - 3);
    waits(&actors[1], acquire, LEASED, PERMITS); /* this time it is refused under the lock of the line */
    is_refused(&actors[0], release, LEASED, 4, VIGIL_ENOTHELD);
    assert_int_equal(vigil_sem_release(sem(LEASED), 1), VIGIL_ENOTHELD);
    assert_int_equal(value(LEASED), PERMITS - 3);
    does(&actors[0], release, LEASED, 3);
    assert_hears(&actors[1], VIGIL_OK);
    does(&actors[1], release, LEASED, PERMITS);
    assert_int_equal(slots_taken(), 0);
}

static void ordinary_permits_are_nobodys(void **state) {
    (void)state;
    begin(0);
    actors_start(2);
    does(&actors[0], acquire, ORDINARY, 3);
    does(&actors[1], release, ORDINARY, 4);
    assert_int_equal(value(ORDINARY), PERMITS + 1);
    assert_int_equal(slots_taken(), 0);
}

static void elsewhere_leased_ones_are_like_others(void **state) {
    (void)state;
    static vigil_sem own = VIGIL_SEM_LEASED(3);
    assert_int_equal(vigil_sem_value(&own), 3);
    assert_int_equal(vigil_sem_acquire(&own, 2), VIGIL_OK);
    assert_int_equal(vigil_sem_tryacquire(&own, 2), VIGIL_TIMED_OUT);
    assert_int_equal(vigil_sem_release(&own, 4), VIGIL_OK);
    assert_int_equal(vigil_sem_value(&own), 5);
    assert_int_equal(vigil_sem_release(&own, VIGIL_SEM_MAX - 5), VIGIL_OK);
    assert_int_equal(vigil_sem_release(&own, 1), VIGIL_ERANGE);
    assert_int_equal(vigil_sem_acquire(&own, VIGIL_SEM_MAX), VIGIL_OK);
    assert_int_equal(own.word, ((vigil_sem)VIGIL_SEM_LEASED(0)).word);
}

static void all_that_there_can_be_is_leased(void **state) {
    (void)state;
    *sem(LEASED) = (vigil_sem)VIGIL_SEM_LEASED(VIGIL_SEM_MAX);
    actors_start(2);
    does(&actors[0], acquire, LEASED, VIGIL_SEM_MAX);
    assert_int_equal(value(LEASED), 0);
    is_refused(&actors[0], release, LEASED, VIGIL_SEM_MAX + 1, VIGIL_ERANGE);
    actor_kill(&actors[0]);
    does(&actors[1], try_acquire, LEASED, VIGIL_SEM_MAX);
    does(&actors[1], release, LEASED, VIGIL_SEM_MAX);
    assert_int_equal(value(LEASED), VIGIL_SEM_MAX);
}

static void the_stopped_keep_theirs(void **state) {
    (void)state;
    begin(0);
    actors_start(2);
    does(&actors[0], acquire, LEASED, 1);
    actor_stop(&actors[0]);
    is_refused(&actors[1], try_acquire, LEASED, PERMITS, VIGIL_TIMED_OUT);
    actor_continue(&actors[0]);
    does(&actors[0], release, LEASED, 1);
    does(&actors[1], try_acquire, LEASED, PERMITS);
    does(&actors[1], release, LEASED, PERMITS);
}

/* The dead. */

static void leased_permits_come_back_to_who_waits(void **state) {
    (void)state;
    begin(0);
    for (size_t i = 0; i < COUNT_OF(ways_to_wait); i++) {
        actors_start(3);
        does(&actors[0], acquire, LEASED, 2);
        does(&actors[0], acquire, LEASED, 1);
        does(&actors[1], acquire, LEASED, 1);
        waits(&actors[2], ways_to_wait[i], LEASED, PERMITS);
        actor_kill(&actors[0]);
        AWAIT(value(LEASED) == PERMITS - 1); /* another process sweeps */
        assert_true(actor_silent(&actors[2]));
        actor_kill(&actors[1]);
        assert_hears(&actors[2], VIGIL_OK);
        does(&actors[2], release, LEASED, PERMITS);
        assert_int_equal(value(LEASED), PERMITS);
        AWAIT(slots_taken() == 0);
        actors_dismiss();
    }
}

static void leased_permits_come_back_to_who_tries(void **state) {
    (void)state;
    begin(0);
    for (size_t i = 0; i < COUNT_OF(ways_to_try); i++) {
        actors_start(2);
        does(&actors[0], acquire, LEASED, 2);
        does(&actors[0], release, LEASED, 1);
        actor_kill(&actors[0]);
        does(&actors[1], ways_to_try[i], LEASED, PERMITS);
        does(&actors[1], release, LEASED, PERMITS);
        actors_dismiss();
    }
}

static void they_come_back_from_who_leaves(void **state) {
    (void)state;
    begin(0);
    actors_start(2);
    does(&actors[0], acquire, LEASED, 2);
    assert_int_equal(actor_does(&actors[0], leave_segment, 0), 0);
    does(&actors[1], acquire, LEASED, PERMITS);
    does(&actors[1], release, LEASED, PERMITS);
}

/* A process that opens it then cannot know which process held the permits. */
static void when_all_are_dead_they_come_back(void **state) {
    (void)state;
    begin(0);
    actors_start(2);
    does(&actors[0], acquire, LEASED, 2);
    does(&actors[1], acquire, LEASED, 1);
    does(&actors[1], acquire, ORDINARY, 1);
    for (int i = 0; i < 2; i++) actor_kill(&actors[i]);
    assert_int_equal(vigil_buffer_destroy(buffers[0]), 0);
    assert_int_equal(vigil_segment_open_fd(&buffers[0], fds[0]), VIGIL_OK);
    assert_int_equal(value(LEASED), PERMITS);
    assert_int_equal(value(ORDINARY), PERMITS - 1);
}

static void ordinary_permits_do_not_come_back(void **state) {
    (void)state;
    begin(0);
    actors_start(2);
    does(&actors[0], acquire, ORDINARY, 2);
    does(&actors[0], acquire, LEASED, 2);
    actor_kill(&actors[0]);
    does(&actors[1], acquire, LEASED, PERMITS); /* by then all sweeping is done */
    assert_int_equal(value(ORDINARY), PERMITS - 2);
    for (size_t i = 0; i < COUNT_OF(ways_to_try); i++)
        is_refused(&actors[1], ways_to_try[i], ORDINARY, PERMITS - 1, VIGIL_TIMED_OUT);
    does(&actors[1], release, LEASED, PERMITS);
}

/* Killed in line. */

static void a_large_request_that_is_killed_lets_small_ones_in(void **state) {
    (void)state;
    begin(0);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(4);
        does(&actors[0], acquire, both[i], 4);
        waits(&actors[1], acquire, both[i], PERMITS);
        let_pass(MILLISECOND);
        does(&actors[0], release, both[i], 1); /* from now on all permits are saved for it */
        waits(&actors[2], acquire, both[i], 1);
        waits(&actors[3], acquire_async, both[i], 1);
        actor_kill(&actors[1]);
        assert_hears(&actors[2], VIGIL_OK);
        assert_hears(&actors[3], VIGIL_OK);
        for (int j = 2; j < 4; j++) does(&actors[j], release, both[i], 1);
        does(&actors[0], release, both[i], 3);
        assert_int_equal(value(both[i]), PERMITS);
        actors_dismiss();
    }
}

static void nothing_is_kept_for_the_dead(void **state) {
    (void)state;
    begin(0);
    for (uint32_t wanted = 2; wanted <= 4; wanted += 2) { /* released permits are reserved for it, or saved */
        for (size_t i = 0; i < COUNT_OF(both); i++) {
            actors_start(3);
            does(&actors[0], acquire, both[i], PERMITS);
            waits(&actors[1], acquire_async, both[i], wanted);
            assert_int_equal(actor_does(&actors[1], go_deaf, 0), VIGIL_OK);
            let_pass(MILLISECOND);
            does(&actors[0], release, both[i], 3);
            is_refused(&actors[2], try_acquire, both[i], 1, VIGIL_TIMED_OUT);
            actor_kill(&actors[1]);
            does(&actors[2], try_acquire, both[i], 1);
            does(&actors[2], release, both[i], 1);
            does(&actors[0], release, both[i], PERMITS - 3);
            assert_int_equal(value(both[i]), PERMITS);
            actors_dismiss();
        }
    }
}

static void who_was_called_is_killed_and_the_next_is_called(void **state) {
    (void)state;
    begin(0);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(3);
        does(&actors[0], acquire, both[i], PERMITS);
        waits(&actors[1], acquire, both[i], PERMITS);
        waits(&actors[2], acquire, both[i], PERMITS);
        actor_stop(&actors[1]);
        does(&actors[0], release, both[i], PERMITS);
        actor_kill(&actors[1]);
        assert_hears(&actors[2], VIGIL_OK);
        does(&actors[2], release, both[i], PERMITS);
        actors_dismiss();
    }
}

/* No room for holds. */

static void without_slots_it_is_refused(void **state) {
    (void)state;
    begin(2);
    actors_start(2);
    does(&actors[0], acquire, LEASED, 1);
    does(&actors[0], acquire, OTHER_LEASED, 1);
    act *const ways[] = {acquire, acquire_at_once, try_acquire, acquire_async, try_async};
    for (size_t i = 0; i < COUNT_OF(ways); i++) is_refused(&actors[1], ways[i], THIRD_LEASED, 1, VIGIL_ELIMIT);
    is_refused(&actors[1], acquire, ORDINARY, PERMITS + 1, VIGIL_ELIMIT); /* it would have to wait */
    assert_int_equal(value(THIRD_LEASED), PERMITS);
    does(&actors[1], acquire, ORDINARY, 1); /* for this no hold is needed */
    does(&actors[0], acquire, LEASED, 1);   /* for this there is one */
    does(&actors[0], release, LEASED, 2);
    does(&actors[1], acquire, THIRD_LEASED, 1);
    does(&actors[1], release, THIRD_LEASED, 1);
    does(&actors[0], release, OTHER_LEASED, 1);
    assert_int_equal(slots_taken(), 0);
}

static void the_slots_of_the_dead_are_used_again(void **state) {
    (void)state;
    begin(2);
    actors_start(2);
    does(&actors[0], acquire, LEASED, 1);
    does(&actors[0], acquire, OTHER_LEASED, 1);
    actor_kill(&actors[0]);
    does(&actors[1], acquire, THIRD_LEASED, PERMITS);
    does(&actors[1], acquire, LEASED, PERMITS);
    does(&actors[1], release, THIRD_LEASED, PERMITS);
    does(&actors[1], acquire, OTHER_LEASED, PERMITS);
    does(&actors[1], release, OTHER_LEASED, PERMITS);
    does(&actors[1], release, LEASED, PERMITS);
}

/* A waiter that is called, and cannot get a hold then, leaves the permits to others. */
static void who_is_called_may_be_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ways_to_wait); i++) {
        begin(2);
        actors_start(2);
        does(&actors[0], acquire, LEASED, PERMITS);
        waits(&actors[1], ways_to_wait[i], LEASED, 2);
        does(&actors[0], release, LEASED, 3); /* the slot for its hold is kept, and the other one is used to wait */
        assert_hears(&actors[1], VIGIL_ELIMIT);
        assert_int_equal(value(LEASED), 3);
        does(&actors[1], acquire, LEASED, 2);
        does(&actors[1], release, LEASED, 2);
        does(&actors[0], release, LEASED, 2);
        actors_dismiss();
    }
}

/* All together, and one is killed again and again. No permit is lost, and there are never more than at first. */

static int64_t acquire_and_release_until_over(const struct order *order) {
    uint64_t seed = (uint64_t)order->number;
    while (!LOAD(*(uint32_t *)at(OVER))) {
        uint32_t permits = (uint32_t)(random_next(&seed) % PERMITS) + 1;
        if (vigil_sem_acquire(at(LEASED), permits) != VIGIL_OK) return VIGIL_ECORRUPT;
        if (value(LEASED) + permits > PERMITS) return VIGIL_ERANGE;
        if (vigil_sem_release(at(LEASED), permits) != VIGIL_OK) return VIGIL_ENOTHELD;
    }
    return VIGIL_OK;
}

static void many_are_killed_and_no_permit_is_lost(void **state) {
    (void)state;
    begin(0);
    actors_kill_at_random(acquire_and_release_until_over);
    STORE(*(uint32_t *)at(OVER), 1);
    assert_hears(&actors[0], VIGIL_OK);
    assert_hears(&actors[1], VIGIL_OK);
    does(&actors[2], acquire, LEASED, PERMITS);
    does(&actors[2], release, LEASED, PERMITS);
    assert_int_equal(value(LEASED), PERMITS);
    AWAIT(slots_taken() == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(processes_share_the_permits),
        TEST(processes_wait_in_one_line),
        TEST(leased_permits_are_released_by_who_has_them),
        TEST(ordinary_permits_are_nobodys),
        TEST(elsewhere_leased_ones_are_like_others),
        TEST(all_that_there_can_be_is_leased),
        TEST(the_stopped_keep_theirs),
        TEST(leased_permits_come_back_to_who_waits),
        TEST(leased_permits_come_back_to_who_tries),
        TEST(they_come_back_from_who_leaves),
        TEST(when_all_are_dead_they_come_back),
        TEST(ordinary_permits_do_not_come_back),
        TEST(a_large_request_that_is_killed_lets_small_ones_in),
        TEST(nothing_is_kept_for_the_dead),
        TEST(who_was_called_is_killed_and_the_next_is_called),
        TEST(without_slots_it_is_refused),
        TEST(the_slots_of_the_dead_are_used_again),
        TEST(who_is_called_may_be_refused),
        TEST(many_are_killed_and_no_permit_is_lost),
    };
    return children_can_start_threads() ? cmocka_run_group_tests_name("shared_sem", tests, NULL, NULL)
                                        : NO_THREADS_IN_CHILDREN;
}
