/* SPDX-License-Identifier: MIT */
/*
 * What an environment holds, so that it can be given up when the environment ends: the next holder of a mutex, or of a
 * read-write lock that was held to write, is told that its owner died; permits and reading locks come back.
 *
 * The word of a mutex in private memory names its holder. It is a robust mutex (0x20000000), and its holder writes the
 * id of its thread where a process that has a segment open would write its number (vigil/mutex.h):
 *
 *     0x20000000                free
 *     0x20000001 | tid << 4     held by the environment of that thread. JavaScript changes one to the other
 *
 * So it does not matter which environment unlocks it, or whether JavaScript stopped just before or after the change.
 *
 * Other locks have no room for that: `counts`, which JavaScript shares, has what this environment holds of them. It is
 * changed where they are taken and released. On the fast path JavaScript does so in the same function: it cannot be
 * stopped in between, because V8 ends a function only where it calls another, or goes back in a loop. Otherwise it is
 * done here, in the callback of the operation, so that a grant counts even if JavaScript never hears of it.
 */
#include <stdlib.h>

#include "environment.h"

#define MUTEX_ROBUST 0x20000000u
#define MUTEX_STATE  3u
#define MUTEX_NUMBER 0x1ffffff0u

/* lib/core.js has the same numbers. */
enum holding { HOLDING_NONE, HOLDING_MUTEX, HOLDING_COUNTED_MUTEX, HOLDING_RWLOCK, HOLDING_PERMITS, HOLDING_ONCE };

struct holdings {
    struct {
        void *address;
        uint32_t next_free; /* plus one; of an entry that is HOLDING_NONE */
        uint8_t what;
    } * entries;
    uint32_t count, room;
    uint32_t first_free; /* plus one */
    int32_t *counts;     /* JavaScript's, of each entry: of a read-write lock, -1: held to write */
    uint32_t counts_length;
};

static bool holdings_is_held(uint32_t seen) {
    return (seen & MUTEX_STATE) == 1 || (seen & MUTEX_STATE) == 2;
}

void holdings_sign(struct environment *environment, void *mutex) {
    uint32_t *word = mutex, seen = __atomic_load_n(word, __ATOMIC_RELAXED), holder = environment->thread_id << 4;
    while (holdings_is_held(seen) && /* else another environment has unlocked it already */
           !__atomic_compare_exchange_n(word, &seen, (seen & ~MUTEX_NUMBER) | holder, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) { /* waiters may change it from 1 to 2 meanwhile */
    }
}

static bool holdings_signed(const struct environment *environment, const uint32_t *mutex) {
    uint32_t seen = __atomic_load_n(mutex, __ATOMIC_RELAXED);
    return holdings_is_held(seen) && (seen & MUTEX_ROBUST) && (seen & MUTEX_NUMBER) == environment->thread_id << 4;
}

int32_t holdings_weight(enum kind kind, uint32_t permits) {
    if (kind == KIND_WRITE) return -1;
    return kind == KIND_PERMITS ? (int32_t)permits : 1;
}

void holdings_add(struct environment *environment, int32_t entry, int32_t count) {
    struct holdings *holdings = environment->holdings;
    if (entry >= 0 && (uint32_t)entry < holdings->counts_length) holdings->counts[entry] += count;
}

bool holdings_any_between(const struct environment *environment, const void *from, const void *to) {
    const struct holdings *holdings = environment->holdings;
    for (uint32_t entry = 0; entry < holdings->count && entry < holdings->counts_length; entry++) {
        const void *address = holdings->entries[entry].address;
        bool counted = holdings->entries[entry].what > HOLDING_MUTEX;
        if (counted && address >= from && address < to && holdings->counts[entry]) return true;
    }
    return false;
}

void holdings_set_counts(struct environment *environment, int32_t *counts, uint32_t length) {
    environment->holdings->counts = counts;
    environment->holdings->counts_length = length;
}

static bool holdings_grow(struct holdings *holdings) {
    uint32_t room = holdings->room ? holdings->room * 2 : 16;
    void *entries = realloc(holdings->entries, room * sizeof *holdings->entries);
    if (!entries) return false;
    holdings->entries = entries;
    holdings->room = room;
    return true;
}

int32_t holdings_track(struct environment *environment, int32_t what) {
    struct holdings *holdings = environment->holdings;
    uint32_t entry = holdings->first_free ? holdings->first_free - 1 : holdings->count;
    if (entry == holdings->room && !holdings_grow(holdings)) return VIGIL_ENOMEM;
    if (entry == holdings->count) {
        holdings->count++;
    } else {
        holdings->first_free = holdings->entries[entry].next_free;
    }
    holdings->entries[entry].address = (void *)(uintptr_t)environment->scratch->address;
    holdings->entries[entry].what = (uint8_t)what;
    return (int32_t)entry;
}

int32_t holdings_untrack(struct environment *environment, int32_t number) {
    struct holdings *holdings = environment->holdings;
    uint32_t entry = (uint32_t)number;
    if (entry >= holdings->count || holdings->entries[entry].what == HOLDING_NONE) return VIGIL_EINVAL;
    holdings->entries[entry].what = HOLDING_NONE;
    holdings->entries[entry].next_free = holdings->first_free;
    holdings->first_free = entry + 1;
    return VIGIL_OK;
}

int32_t holdings_mine(struct environment *environment, int32_t unused) {
    (void)unused;
    return holdings_signed(environment, (void *)(uintptr_t)environment->scratch->address);
}

static void holdings_give_up(const struct environment *environment, enum holding what, void *address, int32_t count) {
    switch (what) {
    case HOLDING_MUTEX:
        if (holdings_signed(environment, address)) vigil_mutex_abandon(address);
        break;
    case HOLDING_COUNTED_MUTEX:
        if (count) vigil_mutex_abandon(address);
        break;
    case HOLDING_RWLOCK:
        if (count < 0) vigil_rwlock_write_abandon(address);
        for (; count > 0; count--) vigil_rwlock_read_unlock(address);
        break;
    case HOLDING_PERMITS:
        if (count > 0) vigil_sem_release(address, (uint32_t)count);
        break;
    case HOLDING_ONCE:
        if (count) locks_end_once(address, false);
        break;
    case HOLDING_NONE: break;
    }
}

void holdings_end(struct environment *environment) {
    struct holdings *holdings = environment->holdings;
    for (uint32_t entry = 0; entry < holdings->count; entry++) {
        int32_t count = entry < holdings->counts_length ? holdings->counts[entry] : 0;
        holdings_give_up(environment, holdings->entries[entry].what, holdings->entries[entry].address, count);
    }
    free(holdings->entries);
    free(holdings);
}

bool holdings_begin(struct environment *environment) {
    environment->holdings = calloc(1, sizeof *environment->holdings);
    return environment->holdings != NULL;
}
