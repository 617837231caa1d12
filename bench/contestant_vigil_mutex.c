/* SPDX-License-Identifier: MIT */
/* Our mutex, by threads that block and by a loop that does not. */
#include "bench.h"

#include <stdlib.h>

#include <vigil/agent.h>
#include <vigil/mutex.h>

static struct { _Alignas(128) vigil_mutex mutex; } contended;

static void lock(void) {
    must(vigil_mutex_lock(&contended.mutex) == VIGIL_OK);
}

static void unlock(void) {
    must(vigil_mutex_unlock(&contended.mutex) == VIGIL_OK);
}

#include "mutex_skills.h"

typedef vigil_mutex slot_mutex;
#define SLOT_MUTEX_INIT VIGIL_MUTEX_INIT

static void slot_lock(slot_mutex *mutex) {
    must(vigil_mutex_lock(mutex) == VIGIL_OK);
}

static void slot_unlock(slot_mutex *mutex) {
    must(vigil_mutex_unlock(mutex) == VIGIL_OK);
}

#include "mutex_slots.h"

/* Without blocking */

static vigil_agent *agent;

static void on_free(vigil_op *op, int status) {
    (void)op;
    (void)status;
}

static void execute_loop(uint64_t n) {
    vigil_request request = {0};
    for (uint64_t i = 0; i < n; i++)
        must(vigil_mutex_execute(agent, &request, &contended.mutex, VIGIL_FOREVER, on_free) == VIGIL_OK);
}

static void mutex_async_uncontended(const struct job *job, double figures[FIGURES_MAX]) {
    must(vigil_agent_create(&agent, 0) == VIGIL_OK);
    figures[0] = per_call_ns(execute_loop, job->n);
    must(vigil_agent_destroy(agent) == VIGIL_OK);
}

/* A loop that always has this many requests in line: each asks again from its callback. */

enum { OUTSTANDING = 1000 };

struct crowd {
    vigil_agent *agent;
    uint64_t *served;
    const bool *stopped;
    vigil_request requests[OUTSTANDING];
};

static void on_granted(vigil_op *op, int status);

static void ask(struct crowd *crowd, vigil_request *request) {
    must(vigil_mutex_execute(crowd->agent, request, &contended.mutex, VIGIL_FOREVER, on_granted) == VIGIL_PENDING);
}

static void on_granted(vigil_op *op, int status) {
    struct crowd *crowd = op->data;
    must(status == VIGIL_OK);
    work_inside();
    count_served(crowd->served);
    if (!__atomic_load_n(crowd->stopped, __ATOMIC_RELAXED)) ask(crowd, (vigil_request *)op);
}

static void loop(uint64_t *served, const bool *stopped) {
    struct crowd *crowd = calloc(1, sizeof *crowd);
    must(crowd != NULL && vigil_agent_create(&crowd->agent, 0) == VIGIL_OK);
    crowd->served = served;
    crowd->stopped = stopped;
    lock(); /* so that all of them are in line */
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        crowd->requests[i].op.data = crowd;
        ask(crowd, &crowd->requests[i]);
    }
    unlock();
    must(vigil_agent_run(crowd->agent) == VIGIL_OK);
    must(vigil_agent_destroy(crowd->agent) == VIGIL_OK);
    free(crowd);
}

static void mutex_mixed(const struct job *job, double figures[FIGURES_MAX]) {
    contest_with_guest(job, (struct lock){lock, unlock}, loop, figures);
}

const struct skill our_mutex[] = {
    {"mutex_uncontended", mutex_uncontended, false},
    {"mutex_contest", mutex_contest, false},
    {"mutex_waits", mutex_waits, false},
    {"mutex_random", mutex_random, false},
    {"mutex_async_uncontended", mutex_async_uncontended, false},
    {"mutex_mixed", mutex_mixed, false},
    {0},
};
