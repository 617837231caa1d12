/* SPDX-License-Identifier: MIT */
/*
 * Locks of a cluster (vigil/remote.h): remoteLoad, remoteOpen, remoteTake and others.
 *
 * libvigil-etcd needs libraries that a machine may not have. So it is no part of this binary, but loaded at the first
 * use, with the libvigil that it is linked with: an agent belongs to the copy of the library that has created it, and
 * all functions here are of that copy.
 *
 * An environment has one such agent for all clusters. Its descriptor is in the libuv loop. The loop goes on while the
 * agent is alive: while a call to a cluster is pending, and while a lock is held, because its lease has to be renewed.
 *
 * Callbacks of locks only write down the news. They are told to JavaScript after the dispatch.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEEPBIND */
#endif
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <vigil/remote.h>

#include "addon.h"

#define REMOTE_FUNCTIONS(X)                                                                                            \
    X(vigil_agent_create)                                                                                              \
    X(vigil_agent_destroy)                                                                                             \
    X(vigil_agent_fd)                                                                                                  \
    X(vigil_agent_dispatch)                                                                                            \
    X(vigil_agent_ref)                                                                                                 \
    X(vigil_agent_unref)                                                                                               \
    X(vigil_agent_alive)                                                                                               \
    X(vigil_agent_on_alive)                                                                                            \
    X(vigil_remote_open)                                                                                               \
    X(vigil_remote_close)                                                                                              \
    X(vigil_remote_why)                                                                                                \
    X(vigil_remote_lock_open)                                                                                          \
    X(vigil_remote_lock_close)                                                                                         \
    X(vigil_remote_lock_abandon)                                                                                       \
    X(vigil_remote_lock_take)                                                                                          \
    X(vigil_remote_lock_cancel)                                                                                        \
    X(vigil_remote_lock_release)                                                                                       \
    X(vigil_remote_lock_token)                                                                                         \
    X(vigil_remote_lock_key)                                                                                           \
    X(vigil_remote_lock_death)                                                                                         \
    X(vigil_remote_lock_consistent)

struct library {
#define REMOTE_MEMBER(name) __typeof__(name) *name;
    REMOTE_FUNCTIONS(REMOTE_MEMBER)
};

/* lib/remote.js has the same numbers. */
enum what { NEWS_ENDED, NEWS_LOST, NEWS_RELEASED, NEWS_KINDS };

struct news {
    struct news *next;
    struct lock *lock;
    enum what what;
    int status;
    bool listed;
};

struct remote {
    struct addon *addon;
    struct library library;
    vigil_agent *agent;
    uv_poll_t *seat;
    napi_ref deliver;
    struct numbered *clusters, *locks;
    struct news *first, **last; /* what JavaScript has not been told yet */
};

struct cluster {
    struct numbered numbered;
    vigil_remote *remote;
};

struct lock {
    struct numbered numbered;
    struct remote *remote;
    vigil_remote_lock *lock;
    bool held; /* and keeps the agent alive */
    struct news news[NEWS_KINDS];
};

#define TEXT_BYTES 4096

/* News. */

static void remote_note(struct lock *lock, enum what what, int status) {
    struct news *news = &lock->news[what];
    struct remote *remote = lock->remote;
    news->status = status;
    if (news->listed) return;
    *news = (struct news){.lock = lock, .what = what, .status = status, .listed = true};
    *remote->last = news;
    remote->last = &news->next;
}

static struct news *remote_first_news(struct remote *remote) {
    struct news *news = remote->first;
    if (!news) return NULL;
    remote->first = news->next;
    if (!remote->first) remote->last = &remote->first;
    news->listed = false;
    return news;
}

static void remote_forget_news(struct lock *lock) {
    struct remote *remote = lock->remote;
    struct news **link = &remote->first;
    while (*link) {
        if ((*link)->lock == lock) *link = (*link)->next;
        else link = &(*link)->next;
    }
    remote->last = link;
}

static void remote_set_held(struct lock *lock, bool held) {
    struct remote *remote = lock->remote;
    if (held && !lock->held) remote->library.vigil_agent_ref(remote->agent);
    if (!held && lock->held) remote->library.vigil_agent_unref(remote->agent);
    lock->held = held;
}

static void remote_on_ended(vigil_remote_lock *handle, int status, void *data) {
    (void)handle;
    remote_set_held(data, status == VIGIL_OK || status == VIGIL_OWNER_DIED);
    remote_note(data, NEWS_ENDED, status);
}

static void remote_on_lost(vigil_remote_lock *handle, int64_t left_ns, void *data) {
    (void)handle;
    (void)left_ns;
    remote_note(data, NEWS_LOST, VIGIL_ELOST);
}

