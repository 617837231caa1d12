/* SPDX-License-Identifier: MIT */
/*
 * lockers.h - what the stress tests of locks share: threads and event loops that want any of a few locks, time out,
 * cancel and end at random, and the account of it. Include after stress.h.
 *
 * A lock protects a room. Some holders leave their lock locked, and another thread unlocks it.
 */
#ifndef VIGIL_TEST_STRESS_LOCKERS_H
#define VIGIL_TEST_STRESS_LOCKERS_H

#include <poll.h>
#include <time.h>

#include "vigil/agent.h"
#include "vigil/request.h"

struct tally {
    uint64_t started, granted, timed_out, cancelled, withdrawn; /* withdrawn: by vigil_cancel */
    uint64_t shared;                                            /* of those granted: to read */
};

static void tally_add(struct tally *sum, const struct tally *more) {
    sum->started += more->started;
    sum->granted += more->granted;
    sum->timed_out += more->timed_out;
    sum->cancelled += more->cancelled;
    sum->withdrawn += more->withdrawn;
    sum->shared += more->shared;
}

static void tally_outcome(struct tally *tally, int status, int64_t deadline_ns) {
    tally->granted += status == VIGIL_OK;
    tally->timed_out += status == VIGIL_TIMED_OUT;
    tally->cancelled += status == VIGIL_CANCELLED;
    if (status == VIGIL_TIMED_OUT) FAIL_UNLESS(vigil_now_ns() >= deadline_ns, "timed out too early");
    else FAIL_UNLESS(status == VIGIL_OK || status == VIGIL_CANCELLED, "ended with %s", vigil_status_name(status));
}

static void tally_check(const struct tally *sum, uint64_t visits) {
    uint64_t alone = sum->granted - sum->shared;
    FAIL_UNLESS(visits == alone, "%" PRIu64 " visits, %" PRIu64 " granted", visits, alone);
    FAIL_UNLESS(sum->started == sum->granted + sum->timed_out + sum->cancelled + sum->withdrawn,
                "%" PRIu64 " started, %" PRIu64 " granted, %" PRIu64 " late, %" PRIu64 " cancelled, %" PRIu64
                " withdrawn",
                sum->started, sum->granted, sum->timed_out, sum->cancelled, sum->withdrawn);
}

struct plan {
    struct room *which;
    bool reads;
    int64_t timeout_ns, deadline_ns;
};

struct loop;

struct request {
    vigil_request request; /* first, so that one is the other */
    struct loop *loop;
    struct plan plan;
    bool pending;
};

/* What each test defines. A request that has begun is over with `ended`, also if start_request has got the lock. */
static void prepare_rooms(void);
static void check_rooms(const struct tally *sum);
static struct plan plan_any_room(uint64_t *seed);
static int lock_room(const struct plan *plan);
static void visit_and_leave(const struct plan *plan, uint64_t *seed);
static void unlock_what_was_left_locked(void);
static int start_request(struct loop *loop, struct request *mine);

static bool over; /* start nothing new */

static bool is_over(void) {
    return __atomic_load_n(&over, __ATOMIC_RELAXED);
}

static void spend_time(uint64_t *seed) {
    for (uint64_t turns = one_in(seed, 50) ? 20000 : random_below(seed, 200); turns; turns--) {
        __asm__ __volatile__("" ::: "memory");
    }
}

static struct plan plan_lock(uint64_t *seed, int64_t longest_ns, bool forever) {
    struct plan plan = plan_any_room(seed);
    plan.timeout_ns = (int64_t)random_below(seed, (uint64_t)longest_ns) - longest_ns / 20;
    plan.deadline_ns = vigil_now_ns() + plan.timeout_ns;
    if (forever) plan.timeout_ns = plan.deadline_ns = VIGIL_FOREVER;
    return plan;
}

static void outcome(struct tally *tally, const struct plan *plan, int status) {
    tally_outcome(tally, status, plan->deadline_ns);
    tally->shared += status == VIGIL_OK && plan->reads;
}

/* Threads. */

#define THREADS 3

struct thread {
    pthread_t thread;
    uint64_t seed;
    struct tally tally;
};

/* If that is more than a millisecond, perhaps for ever. */
static void lock_once(uint64_t *seed, struct tally *tally, int64_t longest_ns) {
    struct plan plan = plan_lock(seed, longest_ns, longest_ns > MILLISECOND && one_in(seed, 3));
    int status = lock_room(&plan);
    tally->started++;
    outcome(tally, &plan, status);
    if (status == VIGIL_OK) visit_and_leave(&plan, seed);
}

static void *thread_main(void *argument) {
    struct thread *me = argument;
    while (!is_over()) {
        lock_once(&me->seed, &me->tally, 2 * MILLISECOND);
        unlock_what_was_left_locked();
    }
    return NULL;
}

/* Event loops, one life after the other: each agent ends with what is still pending. */

#define LOOPS    3
#define REQUESTS 16 /* of each */

struct loop {
    pthread_t thread;
    uint64_t seed;
    vigil_agent *agent;
    bool ending;
    struct tally tally;
    struct request requests[REQUESTS];
};

static void start(struct loop *loop, struct request *mine) {
    mine->loop = loop;
    mine->plan = plan_lock(&loop->seed, 2 * MILLISECOND, one_in(&loop->seed, 2));
    mine->pending = true; /* for a callback that is called at once */
    loop->tally.started++;
    int64_t deadline_ns = mine->plan.deadline_ns;
    int status = start_request(loop, mine);
    if (status == VIGIL_TIMED_OUT) {
        mine->pending = false;
        tally_outcome(&loop->tally, status, deadline_ns);
    } else {
        FAIL_UNLESS(status == VIGIL_OK || status == VIGIL_PENDING, "started with %s", vigil_status_name(status));
    }
}

