/* SPDX-License-Identifier: MIT */
/* Requests of one loop that hold our mutex across an await: each goes on in a later turn of the loop. */
#include "await.h"

#include <stdlib.h>

#include <vigil/agent.h>
#include <vigil/mutex.h>

static struct { _Alignas(128) vigil_mutex mutex; } awaited;
static vigil_agent *agent;

static void visit_go_on(vigil_agent *self, void *argument);

static void visit_has_lock(vigil_request *request) {
    await_begin();
    must(vigil_agent_post(agent, visit_go_on, request) == VIGIL_OK);
}

static void on_granted(vigil_op *op, int status) {
    must(status == VIGIL_OK);
    visit_has_lock((vigil_request *)op);
}

static void visit_ask(vigil_request *request) {
    int status = vigil_mutex_lock_async(agent, request, &awaited.mutex, VIGIL_FOREVER, on_granted);
    must(status == VIGIL_OK || status == VIGIL_PENDING);
    if (status == VIGIL_OK) visit_has_lock(request);
}

static void visit_go_on(vigil_agent *self, void *argument) {
    (void)self;
    bool again = await_end();
    must(vigil_mutex_unlock(&awaited.mutex) == VIGIL_OK);
    if (again) visit_ask(argument);
}

static double per_grant_ns(uint64_t n, vigil_mutex unlocked) {
    vigil_request *requests = calloc(n, sizeof *requests);
    must(requests != NULL && vigil_agent_create(&agent, 0) == VIGIL_OK);
    awaited.mutex = unlocked;
    await_open(n);
    for (uint64_t i = 0; i < n; i++) visit_ask(&requests[i]);
    must(vigil_agent_run(agent) == VIGIL_OK);
    must(vigil_agent_destroy(agent) == VIGIL_OK);
    free(requests);
    return await_close();
}

static void mutex_await(const struct job *job, double figures[FIGURES_MAX]) {
    figures[0] = per_grant_ns(job->n, (vigil_mutex)VIGIL_MUTEX_INIT);
    figures[1] = per_grant_ns(job->n, (vigil_mutex)VIGIL_MUTEX_FAIR);
}

const struct skill our_await[] = {
    {"mutex_await", mutex_await, false},
    {0},
};
