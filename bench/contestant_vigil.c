/* SPDX-License-Identifier: MIT */
/* Vigil. */
#include "alone.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vigil/agent.h>
#include <vigil/wait.h>

static struct word words[2];

#include "vigil_pingpong.h"

#include "pingpong.h"

/* Calls that find no waiter */

static void notify_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) vigil_notify(&words[0].value, 1);
}

static void notify_nobody(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(notify_loop, job->n);
}

static void store_loop(uint64_t n) {
    for (uint64_t i = 0; i < n; i++) vigil_store_and_notify32(&words[0].value, (uint32_t)i, 1);
}

static void store_and_notify(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(store_loop, job->n);
}

static void wait_loop(uint64_t n) {
    uint32_t other = words[0].value + 1;
    for (uint64_t i = 0; i < n; i++) vigil_wait32(&words[0].value, other, VIGIL_FOREVER);
}

static void wait_not_equal(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_call_ns(wait_loop, job->n);
}

static void own_words_loop(uint64_t n, unsigned who) {
    uint32_t other = words[who].value + 1;
    for (uint64_t i = 0; i < n; i++) {
        vigil_notify(&words[who].value, 1);
        vigil_wait32(&words[who].value, other, VIGIL_FOREVER);
    }
}

static void notify_parallel(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = speedup_of_two(own_words_loop, job->n);
}

/* Crowds of asynchronous waiters */

struct crowd {
    struct loop loop;
    uint64_t n;
    bool distinct;  /* each its own line */
    uint32_t *line; /* what they wait on: n words, or one */
    vigil_op *ops;
    uint64_t done;
};

/* Touch the caller's memory here, so that no page of it is first touched while something is measured. */
static void *touched(size_t bytes) {
    void *memory = malloc(bytes);
    must(memory != NULL);
    memset(memory, 1, bytes);
    return memset(memory, 0, bytes);
}

static struct crowd crowd_open(uint64_t n, bool distinct) {
    return (struct crowd){
        .loop = loop_open(),
        .n = n,
        .distinct = distinct,
        .line = touched((distinct ? n : 1) * sizeof(uint32_t)),
        .ops = touched(n * sizeof(vigil_op)),
    };
}

static void crowd_close(struct crowd *crowd) {
    loop_close(&crowd->loop);
    free(crowd->ops);
    free(crowd->line);
}

static void on_done(vigil_op *op, int status) {
    (void)status;
    ++*(uint64_t *)op->data;
}

static void crowd_register(struct crowd *crowd, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        crowd->ops[i].data = &crowd->done;
        vigil_wait32_async(crowd->loop.agent, &crowd->ops[i], &crowd->line[crowd->distinct ? i : 0], 0, VIGIL_FOREVER,
                           on_done);
    }
}

static int64_t crowd_notify(struct crowd *crowd) {
    if (!crowd->distinct) return vigil_notify(crowd->line, VIGIL_ALL);
    int64_t notified = 0;
    for (uint64_t i = 0; i < crowd->n; i++) notified += vigil_notify(&crowd->line[i], 1);
    return notified;
}

static void crowd_settle(struct crowd *crowd) {
    while (crowd->done < crowd->n) loop_step(&crowd->loop);
    must(crowd->done == crowd->n);
    crowd->done = 0;
}

static uint64_t tenth(uint64_t n) {
    return n < 10 ? 1 : n / 10;
}

/* Small crowds are repeated often enough for their sum to be measured. */
static uint64_t repeats_for(uint64_t n) {
    return n < 100000 ? 100000 / n : 1;
}

static void crowd_measure(uint64_t n, bool distinct, double figures[FIGURES_MAX]) {
    struct crowd crowd = crowd_open(n, distinct);
    uint64_t batch = tenth(n), repeats = repeats_for(n);
    uint64_t warm_up = repeats > 1 ? tenth(repeats) : 0;
    double register_ns = 0, notify_ns = 0, settle_ns = 0;
    for (uint64_t i = 0; i < warm_up + repeats; i++) {
        crowd_register(&crowd, 0, n - batch);
        uint64_t start = now_ns();
        crowd_register(&crowd, n - batch, n);
        uint64_t registered = now_ns();
        int64_t count = crowd_notify(&crowd);
        uint64_t notified = now_ns();
        crowd_settle(&crowd);
        uint64_t settled = now_ns();
        must(count == (int64_t)n);
        if (i < warm_up) continue;
        register_ns += (double)(registered - start) - clock_cost_ns();
        notify_ns += (double)(notified - registered) - clock_cost_ns();
        settle_ns += (double)(settled - notified) - clock_cost_ns();
    }
    crowd_close(&crowd);
    figures[0] = register_ns / (double)(repeats * batch);
    figures[1] = notify_ns / (double)(repeats * n);
    figures[2] = settle_ns / (double)(repeats * n);
}

static void line(const struct job *job, double figures[FIGURES_MAX]) {
    crowd_measure(job->n, false, figures);
}

static void lines(const struct job *job, double figures[FIGURES_MAX]) {
    crowd_measure(job->n, true, figures);
}

static uint32_t random_below(uint32_t limit) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((state >> 32) * limit) >> 32);
}

