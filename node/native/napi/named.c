/* SPDX-License-Identifier: MIT */
/* Named locks (vigil/named.h): namedOpen, namedTry, namedUnlock, namedClose, namedQuery and others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

struct handle {
    struct numbered numbered;
    vigil_named *named;
};

#define NAME_BYTES 4096

static vigil_named *named_of(struct addon *addon, double number) {
    struct handle *handle = numbered_find(addon->handles, number);
    return handle ? handle->named : NULL;
}

/* The named lock of a call's first argument. */
static vigil_named *named_argument(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    return named_of(addon, get_number(napi, argv[0]));
}

/* What environment.h asks for. */

static void named_on_end(vigil_named *named, int status, void *operation) {
    (void)named;
    operations_end_with(operation, status);
}

int named_start(struct environment *environment, struct operation *operation, uint32_t flags, int64_t timeout_ns) {
    vigil_named *named = named_of((struct addon *)environment, environment->scratch->second);
    operation->named = named;
    if (!named) return VIGIL_EINVAL;
    return vigil_named_lock_async(environment->agent, named, flags, timeout_ns, named_on_end, operation);
}

int named_take_back(struct operation *operation) {
    return vigil_named_cancel(operation->named);
}

void named_pass_on(const struct operation *operation) {
    vigil_named_unlock(operation->named);
}

/* Methods. */

/* namedOpen(name, slots): the number of the handle, or an error. */
static napi_value named_open(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    char name[NAME_BYTES];
    if (!get_text(napi, argv[0], name, sizeof name)) return integer(napi, VIGIL_ENAME);
    vigil_named_options options = {.slots = (uint32_t)get_number(napi, argv[1])};
    struct handle *handle = calloc(1, sizeof *handle);
    int status = handle ? vigil_named_open(&handle->named, name, &options) : VIGIL_ENOMEM;
    if (status) {
        free(handle);
        return integer(napi, status);
    }
    numbered_add(&addon->handles, &handle->numbered);
    return integer(napi, (int32_t)handle->numbered.number);
}

/* namedTry(handle, how) */
static napi_value named_try(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    vigil_named *named = named_of(addon, get_number(napi, argv[0]));
    unsigned how = (unsigned)get_number(napi, argv[1]);
    return integer(napi, named ? vigil_named_trylock(named, how) : VIGIL_EINVAL);
}

static napi_value named_steal(napi_env napi, napi_callback_info info) {
    vigil_named *named = named_argument(napi, info);
    return integer(napi, named ? vigil_named_steal(named) : VIGIL_EINVAL);
}

static napi_value named_is_stolen(napi_env napi, napi_callback_info info) {
    vigil_named *named = named_argument(napi, info);
    napi_value result;
    napi_get_boolean(napi, named && vigil_named_is_stolen(named), &result);
    return result;
}

/* namedWatch(handle): describe in the scratch a wait for the next steal. VIGIL_OK, or an error. */
static napi_value named_watch(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    const vigil_named *named = named_of(addon, get_number(napi, argv[0]));
    const uint32_t *steals = named ? vigil_named_steals(named) : NULL;
    if (!steals) return integer(napi, VIGIL_EINVAL);
    struct scratch *scratch = addon->environment.scratch;
    scratch->address = (double)(uintptr_t)steals;
    scratch->value = (int32_t)__atomic_load_n(steals, __ATOMIC_ACQUIRE);
    scratch->timeout_ms = INFINITY;
    return integer(napi, VIGIL_OK);
}

static napi_value named_unlock(napi_env napi, napi_callback_info info) {
    vigil_named *named = named_argument(napi, info);
    return integer(napi, named ? vigil_named_unlock(named) : VIGIL_EINVAL);
}

static napi_value named_consistent(napi_env napi, napi_callback_info info) {
    vigil_named *named = named_argument(napi, info);
    return integer(napi, named ? vigil_named_consistent(named) : VIGIL_EINVAL);
}

static napi_value named_slots(napi_env napi, napi_callback_info info) {
    vigil_named *named = named_argument(napi, info);
    return number(napi, named ? vigil_named_slots(named) : 0);
}

static napi_value named_close(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    struct handle *handle = numbered_find(addon->handles, get_number(napi, argv[0]));
    int status = handle ? vigil_named_close(handle->named) : VIGIL_EINVAL;
    if (status) return integer(napi, status);
    numbered_remove(&addon->handles, &handle->numbered);
    free(handle);
    return integer(napi, VIGIL_OK);
}

/* namedRemove(name, force) */
static napi_value named_remove(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2];
    addon_of(napi, info, &argc, argv);
    char name[NAME_BYTES];
    bool force = false;
    napi_get_value_bool(napi, argv[1], &force);
    if (!get_text(napi, argv[0], name, sizeof name)) return integer(napi, VIGIL_ENAME);
    return integer(napi, vigil_named_remove(name, force));
}

