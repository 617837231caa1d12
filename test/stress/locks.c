/* SPDX-License-Identifier: MIT */
/*
 * locks - threads and event loops want a handful of mutexes, time out, cancel and end at random.
 *
 *     locks [--seconds N | --rounds N] [--seed S]
 *
 * A mutex protects plain memory: two holders at once are detected by their traces there, and by the thread sanitizer.
 * At the end every request is accounted for, as many actors have been inside as were granted a mutex, all mutexes are
 * free, and their lines are empty. A round that hangs is ended by an alarm, which names it.
 */
#include "stress.h"

#include <poll.h>
#include <time.h>

#include "vigil/mutex.h"

/* The protected memory. */

#define MUTEXES 4

static struct room {
    vigil_mutex mutex;
    uint32_t left_locked; /* its holder has gone: any thread may unlock it */
    bool inside;          /* this and the next are protected by the mutex */
    uint64_t visits;
} rooms[MUTEXES];

static bool over; /* start nothing new */

struct tally {
    uint64_t started, granted, timed_out, cancelled, withdrawn; /* withdrawn: by vigil_cancel */
};

static void tally_add(struct tally *sum, const struct tally *more) {
    sum->started += more->started;
    sum->granted += more->granted;
    sum->timed_out += more->timed_out;
    sum->cancelled += more->cancelled;
    sum->withdrawn += more->withdrawn;
}

static void tally_outcome(struct tally *tally, int status, int64_t deadline_ns) {
    tally->granted += status == VIGIL_OK;
    tally->timed_out += status == VIGIL_TIMED_OUT;
    tally->cancelled += status == VIGIL_CANCELLED;
    if (status == VIGIL_TIMED_OUT) FAIL_UNLESS(vigil_now_ns() >= deadline_ns, "timed out too early");
    else FAIL_UNLESS(status == VIGIL_OK || status == VIGIL_CANCELLED, "ended with %s", vigil_status_name(status));
}

static bool is_over(void) {
    return __atomic_load_n(&over, __ATOMIC_RELAXED);
}

static void visit(struct room *which, uint64_t *seed) {
    FAIL_UNLESS(vigil_mutex_is_locked(&which->mutex), "granted, but not locked");
    FAIL_UNLESS(!which->inside, "two hold it");
    which->inside = true;
    which->visits++;
    for (uint64_t turns = one_in(seed, 50) ? 20000 : random_below(seed, 200); turns; turns--) {
        __asm__ __volatile__("" ::: "memory");
    }
    FAIL_UNLESS(which->inside, "another has been here");
    which->inside = false;
}

static void unlock(struct room *which) {
    int status = vigil_mutex_unlock(&which->mutex);
    FAIL_UNLESS(status == VIGIL_OK, "unlock returns %s", vigil_status_name(status));
}

static void leave_locked(struct room *which) {
    __atomic_store_n(&which->left_locked, 1, __ATOMIC_RELEASE);
}

static void unlock_what_was_left_locked(void) {
    for (int i = 0; i < MUTEXES; i++) {
        if (__atomic_exchange_n(&rooms[i].left_locked, 0, __ATOMIC_ACQ_REL)) unlock(&rooms[i]);
    }
}

struct plan {
    struct room *which;
    int64_t timeout_ns, deadline_ns;
};

static struct plan plan_lock(uint64_t *seed, int64_t longest_ns) {
    struct plan plan = {.which = &rooms[random_below(seed, MUTEXES)]};
    plan.timeout_ns = (int64_t)random_below(seed, (uint64_t)longest_ns) - longest_ns / 20;
    plan.deadline_ns = vigil_now_ns() + plan.timeout_ns;
    return plan;
}

/* Threads. */

#define THREADS 3

struct thread {
    pthread_t thread;
    uint64_t seed;
    struct tally tally;
};

static void lock_once(uint64_t *seed, struct tally *tally, int64_t longest_ns) {
    struct plan plan = plan_lock(seed, longest_ns);
    bool forever = longest_ns > MILLISECOND && one_in(seed, 3);
    int status =
        forever ? vigil_mutex_lock(&plan.which->mutex) : vigil_mutex_lock_for(&plan.which->mutex, plan.timeout_ns);
    tally->started++;
    tally_outcome(tally, status, forever ? VIGIL_FOREVER : plan.deadline_ns);
    if (status != VIGIL_OK) return;
    visit(plan.which, seed);
    if (one_in(seed, 20)) leave_locked(plan.which);
    else unlock(plan.which);
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
    struct request {
        vigil_request request; /* first, so that one is the other */
        struct loop *loop;
        struct room *which;
        int64_t deadline_ns;
        bool pending;
    } requests[REQUESTS];
};

static void start(struct loop *loop, struct request *mine);

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

static void ended(vigil_op *op, int status) {
    struct request *mine = (struct request *)op;
    struct loop *loop = mine->loop;
    FAIL_UNLESS(mine->pending, "called back twice");
    mine->pending = false;
    tally_outcome(&loop->tally, status, mine->deadline_ns);
    if (status == VIGIL_OK) visit(mine->which, &loop->seed);
}

