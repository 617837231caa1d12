/* SPDX-License-Identifier: MIT */
/* Locks across processes: what happens to those that dead processes held or were about to get. */
#include "support.h"

#include "child.h"
#include "actors.h"

#include "lot/line.h"
#include "recovery/guard.h"
#include "vigil/cond.h"
#include "vigil/mutex.h"

/* In the segment: two mutexes, one of them fair, and a condition. */
#define PLAIN  0u
#define FAIR   64u
#define COND   128u
#define WORD   192u
#define ROBUST 256u
static const uint32_t both[] = {PLAIN, FAIR};

#define FAIR_BIT 4u

/* Acts. */

static int64_t lock(const struct order *order) {
    return vigil_mutex_lock(at(order->where));
}

static int64_t lock_for(const struct order *order) {
    return vigil_mutex_lock_for(at(order->where), order->number);
}

static int64_t try_lock(const struct order *order) {
    return vigil_mutex_trylock(at(order->where));
}

static int64_t unlock(const struct order *order) {
    return vigil_mutex_unlock(at(order->where));
}

static int64_t make_consistent(const struct order *order) {
    return vigil_mutex_consistent(at(order->where));
}

static int64_t lock_async(const struct order *order) {
    int64_t timeout_ns = order->number ? order->number : VIGIL_FOREVER;
    return vigil_mutex_lock_async(actors_agent, &actors_ops[order->tag].request, at(order->where), timeout_ns,
                                  report_outcome);
}

static int64_t execute(const struct order *order) {
    return vigil_mutex_execute(actors_agent, &actors_ops[order->tag].request, at(order->where), VIGIL_FOREVER,
                               report_outcome);
}

/* Called with the mutex, PLAIN, held. */
static int64_t cond_wait(const struct order *order) {
    return vigil_cond_wait(at(order->where), at(PLAIN));
}

static int64_t cond_wait_async(const struct order *order) {
    return vigil_cond_wait_async(actors_agent, &actors_ops[order->tag].request, at(order->where), at(PLAIN),
                                 VIGIL_FOREVER, report_outcome);
}

static int64_t signal_one(const struct order *order) {
    return vigil_cond_signal(at(order->where));
}

/* Directing the actors. */

static bool in_the_line(uint32_t where, int64_t count) {
    return vigil_waiters(at(where)) == count;
}

static void gets(struct actor *actor, uint32_t where) {
    assert_int_equal(actor_does(actor, lock, where), VIGIL_OK);
}

static void gives_back(struct actor *actor, uint32_t where) {
    assert_int_equal(actor_does(actor, unlock, where), VIGIL_OK);
}

static void repairs(struct actor *actor, uint32_t where) {
    assert_int_equal(actor_does(actor, make_consistent, where), VIGIL_OK);
    gives_back(actor, where);
}

/* For a mutex that is held: returns once the actor, or its event loop, is in line for it. */
static void queues(struct actor *actor, bool blocking, uint32_t where) {
    int64_t before = vigil_waiters(at(where));
    if (blocking) actor_begin(actor, lock, where);
    else assert_int_equal(actor_does(actor, lock_async, where), VIGIL_PENDING);
    AWAIT(in_the_line(where, before + 1));
}

static int new_locks(void **state) {
    if (set_up(state) != 0) return 1;
    *(vigil_mutex *)at(FAIR) = (vigil_mutex)VIGIL_MUTEX_FAIR;
    return 0;
}

static bool unlocked(uint32_t where) {
    return (__atomic_load_n((uint32_t *)at(where), __ATOMIC_ACQUIRE) & 3u) == 0;
}

/* What every test must leave behind: free locks and empty lines. */
static int locks_end(void **state) {
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        assert_false(vigil_mutex_is_locked(at(both[i])));
        assert_int_equal(vigil_waiters(at(both[i])), 0);
    }
    assert_int_equal(vigil_waiters(at(COND)), 0);
    return tear_down(state);
}

/* A thread ends while its process lives. */

static void locks_in_thread(struct actor *actor, uint32_t where) {
    actor_order(actor, &(struct order){.act = lock, .where = where, .in_thread = true}); /* and the thread ends */
    assert_hears(actor, VIGIL_OK);
}

