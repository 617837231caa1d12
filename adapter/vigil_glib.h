/* SPDX-License-Identifier: MIT */
/*
 * vigil_glib.h - an agent in a GLib main context.
 *
 *     vigil_agent *agent;
 *     GSource *seat;
 *     vigil_agent_create(&agent, VIGIL_AGENT_MAY_NOT_BLOCK);
 *     vigil_glib_attach(NULL, &seat, agent);               NULL: the default context
 *
 *     vigil_wait32_async(agent, &op, &word, 0, VIGIL_FOREVER, on_notified);
 *     g_main_loop_run(loop);                               calls on_notified when its time has come
 *
 *     g_source_destroy(seat);
 *     vigil_agent_destroy(agent);
 *
 * The seat is a source like any other; GLib's own functions do the rest:
 *
 * - The end. g_source_destroy(seat) detaches the agent, also from inside one of its callbacks (which cannot destroy
 *   the agent: do that later). Pending waits stay in line; without a loop their callbacks do not run until the agent is
 *   attached again or destroyed. Detach first, then destroy. The context holds the seat's only reference: after
 *   g_source_destroy, or the context's end, the pointer is invalid.
 *
 * - Priority. g_source_set_priority, G_PRIORITY_DEFAULT otherwise.
 *
 * - Loops inside callbacks. A callback of the agent may run the context again, to show a dialog, say. The agent's
 *   other callbacks have to wait meanwhile: they run one after the other.
 *
 * - Fork. In the child, destroy the seat and then the agent: it is dead there.
 *
 * The agent's own thread must run the context. A context may have any number of agents, one seat each.
 */
#ifndef VIGIL_ADAPTER_GLIB_H
#define VIGIL_ADAPTER_GLIB_H

#include <glib.h>
#include <vigil/agent.h>

struct vigil_glib_seat {
    GSource source;
    vigil_agent *agent;
};

static inline gboolean vigil_glib_on_readable(GSource *source, GSourceFunc callback, gpointer data) {
    (void)callback;
    (void)data;
    vigil_agent_dispatch(((struct vigil_glib_seat *)source)->agent);
    return G_SOURCE_CONTINUE;
}

/*
 * vigil_glib_attach - have the context serve the agent, whose callbacks run inside its iterations from now on.
 *
 * VIGIL_OK, and `*seat` is the new source; or what vigil_agent_fd returns: VIGIL_ENULL, VIGIL_EWRONGTHREAD,
 * VIGIL_EFORKED, VIGIL_ESYSTEM.
 */
static inline int vigil_glib_attach(GMainContext *context, GSource **seat, vigil_agent *agent) {
    /* Neither prepare nor check: GLib looks at the descriptor. */
    static GSourceFuncs functions = {NULL, NULL, vigil_glib_on_readable, NULL, NULL, NULL};
    int fd = vigil_agent_fd(agent);
    if (fd < 0) return fd;
    *seat = g_source_new(&functions, sizeof(struct vigil_glib_seat));
    ((struct vigil_glib_seat *)*seat)->agent = agent;
    g_source_set_name(*seat, "vigil");
    g_source_add_unix_fd(*seat, fd, G_IO_IN);
    g_source_attach(*seat, context);
    g_source_unref(*seat); /* the context has its own */
    return VIGIL_OK;
}

#endif
