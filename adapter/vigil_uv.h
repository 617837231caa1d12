/* SPDX-License-Identifier: MIT */
/*
 * vigil_uv.h - an agent in a libuv loop.
 *
 *     vigil_agent *agent;
 *     uv_poll_t seat;
 *     vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
 *     vigil_uv_attach(uv_default_loop(), &seat, agent);
 *
 *     vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified);
 *     uv_run(uv_default_loop(), UV_RUN_DEFAULT);           calls on_notified when its time has come
 *
 * The seat is a handle like any other; libuv's own functions do the rest:
 *
 * - The end. uv_close((uv_handle_t *)&seat, on_closed) detaches the agent, also from inside one of its callbacks.
 *   Pending waits stay in line; without a loop their callbacks do not run until the agent is attached again or
 *   destroyed. Close first, then destroy: at once or, since an agent cannot be destroyed by its own callbacks, in
 *   on_closed:
 *
 *       static void on_closed(uv_handle_t *seat) {
 *           vigil_agent_destroy((vigil_agent *)seat->data);
 *       }
 *
 *   The seat's memory is libuv's until on_closed is called. Its `data` is the agent.
 *
 * - What keeps the loop alive. The seat does, from the start, whether anything is pending or not: uv_run goes on
 *   until it is closed. After uv_unref((uv_handle_t *)&seat) it does not: uv_run ends with everything else in the
 *   loop, pending waits or not. If exactly your pending waits should keep it alive: uv_unref at first, uv_ref when
 *   you start a wait, uv_unref when the last has ended. (vigil_ref and vigil_unref are for vigil_agent_run; libuv
 *   knows nothing of them.)
 *
 * - Fork. In the child, after uv_loop_fork, close the seat and destroy the agent: it is dead there.
 *
 * The agent's own thread must run the loop. A loop may have any number of agents, one seat each.
 */
#ifndef VIGIL_ADAPTER_UV_H
#define VIGIL_ADAPTER_UV_H

#include <errno.h>
#include <uv.h>
#include <vigil/agent.h>

static inline void vigil_uv_on_readable(uv_poll_t *seat, int status, int events) {
    (void)status;
    (void)events;
    vigil_agent_dispatch((vigil_agent *)seat->data);
}

/*
 * vigil_uv_attach - have the loop serve the agent, whose callbacks run inside uv_run from now on.
 *
 * VIGIL_OK; what vigil_agent_fd returns: VIGIL_ENULL, VIGIL_EWRONGTHREAD, VIGIL_EFORKED, VIGIL_ESYSTEM; or
 * VIGIL_ESYSTEM if libuv refuses, with its error, made positive, in errno: EEXIST for an agent that the loop serves
 * already. After an error there is nothing to close.
 */
static inline int vigil_uv_attach(uv_loop_t *loop, uv_poll_t *seat, vigil_agent *agent) {
    int fd = vigil_agent_fd(agent);
    if (fd < 0) return fd;
    int error = uv_poll_init(loop, seat, fd);
    if (error) {
        errno = -error;
        return VIGIL_ESYSTEM;
    }
    seat->data = agent;
    uv_poll_start(seat, UV_READABLE, vigil_uv_on_readable); /* it could only refuse what uv_poll_init just accepted */
    return VIGIL_OK;
}

#endif
