/* SPDX-License-Identifier: MIT */
/* consistency.h - whether the derived data of a bucket in a segment (shared.h) is consistent with the slots. */
#ifndef VIGIL_CONSISTENCY_H
#define VIGIL_CONSISTENCY_H

#include "lot/lot.h"

/* The parts of a lot that are in the segment; they cannot be trusted. */
struct lot_parts {
    struct bucket *buckets;
    uint32_t *claims;
    struct slot *slots;
    uint32_t slot_count, bucket_bits;
};

/* Whether the slot is in line in that bucket, according to the slot itself. */
bool slot_is_in(const struct lot_parts *parts, uint32_t slot, uint32_t bucket);

/*
 * Follow the links of a bucket. Returns null, and how many slots are linked; or what is wrong, as a text for users. A
 * caller that has not locked the bucket may see a change in progress as a fault.
 */
const char *bucket_fault(const struct lot_parts *parts, uint32_t bucket, uint32_t *linked);

/* How many slots are in line in that bucket, according to the slots themselves: looks at all slots. */
uint32_t bucket_count_in_line(const struct lot_parts *parts, uint32_t bucket);

/* The same for all buckets in one pass. The caller frees the result. Null: out of memory. */
uint32_t *buckets_count_in_line(const struct lot_parts *parts);

#endif
