/* SPDX-License-Identifier: MIT */
#include "addon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct addon *addon_of(napi_env napi, napi_callback_info info, size_t *argc, napi_value *argv) {
    void *addon = NULL;
    napi_get_cb_info(napi, info, argc, argv, NULL, &addon);
    return addon;
}

void addon_define(struct addon *addon, napi_value exports, const char *name, method *method) {
    napi_value function;
    napi_create_function(addon->napi, name, NAPI_AUTO_LENGTH, method, addon, &function);
    napi_set_named_property(addon->napi, exports, name, function);
}

void numbered_add(struct numbered **list, struct numbered *one) {
    static uint32_t last;
    *one = (struct numbered){*list, __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) & 0x7fffffff};
    *list = one;
}

void *numbered_find(struct numbered *list, double number) {
    while (list && list->number != (uint32_t)number) list = list->next;
    return list;
}

void numbered_remove(struct numbered **list, const struct numbered *one) {
    while (*list != one) list = &(*list)->next;
    *list = one->next;
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

static void addon_on_readable(uv_poll_t *seat, int status, int events) {
    (void)status;
    (void)events;
    addon_dispatch(seat->data, false);
}

static void addon_on_closed(uv_handle_t *seat) {
    free(seat);
}

bool environment_attend(struct environment *environment) {
    struct addon *addon = (struct addon *)environment;
    if (addon->seat) return true;
    int fd = vigil_agent_fd(addon->environment.agent);
    uv_poll_t *seat = fd < 0 ? NULL : calloc(1, sizeof *seat);
    if (!seat || uv_poll_init(addon->loop, seat, fd)) {
        free(seat);
        return false;
    }
    seat->data = addon;
    uv_poll_start(seat, UV_READABLE, addon_on_readable);
    uv_unref((uv_handle_t *)seat);
    addon->seat = seat;
    return true;
}

void environment_ref(struct environment *environment) {
    struct addon *addon = (struct addon *)environment;
    if (addon->referenced++ == 0) uv_ref((uv_handle_t *)addon->seat);
}

void environment_unref(struct environment *environment, uint32_t count) {
    struct addon *addon = (struct addon *)environment;
    addon->referenced -= count;
    if (count && !addon->referenced) uv_unref((uv_handle_t *)addon->seat);
}

/* Outcomes. */

static napi_status addon_call_deliver(struct addon *addon, int32_t count, bool inside) {
    napi_env napi = addon->napi;
    napi_value deliver, receiver, argument = integer(napi, count), result;
    napi_get_reference_value(napi, addon->deliver, &deliver);
    napi_get_reference_value(napi, addon->receiver, &receiver);
    if (inside) return napi_call_function(napi, receiver, deliver, 1, &argument, &result);
    return napi_make_callback(napi, addon->context, receiver, deliver, 1, &argument, &result);
}

/*
 * deliver itself does not throw, but napi_make_callback runs process.nextTick and promises as well, and keeps an
 * exception of theirs: it is uncaught. False: the environment is being terminated.
 */
static bool addon_report(struct addon *addon) {
    napi_value exception = NULL;
    bool thrown = false;
    napi_is_exception_pending(addon->napi, &thrown);
    if (thrown) napi_get_and_clear_last_exception(addon->napi, &exception);
    if (addon_terminates(addon)) return false;
    if (exception) napi_fatal_exception(addon->napi, exception);
    return true;
}

bool addon_call_back(struct addon *addon, napi_ref function, size_t argc, const napi_value *argv) {
    napi_value callee, receiver, result;
    napi_get_reference_value(addon->napi, function, &callee);
    napi_get_reference_value(addon->napi, addon->receiver, &receiver);
    napi_status status = napi_make_callback(addon->napi, addon->context, receiver, callee, argc, argv, &result);
    return status == napi_ok || addon_report(addon);
}

void addon_dispatch(struct addon *addon, bool inside) {
    struct environment *environment = &addon->environment;
    vigil_agent_dispatch(environment->agent);
    while (operations_have_outcomes(environment) && !environment->ends) {
        napi_handle_scope scope;
        napi_open_handle_scope(addon->napi, &scope);
        int32_t outer = environment->scratch->delivered; /* of a dispatch in whose callbacks this one is called */
        int32_t count = operations_fill(environment);
        napi_status status = addon_call_deliver(addon, count, inside);
        bool stopped = status != napi_ok && !addon_report(addon);
        int32_t delivered = stopped ? environment->scratch->delivered : count;
        environment->scratch->delivered = outer;
        napi_close_handle_scope(addon->napi, scope);
        operations_empty(environment, count, delivered);
        if (stopped) return;
    }
}

bool addon_terminates(struct addon *addon) {
    napi_env napi = addon->napi;
    napi_value nothing, receiver, result;
    napi_get_reference_value(napi, addon->nothing, &nothing);
    napi_get_reference_value(napi, addon->receiver, &receiver);
    return napi_call_function(napi, receiver, nothing, 0, NULL, &result) != napi_ok;
}

/* Beginning and end. */

/* setup(scratch, deliver, nothing): called once by lib/native.js. */
static napi_value addon_setup(napi_env napi, napi_callback_info info) {
    size_t argc = 3, length = 0;
    napi_value argv[3], name, receiver;
    struct addon *addon = addon_of(napi, info, &argc, argv);
    void *scratch = NULL;
    napi_ref kept;
    napi_get_arraybuffer_info(napi, argv[0], &scratch, &length);
    if (length < sizeof(struct scratch)) {
        napi_throw_range_error(napi, NULL, "the scratch buffer is too small");
        return NULL;
    }
    napi_create_reference(napi, argv[0], 1, &kept);
    addon->environment.scratch = scratch;
    napi_create_reference(napi, argv[1], 1, &addon->deliver);
    napi_create_reference(napi, argv[2], 1, &addon->nothing);
    napi_create_object(napi, &receiver);
    napi_create_reference(napi, receiver, 1, &addon->receiver);
    napi_create_string_utf8(napi, "vigil", NAPI_AUTO_LENGTH, &name);
    napi_async_init(napi, NULL, name, &addon->context);
    return NULL;
}

/* address(array): of its first byte, also of an array on a SharedArrayBuffer. */
static napi_value addon_address(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    addon_of(napi, info, &argc, argv);
    void *data = NULL;
    napi_get_typedarray_info(napi, argv[0], NULL, NULL, &data, NULL, NULL);
    return number(napi, (double)(uintptr_t)data);
}

/* statusName(status), statusText(status) */
static napi_value addon_status(napi_env napi, napi_callback_info info, const char *(*text_of)(int)) {
    size_t argc = 1;
    napi_value argv[1], result;
    addon_of(napi, info, &argc, argv);
    napi_create_string_utf8(napi, text_of((int)get_number(napi, argv[0])), NAPI_AUTO_LENGTH, &result);
    return result;
}

static napi_value addon_status_name(napi_env napi, napi_callback_info info) {
    return addon_status(napi, info, vigil_status_name);
}

static napi_value addon_status_text(napi_env napi, napi_callback_info info) {
    return addon_status(napi, info, vigil_strerror);
}

/*
 * JavaScript has stopped, on this thread. Operations end first, since what they were given is passed on; then what is
 * held is given up. The seat is closed before the agent, whose descriptor it polls.
 */
static void addon_end(napi_async_cleanup_hook_handle cleanup, void *data) {
    struct addon *addon = data;
    if (addon->seat) uv_close((uv_handle_t *)addon->seat, addon_on_closed);
    addon->seat = NULL;
    operations_end(&addon->environment);
    remote_end(addon);
    named_end(addon);
    holdings_end(&addon->environment);
    segment_end(addon);
    sleep_end(addon);
    napi_remove_async_cleanup_hook(cleanup);
    free(addon);
}

/* Two copies of the package in one process share their lines, unless they are of different versions. That shows when
 * the lines are made: here, and not at the first wait. */
static int addon_meet(void) {
    vigil_agent *agent;
    int status = vigil_agent_create(&agent, 0);
    return status ? status : vigil_agent_destroy(agent);
}

NAPI_MODULE_INIT() {
    if (addon_meet() == VIGIL_ECOPIES) {
        napi_throw_error(env, "VIGIL_ECOPIES", vigil_strerror(VIGIL_ECOPIES));
        return exports;
    }
    struct addon *addon = calloc(1, sizeof *addon);
    bool good = addon && napi_get_uv_event_loop(env, &addon->loop) == napi_ok;
    if (!good || !operations_begin(&addon->environment)) {
        free(addon);
        napi_throw_error(env, NULL, "not enough memory");
        return exports;
    }
    addon->napi = env;
    addon->block_fd = -1;
    addon->environment.thread_id = (uint32_t)syscall(SYS_gettid);
    napi_add_async_cleanup_hook(env, addon_end, addon, &addon->cleanup);
    addon_define(addon, exports, "setup", addon_setup);
    addon_define(addon, exports, "address", addon_address);
    addon_define(addon, exports, "statusName", addon_status_name);
    addon_define(addon, exports, "statusText", addon_status_text);
    methods_define(addon, exports);
    named_define(addon, exports);
    remote_define(addon, exports);
    segment_define(addon, exports);
    napi_set_named_property(env, exports, "scratchBytes", integer(env, sizeof(struct scratch)));
    napi_set_named_property(env, exports, "threadId", integer(env, (int32_t)addon->environment.thread_id));
    return exports;
}
