/* SPDX-License-Identifier: MIT */
/*
 * stress - real threads and real loops, where every notification is accounted for.
 *
 *     stress [--seconds N | --rounds N] [--seed S]
 *
 * Rounds of four kinds take turns, each with a seed of its own; the last line says how many rounds passed and failed.
 *
 *     storm    threads and agents wait, time out and cancel on a handful of words; others notify and forget. At the end
 *              the sum of the results of notify is the number of waits that returned ok, the sum of the results of
 *              forget is the number of those cancelled, and no waiter is left.
 *     fall     the same without forget; at the end the agents are destroyed with their operations pending.
 *     ring     a token goes round threads and agents by notification alone, carrying a plain payload.
 *     relay    the word is changed and notified once, as a lock or a channel would: a lost wake-up hangs.
 *
 * A round that hangs is ended by an alarm, which names it.
 */
#include "stress.h"

#include <poll.h>
#include <sched.h>
#include <time.h>

/* Storm and fall. */

#define WORDS 5
#define SLEEPERS 4
#define LOOPS 3
#define NOTIFIERS 2
#define OPS 12 /* of each loop */

/* The value is in the low half, so that both widths can compare it: our processors are little-endian. */
static union {
    uint64_t wide;
    uint32_t narrow;
} words[WORDS];

static bool stopping;   /* start no new waits */
static bool storm_over; /* notify no more */
static bool forgetting;

struct tally {
    int64_t started, ok, timed_out, cancelled, withdrawn; /* withdrawn: by vigil_cancel */
    int64_t notified, forgotten;
};

static void tally_add(struct tally *sum, const struct tally *more) {
    sum->started += more->started;
    sum->ok += more->ok;
    sum->timed_out += more->timed_out;
    sum->cancelled += more->cancelled;
    sum->withdrawn += more->withdrawn;
    sum->notified += more->notified;
    sum->forgotten += more->forgotten;
}

static void tally_outcome(struct tally *tally, int status, int64_t deadline_ns) {
    if (status == VIGIL_OK) tally->ok++;
    else if (status == VIGIL_CANCELLED) tally->cancelled++;
    else if (status == VIGIL_TIMED_OUT) tally->timed_out++;
    else FAIL_UNLESS(false, "ended with %s", vigil_status_name(status));
    if (status == VIGIL_TIMED_OUT) FAIL_UNLESS(vigil_now_ns() >= deadline_ns, "early");
}

struct plan {
    unsigned word;
    bool wide;
    uint32_t expected;
    int64_t timeout_ns, deadline_ns;
};

static struct plan plan_wait(uint64_t *seed) {
    struct plan plan = {.word = (unsigned)random_below(seed, WORDS), .wide = one_in(seed, 2)};
    plan.expected = (uint32_t)random_below(seed, 2);
    plan.timeout_ns = one_in(seed, 3) ? VIGIL_FOREVER : (int64_t)random_below(seed, 200000) - 2000;
    plan.deadline_ns = plan.timeout_ns == VIGIL_FOREVER ? VIGIL_FOREVER : vigil_now_ns() + plan.timeout_ns;
    return plan;
}

struct sleeper {
    pthread_t thread;
    uint64_t seed;
    bool done;
    struct tally tally;
};

static void *sleeper_main(void *argument) {
    struct sleeper *me = argument;
    while (!load_flag(&stopping)) {
        struct plan plan = plan_wait(&me->seed);
        int status = plan.wide ? vigil_wait64(&words[plan.word], plan.expected, plan.timeout_ns)
                               : vigil_wait32(&words[plan.word], plan.expected, plan.timeout_ns);
        if (status == VIGIL_NOT_EQUAL) continue;
        me->tally.started++;
        tally_outcome(&me->tally, status, plan.deadline_ns);
    }
    raise_flag(&me->done);
    return NULL;
}

/* A loop of operations, each started again by its own callback. */

enum way { BY_RUN, BY_POLL, BY_WORKER };

