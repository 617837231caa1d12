/* SPDX-License-Identifier: MIT */
#include "element.h"

uint64_t vigil_type_size(enum vigil_type type) {
    return element_size(type);
}

const char *vigil_type_name(enum vigil_type type) {
#define X(enumerator, T, name, argument)                                                                               \
    case enumerator: return name;
    switch (type) { ELEMENT_TYPES(X, ) }
#undef X
    return "unknown";
}

int vigil_view_init(vigil_view *view, vigil_buffer *buffer, enum vigil_type type, uint64_t byte_offset,
                    uint64_t length) {
    if (view == NULL || buffer == NULL) return VIGIL_ENULL;
    if (buffer->data == NULL) return VIGIL_EFORKED;
    uint64_t size = element_size(type);
    if (size == 0) return VIGIL_ETYPE;
    if (byte_offset % size != 0) return VIGIL_EMISALIGNED;
    uint64_t bytes = buffer_length(buffer);
    if (byte_offset > bytes) return VIGIL_ERANGE;
    /* By division: length * size might overflow. */
    if (length != VIGIL_TO_END && length > (bytes - byte_offset) / size) return VIGIL_ERANGE;
    *view = (vigil_view){.buffer = buffer, .byte_offset = byte_offset, .length = length, .type = type};
    return VIGIL_OK;
}

uint64_t vigil_view_length(vigil_view view) {
    return element_count(view);
}
