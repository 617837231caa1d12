/* SPDX-License-Identifier: MIT */
/* The barrier in a segment: rounds of several processes, threads and event loops, some of which are killed. */
#include "support.h"

#include "child.h"

#include "lot/shared.h"
#include "vigil/barrier.h"

#define ACTORS 3
#define ROUNDS 2000
#define KILLS  100

struct common {
    vigil_barrier barrier;
    unsigned passed[ACTORS + 2], last_ones;    /* not atomic: the barrier makes that correct */
    unsigned counted_ok, counted_last, rounds; /* atomic */
    bool stop;                                 /* atomic */
};

#include "segment_fixture.h"

static void barrier_for(uint32_t parties) {
    common->barrier = (vigil_barrier)VIGIL_BARRIER_INIT(parties);
}

static int64_t in_line_now(void) {
    return vigil_waiters(&common->barrier);
}

static int arrive(int64_t timeout_ns) {
    return vigil_barrier_wait_for(&common->barrier, timeout_ns);
}

static int ask(vigil_agent *agent, struct requester *requester, int64_t timeout_ns) {
    *requester = (struct requester){0};
    return vigil_barrier_wait_async(agent, &requester->request, &common->barrier, timeout_ns, answer);
}

/* A thread of the test that arrives: returns once it is in line. */
struct arriver {
    pthread_t thread;
    int status;
};

static void *arriver_main(void *argument) {
    struct arriver *me = argument;
    me->status = arrive(VIGIL_FOREVER);
    return NULL;
}

static void arriver_start(struct arriver *arriver) {
    int64_t before = in_line_now();
    assert_int_equal(pthread_create(&arriver->thread, NULL, arriver_main, arriver), 0);
    AWAIT(in_line_now() > before);
}

static int arriver_join(struct arriver *arriver) {
    assert_int_equal(pthread_join(arriver->thread, NULL), 0);
    return arriver->status;
}

/* Mates that arrive once, and expect that result. */

static void expect_as_thread(uintptr_t status) {
    CHECK(arrive(VIGIL_FOREVER) == (int)status);
}

static void expect_as_loop(uintptr_t status) {
    struct requester requester;
    vigil_agent *agent;
    CHECK(vigil_agent_create(&agent, 0) == VIGIL_OK);
    int answered = ask(agent, &requester, VIGIL_FOREVER);
    if (answered == VIGIL_PENDING) answered = answer_of(agent, &requester);
    CHECK(answered == (int)status);
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
}

/* Returns once it is in line. */
static pid_t actor_arrives(void (*part)(uintptr_t)) {
    int64_t before = in_line_now();
    pid_t actor = actor_start(part, VIGIL_OK);
    AWAIT(in_line_now() > before);
    return actor;
}

static void (*const parts[])(uintptr_t) = {expect_as_thread, expect_as_loop};

/* Meeting. */

static void processes_meet(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        barrier_for(2);
        pid_t actor = actor_arrives(parts[i]);
        assert_int_equal(arrive(VIGIL_FOREVER), VIGIL_LAST);
        actor_ends(actor);
        assert_int_equal(in_line_now(), 0);
    }
}

static void the_last_is_told_so_wherever_it_is(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(0);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct arriver arriver;
        struct requester requester;
        barrier_for(3);
        arriver_start(&arriver);
        assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_PENDING);
        actor_ends(actor_start(parts[i], VIGIL_LAST));
        assert_int_equal(arriver_join(&arriver), VIGIL_OK);
        assert_int_equal(answer_of(agent, &requester), VIGIL_OK);
    }
    end_agent(agent);
}

static void one_alone_is_always_the_last(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(VIGIL_AGENT_MAY_NOT_BLOCK);
    struct requester requester;
    barrier_for(1);
    assert_int_equal(arrive(VIGIL_FOREVER), VIGIL_LAST);
    assert_int_equal(arrive(0), VIGIL_LAST);
    assert_int_equal(ask(agent, &requester, 0), VIGIL_LAST);
    barrier_for(2);
    assert_int_equal(arrive(0), VIGIL_EMAYNOTBLOCK);
    assert_int_equal(ask(agent, &requester, 0), VIGIL_TIMED_OUT);
    assert_int_equal(in_line_now(), 0);
    end_agent(agent);
    assert_int_equal(arrive(0), VIGIL_TIMED_OUT);
}

/* Rounds. Each party passes the barrier twice per round: all check what all did, and no party goes on before that. */