static void of_a_robust_one_the_end_of_a_thread_is_noticed(void **state) {
    (void)state;
    const vigil_mutex robust = VIGIL_MUTEX_ROBUST;
    *(vigil_mutex *)at(ROBUST) = robust;
    for (int blocking = 0; blocking < 2; blocking++) {
        actors_start(2);
        locks_in_thread(&actors[0], ROBUST);
        int64_t status = actor_does(&actors[1], blocking ? lock : lock_async, ROBUST);
        if (status == VIGIL_PENDING) status = actor_hears(&actors[1]);
        assert_int_equal(status, VIGIL_OWNER_DIED);
        repairs(&actors[1], ROBUST);

        gets(&actors[0], ROBUST); /* on its main thread */
        assert_int_equal(actor_does(&actors[1], unlock, ROBUST), VIGIL_ENOTHELD);
        actor_order(&actors[0], &(struct order){.act = unlock, .where = ROBUST, .in_thread = true});
        assert_hears(&actors[0], VIGIL_ENOTHELD);
        queues(&actors[1], blocking, ROBUST);
        gives_back(&actors[0], ROBUST);
        assert_hears(&actors[1], VIGIL_OK);
        gives_back(&actors[1], ROBUST);

        gets(&actors[0], ROBUST);
        queues(&actors[1], blocking, ROBUST);
        actor_kill(&actors[0]);
        assert_hears(&actors[1], VIGIL_OWNER_DIED);
        repairs(&actors[1], ROBUST);
        assert_int_equal(*(uint32_t *)at(ROBUST), robust.word);
        actors_dismiss();
    }
}

/* The thread holds a mutex in a segment that its process leaves: later there may be nothing at that address. */
static int64_t lock_and_leave(const struct order *order) {
    int status = vigil_mutex_lock(at(order->where));
    return status ? status : vigil_buffer_destroy(buffers[0]);
}

static int64_t opens_again(const struct order *order) {
    (void)order;
    return vigil_segment_open_fd(&buffers[0], fds[0]);
}

static void what_was_held_in_a_segment_that_has_been_left_is_let_be(void **state) {
    (void)state;
    const vigil_mutex robust = VIGIL_MUTEX_ROBUST;
    *(vigil_mutex *)at(ROBUST) = robust;
    actors_start(2);
    actor_order(&actors[0], &(struct order){.act = lock_and_leave, .where = ROBUST, .in_thread = true});
    assert_hears(&actors[0], VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], lock, ROBUST), VIGIL_OWNER_DIED);
    assert_int_equal(actor_does(&actors[0], opens_again, 0), VIGIL_OK);
    repairs(&actors[1], ROBUST);
    gets(&actors[0], ROBUST);
    gives_back(&actors[0], ROBUST);
}

/* Alive. */

static void one_has_it_at_a_time(void **state) {
    (void)state;
    actors_start(2);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        gets(&actors[0], both[i]);
        assert_int_equal(actor_does(&actors[1], try_lock, both[i]), VIGIL_TIMED_OUT);
        assert_int_equal(actor_does_with(&actors[1], lock_for, both[i], 5 * MILLISECOND), VIGIL_TIMED_OUT);
        assert_int_equal(vigil_mutex_trylock(at(both[i])), VIGIL_TIMED_OUT);
        queues(&actors[1], true, both[i]);
        gives_back(&actors[0], both[i]);
        assert_hears(&actors[1], VIGIL_OK);
        assert_int_equal(actor_does(&actors[0], try_lock, both[i]), VIGIL_TIMED_OUT);
        gives_back(&actors[1], both[i]);
        assert_int_equal(actor_does(&actors[0], unlock, both[i]), VIGIL_ENOTHELD);
        assert_true(unlocked(both[i]));
    }
}

static void asynchronous_requests(void **state) {
    (void)state;
    actors_start(3);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        gets(&actors[0], both[i]);
        assert_int_equal(actor_does_with(&actors[1], lock_async, both[i], 5 * MILLISECOND), VIGIL_PENDING);
        assert_hears(&actors[1], VIGIL_TIMED_OUT);
        queues(&actors[1], false, both[i]);
        assert_int_equal(actor_does(&actors[1], cancel_op, both[i]), VIGIL_OK);
        queues(&actors[1], false, both[i]);
        assert_int_equal(actor_does(&actors[2], execute, both[i]), VIGIL_PENDING);
        gives_back(&actors[0], both[i]);
        struct actor *first = first_to_say(VIGIL_OK);
        if (first == &actors[1]) gives_back(first, both[i]);
        struct actor *second = first_to_say(VIGIL_OK);
        if (second == &actors[1]) gives_back(second, both[i]);
        assert_ptr_not_equal(first, second);
        AWAIT(!vigil_mutex_is_locked(at(both[i]))); /* the holder has unlocked it */
    }
}

