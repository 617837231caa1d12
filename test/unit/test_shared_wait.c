/* SPDX-License-Identifier: MIT */
/* One line across processes: the order of waiters, and what happens to the places and notifications of the dead. */
#include "support.h"

#include "child.h"
#include "actors.h"

#include "lot/line.h"

/* Words of the segment, in different lines. */
#define WORD      0u
#define BYSTANDER 512u

/* Acts. */

static int64_t wait_64(const struct order *order) {
    return vigil_wait64(at(order->where), 0, VIGIL_FOREVER);
}

static int64_t wait_for(const struct order *order) {
    int64_t deadline_ns = vigil_now_ns() + order->number;
    int status = vigil_wait32(at(order->where), 0, order->number);
    if (status == VIGIL_TIMED_OUT) CHECK(vigil_now_ns() >= deadline_ns);
    return status;
}

static int64_t notify_act(const struct order *order) {
    return vigil_notify(at(order->where), order->number);
}

static int64_t count_waiters(const struct order *order) {
    return vigil_waiters(at(order->where));
}

static int64_t turn_deaf(const struct order *order) {
    deaf = order->number;
    return VIGIL_OK;
}

static int64_t address_of(const struct order *order) {
    return (int64_t)(uintptr_t)at(order->where);
}

/* Directing the actors. */

static bool waiting(uint32_t where, int64_t count) {
    return vigil_waiters(at(where)) == count;
}

/* Joins the line behind those already in it: returns once it is there. */
static void joins(struct actor *actor, bool blocking, uint32_t where) {
    int64_t before = vigil_waiters(at(where));
    if (blocking) actor_begin(actor, wait_32, where);
    else assert_int_equal(actor_does(actor, wait_async, where), VIGIL_PENDING);
    AWAIT(waiting(where, before + 1));
}

static void joins_in_thread(struct actor *actor, uint32_t where, uint32_t tag) {
    int64_t before = vigil_waiters(at(where));
    actor_order(actor, &(struct order){.act = wait_32, .where = where, .tag = tag, .in_thread = true});
    AWAIT(waiting(where, before + 1));
}

static void notify(uint32_t where, int64_t count, int64_t expected) {
    assert_int_equal(vigil_notify(at(where), count), expected);
}

/* Deaths are noticed by waiting processes. This one waits elsewhere. */
static void bystander_starts(struct actor *actor) {
    actor_start(actor);
    joins(actor, true, BYSTANDER);
}

static void bystander_ends(struct actor *actor) {
    notify(BYSTANDER, 1, 1);
    assert_hears(actor, VIGIL_OK);
}

/* Alive. */

static void notified_by_another_process(void **state) {
    (void)state;
    actors_start(2);
    for (int blocking = 0; blocking < 2; blocking++) {
        joins(&actors[0], blocking, WORD);
        assert_true(actor_silent(&actors[0]));
        notify(WORD, 1, 1); /* by a process that has never waited */
        assert_hears(&actors[0], VIGIL_OK);
        joins(&actors[0], blocking, WORD);
        assert_int_equal(actor_does_with(&actors[1], notify_act, WORD, VIGIL_ALL), 1);
        assert_hears(&actors[0], VIGIL_OK);
    }
    notify(WORD, VIGIL_ALL, 0);
}

/* Thousands of times, back and forth: one lost wake-up hangs. */
#define ROUNDS 3000

static int64_t play_ping_pong(const struct order *order) {
    uint32_t *ball = at(order->where), mine = (uint32_t)order->number;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t seen; (seen = LOAD(*ball)) % 2 != mine;) {
            int status = vigil_wait32(ball, seen, VIGIL_FOREVER);
            CHECK(status == VIGIL_OK || status == VIGIL_NOT_EQUAL);
        }
        __atomic_fetch_add(ball, 1, __ATOMIC_SEQ_CST);
        CHECK(vigil_notify(ball, 1) >= 0);
    }
    return VIGIL_OK;
}

static void ping_pong(void **state) {
    (void)state;
    actors_start(2);
    for (int i = 0; i < 2; i++)
        actor_order(&actors[i], &(struct order){.act = play_ping_pong, .where = WORD, .number = i});
    for (int i = 0; i < 2; i++) assert_hears(&actors[i], VIGIL_OK);
    assert_int_equal(*(uint32_t *)at(WORD), 2 * ROUNDS);
}