static void start_idle(struct loop *loop) {
    for (int i = 0; i < REQUESTS; i++) {
        if (!loop->requests[i].pending && one_in(&loop->seed, 2)) start(loop, &loop->requests[i]);
    }
}

static void cancel_any(struct loop *loop) {
    struct request *victim = &loop->requests[random_below(&loop->seed, REQUESTS)];
    int status = vigil_cancel(&victim->request.op);
    FAIL_UNLESS(status == (victim->pending ? VIGIL_OK : VIGIL_EIDLE), "cancel returns %s", vigil_status_name(status));
    loop->tally.withdrawn += victim->pending;
    victim->pending = false;
}

static void ended(struct request *mine, int status) {
    FAIL_UNLESS(mine->pending, "called back twice");
    mine->pending = false;
    outcome(&mine->loop->tally, &mine->plan, status);
}

/* Callbacks may do anything. */
static void go_on(struct loop *loop) {
    if (loop->ending) return;
    if (one_in(&loop->seed, 4)) cancel_any(loop);
    if (one_in(&loop->seed, 4)) start_idle(loop);
}

static void serve_for_a_while(struct loop *loop, bool by_poll, int64_t until_ns) {
    struct pollfd seat = {.fd = by_poll ? vigil_agent_fd(loop->agent) : -1, .events = POLLIN};
    while (vigil_now_ns() < until_ns) {
        start_idle(loop);
        if (one_in(&loop->seed, 3)) cancel_any(loop);
        if (by_poll && poll(&seat, 1, 1) > 0) vigil_agent_dispatch(loop->agent);
        else if (!by_poll) vigil_agent_run_until(loop->agent, vigil_now_ns() + 100 * MICROSECOND);
        /* Perhaps behind its own requests. */
        if (one_in(&loop->seed, 4)) lock_once(&loop->seed, &loop->tally, MILLISECOND / 2);
    }
}

static void live(struct loop *loop) {
    if (vigil_agent_create(&loop->agent, 0) != VIGIL_OK) exit(2);
    loop->ending = false;
    int64_t span_ns = (int64_t)random_below(&loop->seed, 5 * MILLISECOND);
    serve_for_a_while(loop, one_in(&loop->seed, 2), vigil_now_ns() + span_ns);
    loop->ending = true;
    FAIL_UNLESS(vigil_agent_destroy(loop->agent) == VIGIL_OK, "destroy");
    for (int i = 0; i < REQUESTS; i++) FAIL_UNLESS(!loop->requests[i].pending, "pending after the agent's end");
}

static void *loop_main(void *argument) {
    struct loop *loop = argument;
    while (!is_over()) live(loop);
    return NULL;
}

/* Rounds. */

/* Until all loops and threads have left, locks that were left locked are unlocked here. */
static void *unlock_to_the_end(void *all_left) {
    while (!load_flag(all_left)) {
        unlock_what_was_left_locked();
        nanosleep(&(struct timespec){.tv_nsec = 10 * MICROSECOND}, NULL);
    }
    unlock_what_was_left_locked();
    return NULL;
}

static struct tally total;

static void join_all(struct thread *threads, struct loop *loops, struct tally *sum) {
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        tally_add(sum, &threads[i].tally);
    }
    for (int i = 0; i < LOOPS; i++) {
        pthread_join(loops[i].thread, NULL);
        tally_add(sum, &loops[i].tally);
    }
}

static void play_round(uint64_t seed) {
    struct thread threads[THREADS] = {{.seed = 0}};
    struct loop *loops = calloc(LOOPS, sizeof *loops);
    if (!loops) exit(2);
    struct tally sum = {0};
    bool all_left = false;
    prepare_rooms();
    __atomic_store_n(&over, false, __ATOMIC_RELAXED);
    pthread_t unlocker = start_thread(unlock_to_the_end, &all_left);
    for (int i = 0; i < THREADS; i++) {
        threads[i].seed = random_next(&seed);
        threads[i].thread = start_thread(thread_main, &threads[i]);
    }
    for (int i = 0; i < LOOPS; i++) {
        loops[i].seed = random_next(&seed);
        loops[i].thread = start_thread(loop_main, &loops[i]);
    }
    /* Most rounds are short: while a round goes on, a thread may wake a waiter that was forgotten; at its end none
     * does, and the round hangs. So the more ends, the more is found. */
    nanosleep(&(struct timespec){.tv_nsec = (long)random_below(&seed, one_in(&seed, 10) ? 200000000 : 5000000)}, NULL);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    join_all(threads, loops, &sum);
    raise_flag(&all_left);
    pthread_join(unlocker, NULL);
    check_rooms(&sum);
    tally_add(&total, &sum);
    free(loops);
}

/* Whether the run has passed. One that the time has ended must have had each outcome. */
static bool play_locks(struct run *run, const char *name) {
    const struct kind only_kind = {name, play_round};
    play_rounds(run, &only_kind, 1);
    printf("%" PRIu64 " granted, %" PRIu64 " to read, %" PRIu64 " late, %" PRIu64 " cancelled, %" PRIu64 " withdrawn\n",
           total.granted, total.shared, total.timed_out, total.cancelled, total.withdrawn);
    bool all_kinds = total.granted && total.timed_out && total.cancelled && total.withdrawn;
    return !run->failed && (all_kinds || run->rounds);
}

#endif
