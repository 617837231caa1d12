/* SPDX-License-Identifier: MIT */
/* What does not wait. Counts: see holdings.c. */
#include "environment.h"

static void *locks_word(const struct environment *environment) {
    return (void *)(uintptr_t)environment->scratch->address;
}

/* As the runner of sync/once.c does it: 1 or 2 becomes 3, done, or 0, new; 2 means that there are waiters. */
void locks_end_once(void *once, bool done) {
    uint32_t *word = once, seen = __atomic_exchange_n(word, done ? 3 : 0, __ATOMIC_ACQ_REL);
    if ((seen & 3) == 2) vigil_notify(word, VIGIL_ALL);
}

static int locks_release_one(struct environment *environment, int32_t kind) {
    void *word = locks_word(environment);
    switch (kind) {
    case KIND_MUTEX: return vigil_mutex_unlock(word);
    case KIND_READ: return vigil_rwlock_read_unlock(word);
    case KIND_WRITE: return vigil_rwlock_write_unlock(word);
    case KIND_PERMITS: return vigil_sem_release(word, (uint32_t)environment->scratch->value);
    case KIND_ONCE: locks_end_once(word, environment->scratch->value); return VIGIL_OK;
    default: return VIGIL_EINVAL;
    }
}

int32_t locks_release(struct environment *environment, int32_t kind) {
    int status = locks_release_one(environment, kind);
    int32_t weight = holdings_weight((enum kind)kind, (uint32_t)environment->scratch->value);
    if (status == VIGIL_OK) holdings_add(environment, environment->scratch->entry, -weight);
    return status;
}

int32_t locks_signal(struct environment *environment, int32_t unused) {
    (void)unused;
    vigil_cond *cond = locks_word(environment);
    bool all = environment->scratch->value != 1;
    return (int32_t)(all ? vigil_cond_broadcast(cond) : vigil_cond_signal(cond));
}

int32_t locks_consistent(struct environment *environment, int32_t kind) {
    void *word = locks_word(environment);
    return kind == KIND_MUTEX ? vigil_mutex_consistent(word) : vigil_rwlock_consistent(word);
}

int32_t locks_downgrade(struct environment *environment, int32_t unused) {
    (void)unused;
    int status = vigil_rwlock_downgrade(locks_word(environment));
    if (status == VIGIL_OK) holdings_add(environment, environment->scratch->entry, 2); /* from -1 to 1 */
    return status;
}

int32_t locks_holder(struct environment *environment, int32_t unused) {
    (void)environment;
    (void)unused;
    return (int32_t)__atomic_load_n(&vigil__holder, __ATOMIC_RELAXED);
}