struct loop {
    enum way way;
    uint64_t seed;
    vigil_agent *agent;
    vigil_worker *worker; /* BY_WORKER */
    pthread_t thread;     /* otherwise */
    unsigned pending;
    bool ready, leaving, destroying;
    struct tally tally;
    struct loop_op {
        vigil_op op; /* first, so that one is the other */
        bool pending, too_late;
        int64_t deadline_ns;
    } ops[OPS];
};

static void on_end(vigil_op *op, int status);

static void start_op(struct loop *loop, struct loop_op *mine) {
    for (int tries = 0; tries < 4 && !load_flag(&stopping); tries++) {
        struct plan plan = plan_wait(&loop->seed);
        mine->deadline_ns = plan.deadline_ns;
        mine->op.data = loop;
        int status = plan.wide ? vigil_wait64_async(loop->agent, &mine->op, &words[plan.word], plan.expected,
                                                    plan.timeout_ns, on_end)
                               : vigil_wait32_async(loop->agent, &mine->op, &words[plan.word], plan.expected,
                                                    plan.timeout_ns, on_end);
        if (status == VIGIL_PENDING) {
            mine->pending = true;
            mine->too_late = false;
            loop->pending++;
            loop->tally.started++;
            return;
        }
        FAIL_UNLESS(status == VIGIL_NOT_EQUAL || (status == VIGIL_TIMED_OUT && plan.timeout_ns <= 0), "started with %s",
                    vigil_status_name(status));
    }
}

static void start_idle(struct loop *loop) {
    for (int i = 0; i < OPS; i++) {
        if (!loop->ops[i].pending) start_op(loop, &loop->ops[i]);
    }
}

static void cancel_any(struct loop *loop) {
    struct loop_op *victim = &loop->ops[random_below(&loop->seed, OPS)];
    int status = vigil_cancel(&victim->op);
    if (!victim->pending) {
        FAIL_UNLESS(status == VIGIL_EIDLE, "cancel returned %s", vigil_status_name(status));
    } else if (status == VIGIL_OK) {
        victim->pending = false;
        loop->pending--;
        loop->tally.withdrawn++;
    } else {
        FAIL_UNLESS(status == VIGIL_ETOOLATE, "cancel returned %s", vigil_status_name(status));
        victim->too_late = true;
    }
}

static void on_end(vigil_op *op, int status) {
    struct loop_op *mine = (struct loop_op *)op;
    struct loop *loop = op->data;
    FAIL_UNLESS(mine->pending, "called back twice");
    FAIL_UNLESS(!mine->too_late || status != VIGIL_TIMED_OUT, "too late to cancel, and yet timed out");
    mine->pending = false;
    loop->pending--;
    tally_outcome(&loop->tally, status, mine->deadline_ns);
    if (loop->destroying) return;
    if (one_in(&loop->seed, 4)) loop->tally.notified += vigil_notify(&words[random_below(&loop->seed, WORDS)], 1);
    if (one_in(&loop->seed, 4)) cancel_any(loop);
    start_idle(loop);
}

static void leave(vigil_agent *agent, void *argument) {
    (void)agent;
    struct loop *loop = argument;
    loop->leaving = true;
}

static void begin_loop(vigil_agent *agent, void *argument) {
    struct loop *loop = argument;
    loop->agent = agent;
    start_idle(loop);
    raise_flag(&loop->ready);
}

static void poll_until_left(struct loop *loop) {
    struct pollfd seat = {.fd = vigil_agent_fd(loop->agent), .events = POLLIN};
    while (!loop->leaving) {
        poll(&seat, 1, -1);
        int64_t served = vigil_agent_dispatch(loop->agent);
        FAIL_UNLESS(served >= 0, "dispatch returned %s", vigil_status_name((int)served));
        start_idle(loop);
    }
}

static void run_until_left(struct loop *loop) {
    while (!loop->leaving) {
        int status = vigil_agent_run_until(loop->agent, vigil_now_ns() + MILLISECOND);
        FAIL_UNLESS(status == VIGIL_OK || status == VIGIL_TIMED_OUT, "run returned %s", vigil_status_name(status));
        start_idle(loop);
    }
}

