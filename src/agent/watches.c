/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of others behind the agent's. A watch is in the list of the agent's watches and, from the moment at which
 * its descriptor was found ready to its callback, in the list of those to be called: what ends the watch takes it out
 * of both, so that it is not called afterwards.
 */
#include "agent.h"

#define READY_AT_ONCE 32u
_Static_assert(VIGIL_READABLE == PRIM_READABLE && VIGIL_WRITABLE == PRIM_WRITABLE, "the same flags");

static void watches_link(vigil_agent *agent, vigil_watch *watch) {
    watch->next = agent->watches;
    watch->link = &agent->watches;
    if (watch->next) watch->next->link = &watch->next;
    agent->watches = watch;
}

static void watches_unlink(vigil_watch *watch) {
    *watch->link = watch->next;
    if (watch->next) watch->next->link = watch->link;
}

static void watches_unlink_ready(vigil_watch *watch) {
    if (!watch->ready_link) return;
    *watch->ready_link = watch->next_ready;
    if (watch->next_ready) watch->next_ready->ready_link = watch->ready_link;
    watch->ready_link = NULL;
}

static void watches_end(vigil_agent *agent, vigil_watch *watch) {
    prim_bell_unwatch(&agent->seat.bell, watch->fd);
    watches_unlink_ready(watch);
    watches_unlink(watch);
    watch->agent = NULL;
}

int vigil_agent_watch(vigil_agent *agent, vigil_watch *watch, int fd, unsigned events, vigil_watch_callback *callback) {
    if (!agent || !watch || !callback) return VIGIL_ENULL;
    int error = agent_check(agent);
    if (error) return error;
    if (!events || events & ~(VIGIL_READABLE | VIGIL_WRITABLE)) return VIGIL_EINVAL;
    if (agent->closing) return VIGIL_ECLOSING;
    bool known = watch->agent;
    if (known && (watch->agent != agent || watch->fd != fd)) return VIGIL_EINUSE;
    if (!(known && watch->events == events) && !prim_bell_watch(&agent->seat.bell, fd, events, watch, known))
        return VIGIL_ESYSTEM;
    if (!known) {
        watch->ready_link = NULL;
        watches_link(agent, watch);
    }
    watch->agent = agent;
    watch->fd = fd;
    watch->events = events;
    watch->callback = callback;
    return VIGIL_OK;
}

int vigil_agent_unwatch(vigil_watch *watch) {
    if (!watch) return VIGIL_ENULL;
    if (!watch->agent) return VIGIL_EIDLE;
    int error = agent_check(watch->agent);
    if (!error) watches_end(watch->agent, watch);
    return error;
}

/* Puts those that are ready in the list, in their order. */
static void watches_find_ready(vigil_agent *agent) {
    struct prim_ready found[READY_AT_ONCE];
    unsigned count = prim_bell_ready(&agent->seat.bell, found, READY_AT_ONCE);
    vigil_watch **last = &agent->ready;
    for (unsigned i = 0; i < count; i++) {
        vigil_watch *watch = found[i].data;
        watch->ready = found[i].events;
        watch->ready_link = last;
        watch->next_ready = NULL;
        *last = watch;
        last = &watch->next_ready;
    }
}

/* A callback may have changed what another watch asks for since that was found ready. */
int64_t agent_serve_watches(vigil_agent *agent) {
    int64_t served = 0;
    watches_find_ready(agent);
    for (vigil_watch *watch; !agent_forked(agent) && (watch = agent->ready);) {
        unsigned events = watch->ready & watch->events;
        watches_unlink_ready(watch);
        if (!events) continue;
        watch->callback(watch, events);
        served++;
    }
    return served;
}

void agent_end_watches(vigil_agent *agent) {
    for (vigil_watch *watch; !agent_forked(agent) && (watch = agent->watches);) {
        watches_end(agent, watch);
        watch->callback(watch, 0);
    }
}
