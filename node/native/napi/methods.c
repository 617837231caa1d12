/* SPDX-License-Identifier: MIT */
/* The functions of environment.h as methods of the addon. Each takes one number and returns one. */
#include "addon.h"

typedef int32_t call(struct environment *environment, int32_t argument);

static napi_value methods_call(napi_env napi, napi_callback_info info, call *call) {
    size_t argc = 1;
    napi_value argv[1];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    return integer(napi, call(&addon->environment, (int32_t)get_number(napi, argv[0])));
}

#define METHOD(name, call)                                                                                             \
    static napi_value methods_##name(napi_env napi, napi_callback_info info) {                                         \
        return methods_call(napi, info, call);                                                                         \
    }
METHOD(start, operations_start)
METHOD(block, operations_block)
METHOD(cancel, operations_cancel)
METHOD(release, locks_release)
METHOD(signal, locks_signal)
METHOD(consistent, locks_consistent)
METHOD(downgrade, locks_downgrade)
METHOD(holder, locks_holder)
METHOD(track, holdings_track)
METHOD(untrack, holdings_untrack)
METHOD(mine, holdings_mine)

/* notify(): ECMA-262 has the caller's own promises resolved before it returns. */
static napi_value methods_notify(napi_env napi, napi_callback_info info) {
    struct addon *addon = addon_of(napi, info, NULL, NULL);
    if (!operations_notify(&addon->environment, 0)) return NULL;
    double notified = addon->environment.scratch->count;
    addon_dispatch(addon, true);
    addon->environment.scratch->count = notified;
    return NULL;
}

/* counts(array): where JavaScript counts. It replaces a shorter one. */
static napi_value methods_counts(napi_env napi, napi_callback_info info) {
    size_t argc = 1, length = 0;
    napi_value argv[1];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    void *data = NULL;
    napi_get_typedarray_info(napi, argv[0], NULL, &length, &data, NULL, NULL);
    if (addon->counts) napi_delete_reference(napi, addon->counts);
    napi_create_reference(napi, argv[0], 1, &addon->counts);
    holdings_set_counts(&addon->environment, data, (uint32_t)length);
    return NULL;
}

void methods_define(struct addon *addon, napi_value exports) {
    static const struct {
        const char *name;
        method *method;
    } methods[] = {
        {"start", methods_start},           {"block", methods_block},         {"cancel", methods_cancel},
        {"notify", methods_notify},         {"release", methods_release},     {"signal", methods_signal},
        {"consistent", methods_consistent}, {"downgrade", methods_downgrade}, {"holder", methods_holder},
        {"track", methods_track},           {"untrack", methods_untrack},     {"mine", methods_mine},
        {"counts", methods_counts},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        addon_define(addon, exports, methods[i].name, methods[i].method);
}
