/* SPDX-License-Identifier: MIT */
/*
 * vigil/memory.h - buffers, and typed views of them: JavaScript's SharedArrayBuffer and its integer arrays.
 *
 * A buffer is a block of bytes that all threads may use at once. A view presents a part of it as an array of one
 * integer type. The operations of vigil/atomics.h use a view and check every access:
 *
 *     vigil_buffer *buffer;
 *     vigil_buffer_create(&buffer, 1024, 1024);
 *     vigil_view counters;
 *     vigil_view_init(&counters, buffer, VIGIL_I32, 0, VIGIL_TO_END);
 *     vigil_atomics_add(counters, 3, 1, NULL);
 *     vigil_buffer_destroy(buffer);
 *
 * A buffer may have any number of views, of different types, and they may overlap. They share its bytes.
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
 * vigil_buffer_create - a buffer of `length` bytes, all zero, that may grow to `max_length` bytes without moving.
 *
 * If `length` equals `max_length` the size is fixed. Zero is a valid length. The address space up to the maximum is
 * reserved at once; memory is used for the pages that are touched.
 *
 * VIGIL_ENULL, VIGIL_ERANGE (`length` above `max_length`), VIGIL_ENOMEM.
 */
VIGIL_API int vigil_buffer_create(vigil_buffer **buffer, uint64_t length, uint64_t max_length);

/*
 * vigil_buffer_destroy - end every wait on the buffer's memory with VIGIL_CANCELLED, as vigil_forget does, and free
 * it.
 *
 * Returns how many waits it ended, or VIGIL_ENULL. No thread may use the buffer, or a view of it, meanwhile or
 * afterwards. The buffer of a segment is different: no wait is ended, and while this process waits there the call
 * returns VIGIL_EBUSY (see segment.h).
 */
VIGIL_API int64_t vigil_buffer_destroy(vigil_buffer *buffer);

/*
 * vigil_buffer_grow - make the buffer `new_length` bytes long: VIGIL_OK. Any thread may call it at any time.
 *
 * The new bytes are zero, and the length never shrinks: of threads that grow to different lengths at once, the
 * greatest wins. The length is read and changed with sequential consistency, so a thread that sees it may use the
 * bytes. If the buffer already has that length the call returns VIGIL_OK.
 *
 * VIGIL_ENULL, VIGIL_ERANGE (above the maximum), VIGIL_EINVAL (below the current length: buffers do not shrink); for
 * segments also VIGIL_EFORKED, VIGIL_ENOMEM and VIGIL_ESYSTEM (segment.h).
 */
VIGIL_API int vigil_buffer_grow(vigil_buffer *buffer, uint64_t new_length);

/*
 * The properties of a buffer. The data is aligned to a page and never moves; only the length changes. Growable means
 * that it was created with a maximum above its length, even if it has grown to that since. A null buffer has length 0
 * and null data, and is not growable.
 */
VIGIL_API uint64_t vigil_buffer_length(vigil_buffer *buffer);
VIGIL_API uint64_t vigil_buffer_max_length(vigil_buffer *buffer);
VIGIL_API bool vigil_buffer_growable(vigil_buffer *buffer);
VIGIL_API void *vigil_buffer_data(vigil_buffer *buffer);

/* The element types. Zero is not a type. */
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

/* The size of an element in bytes, and the name of the type, such as "int32"; 0 and "unknown" for an invalid type. */
VIGIL_API uint64_t vigil_type_size(enum vigil_type type);
VIGIL_API const char *vigil_type_name(enum vigil_type type);

/*
 * vigil_view - a part of a buffer as an array of integers. It is a plain value: copy it, pass it, drop it. Set it
 * with vigil_view_init and do not change its fields. A view that is all zero is empty and has no type: every
 * operation on it returns VIGIL_ETYPE.
 */
typedef struct vigil_view {
    vigil_buffer *buffer;
    uint64_t byte_offset;
    uint64_t length; /* in elements, or VIGIL_TO_END */
    enum vigil_type type;
} vigil_view;

/* As the length of a view: as many whole elements as fit up to the end of the buffer, even when it has grown. */
#define VIGIL_TO_END UINT64_MAX

/*
 * vigil_view_init - a view of `length` elements that starts `byte_offset` bytes into the buffer: VIGIL_OK.
 *
 * Errors, checked in this order: VIGIL_ENULL, VIGIL_EFORKED (a segment, in the child of a fork), VIGIL_ETYPE,
 * VIGIL_EMISALIGNED (the offset is not a multiple of the element's size), VIGIL_ERANGE (the view would reach beyond
 * the current length of the buffer).
 */
VIGIL_API int vigil_view_init(vigil_view *view, vigil_buffer *buffer, enum vigil_type type, uint64_t byte_offset,
                              uint64_t length);

/* The number of elements that it has now. */
VIGIL_API uint64_t vigil_view_length(vigil_view view);

#ifdef __cplusplus
}
#endif
#endif
