/* SPDX-License-Identifier: MIT */
/* What the files of src/memory share: how a buffer looks inside, and what the element types are. */
#ifndef VIGIL_SRC_BUFFER_H
#define VIGIL_SRC_BUFFER_H

#include "prim.h"
#include "vigil/memory.h"

struct vigil_buffer {
    unsigned char *data; /* a mapping of max_length bytes */
    uint64_t length;     /* atomic; only rises */
    uint64_t max_length;
    bool growable;
};

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
 * the length that the buffer has now, and its offset is never above that.
 */
static inline uint64_t element_count(vigil_view view) {
    if (view.length != VIGIL_TO_END) return view.length;
    return (prim_load_seq_cst(&view.buffer->length) - view.byte_offset) / element_size(view.type);
}

#endif
