/* SPDX-License-Identifier: MIT */
/*
 * vigil_uv.h - an agent in a libuv loop.
 *
 *     vigil_agent *agent;
 *     vigil_uv seat;
 *     vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
 *     vigil_uv_attach(uv_default_loop(), &seat, agent);
 *
 *     vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified);
 *     uv_run(uv_default_loop(), UV_RUN_DEFAULT);           calls on_notified, and returns
 *
 *     vigil_uv_close(&seat, NULL);
 *     vigil_agent_destroy(agent);
 *     uv_run(uv_default_loop(), UV_RUN_DEFAULT);           libuv closes the seat
 *
 * - What keeps the loop alive. A pending operation does, whether it was started before uv_run or inside; so does a ref
 *   of the agent. vigil_unref and vigil_ref, vigil_agent_ref and vigil_agent_unref decide as for vigil_agent_run; do
 *   not use uv_ref and uv_unref. A function that was posted does not keep it alive: uv_run may end before it is called.
 *   For an agent that serves posts, vigil_agent_ref.
 *
 * - After callbacks. `seat.after`, if it is set, is called after each dispatch that had something to do, once for all
 *   its callbacks and outside of them: for a runtime that has microtasks to run, or that delivers what its callbacks
 *   have collected. It may start and cancel operations, and close the seat.
 *
 *       seat.after = run_microtasks;                        after vigil_uv_attach; seat.data is the caller's
 *
 * - The end. vigil_uv_close detaches the agent, also from inside one of its callbacks. Pending waits stay in line;
 *   without a loop their callbacks do not run until the agent is attached again or destroyed. Close first, then
 *   destroy: at once or, since an agent cannot be destroyed by its own callbacks, when the seat is closed:
 *
 *       static void on_closed(vigil_uv *seat) {
 *           vigil_agent_destroy(seat->agent);
 *       }
 *
 *   The seat's memory is libuv's until on_closed is called.
 *
 * - Fork. In the child, after uv_loop_fork, close the seat and destroy the agent: it is dead there.
 *
 * The agent's own thread must run the loop. A loop may have any number of agents, one seat each.
 */
#ifndef VIGIL_ADAPTER_UV_H
#define VIGIL_ADAPTER_UV_H

#include <errno.h>
#include <string.h>
#include <uv.h>
#include <vigil/agent.h>

typedef struct vigil_uv vigil_uv;
typedef void vigil_uv_callback(vigil_uv *seat);

struct vigil_uv {
    uv_poll_t poll;            /* its `data` is the seat */
    vigil_agent *agent;        /* read only */
    vigil_uv_callback *after;  /* the caller's; null: none */
    vigil_uv_callback *closed; /* as passed to vigil_uv_close */
    void *data;                /* the caller's */
};

static inline void vigil_uv_on_readable(uv_poll_t *poll, int status, int events) {
    vigil_uv *seat = (vigil_uv *)poll->data;
    (void)status;
    (void)events;
    if (vigil_agent_dispatch(seat->agent) > 0 && seat->after) seat->after(seat); /* closed or not: it is still there */
}

static inline void vigil_uv_on_alive(vigil_agent *agent, void *seat) {
    uv_handle_t *handle = (uv_handle_t *)&((vigil_uv *)seat)->poll;
    if (vigil_agent_alive(agent)) uv_ref(handle); /* only handles with a ref keep uv_run going */
    else uv_unref(handle);
}

static inline void vigil_uv_on_closed(uv_handle_t *handle) {
    vigil_uv *seat = (vigil_uv *)handle->data;
    if (seat->closed) seat->closed(seat);
}

/*
 * vigil_uv_attach - have the loop serve the agent, whose callbacks run inside uv_run from now on. Sets all fields of
 * the seat.
 *
 * VIGIL_OK; what vigil_agent_fd returns: VIGIL_ENULL, VIGIL_EWRONGTHREAD, VIGIL_EFORKED, VIGIL_ESYSTEM; or
 * VIGIL_ESYSTEM if libuv refuses, with its error, made positive, in errno: EEXIST for an agent that the loop serves
 * already. After an error there is nothing to close.
 */
static inline int vigil_uv_attach(uv_loop_t *loop, vigil_uv *seat, vigil_agent *agent) {
    int fd = vigil_agent_fd(agent);
    if (fd < 0) return fd;
    memset(seat, 0, sizeof *seat);
    int error = uv_poll_init(loop, &seat->poll, fd);
    if (error) {
        errno = -error;
        return VIGIL_ESYSTEM;
    }
    seat->poll.data = seat;
    seat->agent = agent;
    uv_poll_start(&seat->poll, UV_READABLE, vigil_uv_on_readable); /* it accepts what uv_poll_init has accepted */
    vigil_agent_on_alive(agent, vigil_uv_on_alive, seat);
    vigil_uv_on_alive(agent, seat);
    return VIGIL_OK;
}

/*
 * vigil_uv_close - detach the agent. `closed`, unless it is null, is called by the loop when the seat's memory may be
 * reused; until then the seat keeps uv_run going.
 */
static inline void vigil_uv_close(vigil_uv *seat, vigil_uv_callback *closed) {
    vigil_agent_on_alive(seat->agent, NULL, NULL);
    seat->closed = closed;
    uv_close((uv_handle_t *)&seat->poll, vigil_uv_on_closed);
}

#endif