static void fair_is_first_come_first_served(void **state) {
    (void)state;
    enum { COMERS = 5 };
    actors_start(COMERS + 1);
    gets(&actors[COMERS], FAIR);
    for (int i = 0; i < COMERS; i++) queues(&actors[i], i % 2, FAIR);
    gives_back(&actors[COMERS], FAIR);
    for (int i = 0; i < COMERS; i++) {
        assert_hears(&actors[i], VIGIL_OK);
        for (int j = i + 1; j < COMERS; j++) assert_true(actor_silent(&actors[j]));
        gives_back(&actors[i], FAIR);
    }
}

static void conditions(void **state) {
    (void)state;
    actors_start(3);
    gets(&actors[0], PLAIN);
    actor_begin(&actors[0], cond_wait, COND);
    AWAIT(in_the_line(COND, 1));
    gets(&actors[1], PLAIN);
    assert_int_equal(actor_does(&actors[1], cond_wait_async, COND), VIGIL_PENDING);
    assert_true(in_the_line(COND, 2));
    gets(&actors[2], PLAIN);
    assert_int_equal(actor_does(&actors[2], signal_one, COND), 1);
    assert_int_equal(actor_does(&actors[2], signal_one, COND), 1);
    assert_int_equal(actor_does(&actors[2], signal_one, COND), 0);
    assert_true(actor_silent(&actors[0]) && actor_silent(&actors[1]));
    gives_back(&actors[2], PLAIN);
    gives_back(first_to_say(VIGIL_OK), PLAIN);
    gives_back(first_to_say(VIGIL_OK), PLAIN);
}

static int64_t wait_apart(const struct order *order) {
    vigil_mutex mine = VIGIL_MUTEX_INIT;
    vigil_cond own = VIGIL_COND_INIT;
    CHECK(vigil_mutex_lock(&mine) == VIGIL_OK);
    CHECK(vigil_cond_wait(at(order->where), &mine) == VIGIL_EINVAL);
    CHECK(vigil_cond_wait_async(actors_agent, &actors_ops[0].request, at(order->where), &mine, VIGIL_FOREVER,
                                report_outcome) == VIGIL_EINVAL);
    CHECK(vigil_mutex_unlock(&mine) == VIGIL_OK);
    CHECK(vigil_cond_wait(&own, at(PLAIN)) == VIGIL_EINVAL);
    return vigil_cond_wait(at(OTHER + COND), at(PLAIN));
}

static void a_condition_lies_where_its_mutex_does(void **state) {
    (void)state;
    segment_new(1, NULL);
    actors_start(1);
    gets(&actors[0], PLAIN);
    assert_int_equal(actor_does(&actors[0], wait_apart, COND), VIGIL_EINVAL);
    gives_back(&actors[0], PLAIN); /* it was held all the time */
}

/* The holder dies. */

static void and_nobody_waits(void **state) {
    (void)state;
    act *const ways[] = {lock, try_lock, lock_async};
    for (size_t i = 0; i < COUNT_OF(both) * COUNT_OF(ways); i++) {
        uint32_t mutex = both[i % COUNT_OF(both)];
        actors_start(2);
        gets(&actors[0], mutex);
        actor_kill(&actors[0]);
        int64_t status = actor_does(&actors[1], ways[i / COUNT_OF(both)], mutex);
        if (status == VIGIL_PENDING) status = actor_hears(&actors[1]);
        assert_int_equal(status, VIGIL_OWNER_DIED);
        assert_int_equal(actor_does(&actors[1], try_lock, mutex), VIGIL_TIMED_OUT);
        repairs(&actors[1], mutex);
        gets(&actors[1], mutex); /* as if nothing had happened */
        gives_back(&actors[1], mutex);
        actor_dismiss(&actors[1]);
    }
}

/* The test itself, which never waits, finds out that the holder died. */
static void and_the_next_only_tries(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(1);
        gets(&actors[0], both[i]);
        actor_kill(&actors[0]);
        assert_int_equal(vigil_mutex_trylock(at(both[i])), VIGIL_OWNER_DIED);
        assert_int_equal(vigil_mutex_consistent(at(both[i])), VIGIL_OK);
        assert_int_equal(vigil_mutex_unlock(at(both[i])), VIGIL_OK);
    }
}

/* No process makes a call: those asleep are reached. */
static void and_others_wait(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both) * 4; i++) {
        uint32_t mutex = both[i % COUNT_OF(both)];
        actors_start(3);
        gets(&actors[0], mutex);
        queues(&actors[1], i & 2, mutex);
        queues(&actors[2], i & 4, mutex);
        actor_kill(&actors[0]);
        struct actor *heir = first_to_say(VIGIL_OWNER_DIED);
        assert_true(all_silent());
        repairs(heir, mutex);
        gives_back(first_to_say(VIGIL_OK), mutex);
        actors_dismiss();
    }
}