static void another_value_is_seen(void **state) {
    (void)state;
    actors_start(1);
    __atomic_store_n((uint32_t *)at(WORD), 1, __ATOMIC_SEQ_CST);
    assert_int_equal(actor_does(&actors[0], wait_32, WORD), VIGIL_NOT_EQUAL);
    assert_int_equal(actor_does(&actors[0], wait_async, WORD), VIGIL_NOT_EQUAL);
    assert_true(waiting(WORD, 0));
}

/* Blocking and asynchronous, of three processes, with two threads in one of them. */
static void first_come_first_served(void **state) {
    (void)state;
    actors_start(3);
    const struct {
        int actor;
        uint32_t tag;
        bool blocking;
    } comers[] = {{0, 1, false}, {1, 2, true},  {2, 3, false}, {0, 4, true}, {2, 5, false},
                  {2, 6, true},  {0, 7, false}, {1, 8, false}, {0, 9, true}};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(comers); i++) {
            struct actor *actor = &actors[comers[i].actor];
            if (comers[i].blocking) joins_in_thread(actor, WORD, comers[i].tag);
            else assert_int_equal(actor_does_tagged(actor, wait_async, WORD, comers[i].tag), VIGIL_PENDING);
        }
        for (size_t i = 0; i < COUNT_OF(comers); i++) {
            uint32_t tag;
            notify(WORD, 1, 1);
            assert_int_equal(actor_hears_tagged(&actors[comers[i].actor], &tag), VIGIL_OK);
            assert_int_equal(tag, comers[i].tag);
            assert_true(waiting(WORD, (int64_t)(COUNT_OF(comers) - i - 1)));
        }
    }
}

static void counts(void **state) {
    (void)state;
    actors_start(5);
    for (int i = 0; i < 5; i++) joins(&actors[i], i % 2, WORD);
    assert_int_equal(actor_does(&actors[0], count_waiters, WORD), 5);
    notify(WORD, 0, 0);
    notify(WORD, 2, 2);
    for (int i = 0; i < 2; i++) assert_hears(&actors[i], VIGIL_OK);
    assert_true(waiting(WORD, 3));
    notify(WORD, 1, 1);
    assert_hears(&actors[2], VIGIL_OK);
    notify(WORD, VIGIL_ALL, 2);
    for (int i = 3; i < 5; i++) assert_hears(&actors[i], VIGIL_OK);
    notify(WORD, VIGIL_ALL, 0);
}

static void widths_share_a_line(void **state) {
    (void)state;
    actors_start(3);
    actor_begin(&actors[0], wait_64, WORD);
    AWAIT(waiting(WORD, 1));
    joins(&actors[1], true, WORD);
    actor_begin(&actors[2], wait_64, WORD);
    AWAIT(waiting(WORD, 3));
    notify(WORD + 4, VIGIL_ALL, 0); /* the wide word's other half is another address */
    for (int i = 0; i < 3; i++) {
        notify(WORD, 1, 1);
        assert_hears(&actors[i], VIGIL_OK);
    }
    ((uint32_t *)at(WORD))[1] = 1;
    assert_int_equal(actor_does(&actors[0], wait_64, WORD), VIGIL_NOT_EQUAL);
}

static void deadlines(void **state) {
    (void)state;
    actors_start(3);
    assert_int_equal(actor_does_with(&actors[0], wait_for, WORD, 0), VIGIL_TIMED_OUT);
    joins(&actors[1], true, WORD);
    assert_int_equal(actor_does_with(&actors[0], wait_for, WORD, 20 * MILLISECOND), VIGIL_TIMED_OUT);
    assert_int_equal(actor_does_with(&actors[0], wait_async, WORD, 20 * MILLISECOND), VIGIL_PENDING);
    joins(&actors[2], false, WORD);
    assert_hears(&actors[0], VIGIL_TIMED_OUT); /* from the middle of the line */
    assert_true(waiting(WORD, 2));
    actor_order(&actors[0], &(struct order){.act = wait_for, .where = WORD, .number = 3600 * SECOND});
    AWAIT(waiting(WORD, 3));
    notify(WORD, VIGIL_ALL, 3);
    for (int i = 0; i < 3; i++) assert_hears(&actors[i], VIGIL_OK);
}