struct party {
    vigil_agent *agent; /* null: it blocks */
    unsigned number, wrong;
    struct requester requester;
};

static int pass(struct party *party) {
    if (!party->agent) return arrive(VIGIL_FOREVER);
    int status = ask(party->agent, &party->requester, VIGIL_FOREVER);
    return status == VIGIL_PENDING ? answer_of(party->agent, &party->requester) : status;
}

static void pass_all_rounds(struct party *party) {
    for (unsigned round = 1; round <= ROUNDS; round++) {
        common->passed[party->number]++;
        int status = pass(party);
        if (status == VIGIL_LAST) common->last_ones++; /* no other party, until all have passed the next one */
        party->wrong += status != VIGIL_OK && status != VIGIL_LAST;
        for (unsigned i = 0; i < ACTORS + 2; i++) party->wrong += common->passed[i] != round;
        status = pass(party);
        party->wrong += status != VIGIL_OK && status != VIGIL_LAST;
        party->wrong += common->last_ones != round;
    }
}

static void actor_passes(uintptr_t number) {
    struct party party = {.number = (unsigned)number};
    if (number % 2) CHECK(vigil_agent_create(&party.agent, 0) == VIGIL_OK);
    pass_all_rounds(&party);
    CHECK(!party.wrong);
    CHECK(!party.agent || vigil_agent_destroy(party.agent) == VIGIL_OK);
}

static void *thread_passes(void *party) {
    pass_all_rounds(party);
    return NULL;
}

static void rounds_of_threads_and_loops_of_several_processes(void **state) {
    (void)state;
    struct party loop = {.agent = new_agent(0), .number = ACTORS}, thread = {.number = ACTORS + 1};
    pid_t actors[ACTORS];
    pthread_t other;
    barrier_for(ACTORS + 2);
    for (uintptr_t i = 0; i < ACTORS; i++) actors[i] = actor_start(actor_passes, i);
    assert_int_equal(pthread_create(&other, NULL, thread_passes, &thread), 0);
    pass_all_rounds(&loop);
    assert_int_equal(pthread_join(other, NULL), 0);
    for (size_t i = 0; i < ACTORS; i++) actor_ends(actors[i]);
    assert_int_equal(loop.wrong, 0);
    assert_int_equal(thread.wrong, 0);
    assert_int_equal(common->last_ones, ROUNDS);
    end_agent(loop.agent);
}

/*
 * More arrivals than parties, with deadlines that pass at about that time: each round has two parties, one of them
 * last.
 */
static void arrive_in_haste(uintptr_t seed) {
    uint64_t random = seed + 1;
    while (!LOAD(common->stop)) {
        int status = arrive((int64_t)(random_next(&random) % 50) * MICROSECOND);
        CHECK(status == VIGIL_OK || status == VIGIL_LAST || status == VIGIL_TIMED_OUT);
        if (status == VIGIL_OK) __atomic_add_fetch(&common->counted_ok, 1, __ATOMIC_RELAXED);
        if (status == VIGIL_LAST) __atomic_add_fetch(&common->counted_last, 1, __ATOMIC_RELAXED);
    }
}

static void a_round_has_as_many_as_there_are_parties(void **state) {
    (void)state;
    pid_t actors[ACTORS];
    barrier_for(2);
    for (uintptr_t i = 0; i < ACTORS; i++) actors[i] = actor_start(arrive_in_haste, i);
    AWAIT(LOAD(common->counted_last) >= ROUNDS);
    STORE(common->stop, true);
    for (size_t i = 0; i < ACTORS; i++) actor_ends(actors[i]);
    assert_int_equal(common->counted_ok, common->counted_last);
    assert_int_equal(in_line_now(), 0);
}

/* Arrivals taken back. */

static void a_thread_takes_its_arrival_back(uintptr_t argument) {
    (void)argument;
    CHECK(arrive(MILLISECOND) == VIGIL_TIMED_OUT);
}