static void and_one_executes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(2);
        gets(&actors[0], both[i]);
        assert_int_equal(actor_does(&actors[1], execute, both[i]), VIGIL_PENDING);
        actor_kill(&actors[0]);
        assert_hears(&actors[1], VIGIL_OWNER_DIED);
        AWAIT(!vigil_mutex_is_locked(at(both[i])));
        assert_int_equal(actor_does(&actors[1], lock, both[i]), VIGIL_OWNER_DIED); /* not marked consistent */
        repairs(&actors[1], both[i]);
        actor_dismiss(&actors[1]);
    }
}

/* At once, if it is free apart from that. */
static void and_one_executes_later(void **state) {
    (void)state;
    actors_start(2);
    gets(&actors[0], PLAIN);
    actor_kill(&actors[0]);
    actor_begin(&actors[1], execute, PLAIN);
    int64_t first = actor_hears(&actors[1]), second = actor_hears(&actors[1]);
    assert_true((first == VIGIL_OWNER_DIED && second == VIGIL_OK) ||
                (first == VIGIL_PENDING && second == VIGIL_OWNER_DIED));
    AWAIT(!vigil_mutex_is_locked(at(PLAIN)));
    assert_int_equal(actor_does(&actors[1], lock, PLAIN), VIGIL_OWNER_DIED);
    repairs(&actors[1], PLAIN);
}

/* A process that waited for a condition is signalled, and comes back to a mutex with a dead holder. */
static void and_one_comes_back_from_a_condition(void **state) {
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        actors_start(2);
        gets(&actors[0], PLAIN);
        if (blocking) actor_begin(&actors[0], cond_wait, COND);
        else assert_int_equal(actor_does(&actors[0], cond_wait_async, COND), VIGIL_PENDING);
        AWAIT(in_the_line(COND, 1));
        gets(&actors[1], PLAIN);
        assert_int_equal(actor_does(&actors[1], signal_one, COND), 1);
        actor_kill(&actors[1]);
        assert_hears(&actors[0], VIGIL_OWNER_DIED);
        repairs(&actors[0], PLAIN);
        actor_dismiss(&actors[0]);
    }
}

/* Processes that wait for a condition are not affected if the holder of the mutex dies, or another waiter. */
static void and_others_wait_for_a_condition(void **state) {
    (void)state;
    actors_start(4);
    for (int i = 0; i < 3; i++) {
        gets(&actors[i], PLAIN);
        if (i == 1) assert_int_equal(actor_does(&actors[i], cond_wait_async, COND), VIGIL_PENDING);
        else actor_begin(&actors[i], cond_wait, COND);
        AWAIT(in_the_line(COND, i + 1));
    }
    actor_kill(&actors[0]);
    AWAIT(in_the_line(COND, 2));
    assert_int_equal(actor_does(&actors[3], lock, PLAIN), VIGIL_OK); /* the dead process did not hold it */
    actor_kill(&actors[3]);
    assert_int_equal(vigil_cond_broadcast(at(COND)), 2);
    repairs(first_to_say(VIGIL_OWNER_DIED), PLAIN);
    gives_back(first_to_say(VIGIL_OK), PLAIN);
}

/* A signal that a dead process had received and not used goes on to the next. */
static void and_had_been_signalled(void **state) {
    (void)state;
    actors_start(3);
    for (int i = 0; i < 2; i++) {
        gets(&actors[i], PLAIN);
        actor_begin(&actors[i], cond_wait, COND);
        AWAIT(in_the_line(COND, i + 1));
    }
    actor_stop(&actors[0]);
    assert_int_equal(actor_does(&actors[2], signal_one, COND), 1);
    actor_kill(&actors[0]);
    int64_t status = actor_hears(&actors[1]);
    assert_true(status == VIGIL_OK || status == VIGIL_OWNER_DIED);
    if (status == VIGIL_OWNER_DIED) assert_int_equal(actor_does(&actors[1], make_consistent, PLAIN), VIGIL_OK);
    gives_back(&actors[1], PLAIN);
}

static void several_times(void **state) {
    (void)state;
    enum { DEATHS = 6 };
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(DEATHS + 1);
        gets(&actors[0], both[i]);
        for (int j = 1; j <= DEATHS; j++) queues(&actors[j], j % 2, both[i]);
        struct actor *holder = &actors[0];
        for (int deaths = 0; deaths < DEATHS; deaths++) {
            actor_kill(holder);
            holder = first_to_say(VIGIL_OWNER_DIED);
            assert_true(all_silent());
        }
        repairs(holder, both[i]);
        actor_dismiss(holder);
    }
}

/* Consistent, or not. */

