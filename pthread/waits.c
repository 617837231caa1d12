/* SPDX-License-Identifier: MIT */
/*
 * The table of threads that wait now. An entry is taken for one wait, not for a thread: so there is nothing to be
 * cleaned up when threads end, however late in their end they wait.
 *
 * Its thread alone writes to a taken entry. Others copy it: `sequence` is stored last, and cleared first; a copy
 * during which it has stayed the same is whole.
 *
 * The table is in the file of serve.h, for other processes to copy as well.
 */
#include "preload.h"

#include "lot/interrupt.h"

#include "record.h"

/* A wait that the library cannot interrupt is done in slices: so late may a cancellation of the thread be noticed. 20
 * wake-ups in a second; each takes some microseconds. */
#define SLICE_NS INT64_C(50000000)

static struct wait *take_entry(uint32_t thread) {
    uint32_t first = thread % 64;
    for (uint32_t i = 0; i < WAITS_MOST; i++) {
        uint32_t index = (first + i) % WAITS_MOST, none = 0;
        struct wait *wait = &served.waits[index];
        if (__atomic_load_n(&wait->thread, __ATOMIC_RELAXED)) continue;
        if (!__atomic_compare_exchange_n(&wait->thread, &none, thread, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        uint32_t seen = __atomic_load_n(&served.head.bound, __ATOMIC_RELAXED);
        while (seen <= index && !__atomic_compare_exchange_n(&served.head.bound, &seen, index + 1, true,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
        return wait;
    }
    return NULL;
}

static uint32_t next_sequence(void) {
    uint32_t sequence;
    do sequence = __atomic_add_fetch(&served.head.sequences, 1, __ATOMIC_RELAXED);
    while (!sequence);
    return sequence;
}

/*
 * pthread_cancel interrupts waits at conditions and semaphores (cancel.c). For a lock or barrier no interruption is
 * wanted, and without it the thread sleeps on one word instead of two, which the kernel does faster.
 */
static bool is_never_cancelled(enum wait_kind kind) {
    return kind == WAIT_MUTEX || kind == WAIT_READ || kind == WAIT_WRITE || kind == WAIT_BARRIER;
}

void wait_begin(struct wait_scope *scope, enum wait_kind kind, const void *lock, const void *site) {
    uint32_t self = preload_self();
    struct wait *wait = take_entry(self);
    *scope = (struct wait_scope){wait, kind, lock, site, vigil_now_ns(), true, false, NULL, NULL};
    if (is_never_cancelled(kind)) interrupt_hold_back();
    if (is_recorded()) record_event(SERVE_WAITS, kind, lock, 0, scope->since_ns);
    if (!wait) return;
    wait->thread_id = preload_thread_id(self);
    wait->kind = (uint16_t)kind;
    wait->heeds_signals = false;
    wait->lock = lock;
    wait->site = site;
    wait->since_ns = scope->since_ns;
    wait->handle = (uintptr_t)pthread_self();
    wait->name = kind == WAIT_COND || kind == WAIT_SEM ? vigil_thread_self() : 0;
    __atomic_store_n(&wait->sequence, next_sequence(), __ATOMIC_RELEASE);
    if (wait->name) __atomic_thread_fence(__ATOMIC_SEQ_CST); /* see cancel.c */
}

int64_t wait_slice(const struct wait_scope *scope, int64_t deadline_ns) {
    if (scope->wait && scope->wait->name) return deadline_ns;
    int64_t end_ns = vigil_now_ns() + SLICE_NS;
    return end_ns < deadline_ns ? end_ns : deadline_ns;
}

static void record_end(const struct wait_scope *scope) {
    bool lock = scope->kind == WAIT_MUTEX || scope->kind == WAIT_READ || scope->kind == WAIT_WRITE;
    uint32_t by = scope->got && scope->releaser ? __atomic_load_n(scope->releaser, __ATOMIC_RELAXED) : 0;
    record_event(scope->got ? SERVE_GOT : SERVE_GAVE_UP, scope->kind, scope->lock, by, 0);
    if (scope->got && lock) record_hold(scope->lock);
    if (!scope->retaken) return;
    record_event(SERVE_RETAKEN, WAIT_MUTEX, scope->retaken, 0, 0);
    record_hold(scope->retaken);
}

void wait_end(const struct wait_scope *scope) {
    struct wait *wait = scope->wait;
    if (is_never_cancelled(scope->kind)) interrupt_allow();
    if (wait) {
        __atomic_store_n(&wait->sequence, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE); /* a reader that sees the next wait sees sequence zero first */
        __atomic_store_n(&wait->thread, 0, __ATOMIC_RELEASE);
    }
    if (is_recorded()) record_end(scope);
    if (preload.profile && scope->counts) profile_add(scope, vigil_now_ns() - scope->since_ns);
}

bool wait_copy(uint32_t index, struct wait *copy, bool *more) {
    *more = index < WAITS_MOST && index < __atomic_load_n(&served.head.bound, __ATOMIC_ACQUIRE);
    if (!*more) return false;
    const struct wait *wait = &served.waits[index];
    uint32_t sequence = __atomic_load_n(&wait->sequence, __ATOMIC_ACQUIRE);
    if (!sequence) return false;
    *copy = *wait;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&wait->sequence, __ATOMIC_RELAXED) == sequence && copy->kind < WAIT_KINDS;
}

const char *wait_kind_name(uint32_t kind) {
    static const char *const names[WAIT_KINDS] = {"mutex",     "rwlock",    "rwlock",  "once",
                                                  "condition", "semaphore", "barrier", "end of thread"};
    return names[kind];
}