static void *loop_main(void *argument) {
    struct loop *loop = argument;
    vigil_agent *agent;
    if (vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) exit(2);
    vigil_agent_ref(agent);
    begin_loop(agent, loop);
    if (loop->way == BY_POLL) poll_until_left(loop);
    else run_until_left(loop);
    loop->destroying = true;
    FAIL_UNLESS(vigil_agent_destroy(agent) == VIGIL_OK, "destroy");
    return NULL;
}

static void start_loop(struct loop *loop) {
    if (loop->way != BY_WORKER) loop->thread = start_thread(loop_main, loop);
    else if (vigil_worker_start(&loop->worker, begin_loop, loop) != VIGIL_OK) exit(2);
}

/* Runs on the worker right before it is stopped: its callbacks are the last ones. */
static void worker_leaves(vigil_agent *agent, void *argument) {
    (void)agent;
    struct loop *loop = argument;
    loop->destroying = true;
}

static void end_loop(struct loop *loop) {
    if (loop->way == BY_WORKER) {
        vigil_agent_post(loop->agent, worker_leaves, loop);
        vigil_worker_stop(loop->worker);
        FAIL_UNLESS(vigil_worker_join(loop->worker) == VIGIL_OK, "join");
    } else {
        vigil_agent_post(loop->agent, leave, loop);
        pthread_join(loop->thread, NULL);
    }
    FAIL_UNLESS(loop->pending == 0, "%u still pending", loop->pending);
}

struct notifier {
    pthread_t thread;
    uint64_t seed;
    struct tally tally;
};

static void *notifier_main(void *argument) {
    struct notifier *me = argument;
    while (!load_flag(&storm_over)) {
        unsigned word = (unsigned)random_below(&me->seed, WORDS);
        uint64_t dice = random_below(&me->seed, 100);
        if (dice < 20) __atomic_store_n(&words[word].narrow, (uint32_t)random_below(&me->seed, 2), __ATOMIC_RELAXED);
        if (dice < 2 && forgetting) me->tally.forgotten += vigil_forget(&words[word], sizeof words[word]);
        else if (dice == 2 && forgetting) me->tally.forgotten += vigil_forget(words, INT64_C(1) << 36);
        else if (dice < 10) me->tally.notified += vigil_notify(&words[word], VIGIL_ALL);
        else me->tally.notified += vigil_notify(&words[word], (int64_t)random_below(&me->seed, 4));
        if (dice > 90) sched_yield();
    }
    return NULL;
}

static bool all_sleepers_done(struct sleeper *sleepers) {
    for (int i = 0; i < SLEEPERS; i++) {
        if (!load_flag(&sleepers[i].done)) return false;
    }
    return true;
}

static int64_t notify_all_words(void) {
    int64_t notified = 0;
    for (int i = 0; i < WORDS; i++) notified += vigil_notify(&words[i], VIGIL_ALL);
    return notified;
}

static void let_run(int64_t duration_ns) {
    struct timespec duration = {.tv_nsec = (long)duration_ns};
    nanosleep(&duration, NULL);
}

static void check_tally(const struct tally *sum, bool with_forget) {
    FAIL_UNLESS(sum->ok == sum->notified, "%" PRId64 " ok, %" PRId64 " notified", sum->ok, sum->notified);
    FAIL_UNLESS(sum->started == sum->ok + sum->timed_out + sum->cancelled + sum->withdrawn,
                "%" PRId64 " started, %" PRId64 " ok, %" PRId64 " late, %" PRId64 " cancelled, %" PRId64 " withdrawn",
                sum->started, sum->ok, sum->timed_out, sum->cancelled, sum->withdrawn);
    if (with_forget) {
        FAIL_UNLESS(sum->cancelled == sum->forgotten, "%" PRId64 " cancelled, %" PRId64 " forgotten", sum->cancelled,
                    sum->forgotten);
    }
    FAIL_UNLESS(sum->started > 0 && sum->ok > 0, "nothing happened");
    FAIL_UNLESS(notify_all_words() == 0, "a waiter is left");
}

struct question {
    struct loop *loop;
    bool answered;
    unsigned pending;
};

static void count_pending(vigil_agent *agent, void *argument) {
    (void)agent;
    struct question *question = argument;
    question->pending = question->loop->pending;
    raise_flag(&question->answered);
}

