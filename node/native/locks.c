/* SPDX-License-Identifier: MIT */
/* What does not wait: release(kind), signal(), consistent(kind), downgrade(), holder(). Counts: see holdings.c. */
#include "environment.h"

static void *locks_word(const struct environment *environment) {
    return (void *)(uintptr_t)environment->scratch->address;
}

static int locks_release(struct environment *environment, int kind) {
    void *word = locks_word(environment);
    switch (kind) {
    case KIND_MUTEX: return vigil_mutex_unlock(word);
    case KIND_READ: return vigil_rwlock_read_unlock(word);
    case KIND_WRITE: return vigil_rwlock_write_unlock(word);
    case KIND_PERMITS: return vigil_sem_release(word, (uint32_t)environment->scratch->value);
    default: return VIGIL_EINVAL;
    }
}

static napi_value locks_release_method(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct environment *environment = environment_of(napi, info, &argc, argv);
    int kind = (int)get_number(napi, argv[0]), status = locks_release(environment, kind);
    int32_t weight = holdings_weight((enum kind)kind, (uint32_t)environment->scratch->value);
    if (status == VIGIL_OK) holdings_add(environment, environment->scratch->entry, -weight);
    return integer(napi, status);
}

/* signal(): the first waiters of the condition, as many as scratch.value says, at least one. Returns how many. */
static napi_value locks_signal(napi_env napi, napi_callback_info info) {
    struct environment *environment = environment_of(napi, info, NULL, NULL);
    vigil_cond *cond = locks_word(environment);
    bool all = environment->scratch->value != 1;
    return number(napi, (double)(all ? vigil_cond_broadcast(cond) : vigil_cond_signal(cond)));
}

static napi_value locks_consistent(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct environment *environment = environment_of(napi, info, &argc, argv);
    void *word = locks_word(environment);
    bool mutex = (int)get_number(napi, argv[0]) == KIND_MUTEX;
    return integer(napi, mutex ? vigil_mutex_consistent(word) : vigil_rwlock_consistent(word));
}

static napi_value locks_downgrade(napi_env napi, napi_callback_info info) {
    struct environment *environment = environment_of(napi, info, NULL, NULL);
    int status = vigil_rwlock_downgrade(locks_word(environment));
    if (status == VIGIL_OK) holdings_add(environment, environment->scratch->entry, 2); /* from -1 to 1 */
    return integer(napi, status);
}

/* holder(): what the word of a mutex in a segment is while this process holds it and there are no waiters. */
static napi_value locks_holder(napi_env napi, napi_callback_info info) {
    (void)info;
    return integer(napi, (int32_t)__atomic_load_n(&vigil__holder, __ATOMIC_RELAXED));
}

void locks_define(struct environment *environment, napi_value exports) {
    environment_define(environment, exports, "release", locks_release_method);
    environment_define(environment, exports, "signal", locks_signal);
    environment_define(environment, exports, "consistent", locks_consistent);
    environment_define(environment, exports, "downgrade", locks_downgrade);
    environment_define(environment, exports, "holder", locks_holder);
}