static void cancelling(void **state) {
    (void)state;
    actors_start(2);
    for (uint32_t tag = 1; tag <= 3; tag++)
        assert_int_equal(actor_does_tagged(&actors[0], wait_async, WORD, tag), VIGIL_PENDING);
    joins(&actors[1], true, WORD);
    assert_int_equal(actor_does_tagged(&actors[0], cancel_op, WORD, 1), VIGIL_OK);
    assert_int_equal(actor_does_tagged(&actors[0], cancel_op, WORD, 1), VIGIL_EIDLE);
    assert_true(waiting(WORD, 3));

    assert_int_equal(actor_does_with(&actors[0], turn_deaf, 0, 1), VIGIL_OK);
    notify(WORD, 1, 1);
    assert_int_equal(actor_does_tagged(&actors[0], cancel_op, WORD, 3), VIGIL_OK);
    assert_int_equal(actor_does_tagged(&actors[0], cancel_op, WORD, 2), VIGIL_ETOOLATE);
    assert_true(actor_silent(&actors[0]));
    assert_int_equal(actor_does_with(&actors[0], turn_deaf, 0, 0), VIGIL_OK);
    uint32_t tag;
    assert_int_equal(actor_hears_tagged(&actors[0], &tag), VIGIL_OK);
    assert_int_equal(tag, 2);
    notify(WORD, VIGIL_ALL, 1);
    assert_hears(&actors[1], VIGIL_OK);
}

/* The end of its agent returns all places. */
static int64_t end_agent_act(const struct order *order) {
    (void)order;
    CHECK(vigil_agent_destroy(actors_agent) == VIGIL_OK);
    CHECK(vigil_agent_create(&actors_agent, 0) == VIGIL_OK);
    return 100;
}

static void agents_end(void **state) {
    (void)state;
    actors_start(2);
    for (uint32_t tag = 1; tag <= 2; tag++)
        assert_int_equal(actor_does_tagged(&actors[0], wait_async, WORD, tag), VIGIL_PENDING);
    joins(&actors[1], true, WORD);
    actor_begin(&actors[0], end_agent_act, 0);
    assert_hears(&actors[0], VIGIL_CANCELLED);
    assert_hears(&actors[0], VIGIL_CANCELLED);
    assert_hears(&actors[0], 100);
    notify(WORD, VIGIL_ALL, 1);
    assert_hears(&actors[1], VIGIL_OK);
}

static void mapped_at_different_addresses(void **state) {
    (void)state;
    actors_avoid = at(0);
    actors_start(4);
    actors_avoid = NULL;
    for (int i = 0; i < 4; i++) assert_int_not_equal(actor_does(&actors[i], address_of, 0), (uintptr_t)at(0));
    for (int i = 0; i < 4; i++) joins(&actors[i], i % 2, BYSTANDER + 4);
    for (int i = 0; i < 4; i++) {
        notify(BYSTANDER + 4, 1, 1);
        assert_hears(&actors[i], VIGIL_OK);
    }
}

static void two_segments(void **state) {
    (void)state;
    segment_new(1, NULL);
    actors_start(2);
    joins(&actors[0], true, WORD);
    joins(&actors[1], true, OTHER + WORD);
    notify(OTHER + WORD, VIGIL_ALL, 1);
    assert_hears(&actors[1], VIGIL_OK);
    assert_int_equal(actor_does_tagged(&actors[1], wait_async, WORD, 1), VIGIL_PENDING);
    assert_int_equal(actor_does_tagged(&actors[1], wait_async, OTHER + WORD, 2), VIGIL_PENDING);
    notify(WORD, VIGIL_ALL, 2);
    assert_hears(&actors[0], VIGIL_OK);
    uint32_t tag;
    assert_int_equal(actor_hears_tagged(&actors[1], &tag), VIGIL_OK);
    assert_int_equal(tag, 1);
    notify(OTHER + WORD, VIGIL_ALL, 1);
    assert_int_equal(actor_hears_tagged(&actors[1], &tag), VIGIL_OK);
    assert_int_equal(tag, 2);
}