static unsigned ask_pending(struct loop *loop) {
    struct question question = {.loop = loop};
    vigil_agent_post(loop->agent, count_pending, &question);
    while (!load_flag(&question.answered)) sched_yield();
    return question.pending;
}

/* Until no loop has anything pending: nothing new is started, so each notification of all brings it nearer. */
static int64_t drain_loops(struct loop *loops) {
    int64_t notified = 0;
    for (int i = 0; i < LOOPS; i++) {
        while (ask_pending(&loops[i])) notified += notify_all_words();
    }
    return notified;
}

static void end_loops(struct loop *loops) {
    for (int i = 0; i < LOOPS; i++) end_loop(&loops[i]);
}

static void begin_storm(uint64_t seed, struct sleeper *sleepers, struct loop *loops, struct notifier *notifiers) {
    memset(words, 0, sizeof words);
    stopping = storm_over = false;
    for (int i = 0; i < LOOPS; i++) {
        loops[i].way = (enum way)i;
        loops[i].seed = random_next(&seed);
        start_loop(&loops[i]);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i].seed = random_next(&seed);
        sleepers[i].thread = start_thread(sleeper_main, &sleepers[i]);
    }
    for (int i = 0; i < NOTIFIERS; i++) {
        notifiers[i].seed = random_next(&seed);
        notifiers[i].thread = start_thread(notifier_main, &notifiers[i]);
    }
    for (int i = 0; i < LOOPS; i++) {
        while (!load_flag(&loops[i].ready)) sched_yield();
    }
}

static void storm_or_fall(uint64_t seed, bool with_forget) {
    struct sleeper sleepers[SLEEPERS] = {{.seed = 0}};
    struct notifier notifiers[NOTIFIERS] = {{.seed = 0}};
    struct loop *loops = calloc(LOOPS, sizeof *loops);
    struct tally sum = {0};
    forgetting = with_forget;
    begin_storm(seed, sleepers, loops, notifiers);
    let_run(40 * MILLISECOND);

    if (!with_forget) end_loops(loops); /* with what is still pending */
    raise_flag(&stopping);
    while (!all_sleepers_done(sleepers)) sum.notified += notify_all_words();
    if (with_forget) sum.notified += drain_loops(loops);
    if (with_forget) end_loops(loops);
    raise_flag(&storm_over);

    for (int i = 0; i < SLEEPERS; i++) {
        pthread_join(sleepers[i].thread, NULL);
        tally_add(&sum, &sleepers[i].tally);
    }
    for (int i = 0; i < NOTIFIERS; i++) {
        pthread_join(notifiers[i].thread, NULL);
        tally_add(&sum, &notifiers[i].tally);
    }
    for (int i = 0; i < LOOPS; i++) tally_add(&sum, &loops[i].tally);
    check_tally(&sum, with_forget);
    free(loops);
}

static void storm(uint64_t seed) {
    storm_or_fall(seed, true);
}

static void fall(uint64_t seed) {
    storm_or_fall(seed, false);
}

/* Ring and relay: members are threads that block and agents in a thread of their own, alternately. */

#define MEMBERS 6
#define LAPS 150

struct member {
    unsigned position;
    bool blocks;
    pthread_t thread;
    vigil_agent *agent;
    vigil_op op;
    struct member *next;

    uint32_t word;    /* ring: its own, always zero */
    uint64_t payload; /* ring: plain, written before the notification, read after it */
    uint64_t lap;     /* ring */
};

static void make_members(struct member *members, uint64_t seed) {
    memset(members, 0, MEMBERS * sizeof *members);
    for (unsigned i = 0; i < MEMBERS; i++) {
        members[i].position = i;
        members[i].blocks = one_in(&seed, 2);
        members[i].next = &members[(i + 1) % MEMBERS];
        members[i].op.data = &members[i];
    }
}