static void consistent(void **state) {
    (void)state;
    actors_start(3);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        assert_int_equal(actor_does(&actors[1], make_consistent, both[i]), VIGIL_ENOTHELD);
        gets(&actors[1], both[i]);
        assert_int_equal(actor_does(&actors[1], make_consistent, both[i]), VIGIL_EINVAL);
        gives_back(&actors[1], both[i]);
    }
    assert_int_equal(vigil_mutex_consistent(NULL), VIGIL_ENULL);

    for (size_t i = 0; i < COUNT_OF(both); i++) gets(&actors[0], both[i]);
    actor_kill(&actors[0]);
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int round = 0; round < 3; round++) { /* it stays so until it is marked consistent */
            assert_int_equal(actor_does(&actors[1 + round % 2], lock, both[i]), VIGIL_OWNER_DIED);
            gives_back(&actors[1 + round % 2], both[i]);
            assert_int_equal(actor_does(&actors[1], make_consistent, both[i]), VIGIL_ENOTHELD);
        }
        assert_int_equal(actor_does(&actors[2], try_lock, both[i]), VIGIL_OWNER_DIED);
        queues(&actors[1], true, both[i]);
        gives_back(&actors[2], both[i]);
        assert_hears(&actors[1], VIGIL_OWNER_DIED);
        assert_int_equal(actor_does(&actors[1], make_consistent, both[i]), VIGIL_OK);
        assert_int_equal(actor_does(&actors[1], make_consistent, both[i]), VIGIL_EINVAL);
        queues(&actors[2], false, both[i]);
        gives_back(&actors[1], both[i]);
        assert_hears(&actors[2], VIGIL_OK);
        gives_back(&actors[2], both[i]);
    }
    assert_int_equal(*(uint32_t *)at(PLAIN), 0);
    assert_int_equal(*(uint32_t *)at(FAIR) & ~0xfffffff0u, FAIR_BIT);
}

/* The holder is stopped: it is not dead. */
static void nothing_is_taken_from_the_stopped(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(3);
        gets(&actors[0], both[i]);
        queues(&actors[1], true, both[i]);
        queues(&actors[2], false, both[i]);
        actor_stop(&actors[0]);
        let_pass(200 * MILLISECOND); /* a death would have been noticed by now */
        assert_true(actor_silent(&actors[1]) && actor_silent(&actors[2]));
        assert_int_equal(vigil_mutex_trylock(at(both[i])), VIGIL_TIMED_OUT);
        actor_continue(&actors[0]);
        gives_back(&actors[0], both[i]);
        gives_back(first_to_say(VIGIL_OK), both[i]);
        gives_back(first_to_say(VIGIL_OK), both[i]);
        actors_dismiss();
    }
}

/* The holder leaves in another way. */

static void the_holder_leaves(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int waited_for = 0; waited_for < 2; waited_for++) {
            actors_start(2);
            gets(&actors[0], both[i]);
            if (waited_for) queues(&actors[1], true, both[i]);
            assert_int_equal(actor_does(&actors[0], leave_segment, 0), 0);
            if (waited_for) assert_hears(&actors[1], VIGIL_OWNER_DIED);
            else assert_int_equal(actor_does(&actors[1], lock, both[i]), VIGIL_OWNER_DIED);
            repairs(&actors[1], both[i]);
            actors_dismiss();
        }
    }
}

/* The process may come back as a new member: what it held is no longer its own. */
static int64_t leave_and_return(const struct order *order) {
    CHECK(vigil_buffer_destroy(buffers[0]) == 0);
    CHECK(vigil_segment_open_fd(&buffers[0], fds[0]) == VIGIL_OK);
    return vigil_mutex_trylock(at(order->where));
}

static void the_holder_leaves_and_returns(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(1);
        gets(&actors[0], both[i]);
        assert_int_equal(actor_does(&actors[0], leave_and_return, both[i]), VIGIL_OWNER_DIED);
        repairs(&actors[0], both[i]);
        actor_dismiss(&actors[0]);
    }
}

static void the_holder_goes_otherwise(void **state) {
    (void)state;
    act *const ways[] = {become_another_program, just_exit};
    for (size_t i = 0; i < COUNT_OF(ways) * COUNT_OF(both); i++) {
        uint32_t mutex = both[i % COUNT_OF(both)];
        actors_start(2);
        gets(&actors[0], mutex);
        queues(&actors[1], i % 2, mutex);
        actor_begin(&actors[0], ways[i / COUNT_OF(both)], 0);
        assert_hears(&actors[1], VIGIL_OWNER_DIED);
        repairs(&actors[1], mutex);
        actors_dismiss();
    }
}

/* Waiters in line die. */

