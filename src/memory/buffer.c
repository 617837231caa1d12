/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "segment.h"
#include "vigil/wait.h"

/* Even an empty buffer has a mapping, so that its data has an address of its own. */
static size_t buffer_mapping_bytes(uint64_t max_length) {
    return max_length > 0 ? (size_t)max_length : 1;
}

int vigil_buffer_create(vigil_buffer **buffer, uint64_t length, uint64_t max_length) {
    if (buffer == NULL) return VIGIL_ENULL;
    if (length > max_length) return VIGIL_ERANGE;
    if (max_length > PTRDIFF_MAX) return VIGIL_ENOMEM; /* no C object can be larger */

    vigil_buffer *made = malloc(sizeof *made);
    if (made == NULL) return VIGIL_ENOMEM;
    size_t bytes = buffer_mapping_bytes(max_length);
    unsigned char *data = prim_map(bytes);
    if (data == NULL || !prim_map_open(data, bytes, false)) {
        if (data != NULL) prim_unmap(data, bytes);
        free(made);
        return VIGIL_ENOMEM;
    }
    *made = (vigil_buffer){
        .data = data,
        .length = &made->own_length,
        .max_length = max_length,
        .growable = length < max_length,
        .own_length = length,
    };
    *buffer = made;
    return VIGIL_OK;
}

int64_t vigil_buffer_destroy(vigil_buffer *buffer) {
    if (buffer == NULL) return VIGIL_ENULL;
    if (buffer->segment != NULL) return segment_close(buffer->segment);
    int64_t cancelled = vigil_forget(buffer->data, buffer_length(buffer));
    prim_unmap(buffer->data, buffer_mapping_bytes(buffer->max_length));
    free(buffer);
    return cancelled;
}

/* The whole mapping is accessible and zero from the start, so growing only stores the length. A segment's file must be
 * extended before that. */
int vigil_buffer_grow(vigil_buffer *buffer, uint64_t new_length) {
    if (buffer == NULL) return VIGIL_ENULL;
    if (buffer->data == NULL) return VIGIL_EFORKED;
    if (new_length > buffer->max_length) return VIGIL_ERANGE;

    uint64_t length = prim_load_seq_cst(buffer->length);
    while (length < new_length) {
        int status = buffer->segment == NULL ? VIGIL_OK : segment_extend(buffer->segment, new_length);
        if (status != VIGIL_OK) return status;
        if (prim_cas_seq_cst(buffer->length, &length, new_length)) return VIGIL_OK;
    }
    return length == new_length ? VIGIL_OK : VIGIL_EINVAL;
}

uint64_t vigil_buffer_length(vigil_buffer *buffer) {
    return buffer == NULL ? 0 : buffer_length(buffer);
}

uint64_t vigil_buffer_max_length(vigil_buffer *buffer) {
    return buffer == NULL ? 0 : buffer->max_length;
}

bool vigil_buffer_growable(vigil_buffer *buffer) {
    return buffer != NULL && buffer->growable;
}

void *vigil_buffer_data(vigil_buffer *buffer) {
    return buffer == NULL ? NULL : buffer->data;
}
