/* SPDX-License-Identifier: MIT */
/* A worker: a thread with an agent of its own. */
#include <stdlib.h>

#include "agent.h"

struct vigil_worker {
    vigil_agent *agent;
    struct prim_handle *thread;
    struct prim_thread *self; /* of the worker's thread, once it runs */
};

static void worker_serve_agent(void *started) {
    struct vigil_worker *worker = started;
    vigil_agent *agent = worker->agent;
    prim_store_relaxed(&worker->self, prim_self());
    agent_adopt(agent);
    vigil_agent_ref(agent); /* until it is stopped, whatever is pending */
    vigil_agent_run(agent);
    agent_close(agent); /* the agent itself stays until join: other threads may still post to it, with no effect */
}

/* `main` runs first because it is posted first. */
static int worker_start_thread(vigil_worker *worker, vigil_function *main, void *argument) {
    int error = main ? vigil_agent_post(worker->agent, main, argument) : VIGIL_OK;
    if (!error && !prim_thread_start(&worker->thread, worker_serve_agent, worker, false)) error = VIGIL_ESYSTEM;
    if (error) agent_free(worker->agent);
    return error;
}

int vigil_worker_start(vigil_worker **result, vigil_function *main, void *argument) {
    if (!result) return VIGIL_ENULL;
    struct vigil_worker *worker = calloc(1, sizeof *worker);
    if (!worker) return VIGIL_ENOMEM;
    int error = agent_new(&worker->agent, 0);
    if (!error) error = worker_start_thread(worker, main, argument);
    if (error) free(worker);
    else *result = worker;
    return error;
}

vigil_agent *vigil_worker_agent(vigil_worker *worker) {
    return worker ? worker->agent : NULL;
}

int vigil_worker_stop(vigil_worker *worker) {
    return worker ? vigil_agent_stop(worker->agent) : VIGIL_ENULL;
}

int vigil_worker_join(vigil_worker *worker) {
    if (!worker) return VIGIL_ENULL;
    if (prim_self()->may_not_block) return VIGIL_EMAYNOTBLOCK;
    if (prim_load_relaxed(&worker->self) == prim_self()) return VIGIL_EWRONGTHREAD;
    if (!agent_forked(worker->agent)) prim_thread_join(worker->thread); /* a fork's child does not have that thread */
    agent_free(worker->agent);
    free(worker);
    return VIGIL_OK;
}