static void remote_on_released(vigil_remote_lock *handle, int status, void *data) {
    (void)handle;
    remote_note(data, NEWS_RELEASED, status);
}

static void remote_free_lock(struct lock *lock) {
    remote_forget_news(lock);
    numbered_remove(&lock->remote->locks, &lock->numbered);
    free(lock);
}

static void remote_on_closed(int status, void *lock) {
    (void)status;
    remote_free_lock(lock);
}

/* deliver(lock, what, status) */
static bool remote_tell(struct remote *remote, const struct news *news) {
    napi_env napi = remote->addon->napi;
    napi_handle_scope scope;
    napi_open_handle_scope(napi, &scope);
    napi_value argv[] = {number(napi, news->lock->numbered.number), integer(napi, (int32_t)news->what),
                         integer(napi, news->status)};
    bool goes_on = addon_call_back(remote->addon, remote->deliver, 3, argv);
    napi_close_handle_scope(napi, scope);
    return goes_on;
}

static void remote_on_readable(uv_poll_t *seat, int status, int events) {
    (void)status;
    (void)events;
    struct remote *remote = seat->data;
    remote->library.vigil_agent_dispatch(remote->agent);
    const struct news *news;
    while ((news = remote_first_news(remote)) && remote_tell(remote, news)) {
    }
}

/* Loading. */

/* By glibc, the library's own dependencies come first: Node exports functions of the OpenSSL, nghttp2 and c-ares that
 * are inside it. */
#ifdef RTLD_DEEPBIND
#define REMOTE_SCOPE RTLD_DEEPBIND
#else
#define REMOTE_SCOPE 0
#endif

/* Null, or what went wrong. It is not unloaded: threads that end call it. */
static const char *remote_load_library(struct library *library, const char *file) {
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | REMOTE_SCOPE);
    if (!object) return dlerror();
#define REMOTE_FIND(name)                                                                                              \
    library->name = (__typeof__(name) *)dlsym(object, #name);                                                          \
    if (!library->name) return dlerror();
    REMOTE_FUNCTIONS(REMOTE_FIND)
    return NULL;
}

static void remote_on_alive(vigil_agent *agent, void *data) {
    struct remote *remote = data;
    if (remote->library.vigil_agent_alive(agent)) uv_ref((uv_handle_t *)remote->seat);
    else uv_unref((uv_handle_t *)remote->seat);
}

static void remote_on_seat_closed(uv_handle_t *seat) {
    free(seat);
}

static int remote_attend(struct remote *remote) {
    int fd = remote->library.vigil_agent_fd(remote->agent);
    if (fd < 0) return fd;
    uv_poll_t *seat = calloc(1, sizeof *seat);
    if (!seat) return VIGIL_ENOMEM;
    if (uv_poll_init(remote->addon->loop, seat, fd)) {
        free(seat);
        return VIGIL_ESYSTEM;
    }
    seat->data = remote;
    remote->seat = seat;
    uv_poll_start(seat, UV_READABLE, remote_on_readable);
    remote->library.vigil_agent_on_alive(remote->agent, remote_on_alive, remote);
    remote_on_alive(remote->agent, remote);
    return VIGIL_OK;
}

static int remote_begin(struct remote *remote) {
    int status = remote->library.vigil_agent_create(&remote->agent, 0);
    if (status) return status;
    status = remote_attend(remote);
    if (status) remote->library.vigil_agent_destroy(remote->agent);
    return status;
}

/* remoteLoad(file, deliver): VIGIL_OK, an error, or a text that says why the file cannot be loaded. */
static napi_value remote_load(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2], text;
    struct addon *addon = addon_of(napi, info, &argc, argv);
    char file[TEXT_BYTES];
    if (!get_text(napi, argv[0], file, sizeof file)) return integer(napi, VIGIL_ENAME);
    struct remote *remote = calloc(1, sizeof *remote);
    if (!remote) return integer(napi, VIGIL_ENOMEM);
    remote->addon = addon;
    remote->last = &remote->first;
    const char *problem = remote_load_library(&remote->library, file);
    int status = problem ? VIGIL_ENOTFOUND : remote_begin(remote);
    if (status) {
        free(remote);
        if (!problem) return integer(napi, status);
        napi_create_string_utf8(napi, problem, NAPI_AUTO_LENGTH, &text);
        return text;
    }
    napi_create_reference(napi, argv[1], 1, &remote->deliver);
    addon->remote = remote;
    return integer(napi, VIGIL_OK);
}

/* Clusters. */

