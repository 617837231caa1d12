/* SPDX-License-Identifier: MIT */
/* See record.h. */
#include "preload.h"

#include "record.h"

/* Locks that this thread holds, and whose grant is recorded. More are forgotten. */
#define HOLDS 8u
static _Thread_local struct {
    const void *locks[HOLDS];
    uint32_t next;
} holds;

/* The observer may have ended without a word. */
static bool is_still_recorded(int64_t now_ns) {
    int64_t until_ns = __atomic_load_n(&served.head.record_until_ns, __ATOMIC_RELAXED);
    if (now_ns <= until_ns) return true;
    __atomic_compare_exchange_n(&served.head.record_until_ns, &until_ns, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return false;
}

void record_event(enum serve_event_type type, enum wait_kind kind, const void *lock, uint32_t by, int64_t at_ns) {
    int64_t now_ns = vigil_now_ns();
    if (!is_still_recorded(now_ns)) return;
    uint64_t sequence = __atomic_fetch_add(&served.head.events, 1, __ATOMIC_ACQ_REL);
    struct serve_event *event = &served.ring[sequence % EVENTS_KEPT];
    __atomic_store_n(&event->sequence, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    event->at_ns = at_ns ? at_ns : now_ns;
    event->lock = (uint64_t)(uintptr_t)lock;
    event->thread_id = preload_thread_id(preload_self());
    event->by = by;
    event->type = (uint16_t)type;
    event->kind = (uint16_t)kind;
    __atomic_store_n(&event->sequence, sequence + 1, __ATOMIC_RELEASE);
}

void record_hold(const void *lock) {
    holds.locks[holds.next++ % HOLDS] = lock;
}

static bool forget_hold(const void *lock) {
    for (uint32_t i = 0; i < HOLDS; i++) {
        if (holds.locks[i] != lock) continue;
        holds.locks[i] = NULL;
        return true;
    }
    return false;
}

void record_release(enum wait_kind kind, const void *lock, uint32_t *releaser) {
    __atomic_store_n(releaser, preload_thread_id(preload_self()), __ATOMIC_RELAXED);
    if (forget_hold(lock)) record_event(SERVE_RELEASED, kind, lock, 0, 0);
}