static void a_loop_takes_its_arrivals_back(uintptr_t argument) {
    (void)argument;
    struct requester timed, cancelled, ended;
    vigil_agent *agent;
    CHECK(vigil_agent_create(&agent, 0) == VIGIL_OK);
    CHECK(ask(agent, &timed, MILLISECOND) == VIGIL_PENDING);
    CHECK(answer_of(agent, &timed) == VIGIL_TIMED_OUT);
    CHECK(ask(agent, &cancelled, VIGIL_FOREVER) == VIGIL_PENDING);
    CHECK(vigil_barrier_wait_async(agent, &cancelled.request, &common->barrier, 1, answer) == VIGIL_EINUSE);
    CHECK(vigil_cancel(&cancelled.request.op) == VIGIL_OK);
    CHECK(cancelled.calls == 0);
    CHECK(ask(agent, &ended, VIGIL_FOREVER) == VIGIL_PENDING);
    CHECK(in_line_now() == 2); /* the parent's and this one */
    CHECK(vigil_agent_destroy(agent) == VIGIL_OK);
    CHECK(ended.calls == 1 && ended.status == VIGIL_CANCELLED);
}

static void an_arrival_is_taken_back(void **state) {
    (void)state;
    struct arriver arriver, another;
    barrier_for(3);
    arriver_start(&arriver);
    actor_ends(actor_start(a_thread_takes_its_arrival_back, 0));
    actor_ends(actor_start(a_loop_takes_its_arrivals_back, 0));
    assert_int_equal(in_line_now(), 1);
    assert_int_equal(arrive(0), VIGIL_TIMED_OUT);
    arriver_start(&another);
    assert_int_equal(arrive(0), VIGIL_LAST);
    assert_int_equal(arriver_join(&arriver), VIGIL_OK);
    assert_int_equal(arriver_join(&another), VIGIL_OK);
}

static void cancel_may_come_too_late(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(0);
    struct requester requester;
    barrier_for(2);
    assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_PENDING);
    actor_ends(actor_start(expect_as_thread, VIGIL_LAST));
    assert_int_equal(vigil_cancel(&requester.request.op), VIGIL_ETOOLATE);
    assert_int_equal(answer_of(agent, &requester), VIGIL_OK);
    end_agent(agent);
}

static void forgetting_cancels_all(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(0);
    struct arriver arriver;
    struct requester requester;
    barrier_for(3);
    arriver_start(&arriver);
    assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_PENDING);
    assert_int_equal(vigil_forget(common, sizeof *common), 2);
    assert_int_equal(arriver_join(&arriver), VIGIL_CANCELLED);
    assert_int_equal(answer_of(agent, &requester), VIGIL_CANCELLED);
    end_agent(agent);
}

/* A party in line needs one of the waiters; the last party does not. */
static void the_last_needs_no_place_in_line(void **state) {
    (void)state;
    vigil_buffer *small;
    assert_int_equal(vigil_segment_create_anonymous(&small, &(vigil_segment_options){.waiters = 1}), VIGIL_OK);
    common = vigil_buffer_data(small);
    vigil_agent *agent = new_agent(0);
    struct arriver arriver;
    struct requester requester;
    barrier_for(3);
    arriver_start(&arriver);
    assert_int_equal(arrive(VIGIL_FOREVER), VIGIL_ELIMIT);
    assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_ELIMIT);
    common->barrier.parties = 2;
    assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_LAST);
    assert_int_equal(arriver_join(&arriver), VIGIL_OK);
    end_agent(agent);
    assert_int_equal(vigil_buffer_destroy(small), 0);
}

/* Killed. */

static void who_is_killed_has_not_arrived(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        barrier_for(2);
        actor_kill(actor_arrives(parts[i]));
        assert_int_equal(arrive(0), VIGIL_TIMED_OUT);
        struct arriver arriver;
        assert_int_equal(pthread_create(&arriver.thread, NULL, arriver_main, &arriver), 0);
        AWAIT(arrive(0) == VIGIL_LAST);
        assert_int_equal(arriver_join(&arriver), VIGIL_OK);
        AWAIT(in_line_now() == 0);
    }
}

static void a_killed_ones_place_is_taken_by_another(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct arriver arriver;
        barrier_for(3);
        arriver_start(&arriver);
        actor_kill(actor_arrives(parts[i]));
        AWAIT(in_line_now() == 1); /* the sleeping process has a watcher */
        assert_int_equal(arrive(0), VIGIL_TIMED_OUT);
        pid_t actor = actor_arrives(parts[i]);
        assert_int_equal(arrive(0), VIGIL_LAST);
        assert_int_equal(arriver_join(&arriver), VIGIL_OK);
        actor_ends(actor);
    }
}

/* Acts as the last party to arrive, and is killed after it has notified that many. */
static bool begin_next_round(uint32_t *word, const struct slot *head, void *context) {
    (void)head, (void)context;
    STORE(*word, LOAD(*word) + 65536);
    return true;
}