/* Limits, and leaving. */

#define PLACES     40
#define PLACES_OPS 4000
static vigil_op place_ops[PLACES_OPS];
static int64_t places_given_back;

static void place_given_back(vigil_op *op, int status) {
    (void)op;
    CHECK(status == VIGIL_OK);
    places_given_back++;
}

static int64_t count_given_back(const struct order *order) {
    (void)order;
    return places_given_back;
}

/* Starts as many waits as there is room for, and returns their number. */
static int64_t take_all_places(const struct order *order) {
    int64_t taken = 0;
    for (int status; taken < PLACES_OPS; taken++) {
        status =
            vigil_wait32_async(actors_agent, &place_ops[taken], at(order->where), 0, VIGIL_FOREVER, place_given_back);
        if (status == VIGIL_ELIMIT) break;
        CHECK(status == VIGIL_PENDING);
    }
    CHECK(vigil_wait32(at(order->where), 0, VIGIL_FOREVER) == VIGIL_ELIMIT);
    CHECK(vigil_wait32(at(order->where), 1, VIGIL_FOREVER) == VIGIL_NOT_EQUAL);
    return taken;
}

static int64_t cancel_places(const struct order *order) {
    for (int64_t i = 0; i < order->number; i++) CHECK(vigil_cancel(&place_ops[i]) == VIGIL_OK);
    return VIGIL_OK;
}

static void places_run_out_and_come_back(void **state) {
    (void)state;
    segment_end(0);
    segment_new(0, &(vigil_segment_options){.waiters = PLACES});
    actors_start(2);
    int64_t places = actor_does(&actors[0], take_all_places, WORD);
    assert_in_range(places, PLACES, PLACES_OPS - 1);
    assert_int_equal(actor_does(&actors[1], wait_async, WORD), VIGIL_ELIMIT); /* all processes share one limit */
    assert_int_equal(actor_does(&actors[1], wait_32, WORD), VIGIL_ELIMIT);

    notify(WORD, 1, 1); /* one place becomes free once its owner has run */
    AWAIT(actor_does(&actors[1], wait_async, WORD) == VIGIL_PENDING);
    assert_int_equal(actor_does(&actors[1], cancel_op, WORD), VIGIL_OK);
    notify(WORD, VIGIL_ALL, places - 1);
    AWAIT(actor_does(&actors[0], count_given_back, 0) == places);
    assert_int_equal(actor_does(&actors[1], take_all_places, WORD), places);
    assert_true(waiting(WORD, places));
    assert_int_equal(actor_does_with(&actors[1], cancel_places, WORD, places), VIGIL_OK);
    assert_int_equal(actor_does(&actors[0], take_all_places, WORD), places);

    /* A dead process's places come back as well: to a process that waits, or tries to. */
    actor_kill(&actors[0]);
    AWAIT(actor_does(&actors[1], wait_async, WORD) == VIGIL_PENDING);
    AWAIT(waiting(WORD, 1));
    assert_int_equal(actor_does(&actors[1], cancel_op, WORD), VIGIL_OK);
    assert_int_equal(actor_does(&actors[1], take_all_places, WORD), places);
    assert_int_equal(actor_does_with(&actors[1], cancel_places, WORD, places), VIGIL_OK);
}

static void busy_while_something_waits(void **state) {
    (void)state;
    actors_start(1);
    assert_int_equal(actor_does(&actors[0], wait_async, WORD), VIGIL_PENDING);
    assert_int_equal(actor_does(&actors[0], leave_segment, 0), VIGIL_EBUSY);
    assert_true(waiting(WORD, 1)); /* nothing has happened */
    notify(WORD, 1, 1);
    assert_hears(&actors[0], VIGIL_OK);
    joins_in_thread(&actors[0], WORD, 1);
    assert_int_equal(actor_does(&actors[0], leave_segment, 0), VIGIL_EBUSY);
    notify(WORD, 1, 1);
    assert_hears(&actors[0], VIGIL_OK);
    assert_int_equal(actor_does(&actors[0], leave_segment, 0), 0);
}

/* Dead. */

