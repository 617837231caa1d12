/* SPDX-License-Identifier: MIT */
/*
 * vigil/memory.h - buffers, and typed views of them: JavaScript's SharedArrayBuffer and its integer arrays.
 *
 * A buffer is a block of bytes that every thread may use at once. A view shows a part of it as an array of one
 * integer type. The operations of vigil/atomics.h go through a view and check every access:
 *
 *     vigil_buffer *buffer;
 *     vigil_buffer_create(&buffer, 1024, 1024);
 *     vigil_view counters;
 *     vigil_view_init(&counters, buffer, VIGIL_I32, 0, VIGIL_TO_END);
 *     vigil_atomics_add(counters, 3, 1, NULL);
 *     vigil_buffer_destroy(buffer);
 *
 * Any number of views, of different types, may lie on one buffer and overlap. They share its bytes.
 */
#ifndef VIGIL_MEMORY_H
#define VIGIL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_buffer vigil_buffer;

/*
 * vigil_buffer_create - `length` bytes, all zero, that may grow to `max_length` bytes without moving.
 *
 * With `length` equal to `max_length` the size is fixed. Zero is a length like any other. The address space up to the
 * maximum is reserved at once; memory is used for the pages that are touched.
 *
 * VIGIL_ENULL, VIGIL_ERANGE (`length` above `max_length`), VIGIL_ENOMEM.
 */
VIGIL_API int vigil_buffer_create(vigil_buffer **buffer, uint64_t length, uint64_t max_length);

/*
 * vigil_buffer_destroy - end every wait on the buffer's memory with VIGIL_CANCELLED, as vigil_forget does, and free it.
 *
 * Answers how many waits it ended, or VIGIL_ENULL. Nobody may use the buffer, or a view of it, meanwhile or
 * afterwards. Of a segment it ends nobody's wait: see segment.h.
 */
VIGIL_API int64_t vigil_buffer_destroy(vigil_buffer *buffer);

/*
 * vigil_buffer_grow - make the buffer `new_length` bytes long. Any thread, at any time.
 *
 * The new bytes are zero, and the length never falls: of threads that grow to different lengths at once, the greatest
 * wins. The length is read and changed sequentially consistent, so whoever sees it may use the bytes. The length that
 * it has already is VIGIL_OK.
 *
 * VIGIL_ENULL, VIGIL_ERANGE (above the maximum), VIGIL_EINVAL (below the current length: buffers don't shrink).
 */
VIGIL_API int vigil_buffer_grow(vigil_buffer *buffer, uint64_t new_length);

/*
 * What a buffer is. The data is aligned to a page and stays where it is; only the length changes. Growable is whether
 * it was created with room to grow, even when it has used that up. A null buffer has length 0 and null data.
 */
VIGIL_API uint64_t vigil_buffer_length(vigil_buffer *buffer);
VIGIL_API uint64_t vigil_buffer_max_length(vigil_buffer *buffer);
VIGIL_API bool vigil_buffer_growable(vigil_buffer *buffer);
VIGIL_API void *vigil_buffer_data(vigil_buffer *buffer);

/* The element types. Zero is none of them. */
enum vigil_type {
    VIGIL_I8 = 1,
    VIGIL_U8,
    VIGIL_I16,
    VIGIL_U16,
    VIGIL_I32,
    VIGIL_U32,
    VIGIL_I64,
    VIGIL_U64
};

/* An element's size in bytes, and the type's name, "int32" say; 0 and "unknown" for what is no type. */
VIGIL_API uint64_t vigil_type_size(enum vigil_type type);
VIGIL_API const char *vigil_type_name(enum vigil_type type);

/*
 * vigil_view - a part of a buffer as an array of integers. A plain value: copy it, pass it, drop it. Set it with
 * vigil_view_init and leave its fields alone. All zero, it is an empty view of no type: every operation on it answers
 * VIGIL_ETYPE.
 */
typedef struct vigil_view {
    vigil_buffer *buffer;
    uint64_t byte_offset;
    uint64_t length; /* in elements, or VIGIL_TO_END */
    enum vigil_type type;
} vigil_view;

/* As a view's length: as many whole elements as there are up to the buffer's end, also when it has grown. */
#define VIGIL_TO_END UINT64_MAX

/*
 * vigil_view_init - a view of `length` elements that starts `byte_offset` bytes into the buffer.
 *
 * Errors, checked in this order: VIGIL_ENULL, VIGIL_ETYPE, VIGIL_EMISALIGNED (the offset is not a multiple of the
 * element's size), VIGIL_ERANGE (the view would reach beyond the buffer's current length).
 */
VIGIL_API int vigil_view_init(vigil_view *view, vigil_buffer *buffer, enum vigil_type type, uint64_t byte_offset,
                              uint64_t length);

/* How many elements it has now. */
VIGIL_API uint64_t vigil_view_length(vigil_view view);

#ifdef __cplusplus
}
#endif
#endif
