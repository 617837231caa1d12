/* SPDX-License-Identifier: MIT */
/* call.c - treat the line of a lock as if the lock had just been released: after a death, or if a waiter that has been
 * called has not come. */
#include "base/tuning.h"
#include "lot/line.h"
#include "recovery.h"

/* What to do for the lock that the line belongs to; null: it is not a lock's line. The slots in line say so. */
static const struct recovery_call *call_of(const struct lot *lot, uint32_t head) {
    for (; head; head = lot->slots[head].next) {
        uint32_t kind = lot->slots[head].kind;
        if (kind < SLOT_KINDS && recovery_calls[kind].call) return &recovery_calls[kind];
    }
    return NULL;
}

void repair_call_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes) {
    _Alignas(16) unsigned char context[RECOVERY_CALL_BYTES] = {0};
    const struct recovery_call *call = call_of(lot, *line_of(lot, bucket, key));
    if (call && !BUG(no_call_after_death)) line_call(lot, bucket, key, call->call, context, wakes);
}

/* The same when a waiter that has been called has not come. True: it may not be passed yet. */
bool repair_pass_line(struct lot *lot, struct bucket *bucket, uint64_t key, struct wakes *wakes) {
    _Alignas(16) unsigned char context[RECOVERY_CALL_BYTES] = {0};
    const struct recovery_call *call = call_of(lot, *line_of(lot, bucket, key));
    if (!call || BUG(no_call_after_death)) return false;
    if (call->may_pass && call->may_pass(word_of(lot, key), context) == PASS_LATER) return true;
    line_call(lot, bucket, key, call->call, context, wakes);
    return false;
}

void repair_call_lines(struct lot *lot, struct bucket *bucket, struct wakes *wakes) {
    for (uint32_t *line = &bucket->line; *line;) {
        uint64_t key = lot->slots[*line].key;
        repair_call_line(lot, bucket, key, wakes);
        line = line_after(lot, line, key);
    }
}

static bool call_lock(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns) {
    if (is_shared(lot)) return shared_trylock(lot, bucket, deadline_ns);
    bucket_lock(lot, bucket);
    return true;
}

bool recovery_pass_line(struct lot *lot, uint64_t key) {
    struct bucket *bucket = bucket_of(lot, key);
    struct wakes wakes;
    wakes_begin(&wakes);
    if (!call_lock(lot, bucket, prim_now_ns() + RECOVERY_LOCK_NS)) return true;
    bool later = repair_pass_line(lot, bucket, key, &wakes);
    unlock_and_wake(lot, bucket, &wakes);
    return later;
}

void recovery_pass_all(struct lot *lot, uint64_t deadline_ns) {
    for (uint32_t number = 0; number < 1u << lot->bucket_bits; number++) {
        struct bucket *bucket = &lot->buckets[number];
        struct wakes wakes;
        wakes_begin(&wakes);
        if (!prim_load_relaxed(&bucket->word) || !call_lock(lot, bucket, deadline_ns)) continue;
        for (uint32_t *line = &bucket->line; *line;) {
            uint64_t key = lot->slots[*line].key;
            if (repair_pass_line(lot, bucket, key, &wakes)) guard_note(lot, key);
            line = line_after(lot, line, key);
        }
        unlock_and_wake(lot, bucket, &wakes);
    }
}