/* A string, or null where the argument is undefined. */
static bool remote_get_option(napi_env napi, napi_value value, char *text, const char **option) {
    napi_valuetype type;
    *option = NULL;
    if (napi_typeof(napi, value, &type) != napi_ok || type == napi_undefined) return true;
    *option = text;
    return get_text(napi, value, text, TEXT_BYTES);
}

/* remoteOpen(at, ttl in ms, cacert, cert, key, user, password): the number of the cluster, or an error. */
static napi_value remote_open(napi_env napi, napi_callback_info info) {
    size_t argc = 7;
    napi_value argv[7];
    struct remote *remote = addon_of(napi, info, &argc, argv)->remote;
    vigil_remote_options options = {.ttl_ns = (int64_t)(get_number(napi, argv[1]) * 1e6)};
    const char *at, **all[] = {&at, &options.cacert, &options.cert, &options.key, &options.user, &options.password};
    char texts[6][TEXT_BYTES];
    for (int i = 0; i < 6; i++)
        if (!remote_get_option(napi, argv[i ? i + 1 : 0], texts[i], all[i])) return integer(napi, VIGIL_EINVAL);
    struct cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster) return integer(napi, VIGIL_ENOMEM);
    int status = remote->library.vigil_remote_open(&cluster->remote, remote->agent, at, &options);
    if (status) {
        free(cluster);
        return integer(napi, status);
    }
    numbered_add(&remote->clusters, &cluster->numbered);
    return integer(napi, (int32_t)cluster->numbered.number);
}

static napi_value remote_text(napi_env napi, const char *text) {
    napi_value value;
    napi_create_string_utf8(napi, text, NAPI_AUTO_LENGTH, &value);
    return value;
}

/* remoteWhy(cluster) */
static napi_value remote_why(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct remote *remote = addon_of(napi, info, &argc, argv)->remote;
    const struct cluster *cluster = numbered_find(remote->clusters, get_number(napi, argv[0]));
    return remote_text(napi, cluster ? remote->library.vigil_remote_why(cluster->remote) : "");
}

/* Locks. */

/* remoteLock(cluster, name): the number of a handle, or an error. What is released goes to other machines at once: a
 * process that ends would keep them waiting until its lease has ended. */
static napi_value remote_lock(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2];
    struct remote *remote = addon_of(napi, info, &argc, argv)->remote;
    const struct cluster *cluster = numbered_find(remote->clusters, get_number(napi, argv[0]));
    char name[VIGIL_REMOTE_NAME + 2];
    if (!cluster) return integer(napi, VIGIL_EINVAL);
    if (!get_text(napi, argv[1], name, sizeof name)) return integer(napi, VIGIL_ENAME);
    struct lock *lock = calloc(1, sizeof *lock);
    if (!lock) return integer(napi, VIGIL_ENOMEM);
    lock->remote = remote;
    vigil_remote_lock_options options = {.gives_back = true, .on_lost = remote_on_lost, .data = lock};
    int status = remote->library.vigil_remote_lock_open(&lock->lock, cluster->remote, name, &options);
    if (status) {
        free(lock);
        return integer(napi, status);
    }
    numbered_add(&remote->locks, &lock->numbered);
    return integer(napi, (int32_t)lock->numbered.number);
}

/* The lock of a call's first argument, or null. */
static struct lock *remote_argument(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct remote *remote = addon_of(napi, info, &argc, argv)->remote;
    return remote ? numbered_find(remote->locks, get_number(napi, argv[0])) : NULL;
}

/* remoteTake(lock, how, timeout in ms): VIGIL_PENDING, and NEWS_ENDED will be told. */
static napi_value remote_take(napi_env napi, napi_callback_info info) {
    size_t argc = 3;
    napi_value argv[3];
    struct remote *remote = addon_of(napi, info, &argc, argv)->remote;
    struct lock *lock = numbered_find(remote->locks, get_number(napi, argv[0]));
    if (!lock) return integer(napi, VIGIL_EINVAL);
    double timeout_ns = get_number(napi, argv[2]) * 1e6;
    int64_t timeout = timeout_ns < (double)VIGIL_FOREVER ? (int64_t)timeout_ns : VIGIL_FOREVER;
    unsigned how = (unsigned)get_number(napi, argv[1]);
    return integer(napi, remote->library.vigil_remote_lock_take(lock->lock, how, timeout, remote_on_ended, lock));
}

/* remoteCancel(lock): VIGIL_OK: NEWS_ENDED will not be told. */
static napi_value remote_cancel(napi_env napi, napi_callback_info info) {
    struct lock *lock = remote_argument(napi, info);
    return integer(napi, lock ? lock->remote->library.vigil_remote_lock_cancel(lock->lock) : VIGIL_EINVAL);
}

