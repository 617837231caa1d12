/* SPDX-License-Identifier: MIT */
/*
 * buffer.h - how a buffer looks inside. It lies below the segments, since each of them (shm/segment.h) contains the
 * buffer that its user has; the functions for buffers are in memory/buffer.c.
 */
#ifndef VIGIL_SRC_BUFFER_H
#define VIGIL_SRC_BUFFER_H

#include "prim.h"
#include "vigil/memory.h"

struct segment;

struct vigil_buffer {
    unsigned char *data; /* a mapping of max_length bytes; null: a segment, in the child of a fork */
    uint64_t *length;    /* atomic; only rises; own_length, or in the segment */
    uint64_t max_length;
    bool growable;
    uint64_t own_length;
    struct segment *segment; /* null: memory of this process alone */
};

/* Whatever another member of a segment has done to it, we stay in the mapping. */
static inline uint64_t buffer_length(const vigil_buffer *buffer) {
    uint64_t length = prim_load_seq_cst(buffer->length);
    return length < buffer->max_length ? length : buffer->max_length;
}

#endif
