/* SPDX-License-Identifier: MIT */
/*
 * buffer.h - the layout of a buffer. It is in this layer because every segment (shm/segment.h) contains the buffer
 * that its user gets. The functions for buffers are in memory/buffer.c.
 */
#ifndef VIGIL_SRC_BUFFER_H
#define VIGIL_SRC_BUFFER_H

#include "prim.h"
#include "vigil/memory.h"

struct segment;

struct vigil_buffer {
    unsigned char *data; /* a mapping of max_length bytes; null: it was a segment's, and fork's child has no mapping */
    uint64_t *length;    /* atomic; only rises; points to own_length, or into the segment */
    uint64_t max_length;
    bool growable;
    uint64_t own_length;
    struct segment *segment; /* null: memory of this process alone */
};

/* Another member of a segment may have overwritten the length: never leave the mapping. */
static inline uint64_t buffer_length(const vigil_buffer *buffer) {
    uint64_t length = prim_load_seq_cst(buffer->length);
    return length < buffer->max_length ? length : buffer->max_length;
}

#endif
