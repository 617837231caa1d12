/* SPDX-License-Identifier: MIT */
/* sound.h - whether what is derived in a bucket of a segment (shared.h) follows from what is true. */
#ifndef VIGIL_SOUND_H
#define VIGIL_SOUND_H

#include "lot/lot.h"

/* The parts of a lot that are in the segment, which may hold anything. */
struct lot_parts {
    struct bucket *buckets;
    uint32_t *claims;
    struct slot *slots;
    uint32_t slot_count, bucket_bits;
};

/* Whether the slot is in line in that bucket, as it says itself. */
bool slot_is_in(const struct lot_parts *parts, uint32_t slot, uint32_t bucket);

/*
 * Follow the links of a bucket: null, and how many hang there; or what is wrong with them, for people to read. Whoever
 * does not have the lock of the bucket may find wrong what is only being changed.
 */
const char *bucket_fault(const struct lot_parts *parts, uint32_t bucket, uint32_t *linked);

/* How many are in line in that bucket, as they say themselves: looks at all slots. */
uint32_t bucket_census(const struct lot_parts *parts, uint32_t bucket);

/* The same for each bucket, in one go: to be freed. Null: there is no memory for that. */
uint32_t *bucket_censuses(const struct lot_parts *parts);

#endif
