/* SPDX-License-Identifier: MIT */
/*
 * addon.h - an environment of Node, through Node-API and libuv.
 *
 * The agent's one descriptor is in the libuv loop. A thread that blocks sleeps on two descriptors: the agent's, and
 * that of its own libuv loop. The second becomes readable when worker.terminate() or process.exit() end it,
 * because Node wakes the loop for that. So a blocked worker ends at once; until then it costs nothing, or, while its
 * loop has work that it cannot do, a look every 10 ms.
 */
#ifndef VIGIL_NODE_ADDON_H
#define VIGIL_NODE_ADDON_H

#include <node_api.h>
#include <uv.h>

#include "../environment.h"

struct addon {
    struct environment environment; /* first */
    napi_env napi;
    uv_loop_t *loop;
    napi_async_cleanup_hook_handle cleanup;
    napi_ref deliver, nothing; /* functions */
    napi_ref receiver;
    napi_ref counts; /* the array of holdings_set_counts */
    napi_async_context context;

    uv_poll_t *seat;     /* null until the first asynchronous wait */
    uint32_t referenced; /* pending operations that keep the environment alive */
    int block_fd;        /* epoll: the agent's descriptor and the loop's; -1 until the first blocking wait */

    struct numbered *segments; /* struct opened of segment.c */
    struct numbered *handles;  /* struct handle of named.c */
    struct remote *remote;     /* null until the first lock of a cluster */
};

/* What JavaScript has open, and names by a number: the first field of its struct. */
struct numbered {
    struct numbered *next;
    uint32_t number; /* of all environments, so that another's is not found */
};
void numbered_add(struct numbered **list, struct numbered *one);
void *numbered_find(struct numbered *list, double number); /* null: it is not there */
void numbered_remove(struct numbered **list, const struct numbered *one);

/* Methods: napi callbacks whose data is the addon. */
typedef napi_value method(napi_env napi, napi_callback_info info);
struct addon *addon_of(napi_env napi, napi_callback_info info, size_t *argc, napi_value *argv);
void addon_define(struct addon *addon, napi_value exports, const char *name, method *method);

/* Dispatch, and pass the outcomes to JavaScript; `inside`: within a call of JavaScript. */
void addon_dispatch(struct addon *addon, bool inside);
/* Whether JavaScript cannot run any more, because the worker is being terminated. */
bool addon_terminates(struct addon *addon);
/* Call JavaScript from the loop. False: the environment is being terminated. */
bool addon_call_back(struct addon *addon, napi_ref function, size_t argc, const napi_value *argv);

napi_value integer(napi_env napi, int32_t value);
napi_value number(napi_env napi, double value);
double get_number(napi_env napi, napi_value value);
bool get_text(napi_env napi, napi_value value, char *text, size_t size);

/* sleep.c */
void sleep_end(struct addon *addon);

/* methods.c */
void methods_define(struct addon *addon, napi_value exports);

/* named.c */
void named_define(struct addon *addon, napi_value exports);
void named_end(struct addon *addon);

/* remote.c */
void remote_define(struct addon *addon, napi_value exports);
void remote_end(struct addon *addon);

/* segment.c */
void segment_define(struct addon *addon, napi_value exports);
void segment_end(struct addon *addon);

#endif