/* An agent's member: `first` starts its operation, and its callbacks do the rest. */
static void serve_member(struct member *me, void (*first)(struct member *)) {
    if (vigil_agent_create(&me->agent, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) exit(2);
    first(me);
    FAIL_UNLESS(vigil_agent_run(me->agent) == VIGIL_OK, "run");
    FAIL_UNLESS(vigil_agent_destroy(me->agent) == VIGIL_OK, "destroy");
}

static void run_members(struct member *members, void *(*main)(void *)) {
    for (int i = 0; i < MEMBERS; i++) members[i].thread = start_thread(main, &members[i]);
}

static void join_members(struct member *members) {
    for (int i = 0; i < MEMBERS; i++) pthread_join(members[i].thread, NULL);
}

/* Ring: no word ever changes, so only the notification orders the accesses to the payload. */

static void pass_token(struct member *to, uint64_t payload) {
    to->payload = payload;
    while (vigil_notify(&to->word, 1) == 0) sched_yield(); /* until it is in line */
}

static void take_token(struct member *me, int status) {
    uint64_t payload = me->payload;
    FAIL_UNLESS(status == VIGIL_OK, "woken with %s", vigil_status_name(status));
    FAIL_UNLESS(payload == me->lap * MEMBERS + me->position, "payload %" PRIu64, payload);
    if (me->lap++ == LAPS - 1 && me->position == MEMBERS - 1) return;
    pass_token(me->next, payload + 1);
}

static void on_token(vigil_op *op, int status);

static void await_token(struct member *me) {
    int status = vigil_wait32_async(me->agent, &me->op, &me->word, 0, VIGIL_FOREVER, on_token);
    FAIL_UNLESS(status == VIGIL_PENDING, "%s", vigil_status_name(status));
}

static void on_token(vigil_op *op, int status) {
    struct member *me = op->data;
    take_token(me, status);
    if (me->lap < LAPS) await_token(me);
}

static void *ring_member(void *argument) {
    struct member *me = argument;
    if (!me->blocks) serve_member(me, await_token);
    else while (me->lap < LAPS) take_token(me, vigil_wait32(&me->word, 0, VIGIL_FOREVER));
    return NULL;
}

static void ring(uint64_t seed) {
    struct member members[MEMBERS];
    make_members(members, seed);
    run_members(members, ring_member);
    pass_token(&members[0], 0);
    join_members(members);
}

/* Relay: one word tells which member has the turn; that member adds one and notifies all, once. */

static uint32_t turn;

/* Takes turns while it has them. Stores the value to wait on then; returns false when all is over. */
static bool take_turns(struct member *me, uint32_t *seen) {
    while ((*seen = __atomic_load_n(&turn, __ATOMIC_RELAXED)) < LAPS * MEMBERS) {
        if (*seen % MEMBERS != me->position) return true;
        __atomic_store_n(&turn, *seen + 1, __ATOMIC_RELAXED);
        vigil_notify(&turn, VIGIL_ALL);
    }
    return false;
}

static void on_turn(vigil_op *op, int status);

static void await_turn(struct member *me) {
    uint32_t seen;
    while (take_turns(me, &seen)) {
        if (vigil_wait32_async(me->agent, &me->op, &turn, seen, VIGIL_FOREVER, on_turn) == VIGIL_PENDING) return;
    }
}

static void on_turn(vigil_op *op, int status) {
    FAIL_UNLESS(status == VIGIL_OK, "woken with %s", vigil_status_name(status));
    await_turn(op->data);
}

static void *relay_member(void *argument) {
    struct member *me = argument;
    uint32_t seen;
    if (!me->blocks) serve_member(me, await_turn);
    else while (take_turns(me, &seen)) vigil_wait32(&turn, seen, VIGIL_FOREVER);
    return NULL;
}

static void relay(uint64_t seed) {
    struct member members[MEMBERS];
    make_members(members, seed);
    __atomic_store_n(&turn, 0, __ATOMIC_RELAXED);
    run_members(members, relay_member);
    join_members(members);
    FAIL_UNLESS(turn == LAPS * MEMBERS, "%u turns", turn);
}

static const struct kind kinds[] = {{"storm", storm}, {"fall", fall}, {"ring", ring}, {"relay", relay}};

int main(int argc, char **argv) {
    struct run run = {.seconds = 3, .seed = 1};
    if (!read_options(argc, argv, &run)) return 2;
    play_rounds(&run, kinds, sizeof kinds / sizeof kinds[0]);
    print_end(&run);
    return run.failed ? 1 : 0;
}