static void named_set(napi_env napi, napi_value object, const char *key, napi_value value) {
    napi_set_named_property(napi, object, key, value);
}

static napi_value named_text(napi_env napi, const char *text) {
    napi_value value;
    napi_create_string_utf8(napi, text, NAPI_AUTO_LENGTH, &value);
    return value;
}

/* namedDeath(handle): {pid, takenAt, text} of the holder that was killed, or undefined. */
static napi_value named_death(napi_env napi, napi_callback_info info) {
    vigil_named *named = named_argument(napi, info);
    napi_value result;
    vigil_named_holder dead;
    if (!named || vigil_named_death(named, &dead)) return NULL;
    napi_create_object(napi, &result);
    named_set(napi, result, "pid", number(napi, dead.pid));
    named_set(napi, result, "takenAt", number(napi, (double)dead.taken_at * 1000));
    named_set(napi, result, "text", named_text(napi, dead.text));
    return result;
}

/* What is held and awaited. */

struct query {
    napi_env napi;
    napi_value list;
    uint32_t count;
};

static uint32_t named_pid(const vigil_look *look, uint32_t member) {
    for (uint32_t i = 0; i < look->member_count; i++)
        if (look->members[i].number == member) return look->members[i].pid;
    return 0;
}

static void named_report(struct query *query, const char *name, bool held, bool shared, uint32_t pid, uint32_t count) {
    napi_value row, value;
    napi_create_object(query->napi, &row);
    named_set(query->napi, row, "name", named_text(query->napi, name));
    named_set(query->napi, row, "mode", named_text(query->napi, shared ? "shared" : "exclusive"));
    named_set(query->napi, row, "pid", number(query->napi, pid));
    named_set(query->napi, row, "count", number(query->napi, count));
    napi_get_boolean(query->napi, held, &value);
    named_set(query->napi, row, "held", value);
    napi_set_element(query->napi, query->list, query->count++, row);
}

/* namedLook(name): append to the list what is seen of the lock. Others may remove it at the same moment. */
static void named_look(const char *name, void *data) {
    struct query *query = data;
    vigil_observer *observer;
    vigil_look look;
    if (vigil_observer_open(&observer, name)) return;
    bool seen = vigil_observer_look(observer, &look) == VIGIL_OK;
    for (uint32_t i = 0; seen && i < look.line_count; i++) {
        const vigil_seen_line *line = &look.lines[i];
        bool turnstile = line->offset == 0;
        for (uint32_t j = 0; !turnstile && j < line->holder_count; j++)
            named_report(query, name, true, line->holders[j].shared, named_pid(&look, line->holders[j].number),
                         line->holders[j].count);
        for (uint32_t j = 0; j < line->waiter_count; j++)
            named_report(query, name, false, line->waiters[j].shared, named_pid(&look, line->waiters[j].number), 1);
    }
    vigil_observer_close(observer);
}

struct names {
    char **names;
    size_t count;
};

static void named_collect(const char *name, void *data) {
    struct names *names = data;
    char **more = realloc(names->names, (names->count + 1) * sizeof *more);
    if (!more) return;
    names->names = more;
    if ((more[names->count] = strdup(name))) names->count++;
}

/* namedQuery(): the holders and waiters of all names of this user. */
static napi_value named_query(napi_env napi, napi_callback_info info) {
    (void)info;
    struct query query = {.napi = napi};
    struct names names = {0};
    napi_create_array(napi, &query.list);
    vigil_named_list(named_collect, &names); /* which says that the names must not be opened meanwhile */
    for (size_t i = 0; i < names.count; i++) {
        named_look(names.names[i], &query);
        free(names.names[i]);
    }
    free(names.names);
    return query.list;
}

void named_define(struct addon *addon, napi_value exports) {
    addon_define(addon, exports, "namedOpen", named_open);
    addon_define(addon, exports, "namedTry", named_try);
    addon_define(addon, exports, "namedSteal", named_steal);
    addon_define(addon, exports, "namedIsStolen", named_is_stolen);
    addon_define(addon, exports, "namedWatch", named_watch);
    addon_define(addon, exports, "namedUnlock", named_unlock);
    addon_define(addon, exports, "namedConsistent", named_consistent);
    addon_define(addon, exports, "namedSlots", named_slots);
    addon_define(addon, exports, "namedDeath", named_death);
    addon_define(addon, exports, "namedClose", named_close);
    addon_define(addon, exports, "namedRemove", named_remove);
    addon_define(addon, exports, "namedQuery", named_query);
}

void named_end(struct addon *addon) {
    for (struct numbered *one = addon->handles, *next; one; one = next) {
        struct handle *handle = (struct handle *)one;
        next = one->next;
        vigil_named_abandon(handle->named); /* VIGIL_ENOTHELD, if it is idle */
        vigil_named_close(handle->named);
        free(handle);
    }
}