/* Callbacks may do anything, but this one must unlock what it holds. */
static void ended_executing(vigil_op *op, int status) {
    struct loop *loop = ((struct request *)op)->loop;
    ended(op, status);
    if (loop->ending) return;
    if (one_in(&loop->seed, 4)) cancel_any(loop);
    if (one_in(&loop->seed, 4)) start_idle(loop);
}

static void ended_locking(vigil_op *op, int status) {
    struct request *mine = (struct request *)op;
    struct loop *loop = mine->loop;
    struct room *which = mine->which;
    ended_executing(op, status); /* after which `mine` may be pending again */
    if (status != VIGIL_OK) return;
    if (one_in(&loop->seed, 4)) leave_locked(which);
    else unlock(which);
}

static void start(struct loop *loop, struct request *mine) {
    struct plan plan = plan_lock(&loop->seed, 2 * MILLISECOND);
    bool forever = one_in(&loop->seed, 2);
    int64_t timeout_ns = forever ? VIGIL_FOREVER : plan.timeout_ns;
    vigil_mutex *mutex = &plan.which->mutex;
    mine->loop = loop;
    mine->which = plan.which;
    mine->deadline_ns = forever ? VIGIL_FOREVER : plan.deadline_ns;
    mine->pending = true; /* for a callback that is called at once */
    loop->tally.started++;
    int status;
    switch (random_below(&loop->seed, 3)) {
    case 0: status = vigil_mutex_execute(loop->agent, &mine->request, mutex, timeout_ns, ended_executing); break;
    case 1: status = vigil_mutex_execute_later(loop->agent, &mine->request, mutex, timeout_ns, ended_locking); break;
    default:
        status = vigil_mutex_lock_async(loop->agent, &mine->request, mutex, timeout_ns, ended_locking);
        if (status == VIGIL_OK) ended_locking(&mine->request.op, VIGIL_OK);
    }
    if (status == VIGIL_TIMED_OUT) {
        mine->pending = false;
        tally_outcome(&loop->tally, status, plan.deadline_ns);
    } else {
        FAIL_UNLESS(status == VIGIL_OK || status == VIGIL_PENDING, "started with %s", vigil_status_name(status));
    }
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

/* Until all loops and threads have left, mutexes that were left locked are unlocked here. */
static void *unlock_to_the_end(void *all_left) {
    while (!load_flag(all_left)) {
        unlock_what_was_left_locked();
        nanosleep(&(struct timespec){.tv_nsec = 10 * MICROSECOND}, NULL);
    }
    unlock_what_was_left_locked();
    return NULL;
}

static void check(const struct tally *sum) {
    uint64_t visits = 0;
    for (int i = 0; i < MUTEXES; i++) {
        visits += rooms[i].visits;
        FAIL_UNLESS(rooms[i].mutex.word % 4 == 0, "mutex %d is left as %#x", i, rooms[i].mutex.word);
        FAIL_UNLESS(vigil_waiters(&rooms[i].mutex) == 0, "a waiter is left in line %d", i);
    }
    FAIL_UNLESS(visits == sum->granted, "%" PRIu64 " visits, %" PRIu64 " granted", visits, sum->granted);
    FAIL_UNLESS(sum->started == sum->granted + sum->timed_out + sum->cancelled + sum->withdrawn,
                "%" PRIu64 " started, %" PRIu64 " granted, %" PRIu64 " late, %" PRIu64 " cancelled, %" PRIu64
                " withdrawn",
                sum->started, sum->granted, sum->timed_out, sum->cancelled, sum->withdrawn);
}

static struct tally total;

static void play_round(uint64_t seed) {
    struct thread threads[THREADS] = {{.seed = 0}};
    struct loop *loops = calloc(LOOPS, sizeof *loops);
    if (!loops) exit(2);
    struct tally sum = {0};
    bool all_left = false;
    memset(rooms, 0, sizeof rooms);
    for (int i = 0; i < MUTEXES; i++) {
        if (i % 2) rooms[i].mutex = (vigil_mutex)VIGIL_MUTEX_FAIR;
    }
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
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        tally_add(&sum, &threads[i].tally);
    }
    for (int i = 0; i < LOOPS; i++) {
        pthread_join(loops[i].thread, NULL);
        tally_add(&sum, &loops[i].tally);
    }
    raise_flag(&all_left);
    pthread_join(unlocker, NULL);
    check(&sum);
    tally_add(&total, &sum);
    free(loops);
}

static const struct kind only_kind = {"locks", play_round};

int main(int argc, char **argv) {
    struct run run = {.seconds = 4, .seed = 1};
    if (!read_options(argc, argv, &run)) return 2;
    play_rounds(&run, &only_kind, 1);
    printf("%" PRIu64 " granted, %" PRIu64 " late, %" PRIu64 " cancelled, %" PRIu64 " withdrawn\n", total.granted,
           total.timed_out, total.cancelled, total.withdrawn);
    print_end(&run);
    bool all_kinds = total.granted && total.timed_out && total.cancelled && total.withdrawn;
    return run.failed || !(all_kinds || run.rounds) ? 1 : 0;
}