static void a_place_in_line_disappears(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both) * 2; i++) {
        uint32_t mutex = both[i % 2];
        actors_start(4);
        gets(&actors[3], mutex);
        for (int j = 0; j < 3; j++) queues(&actors[j], i & 2, mutex);
        actor_kill(&actors[1]);
        AWAIT(in_the_line(mutex, 2));
        gives_back(&actors[3], mutex);
        gives_back(first_to_say(VIGIL_OK), mutex);
        gives_back(first_to_say(VIGIL_OK), mutex); /* no holder has died */
        actors_dismiss();
    }
}

/* It has been called, or the mutex reserved for it, and is killed before it comes: the next waiter gets it. */
static void killed_after_being_called(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both) * 4; i++) {
        uint32_t mutex = both[i % 2];
        actors_start(4);
        gets(&actors[3], mutex);
        queues(&actors[0], i & 2, mutex);
        queues(&actors[1], i & 4, mutex);
        queues(&actors[2], true, mutex);
        actor_stop(&actors[0]);
        gives_back(&actors[3], mutex);
        actor_kill(&actors[0]);
        struct actor *next = first_to_say(VIGIL_OK);
        assert_true(all_silent());
        gives_back(next, mutex);
        gives_back(first_to_say(VIGIL_OK), mutex);
        actors_dismiss();
    }
}

/* The same, but it is only stopped: for a while others may pass it, and then it gets it too. */
static void stopped_after_being_called(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        actors_start(3);
        gets(&actors[2], both[i]);
        queues(&actors[0], true, both[i]);
        queues(&actors[1], true, both[i]);
        actor_stop(&actors[0]);
        gives_back(&actors[2], both[i]);
        assert_hears(&actors[1], VIGIL_OK); /* a waiter that does not come loses its turn */
        actor_continue(&actors[0]);
        gives_back(&actors[1], both[i]);
        assert_hears(&actors[0], VIGIL_OK);
        gives_back(&actors[0], both[i]);
        actors_dismiss();
    }
}

/* Mistaken identity. */

/* There is room for three: the new member takes the dead one's row. */
static void a_new_member_does_not_pass_for_the_dead_one(void **state) {
    (void)state;
    segment_end(0);
    segment_new(0, &(vigil_segment_options){.members = 3});
    *(vigil_mutex *)at(FAIR) = (vigil_mutex)VIGIL_MUTEX_FAIR;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        for (int heir = 0; heir < 2; heir++) { /* taken by the new one, or by the one that was there before */
            actors_start(2);
            gets(&actors[0], both[i]);
            actor_kill(&actors[0]);
            actor_start(&actors[0]);
            if (heir == 0) assert_int_equal(actor_does(&actors[0], unlock, WORD), VIGIL_ENOTHELD); /* it has a number */
            assert_int_equal(actor_does(&actors[heir], lock, both[i]), VIGIL_OWNER_DIED);
            assert_int_equal(actor_does(&actors[1 - heir], try_lock, both[i]), VIGIL_TIMED_OUT);
            repairs(&actors[heir], both[i]);

            /* And with a waiter in line. */
            gets(&actors[0], both[i]);
            queues(&actors[1], heir, both[i]);
            actor_kill(&actors[0]);
            actor_start(&actors[0]);
            assert_hears(&actors[1], VIGIL_OWNER_DIED);
            repairs(&actors[1], both[i]);
            actors_dismiss();
        }
    }
}

/* The death of a forked child is not its parent's death, and its life is not its parent's life. */

static void fork_without_exec(void **state) {
    (void)state;
    allow_heirs();
    actors_start(2);
    gets(&actors[0], PLAIN);
    queues(&actors[1], true, PLAIN);
    assert_int_equal(actor_does(&actors[0], fork_and_reap, 0), VIGIL_OK);
    let_pass(100 * MILLISECOND); /* a death would have been noticed by now */
    assert_true(actor_silent(&actors[1]));
    assert_int_equal(actor_does(&actors[0], fork_heir, 0), VIGIL_OK);
    actor_kill(&actors[0]);
    assert_hears(&actors[1], VIGIL_OWNER_DIED);
    repairs(&actors[1], PLAIN);
    end_heirs();
}

