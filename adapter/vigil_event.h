/* SPDX-License-Identifier: MIT */
/*
 * vigil_event.h - an agent in a libevent base.
 *
 *     vigil_agent *agent;
 *     struct event *seat;
 *     vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
 *     vigil_event_attach(base, &seat, agent);
 *
 *     vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified);
 *     event_base_dispatch(base);                           calls on_notified when its time has come
 *
 *     event_free(seat);
 *     vigil_agent_destroy(agent);
 *
 * The seat is an event like any other; libevent's own functions do the rest:
 *
 * - The end. event_free(seat) detaches the agent, also from inside one of its callbacks (which cannot destroy the
 *   agent: do that later). Pending waits stay in line; without a loop their callbacks do not run until the agent is
 *   attached again or destroyed. Free first, then destroy.
 *
 * - What keeps the loop alive. The seat does, whether anything is pending or not: event_base_dispatch goes on until
 *   the seat is freed, or event_base_loopexit or event_base_loopbreak ends it.
 *
 * - Fork. In the child, after event_reinit, free the seat and destroy the agent: it is dead there.
 *
 * The agent's own thread must run the base. Agents do not need evthread_use_pthreads: other threads notify and post
 * without touching the base. A base may have any number of agents, one seat each.
 */
#ifndef VIGIL_ADAPTER_EVENT_H
#define VIGIL_ADAPTER_EVENT_H

#include <event2/event.h>
#include <vigil/agent.h>

static inline void vigil_event_on_readable(evutil_socket_t fd, short events, void *agent) {
    (void)fd;
    (void)events;
    vigil_agent_dispatch((vigil_agent *)agent);
}

/*
 * vigil_event_attach - have the base serve the agent, whose callbacks run inside its loop from now on.
 *
 * VIGIL_OK, and `*seat` is the new event; what vigil_agent_fd returns: VIGIL_ENULL, VIGIL_EWRONGTHREAD,
 * VIGIL_EFORKED, VIGIL_ESYSTEM; or, if libevent refuses, VIGIL_ENOMEM (no event) or VIGIL_ESYSTEM (it cannot be
 * added). After an error there is nothing to free.
 */
static inline int vigil_event_attach(struct event_base *base, struct event **seat, vigil_agent *agent) {
    int fd = vigil_agent_fd(agent);
    if (fd < 0) return fd;
    struct event *event = event_new(base, fd, EV_READ | EV_PERSIST, vigil_event_on_readable, agent);
    if (!event) return VIGIL_ENOMEM;
    if (event_add(event, NULL) != 0) {
        event_free(event);
        return VIGIL_ESYSTEM;
    }
    *seat = event;
    return VIGIL_OK;
}

#endif
