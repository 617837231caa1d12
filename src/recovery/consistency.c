/* SPDX-License-Identifier: MIT */
/* See consistency.h. */
#include "consistency.h"

#include <stdlib.h>

#include "lot/line.h"

bool slot_is_in(const struct lot_parts *parts, uint32_t index, uint32_t bucket) {
    struct slot *slot = &parts->slots[index];
    if (!prim_load_relaxed(&parts->claims[index])) return false;
    uint64_t key = prim_load_acquire(&slot->key);
    if (!key || bucket_number_of(key, parts->bucket_bits) != bucket) return false;
    bool waits = undecided(prim_load_acquire(&slot->state));
    return waits && prim_load_relaxed(&slot->key) == key; /* it has not just begun to wait for something else */
}

uint32_t bucket_count_in_line(const struct lot_parts *parts, uint32_t bucket) {
    uint32_t count = 0;
    for (uint32_t index = 1; index < parts->slot_count; index++) count += slot_is_in(parts, index, bucket);
    return count;
}

uint32_t *buckets_count_in_line(const struct lot_parts *parts) {
    uint32_t *counts = calloc((size_t)1 << parts->bucket_bits, sizeof *counts);
    for (uint32_t index = 1; counts && index < parts->slot_count; index++) {
        if (!prim_load_relaxed(&parts->claims[index])) continue; /* reading an unused slot would allocate its page */
        uint32_t bucket = bucket_number_of(prim_load_relaxed(&parts->slots[index].key), parts->bucket_bits);
        counts[bucket] += slot_is_in(parts, index, bucket);
    }
    return counts;
}

/* Follow a line from its head. Returns null if it is consistent; adds to `linked`. */
static const char *consistency_line_fault(const struct lot_parts *parts, uint32_t head, uint32_t bucket,
                                          uint32_t *linked) {
    uint64_t key = prim_load_relaxed(&parts->slots[head].key), began_ns = 0;
    uint32_t before = 0;
    for (uint32_t index = head; index; index = prim_load_relaxed(&parts->slots[before].next)) {
        if (index >= parts->slot_count) return "a link points outside the segment";
        if (++*linked >= parts->slot_count) return "a line has no end";
        struct slot *slot = &parts->slots[index];
        if (!slot_is_in(parts, index, bucket)) return "a slot is linked into a line that it is not waiting in";
        if (prim_load_relaxed(&slot->key) != key) return "a line has waiters of two words";
        if (before && prim_load_relaxed(&slot->prev) != before) return "a forward link has no matching link back";
        if (prim_load_relaxed(&slot->began_ns) < began_ns) return "a line is out of order";
        began_ns = prim_load_relaxed(&slot->began_ns);
        before = index;
    }
    return prim_load_relaxed(&parts->slots[head].tail) == before ? NULL : "the tail of a line is not its last slot";
}

const char *bucket_fault(const struct lot_parts *parts, uint32_t bucket, uint32_t *linked) {
    uint32_t head = prim_load_relaxed(&parts->buckets[bucket].line);
    uint32_t word = prim_load_relaxed(&parts->buckets[bucket].word);
    if (head && !word) return "a slot is in line, but notifiers would not look there"; /* N3 in lot.h */
    for (*linked = 0; head; head = prim_load_relaxed(&parts->slots[head].next_line)) {
        if (head >= parts->slot_count) return "a link points outside the segment";
        const char *fault = consistency_line_fault(parts, head, bucket, linked);
        if (fault) return fault;
        if (*linked >= parts->slot_count) return "the lines of a bucket have no end";
    }
    return NULL;
}