static void shuffle(uint32_t *order, uint64_t n) {
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    for (uint32_t i = (uint32_t)n - 1; i > 0; i--) {
        uint32_t j = random_below(i + 1), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}

static void cancel(const struct job *job, double figures[FIGURES_MAX]) {
    uint64_t n = job->n, batch = tenth(n), repeats = repeats_for(n);
    struct crowd crowd = crowd_open(n, false);
    uint32_t *order = touched(n * sizeof *order);
    shuffle(order, n);
    double cancel_ns = 0;
    for (uint64_t repeat = 0; repeat < repeats; repeat++) {
        crowd_register(&crowd, 0, n);
        int worst = VIGIL_OK;
        uint64_t start = now_ns();
        for (uint64_t i = 0; i < batch; i++) worst |= vigil_cancel(&crowd.ops[order[i]]);
        cancel_ns += (double)(now_ns() - start) - clock_cost_ns();
        for (uint64_t i = batch; i < n; i++) worst |= vigil_cancel(&crowd.ops[order[i]]);
        must(worst == VIGIL_OK);
    }
    free(order);
    crowd_close(&crowd);
    figures[0] = cancel_ns / (double)(repeats * batch);
}

/* Timeouts */

enum { MS = 1000000 };

struct timed {
    vigil_op op;
    struct crowd *crowd;
    uint64_t deadline_ns; /* as the caller computes it, before the call; 0: not checked */
    uint64_t early;
};

static void on_timeout(vigil_op *op, int status) {
    struct timed *timed = op->data;
    must(status == VIGIL_TIMED_OUT);
    timed->crowd->done++;
    timed->early = timed->deadline_ns != 0 && now_ns() < timed->deadline_ns;
}

/* Returns how long it took until the last had fired; looks for early ones only if asked, as looking takes time. */
static double fire_all_ns(struct crowd *crowd, struct timed *all, bool look) {
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < crowd->n; i++) {
        int64_t timeout_ns = 1 * MS + random_below(49 * MS);
        all[i].op.data = &all[i];
        all[i].crowd = crowd;
        all[i].deadline_ns = look ? now_ns() + (uint64_t)timeout_ns : 0;
        vigil_wait32_async(crowd->loop.agent, &all[i].op, crowd->line, 0, timeout_ns, on_timeout);
    }
    crowd_settle(crowd);
    return (double)(now_ns() - start);
}

static void timeouts(const struct job *job, double figures[FIGURES_MAX]) {
    struct crowd crowd = crowd_open(job->n, false);
    struct timed *all = touched(job->n * sizeof *all);
    figures[0] = fire_all_ns(&crowd, all, false) / MS;
    fire_all_ns(&crowd, all, true);
    uint64_t early = 0;
    for (uint64_t i = 0; i < job->n; i++) early += all[i].early;
    figures[1] = (double)early;
    free(all);
    crowd_close(&crowd);
}

/* Memory */

static void bytes(const struct job *job, double figures[FIGURES_MAX]) {
    if (!is_alone()) {
        measure_alone("vigil", job, figures);
        return;
    }
    struct crowd crowd = crowd_open(job->n, strcmp(job->name, "bytes_distinct") == 0);
    uint64_t before = 0;
    for (uint64_t i = 0; i < job->n; i++) {
        if (i == 1) /* what the first waiter causes is not per waiter */
            before = resident_bytes();
        int64_t timeout_ns = HOUR_NS + random_below(UINT32_MAX);
        must(vigil_wait32_async(crowd.loop.agent, &crowd.ops[i], &crowd.line[crowd.distinct ? i : 0], 0, timeout_ns,
                                on_done) == VIGIL_PENDING);
        crowd.ops[i].data = &crowd.done;
    }
    figures[0] = (double)(resident_bytes() - before) / (double)(job->n - 1);
    crowd_close(&crowd);
}

static void idle_agent_open(uint64_t index) {
    static vigil_op ops[IDLE_LOOPS_MAX + 1];
    vigil_agent *agent;
    must(vigil_agent_create(&agent, 0) == VIGIL_OK && vigil_agent_fd(agent) >= 0);
    must(vigil_wait32_async(agent, &ops[index], &words[0].value, words[0].value, HOUR_NS, on_done) == VIGIL_PENDING);
    vigil_agent_dispatch(agent); /* sets the timer */
}

static void idle_agents(const struct job *job, double figures[FIGURES_MAX]) {
    idle_loops(job, "vigil", idle_agent_open, figures);
}

/* Round trips */

static void pingpong_async(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(ping, pong_epoll, job->n);
}

static void pingpong_async_run(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_round_trip_ns(ping, pong_run, job->n);
}

static const struct skill skills[] = {
    {"notify_nobody", notify_nobody, false},
    {"store_and_notify", store_and_notify, false},
    {"wait_not_equal", wait_not_equal, false},
    {"notify_parallel", notify_parallel, false},
    {"line", line, false},
    {"lines", lines, false},
    {"cancel", cancel, false},
    {"bytes", bytes, false},
    {"bytes_distinct", bytes, false},
    {"idle_agents", idle_agents, false},
    {"timeouts", timeouts, false},
    {"pingpong_block", pingpong_block, false},
    {"pingpong_async", pingpong_async, false},
    {"pingpong_async_run", pingpong_async_run, false},
    {0},
};

extern const struct skill our_mutex[], our_loops[], our_cond[], our_rwlock[], our_sem[], our_barrier[], our_shared[],
    our_bounded[], our_await[], our_cli[];
const struct contestant contestant_vigil = {.name = "vigil",
                                            .skills = {skills, our_mutex, our_loops, our_cond, our_rwlock, our_sem,
                                                       our_barrier, our_shared, our_bounded, our_await, our_cli}};