static void the_place_of_the_killed_disappears(void **state) {
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        for (int killed = 0; killed < 4; killed++) {
            actors_start(4);
            bystander_starts(&actors[4]);
            for (int i = 0; i < 4; i++) joins(&actors[i], i == killed ? blocking : i % 2, WORD);
            actor_kill(&actors[killed]);
            AWAIT(waiting(WORD, 3));
            for (int i = 0; i < 4; i++) {
                if (i == killed) continue;
                notify(WORD, 1, 1);
                assert_hears(&actors[i], VIGIL_OK);
                actor_dismiss(&actors[i]);
            }
            notify(WORD, VIGIL_ALL, 0);
            bystander_ends(&actors[4]);
            actor_dismiss(&actors[4]);
        }
    }
}

/* Several deaths at once, in several lines. */
static void a_massacre(void **state) {
    (void)state;
    enum { LINES = 20 };
    actors_start(5);
    for (uint32_t line = 0; line < LINES; line++) {
        for (int i = 0; i < 5; i++) {
            assert_int_equal(actor_does_tagged(&actors[i], wait_async, line * 8, line), VIGIL_PENDING);
        }
    }
    actor_kill(&actors[0]);
    actor_kill(&actors[2]);
    actor_kill(&actors[3]);
    for (uint32_t line = 0; line < LINES; line++) {
        AWAIT(waiting(line * 8, 2));
        for (int i = 1; i < 5; i += 3) {
            uint32_t tag;
            notify(line * 8, 1, 1);
            assert_int_equal(actor_hears_tagged(&actors[i], &tag), VIGIL_OK);
            assert_int_equal(tag, line);
        }
    }
}

/* Notified while it was stopped, and killed before it returned: the next in line gets the notification. */
static void a_notification_of_the_killed_is_passed_on(void **state) {
    (void)state;
    for (int ways = 0; ways < 4; ways++) {
        actors_start(3);
        joins(&actors[0], ways & 1, WORD);
        joins(&actors[1], ways & 2, WORD);
        joins(&actors[2], true, WORD);
        actor_stop(&actors[0]);
        notify(WORD, 1, 1);
        assert_true(waiting(WORD, 2));
        assert_true(actor_silent(&actors[1]));
        actor_kill(&actors[0]);
        assert_hears(&actors[1], VIGIL_OK);
        assert_true(waiting(WORD, 1)); /* just one, just once */
        assert_true(actor_silent(&actors[2]));
        notify(WORD, VIGIL_ALL, 1);
        assert_hears(&actors[2], VIGIL_OK);
        for (int i = 1; i < 3; i++) actor_dismiss(&actors[i]);
    }
}

/* The event loop was killed before it got to it. Whether another process sent it or its own, it has not been used. */
static void a_notification_that_no_loop_has_seen_is_passed_on(void **state) {
    (void)state;
    for (int by_itself = 0; by_itself < 2; by_itself++) {
        actors_start(2);
        assert_int_equal(actor_does_with(&actors[0], turn_deaf, 0, 1), VIGIL_OK);
        joins(&actors[0], false, WORD);
        joins(&actors[1], true, WORD);
        if (by_itself) assert_int_equal(actor_does_with(&actors[0], notify_act, WORD, 1), 1);
        else notify(WORD, 1, 1);
        let_pass(50 * MILLISECOND); /* so that it is under way, inside that process */
        assert_true(actor_silent(&actors[1]));
        actor_kill(&actors[0]);
        assert_hears(&actors[1], VIGIL_OK);
        actors_dismiss();
    }
}

static void all_of_its_notifications_are_passed_on(void **state) {
    (void)state;
    enum { GIVEN = 5 };
    actors_start(3);
    for (uint32_t tag = 0; tag < GIVEN; tag++)
        assert_int_equal(actor_does_tagged(&actors[0], wait_async, WORD, tag), VIGIL_PENDING);
    for (uint32_t tag = 0; tag < GIVEN; tag++)
        assert_int_equal(actor_does_tagged(&actors[1], wait_async, WORD, tag), VIGIL_PENDING);
    joins(&actors[2], true, WORD);
    actor_stop(&actors[0]);
    notify(WORD, GIVEN, GIVEN);
    actor_kill(&actors[0]);
    for (uint32_t i = 0; i < GIVEN; i++) {
        uint32_t tag;
        assert_int_equal(actor_hears_tagged(&actors[1], &tag), VIGIL_OK);
        assert_int_equal(tag, i);
    }
    assert_true(waiting(WORD, 1));
    assert_true(actor_silent(&actors[2]));
    notify(WORD, VIGIL_ALL, 1);
    assert_hears(&actors[2], VIGIL_OK);
}

