/* SPDX-License-Identifier: MIT */
/* What the files of src/memory share: how a buffer looks inside, and what the element types are. */
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

/* X(enumerator, C type, name, argument): the argument is passed through to each X. */
#define ELEMENT_TYPES(X, argument)               \
    X(VIGIL_I8, int8_t, "int8", argument)        \
    X(VIGIL_U8, uint8_t, "uint8", argument)      \
    X(VIGIL_I16, int16_t, "int16", argument)     \
    X(VIGIL_U16, uint16_t, "uint16", argument)   \
    X(VIGIL_I32, int32_t, "int32", argument)     \
    X(VIGIL_U32, uint32_t, "uint32", argument)   \
    X(VIGIL_I64, int64_t, "int64", argument)     \
    X(VIGIL_U64, uint64_t, "uint64", argument)

/* Inline, because every access to an element asks. */
static inline uint64_t element_size(enum vigil_type type) {
#define X(enumerator, T, name, argument) \
    case enumerator: return sizeof(T);
    switch (type) { ELEMENT_TYPES(X, ) }
#undef X
    return 0;
}

/*
 * A view lies inside its buffer when it is made, and a buffer never shrinks: so only a view to the end has to look at
 * the length that the buffer has now. Its offset is never above that, except in the child of a fork.
 */
static inline uint64_t element_count(vigil_view view) {
    if (view.length != VIGIL_TO_END) return view.length;
    uint64_t length = buffer_length(view.buffer);
    return length < view.byte_offset ? 0 : (length - view.byte_offset) / element_size(view.type);
}

#endif