static uint32_t decide_some(const struct slot *slot, void *told) {
    (void)slot;
    if (!(*(uintptr_t *)told)--) raise(SIGKILL);
    return VIGIL_OK;
}

static void complete_in_part(uintptr_t told) {
    static const struct lot_release in_part = {begin_next_round, decide_some, NULL, NULL};
    lot_call(lot_for(&common->barrier), &common->barrier, &in_part, &told);
    raise(SIGKILL);
}

static void a_round_is_completed_in_the_place_of_a_dead_one(void **state) {
    (void)state;
    vigil_agent *agent = new_agent(0);
    for (uintptr_t told = 0; told <= 3; told++) {
        struct arriver arriver;
        struct requester requester;
        barrier_for(4);
        arriver_start(&arriver);
        assert_int_equal(ask(agent, &requester, VIGIL_FOREVER), VIGIL_PENDING);
        pid_t actor = actor_arrives(expect_as_loop);
        actor_dies(actor_start(complete_in_part, told));
        assert_int_equal(answer_of(agent, &requester), VIGIL_OK);
        assert_int_equal(arriver_join(&arriver), VIGIL_OK);
        actor_ends(actor);
        assert_int_equal(in_line_now(), 0);
        assert_int_equal(common->barrier.word, 65536);
    }
    end_agent(agent);
}

static void who_arrives_next_is_of_the_next_round(void **state) {
    (void)state;
    struct arriver arriver;
    barrier_for(2);
    arriver_start(&arriver);
    actor_dies(actor_start(complete_in_part, 0));
    assert_int_equal(arrive(0), VIGIL_TIMED_OUT);
    assert_int_equal(arriver_join(&arriver), VIGIL_OK);
}

/* One of three parties is killed again and again, at any point: the others complete every round. */
static void arrive_again_and_again(uintptr_t argument) {
    (void)argument;
    for (;;) {
        CHECK(arrive(VIGIL_FOREVER) >= 0);
        __atomic_add_fetch(&common->rounds, 1, __ATOMIC_RELEASE);
    }
}

struct survivor {
    pthread_t thread;
    unsigned rounds, wrong;
};

static void *survive(void *argument) {
    struct survivor *me = argument;
    while (!LOAD(common->stop)) {
        int status = arrive(20 * MILLISECOND);
        me->rounds += status == VIGIL_OK || status == VIGIL_LAST;
        me->wrong += status != VIGIL_OK && status != VIGIL_LAST && status != VIGIL_TIMED_OUT;
    }
    return NULL;
}

static void others_go_on_whenever_one_is_killed(void **state) {
    (void)state;
    struct survivor survivors[2] = {{0}, {0}};
    uint64_t random = 1;
    barrier_for(3);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&survivors[i].thread, NULL, survive, &survivors[i]), 0);
    for (unsigned i = 0; i < KILLS; i++) {
        unsigned until = LOAD(common->rounds) + 1 + (unsigned)(random_next(&random) % 20);
        pid_t actor = actor_start(arrive_again_and_again, 0);
        AWAIT((int)(LOAD(common->rounds) - until) >= 0);
        actor_kill(actor);
    }
    STORE(common->stop, true);
    for (size_t i = 0; i < 2; i++) assert_int_equal(pthread_join(survivors[i].thread, NULL), 0);
    assert_int_equal(survivors[0].rounds, survivors[1].rounds);
    assert_int_equal(survivors[0].wrong + survivors[1].wrong, 0);
    assert_true(survivors[0].rounds >= common->rounds && survivors[0].rounds <= common->rounds + KILLS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(processes_meet),
        TEST(the_last_is_told_so_wherever_it_is),
        TEST(one_alone_is_always_the_last),
        TEST(rounds_of_threads_and_loops_of_several_processes),
        TEST(a_round_has_as_many_as_there_are_parties),
        TEST(an_arrival_is_taken_back),
        TEST(cancel_may_come_too_late),
        TEST(forgetting_cancels_all),
        TEST(the_last_needs_no_place_in_line),
        TEST(who_is_killed_has_not_arrived),
        TEST(a_killed_ones_place_is_taken_by_another),
        TEST(a_round_is_completed_in_the_place_of_a_dead_one),
        TEST(who_arrives_next_is_of_the_next_round),
        TEST(others_go_on_whenever_one_is_killed),
    };
    return children_can_start_threads() ? cmocka_run_group_tests(tests, NULL, NULL) : NO_THREADS_IN_CHILDREN;
}