/* remoteRelease(lock): VIGIL_OK, or VIGIL_PENDING, and NEWS_RELEASED will be told. */
static napi_value remote_release(napi_env napi, napi_callback_info info) {
    struct lock *lock = remote_argument(napi, info);
    if (!lock) return integer(napi, VIGIL_EINVAL);
    int status = lock->remote->library.vigil_remote_lock_release(lock->lock, remote_on_released, lock);
    remote_set_held(lock, false);
    return integer(napi, status);
}

static napi_value remote_consistent(napi_env napi, napi_callback_info info) {
    struct lock *lock = remote_argument(napi, info);
    return integer(napi, lock ? lock->remote->library.vigil_remote_lock_consistent(lock->lock) : VIGIL_EINVAL);
}

/* remoteClose(lock), which is not held. The number is not valid any more. */
static napi_value remote_close(napi_env napi, napi_callback_info info) {
    struct lock *lock = remote_argument(napi, info);
    if (!lock) return integer(napi, VIGIL_EINVAL);
    int status = lock->remote->library.vigil_remote_lock_close(lock->lock, remote_on_closed, lock);
    if (status == VIGIL_OK) remote_free_lock(lock);
    return integer(napi, status);
}

/* remoteHeld(lock): {token, key} */
static napi_value remote_held(napi_env napi, napi_callback_info info) {
    const struct lock *lock = remote_argument(napi, info);
    napi_value result, token;
    if (!lock) return NULL;
    const struct library *library = &lock->remote->library;
    napi_create_object(napi, &result);
    napi_create_bigint_int64(napi, library->vigil_remote_lock_token(lock->lock), &token);
    napi_set_named_property(napi, result, "token", token);
    napi_set_named_property(napi, result, "key", remote_text(napi, library->vigil_remote_lock_key(lock->lock)));
    return result;
}

/* remoteDeath(lock): {host, pid, takenAt, text} of the holder that died, or undefined. */
static napi_value remote_death(napi_env napi, napi_callback_info info) {
    const struct lock *lock = remote_argument(napi, info);
    napi_value result;
    vigil_remote_holder dead;
    if (!lock || lock->remote->library.vigil_remote_lock_death(lock->lock, &dead)) return NULL;
    napi_create_object(napi, &result);
    napi_set_named_property(napi, result, "host", remote_text(napi, dead.host));
    napi_set_named_property(napi, result, "pid", number(napi, dead.pid));
    napi_set_named_property(napi, result, "takenAt", number(napi, (double)dead.taken_at * 1000));
    napi_set_named_property(napi, result, "text", remote_text(napi, dead.text));
    return result;
}

void remote_define(struct addon *addon, napi_value exports) {
    addon_define(addon, exports, "remoteLoad", remote_load);
    addon_define(addon, exports, "remoteOpen", remote_open);
    addon_define(addon, exports, "remoteWhy", remote_why);
    addon_define(addon, exports, "remoteLock", remote_lock);
    addon_define(addon, exports, "remoteTake", remote_take);
    addon_define(addon, exports, "remoteCancel", remote_cancel);
    addon_define(addon, exports, "remoteRelease", remote_release);
    addon_define(addon, exports, "remoteConsistent", remote_consistent);
    addon_define(addon, exports, "remoteClose", remote_close);
    addon_define(addon, exports, "remoteHeld", remote_held);
    addon_define(addon, exports, "remoteDeath", remote_death);
}

/* Each lock is left as a killed process leaves it: the cluster cannot be told without waiting for it. A lock that this
 * machine is just giving to it becomes its own in a dispatch. */
static void remote_abandon_locks(struct remote *remote) {
    while (remote->locks) {
        struct lock *lock = (struct lock *)remote->locks;
        if (remote->library.vigil_remote_lock_abandon(lock->lock) == VIGIL_OK) remote_free_lock(lock);
        else remote->library.vigil_agent_dispatch(remote->agent);
    }
}

void remote_end(struct addon *addon) {
    struct remote *remote = addon->remote;
    if (!remote) return;
    remote->library.vigil_agent_on_alive(remote->agent, NULL, NULL);
    uv_close((uv_handle_t *)remote->seat, remote_on_seat_closed);
    remote_abandon_locks(remote);
    for (struct numbered *one = remote->clusters, *next; one; one = next) {
        next = one->next;
        remote->library.vigil_remote_close(((struct cluster *)one)->remote);
        free(one);
    }
    remote->library.vigil_agent_destroy(remote->agent);
    free(remote);
    addon->remote = NULL;
}