/* Two segments. */
static void a_lock_in_each_of_two_segments(void **state) {
    (void)state;
    segment_new(1, NULL);
    actors_start(3);
    gets(&actors[0], PLAIN);
    gets(&actors[0], OTHER + PLAIN);
    queues(&actors[1], true, PLAIN);
    queues(&actors[2], false, OTHER + PLAIN);
    actor_kill(&actors[0]);
    assert_hears(&actors[1], VIGIL_OWNER_DIED);
    assert_hears(&actors[2], VIGIL_OWNER_DIED);
    repairs(&actors[1], PLAIN);
    repairs(&actors[2], OTHER + PLAIN);

    /* Leaving one of them does not affect the other. */
    gets(&actors[1], PLAIN);
    gets(&actors[1], OTHER + PLAIN);
    queues(&actors[2], false, PLAIN);
    assert_int_equal(actor_does(&actors[1], leave_segment, OTHER), 0);
    assert_int_equal(actor_does(&actors[2], lock, OTHER + PLAIN), VIGIL_OWNER_DIED);
    assert_true(actor_silent(&actors[2]));
    repairs(&actors[2], OTHER + PLAIN);
    gives_back(&actors[1], PLAIN);
    assert_hears(&actors[2], VIGIL_OK);
    gives_back(&actors[2], PLAIN);
}

/* Private memory, in a process that has segments. */

static vigil_mutex private_mutex;

static void *unlock_it(void *mutex) {
    CHECK(vigil_mutex_unlock(mutex) == VIGIL_OK);
    return NULL;
}

static void *lock_and_unlock(void *mutex) {
    CHECK(vigil_mutex_lock(mutex) == VIGIL_OK && vigil_mutex_unlock(mutex) == VIGIL_OK);
    return NULL;
}

static void on_thread(void *(*function)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0 && pthread_join(thread, NULL) == 0);
}

static int64_t use_private_mutex(const struct order *order) {
    private_mutex = order->number ? (vigil_mutex)VIGIL_MUTEX_FAIR : (vigil_mutex)VIGIL_MUTEX_INIT;
    CHECK(vigil_mutex_lock(&private_mutex) == VIGIL_OK);
    CHECK(vigil_mutex_is_locked(&private_mutex));
    CHECK(vigil_mutex_trylock(&private_mutex) == VIGIL_TIMED_OUT);
    CHECK(vigil_mutex_lock_for(&private_mutex, MILLISECOND) == VIGIL_TIMED_OUT);
    CHECK(vigil_mutex_consistent(&private_mutex) == VIGIL_EINVAL);
    on_thread(unlock_it, &private_mutex);
    CHECK(!vigil_mutex_is_locked(&private_mutex));
    CHECK(vigil_mutex_unlock(&private_mutex) == VIGIL_ENOTHELD);
    CHECK(vigil_mutex_consistent(&private_mutex) == VIGIL_ENOTHELD);

    pthread_t waits;
    CHECK(vigil_mutex_trylock(&private_mutex) == VIGIL_OK);
    CHECK(pthread_create(&waits, NULL, lock_and_unlock, &private_mutex) == 0);
    AWAIT(vigil_waiters(&private_mutex) == 1);
    on_thread(unlock_it, &private_mutex);
    CHECK(pthread_join(waits, NULL) == 0);
    on_thread(lock_and_unlock, &private_mutex);
    return VIGIL_OK;
}

/* Locked before the process had a segment, unlocked after it, and the other way round. */
static void actor_locks_and_then_joins(void) {
    vigil_mutex before[] = {VIGIL_MUTEX_INIT, VIGIL_MUTEX_FAIR}, during[] = {VIGIL_MUTEX_INIT, VIGIL_MUTEX_FAIR};
    for (int i = 0; i < 2; i++) CHECK(vigil_mutex_lock(&before[i]) == VIGIL_OK);
    CHECK(vigil_buffer_destroy(buffers[0]) == 0);
    CHECK(vigil_segment_open_fd(&buffers[0], fds[0]) == VIGIL_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(vigil_mutex_trylock(&before[i]) == VIGIL_TIMED_OUT && vigil_mutex_unlock(&before[i]) == VIGIL_OK);
        CHECK(vigil_mutex_lock(&before[i]) == VIGIL_OK && vigil_mutex_unlock(&before[i]) == VIGIL_OK);
        CHECK(vigil_mutex_lock(&during[i]) == VIGIL_OK);
    }
    CHECK(vigil_buffer_destroy(buffers[0]) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(vigil_mutex_trylock(&during[i]) == VIGIL_TIMED_OUT && vigil_mutex_unlock(&during[i]) == VIGIL_OK);
        CHECK(vigil_mutex_lock(&during[i]) == VIGIL_OK && vigil_mutex_unlock(&during[i]) == VIGIL_OK);
    }
    say(0, VIGIL_OK);
    _exit(0);
}

static void private_mutexes_are_as_ever(void **state) {
    (void)state;
    actors_start(1);
    for (int fair = 0; fair < 2; fair++) {
        assert_int_equal(actor_does_with(&actors[0], use_private_mutex, 0, fair), VIGIL_OK);
        gets(&actors[0], PLAIN);
        assert_int_equal(actor_does_with(&actors[0], use_private_mutex, 0, fair), VIGIL_OK);
        gives_back(&actors[0], PLAIN);
    }
    actor_start_by(&actors[1], actor_locks_and_then_joins);
}