/* It is passed on until a living process receives it. */
static void passed_on_from_the_dead_to_the_dead(void **state) {
    (void)state;
    actors_start(4);
    for (int i = 0; i < 4; i++) joins(&actors[i], i % 2, WORD);
    for (int i = 0; i < 3; i++) actor_stop(&actors[i]);
    notify(WORD, 1, 1);
    for (int i = 0; i < 3; i++) actor_kill(&actors[i]);
    assert_hears(&actors[3], VIGIL_OK);
    AWAIT(waiting(WORD, 0));
}

static void the_stopped_keep_their_place(void **state) {
    (void)state;
    for (int blocking = 0; blocking < 2; blocking++) {
        actors_start(2);
        joins(&actors[0], blocking, WORD);
        joins(&actors[1], true, WORD);
        actor_stop(&actors[0]);
        let_pass(100 * MILLISECOND); /* a death would have been noticed by now */
        assert_true(waiting(WORD, 2));
        notify(WORD, 1, 1);
        let_pass(100 * MILLISECOND);
        assert_true(waiting(WORD, 1));
        assert_true(actor_silent(&actors[1]));
        actor_continue(&actors[0]);
        assert_hears(&actors[0], VIGIL_OK);
        notify(WORD, 1, 1);
        assert_hears(&actors[1], VIGIL_OK);
        for (int i = 0; i < 2; i++) actor_dismiss(&actors[i]);
    }
}

/* Its place disappears, in whichever way it ends. */
static void other_ways_to_go(void **state) {
    (void)state;
    act *const ways[] = {become_another_program, just_exit};
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        actors_start(1);
        bystander_starts(&actors[1]);
        joins(&actors[0], false, WORD);
        joins_in_thread(&actors[0], WORD, 1);
        actor_begin(&actors[0], ways[way], 0);
        AWAIT(waiting(WORD, 0));
        actor_dismiss(&actors[0]);
        bystander_ends(&actors[1]);
        actor_dismiss(&actors[1]);
    }
}

/* Fork without exec. */

static void the_death_of_a_forked_child_is_not_its_parents(void **state) {
    (void)state;
    actors_start(1);
    bystander_starts(&actors[1]);
    joins(&actors[0], false, WORD);
    assert_int_equal(actor_does(&actors[0], fork_and_reap, 0), VIGIL_OK);
    joins_in_thread(&actors[0], WORD, 1);
    assert_int_equal(actor_does(&actors[0], fork_and_reap, 0), VIGIL_OK);
    let_pass(100 * MILLISECOND); /* a death would have been noticed by now */
    assert_true(waiting(WORD, 2));
    notify(WORD, VIGIL_ALL, 2);
    assert_hears(&actors[0], VIGIL_OK);
    assert_hears(&actors[0], VIGIL_OK);
    bystander_ends(&actors[1]);
}

static void a_forked_child_does_not_keep_its_parent_alive(void **state) {
    (void)state;
    allow_heirs();
    actors_start(1);
    bystander_starts(&actors[1]);
    joins(&actors[0], false, WORD);
    assert_int_equal(actor_does(&actors[0], fork_heir, 0), VIGIL_OK);
    actor_kill(&actors[0]);
    AWAIT(waiting(WORD, 0));
    bystander_ends(&actors[1]);
    end_heirs();
}

/* Another pid namespace. */

#define NUMBER_OF_INNER 1u /* the tag of that result */

static bool enter_pid_namespace(void) {
    return unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0;
}

/* The first process of a pid namespace, where its number is 1. Its parent reports its number outside. */
static void actor_contained(void) {
    if (!enter_pid_namespace()) {
        say(NUMBER_OF_INNER, 0);
        _exit(0);
    }
    pid_t inner = fork();
    CHECK(inner >= 0);
    if (inner == 0) {
        alarm(60);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK(getpid() == 1);
        actor_main();
    }
    say(NUMBER_OF_INNER, inner);
    close(director);
    _exit(waitpid(inner, NULL, 0) == inner ? 0 : 1);
}

