/* SPDX-License-Identifier: MIT */
#include "environment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct environment *environment_of(napi_env napi, napi_callback_info info, size_t *argc, napi_value *argv) {
    void *environment = NULL;
    napi_get_cb_info(napi, info, argc, argv, NULL, &environment);
    return environment;
}

void environment_define(struct environment *environment, napi_value exports, const char *name, method *method) {
    napi_value function;
    napi_create_function(environment->napi, name, NAPI_AUTO_LENGTH, method, environment, &function);
    napi_set_named_property(environment->napi, exports, name, function);
}

int64_t timeout_ns_of(double timeout_ms) {
    if (!(timeout_ms < 9.2e12)) return VIGIL_FOREVER; /* some 292 years; NaN too */
    return timeout_ms > 0 ? (int64_t)ceil(timeout_ms * 1e6) : 0;
}

napi_value integer(napi_env napi, int32_t value) {
    napi_value result = NULL;
    napi_create_int32(napi, value, &result);
    return result;
}

napi_value number(napi_env napi, double value) {
    napi_value result = NULL;
    napi_create_double(napi, value, &result);
    return result;
}

double get_number(napi_env napi, napi_value value) {
    double result = 0;
    napi_get_value_double(napi, value, &result);
    return result;
}

bool get_text(napi_env napi, napi_value value, char *text, size_t size) {
    size_t length = 0;
    if (napi_get_value_string_utf8(napi, value, text, size, &length) != napi_ok) return false;
    return length < size - 1 && strlen(text) == length; /* not cut off, and no NUL inside */
}

/* The agent, and its descriptor in the loop. */

vigil_agent *environment_agent(struct environment *environment, int *error) {
    if (environment->agent) return environment->agent;
    *error = environment->ends ? VIGIL_ECLOSING : vigil_agent_create(&environment->agent, 0);
    return environment->agent;
}

static void environment_on_readable(uv_poll_t *seat, int status, int events) {
    (void)status;
    (void)events;
    environment_dispatch(seat->data, false);
}

static void environment_on_closed(uv_handle_t *seat) {
    free(seat);
}

bool environment_attend(struct environment *environment) {
    if (environment->seat) return true;
    int fd = vigil_agent_fd(environment->agent);
    uv_poll_t *seat = fd < 0 ? NULL : calloc(1, sizeof *seat);
    if (!seat || uv_poll_init(environment->loop, seat, fd)) {
        free(seat);
        return false;
    }
    seat->data = environment;
    uv_poll_start(seat, UV_READABLE, environment_on_readable);
    uv_unref((uv_handle_t *)seat);
    environment->seat = seat;
    return true;
}

void environment_ref(struct environment *environment) {
    if (environment->referenced++ == 0) uv_ref((uv_handle_t *)environment->seat);
}

void environment_unref(struct environment *environment) {
    if (--environment->referenced == 0) uv_unref((uv_handle_t *)environment->seat);
}

/* Outcomes. */

/* Move finished operations into the batch. Returns how many; the first is *first. */
static int32_t environment_fill_batch(struct environment *environment, struct operation **first) {
    int32_t count = 0;
    *first = environment->finished;
    while (environment->finished && count < SCRATCH_BATCH) {
        struct operation *operation = environment->finished;
        environment->finished = operation->next;
        environment->scratch->batch[count].id = operation->id;
        environment->scratch->batch[count++].status = operation->status;
        if (operation->referenced) environment_unref(environment);
        environment->pending--;
        operation->pending = false;
    }
    if (!environment->finished) environment->finished_last = &environment->finished;
    environment->scratch->delivered = 0;
    return count;
}

/*
 * Free the operations of a batch. If JavaScript was stopped before it looked at their outcomes, they are finished as
 * before, and environment_end passes on what they were given.
 */
static void environment_empty_batch(struct environment *environment, struct operation *first, int32_t count,
                                    int32_t delivered) {
    struct operation *operation = first, *next, *rest = environment->finished, **link = &environment->finished;
    for (int32_t i = 0; i < count; i++, operation = next) {
        next = operation->next;
        if (i < delivered) {
            operations_free(operation);
            continue;
        }
        *link = operation;
        link = &operation->next;
    }
    *link = rest;
    if (!rest) environment->finished_last = link;
}

static napi_status environment_call_deliver(struct environment *environment, int32_t count, bool inside) {
    napi_env napi = environment->napi;
    napi_value deliver, receiver, argument = integer(napi, count), result;
    napi_get_reference_value(napi, environment->deliver, &deliver);
    napi_get_reference_value(napi, environment->receiver, &receiver);
    if (inside) return napi_call_function(napi, receiver, deliver, 1, &argument, &result);
    return napi_make_callback(napi, environment->context, receiver, deliver, 1, &argument, &result);
}

/*
 * deliver itself does not throw, but napi_make_callback runs process.nextTick and promises as well, and keeps an
 * exception of theirs: it is uncaught. False: the environment is being terminated.
 */
static bool environment_report(struct environment *environment) {
    napi_value exception = NULL;
    bool thrown = false;
    napi_is_exception_pending(environment->napi, &thrown);
    if (thrown) napi_get_and_clear_last_exception(environment->napi, &exception);
    if (environment_terminates(environment)) return false;
    if (exception) napi_fatal_exception(environment->napi, exception);
    return true;
}