/* Held by the parent, in private memory: fork copies it, and the child may unlock its copy. */
static int64_t fork_while_holding(const struct order *order) {
    (void)order;
    private_mutex = (vigil_mutex)VIGIL_MUTEX_INIT;
    CHECK(vigil_mutex_lock(&private_mutex) == VIGIL_OK);
    pid_t child = fork();
    if (child == 0) {
        CHECK(vigil_mutex_trylock(&private_mutex) == VIGIL_TIMED_OUT);
        CHECK(vigil_mutex_unlock(&private_mutex) == VIGIL_OK);
        CHECK(vigil_mutex_trylock(&private_mutex) == VIGIL_OK && vigil_mutex_unlock(&private_mutex) == VIGIL_OK);
        _exit(0);
    }
    CHECK(exit_status_of(child) == 0);
    return vigil_mutex_unlock(&private_mutex);
}

static void a_private_mutex_across_fork(void **state) {
    (void)state;
    actors_start(1);
    assert_int_equal(actor_does(&actors[0], fork_while_holding, 0), VIGIL_OK);
}

/*
 * The actor that closes the segment has to repair a bucket, and a line there needs a guard from then on: not the actor.
 * Its keeper continues, for the other segment.
 */
static int64_t leave_a_line_to_be_guarded(const struct order *order) {
    struct lot *lot = lot_for(at(order->where));
    uint32_t nobody = lot->number + 12345;
    bucket_of(lot, key_of(lot, at(order->where)))->word = WORD_LOCKED | WORD_OCCUPIED | nobody * WORD_HOLDER;
    int64_t status = vigil_buffer_destroy(buffers[0]);
    buffers[0] = NULL;
    AWAIT(guard_due_ns() == PRIM_NEVER); /* the keeper has checked all guards */
    return status;
}

static void closing_leaves_no_guard_behind(void **state) {
    (void)state;
    segment_new(1, NULL);
    actors_start(4);
    gets(&actors[0], FAIR);
    queues(&actors[1], true, FAIR);
    queues(&actors[2], true, FAIR);
    actor_stop(&actors[1]);
    actor_stop(&actors[2]);
    gives_back(&actors[0], FAIR); /* reserved for a waiter that does not come */
    assert_int_equal(actor_does(&actors[3], leave_a_line_to_be_guarded, FAIR), VIGIL_OK);
    actor_kill(&actors[3]);
    for (int i = 1; i <= 2; i++) actor_continue(&actors[i]);
    struct actor *first = first_to_say(VIGIL_OK), *second = first == &actors[1] ? &actors[2] : &actors[1];
    gives_back(first, FAIR);
    assert_hears(second, VIGIL_OK);
    gives_back(second, FAIR);
}

#undef TEST
#define TEST(function) cmocka_unit_test_setup_teardown(function, new_locks, locks_end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_has_it_at_a_time),
        TEST(of_a_robust_one_the_end_of_a_thread_is_noticed),
        TEST(what_was_held_in_a_segment_that_has_been_left_is_let_be),
        TEST(asynchronous_requests),
        TEST(fair_is_first_come_first_served),
        TEST(conditions),
        TEST(a_condition_lies_where_its_mutex_does),
        TEST(and_nobody_waits),
        TEST(and_the_next_only_tries),
        TEST(and_others_wait),
        TEST(and_one_executes),
        TEST(and_one_executes_later),
        TEST(and_one_comes_back_from_a_condition),
        TEST(and_others_wait_for_a_condition),
        TEST(and_had_been_signalled),
        TEST(several_times),
        TEST(consistent),
        TEST(nothing_is_taken_from_the_stopped),
        TEST(the_holder_leaves),
        TEST(the_holder_leaves_and_returns),
        TEST(the_holder_goes_otherwise),
        TEST(a_place_in_line_disappears),
        TEST(killed_after_being_called),
        TEST(stopped_after_being_called),
        TEST(a_new_member_does_not_pass_for_the_dead_one),
        TEST(fork_without_exec),
        TEST(a_lock_in_each_of_two_segments),
        TEST(private_mutexes_are_as_ever),
        TEST(a_private_mutex_across_fork),
        TEST(closing_leaves_no_guard_behind),
    };
    return children_can_start_threads() ? cmocka_run_group_tests_name("shared_mutex", tests, NULL, NULL)
                                        : NO_THREADS_IN_CHILDREN;
}
