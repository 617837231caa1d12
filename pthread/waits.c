/* SPDX-License-Identifier: MIT */
/*
 * The table of threads that wait now. An entry is claimed for one wait, not for a thread: so there is nothing to be
 * cleaned up when threads end, however late in their end they wait.
 *
 * Its thread alone writes to a claimed entry. Others copy it: `turn` is stored last, and cleared first; a copy during
 * which it has stayed the same is whole.
 */
#include "preload.h"

#include <string.h>

#define WAITS 4096u

static struct wait waits[WAITS];
static uint32_t bound; /* all entries that were ever used are below */
static uint32_t turns;

static struct wait *claim(uint32_t thread) {
    uint32_t first = thread % 64;
    for (uint32_t i = 0; i < WAITS; i++) {
        uint32_t index = (first + i) % WAITS, none = 0;
        struct wait *wait = &waits[index];
        if (__atomic_load_n(&wait->thread, __ATOMIC_RELAXED)) continue;
        if (!__atomic_compare_exchange_n(&wait->thread, &none, thread, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        uint32_t seen = __atomic_load_n(&bound, __ATOMIC_RELAXED);
        while (seen <= index &&
               !__atomic_compare_exchange_n(&bound, &seen, index + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
        return wait;
    }
    return NULL;
}

static uint32_t next_turn(void) {
    uint32_t turn;
    do turn = __atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED);
    while (!turn);
    return turn;
}

void wait_begin(struct wait_place *place, enum wait_kind kind, const void *lock, const void *site) {
    struct wait *wait = claim(preload_self());
    *place = (struct wait_place){wait, kind, lock, site, vigil_now_ns(), true};
    if (!wait) return;
    wait->kind = kind;
    wait->lock = lock;
    wait->site = site;
    wait->since_ns = place->since_ns;
    wait->handle = pthread_self();
    wait->name = kind == WAIT_COND || kind == WAIT_SEM ? vigil_thread_self() : 0;
    __atomic_store_n(&wait->turn, next_turn(), __ATOMIC_SEQ_CST); /* see cancel.c */
}

void wait_end(const struct wait_place *place) {
    struct wait *wait = place->wait;
    if (wait) {
        __atomic_store_n(&wait->turn, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE); /* a reader that sees the next wait sees turn zero first */
        __atomic_store_n(&wait->thread, 0, __ATOMIC_RELEASE);
    }
    if (preload.profile && place->counts) profile_add(place, vigil_now_ns() - place->since_ns);
}

bool wait_copy(uint32_t index, struct wait *copy, bool *more) {
    *more = index < __atomic_load_n(&bound, __ATOMIC_ACQUIRE);
    if (!*more) return false;
    uint32_t turn = __atomic_load_n(&waits[index].turn, __ATOMIC_ACQUIRE);
    if (!turn) return false;
    *copy = waits[index];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&waits[index].turn, __ATOMIC_RELAXED) == turn;
}

const char *wait_kind_name(enum wait_kind kind) {
    static const char *const names[WAIT_KINDS] = {"mutex",     "rwlock",    "rwlock",  "once",
                                                  "condition", "semaphore", "barrier", "end of thread"};
    return names[kind];
}

/* The threads that waited are not here. */
void wait_in_child(void) {
    memset(waits, 0, sizeof *waits * bound);
    bound = 0;
}