/* Starts the actor in a pid namespace of its own. Returns its pid as seen from here; 0: there are no namespaces. */
static pid_t contained_start(struct actor *actor) {
    int64_t inner = 0;
    actor_fork(actor, actor_contained);
    for (int answers = 0; answers < 2; answers++) {
        uint32_t tag;
        int64_t status = actor_hears_tagged(actor, &tag);
        if (tag != NUMBER_OF_INNER) assert_int_equal(status, VIGIL_OK);
        else if ((inner = status) == 0) break;
    }
    return (pid_t)inner;
}

static void in_another_pid_namespace(void **state) {
    (void)state;
    pid_t inner = contained_start(&actors[0]);
    if (!inner) {
        fprintf(stderr, "left out: no pid namespaces here\n");
        return;
    }
    actors_start_from(1, 3);
    for (int i = 0; i < 3; i++) joins(&actors[i], i != 1, WORD);
    notify(WORD, 1, 1);
    assert_hears(&actors[0], VIGIL_OK);
    assert_int_equal(actor_does_with(&actors[0], notify_act, WORD, 1), 1);
    assert_hears(&actors[1], VIGIL_OK);
    joins(&actors[0], true, WORD);
    joins(&actors[1], true, WORD);
    let_pass(100 * MILLISECOND); /* it lives, although no process out here has the number by which it knows itself */
    assert_true(waiting(WORD, 3));
    assert_int_equal(kill(inner, SIGKILL), 0);
    AWAIT(waiting(WORD, 2));
    for (int i = 2; i > 0; i--) {
        notify(WORD, 1, 1);
        assert_hears(&actors[i], VIGIL_OK);
    }
}

/* Its pulse word is overwritten, so that the pulse does not end with the process. */
static int64_t die_in_a_bucket(const struct order *order) {
    struct lot *lot = lot_for(at(order->where));
    AWAIT(prim_load_relaxed(&lot->share->self->pulse.word)); /* its keeper has begun */
    prim_store_relaxed(&lot->share->self->pulse.word, 0x80000001u);
    bucket_find_and_lock(lot, key_of(lot, at(order->where)));
    raise(SIGKILL);
    return VIGIL_OK;
}

static int64_t notify_one(const struct order *order) {
    return vigil_notify(at(order->where), 1);
}

static void a_bucket_is_taken_from_the_dead_though_their_pulse_beats(void **state) {
    (void)state;
    actors_start(2);
    actor_begin(&actors[0], die_in_a_bucket, 0);
    assert_int_equal(waitpid(actors[0].pid, NULL, 0), actors[0].pid);
    actor_gone(&actors[0]);
    assert_int_equal(actor_does(&actors[1], notify_one, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(notified_by_another_process),
        TEST(ping_pong),
        TEST(another_value_is_seen),
        TEST(first_come_first_served),
        TEST(counts),
        TEST(widths_share_a_line),
        TEST(deadlines),
        TEST(cancelling),
        TEST(agents_end),
        TEST(mapped_at_different_addresses),
        TEST(two_segments),
        TEST(places_run_out_and_come_back),
        TEST(busy_while_something_waits),
        TEST(the_place_of_the_killed_disappears),
        TEST(a_massacre),
        TEST(a_notification_of_the_killed_is_passed_on),
        TEST(a_notification_that_no_loop_has_seen_is_passed_on),
        TEST(all_of_its_notifications_are_passed_on),
        TEST(passed_on_from_the_dead_to_the_dead),
        TEST(the_stopped_keep_their_place),
        TEST(other_ways_to_go),
        TEST(the_death_of_a_forked_child_is_not_its_parents),
        TEST(a_forked_child_does_not_keep_its_parent_alive),
        TEST(in_another_pid_namespace),
        TEST(a_bucket_is_taken_from_the_dead_though_their_pulse_beats),
    };
    return children_can_start_threads() ? cmocka_run_group_tests_name("shared_wait", tests, NULL, NULL)
                                        : NO_THREADS_IN_CHILDREN;
}