void environment_dispatch(struct environment *environment, bool inside) {
    vigil_agent_dispatch(environment->agent);
    while (environment->finished && !environment->ends) {
        napi_handle_scope scope;
        struct operation *first;
        napi_open_handle_scope(environment->napi, &scope);
        int32_t outer = environment->scratch->delivered; /* of a dispatch in whose callbacks this one is called */
        int32_t count = environment_fill_batch(environment, &first);
        napi_status status = environment_call_deliver(environment, count, inside);
        bool stopped = status != napi_ok && !environment_report(environment);
        int32_t delivered = stopped ? environment->scratch->delivered : count;
        environment->scratch->delivered = outer;
        napi_close_handle_scope(environment->napi, scope);
        environment_empty_batch(environment, first, count, delivered);
        if (stopped) return;
    }
}

bool environment_terminates(struct environment *environment) {
    napi_env napi = environment->napi;
    napi_value nothing, receiver, result;
    napi_get_reference_value(napi, environment->nothing, &nothing);
    napi_get_reference_value(napi, environment->receiver, &receiver);
    return napi_call_function(napi, receiver, nothing, 0, NULL, &result) != napi_ok;
}

/* Beginning and end. */

/* setup(scratch, deliver, nothing): called once by lib/native.js. */
static napi_value environment_setup(napi_env napi, napi_callback_info info) {
    size_t argc = 3, length = 0;
    napi_value argv[3], name, receiver;
    struct environment *environment = environment_of(napi, info, &argc, argv);
    void *scratch = NULL;
    napi_ref kept;
    napi_get_arraybuffer_info(napi, argv[0], &scratch, &length);
    if (length < sizeof(struct scratch)) {
        napi_throw_range_error(napi, NULL, "the scratch buffer is too small");
        return NULL;
    }
    napi_create_reference(napi, argv[0], 1, &kept);
    environment->scratch = scratch;
    napi_create_reference(napi, argv[1], 1, &environment->deliver);
    napi_create_reference(napi, argv[2], 1, &environment->nothing);
    napi_create_object(napi, &receiver);
    napi_create_reference(napi, receiver, 1, &environment->receiver);
    napi_create_string_utf8(napi, "vigil", NAPI_AUTO_LENGTH, &name);
    napi_async_init(napi, NULL, name, &environment->context);
    return NULL;
}

/* address(array): of its first byte, also of an array on a SharedArrayBuffer. */
static napi_value environment_address(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    environment_of(napi, info, &argc, argv);
    void *data = NULL;
    napi_get_typedarray_info(napi, argv[0], NULL, NULL, &data, NULL, NULL);
    return number(napi, (double)(uintptr_t)data);
}

/* statusName(status), statusText(status) */
static napi_value environment_status_name(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1], result;
    environment_of(napi, info, &argc, argv);
    const char *name = vigil_status_name((int)get_number(napi, argv[0]));
    napi_create_string_utf8(napi, name, NAPI_AUTO_LENGTH, &result);
    return result;
}

static napi_value environment_status_text(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1], result;
    environment_of(napi, info, &argc, argv);
    const char *text = vigil_strerror((int)get_number(napi, argv[0]));
    napi_create_string_utf8(napi, text, NAPI_AUTO_LENGTH, &result);
    return result;
}

/*
 * JavaScript has stopped, on this thread. Operations end first, since what they were given is passed on; then what is
 * held is given up. The seat is closed before the agent, whose descriptor it polls.
 */
static void environment_end(napi_async_cleanup_hook_handle cleanup, void *data) {
    struct environment *environment = data;
    environment->ends = true;
    if (environment->seat) uv_close((uv_handle_t *)environment->seat, environment_on_closed);
    environment->seat = NULL;
    operations_end(environment);
    named_end(environment);
    holdings_end(environment);
    segment_end(environment);
    if (environment->block_fd >= 0) close(environment->block_fd);
    napi_remove_async_cleanup_hook(cleanup);
    free(environment);
}

NAPI_MODULE_INIT() {
    struct environment *environment = calloc(1, sizeof *environment);
    bool good = environment && napi_get_uv_event_loop(env, &environment->loop) == napi_ok;
    if (!good) {
        free(environment);
        napi_throw_error(env, NULL, "not enough memory");
        return exports;
    }
    environment->napi = env;
    environment->block_fd = -1;
    environment->finished_last = &environment->finished;
    environment->thread_id = (uint32_t)syscall(SYS_gettid);
    napi_add_async_cleanup_hook(env, environment_end, environment, &environment->cleanup);
    environment_define(environment, exports, "setup", environment_setup);
    environment_define(environment, exports, "address", environment_address);
    environment_define(environment, exports, "statusName", environment_status_name);
    environment_define(environment, exports, "statusText", environment_status_text);
    operations_define(environment, exports);
    locks_define(environment, exports);
    holdings_define(environment, exports);
    named_define(environment, exports);
    segment_define(environment, exports);
    napi_set_named_property(env, exports, "scratchBytes", integer(env, sizeof(struct scratch)));
    napi_set_named_property(env, exports, "threadId", integer(env, (int32_t)environment->thread_id));
    return exports;
}
