/* SPDX-License-Identifier: MIT */
/* element.h - the types of elements, and how many of them a view has. */
#ifndef VIGIL_SRC_ELEMENT_H
#define VIGIL_SRC_ELEMENT_H

#include "base/buffer.h"

/* X(enumerator, C type, name, argument): the argument is passed through to each X. */
#define ELEMENT_TYPES(X, argument)                                                                                     \
    X(VIGIL_I8, int8_t, "int8", argument)                                                                              \
    X(VIGIL_U8, uint8_t, "uint8", argument)                                                                            \
    X(VIGIL_I16, int16_t, "int16", argument)                                                                           \
    X(VIGIL_U16, uint16_t, "uint16", argument)                                                                         \
    X(VIGIL_I32, int32_t, "int32", argument)                                                                           \
    X(VIGIL_U32, uint32_t, "uint32", argument)                                                                         \
    X(VIGIL_I64, int64_t, "int64", argument)                                                                           \
    X(VIGIL_U64, uint64_t, "uint64", argument)

/* Inline, because every access to an element calls it. */
static inline uint64_t element_size(enum vigil_type type) {
#define X(enumerator, T, name, argument)                                                                               \
    case enumerator: return sizeof(T);
    switch (type) { ELEMENT_TYPES(X, ) }
#undef X
    return 0;
}

/*
 * A view is inside its buffer when it is made, and a buffer never shrinks: so only a view to the end must load the
 * buffer's present length. Its offset is never above that length, except in the child of a fork.
 */
static inline uint64_t element_count(vigil_view view) {
    if (view.length != VIGIL_TO_END) return view.length;
    uint64_t length = buffer_length(view.buffer);
    return length < view.byte_offset ? 0 : (length - view.byte_offset) / element_size(view.type);
}

#endif
