/* SPDX-License-Identifier: MIT */
/* Segments (vigil/segment.h): segmentOpen, segmentBuffer, segmentGrow, segmentClose, segmentUnlink, segmentList. */
#include <stdlib.h>

#include "addon.h"

/* An ArrayBuffer of the segment's bytes. The memory does not move as it grows: those of before stay as they are. */
struct bytes {
    napi_ref array;
    struct bytes *before;
};

/* Opening a segment twice returns the same vigil_buffer; each opening must be closed. */
struct opened {
    struct numbered numbered;
    vigil_buffer *buffer;
    struct bytes *bytes; /* the last first */
};

enum { SEGMENT_OPEN, SEGMENT_CREATE, SEGMENT_OPEN_OR_CREATE };

static int segment_open_how(vigil_buffer **buffer, const char *name, int how, const vigil_segment_options *options) {
    if (how == SEGMENT_OPEN) return vigil_segment_open(buffer, name);
    if (how == SEGMENT_CREATE) return vigil_segment_create(buffer, name, options);
    return vigil_segment_open_or_create(buffer, name, options);
}

/* segmentOpen(name, how, length, maxLength, waiters, members, mode): the number of the opening, or an error. */
static napi_value segment_open_method(napi_env napi, napi_callback_info info) {
    size_t argc = 7;
    napi_value argv[7];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    char name[256];
    if (!get_text(napi, argv[0], name, sizeof name)) return integer(napi, VIGIL_ENAME);
    vigil_segment_options options = {
        .length = (uint64_t)get_number(napi, argv[2]),
        .max_length = (uint64_t)get_number(napi, argv[3]),
        .waiters = (uint32_t)get_number(napi, argv[4]),
        .members = (uint32_t)get_number(napi, argv[5]),
        .mode = (unsigned)get_number(napi, argv[6]),
    };
    struct opened *opened = calloc(1, sizeof *opened);
    int status =
        opened ? segment_open_how(&opened->buffer, name, (int)get_number(napi, argv[1]), &options) : VIGIL_ENOMEM;
    if (status) {
        free(opened);
        return integer(napi, status);
    }
    numbered_add(&addon->segments, &opened->numbered);
    return integer(napi, (int32_t)opened->numbered.number);
}

static void segment_drop_bytes(napi_env napi, struct opened *opened) {
    for (struct bytes *bytes = opened->bytes, *before; bytes; bytes = before) {
        napi_value array = NULL;
        before = bytes->before;
        napi_get_reference_value(napi, bytes->array, &array);
        if (array) napi_detach_arraybuffer(napi, array);
        napi_delete_reference(napi, bytes->array);
        free(bytes);
    }
    opened->bytes = NULL;
}

/* segmentBuffer(opening): an ArrayBuffer of the segment's bytes, to be detached when it is closed. */
static napi_value segment_buffer(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1], array;
    struct addon *addon = addon_of(napi, info, &argc, argv);
    struct opened *opened = numbered_find(addon->segments, get_number(napi, argv[0]));
    struct bytes *bytes = opened ? calloc(1, sizeof *bytes) : NULL;
    if (!bytes) return NULL;
    size_t length = (size_t)vigil_buffer_length(opened->buffer);
    napi_status status =
        napi_create_external_arraybuffer(napi, vigil_buffer_data(opened->buffer), length, NULL, NULL, &array);
    if (status != napi_ok) {
        free(bytes);
        if (status != napi_pending_exception)
            napi_throw_error(napi, "VIGIL_ESYSTEM", "this build of Node does not allow memory from outside its heap");
        return NULL;
    }
    napi_create_reference(napi, array, 1, &bytes->array);
    bytes->before = opened->bytes;
    opened->bytes = bytes;
    return array;
}

static napi_value segment_grow(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    struct opened *opened = numbered_find(addon->segments, get_number(napi, argv[0]));
    uint64_t length = (uint64_t)get_number(napi, argv[1]);
    return integer(napi, opened ? vigil_buffer_grow(opened->buffer, length) : VIGIL_EINVAL);
}

/* segmentLength(opening, most): its length now, or the most to which it can grow. */
static napi_value segment_length(napi_env napi, napi_callback_info info) {
    size_t argc = 2;
    napi_value argv[2];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    struct opened *opened = numbered_find(addon->segments, get_number(napi, argv[0]));
    bool most = false;
    napi_get_value_bool(napi, argv[1], &most);
    if (!opened) return number(napi, 0);
    return number(napi, (double)(most ? vigil_buffer_max_length(opened->buffer) : vigil_buffer_length(opened->buffer)));
}

static bool segment_holds(const struct addon *addon, const struct opened *opened) {
    const char *from = vigil_buffer_data(opened->buffer);
    return from && holdings_any_between(&addon->environment, from, from + vigil_buffer_max_length(opened->buffer));
}

/* JavaScript has moved the bytes to another ArrayBuffer, which could not be detached. */
static bool segment_was_transferred(napi_env napi, const struct opened *opened) {
    for (const struct bytes *bytes = opened->bytes; bytes; bytes = bytes->before) {
        napi_value array = NULL;
        bool detached = false;
        napi_get_reference_value(napi, bytes->array, &array);
        if (array && napi_is_detached_arraybuffer(napi, array, &detached) == napi_ok && detached) return true;
    }
    return false;
}

/*
 * segmentClose(opening): VIGIL_OK, or VIGIL_EBUSY while this process waits in it, this environment holds a lock in it,
 * or its bytes have been transferred. No JavaScript runs in between.
 */
static napi_value segment_close(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    struct addon *addon = addon_of(napi, info, &argc, argv);
    struct opened *opened = numbered_find(addon->segments, get_number(napi, argv[0]));
    bool busy = opened && (segment_holds(addon, opened) || segment_was_transferred(napi, opened));
    if (busy) return integer(napi, VIGIL_EBUSY);
    int64_t status = opened ? vigil_buffer_destroy(opened->buffer) : VIGIL_EINVAL;
    if (status < 0) return integer(napi, (int32_t)status);
    segment_drop_bytes(napi, opened);
    numbered_remove(&addon->segments, &opened->numbered);
    free(opened);
    return integer(napi, VIGIL_OK);
}

static napi_value segment_unlink(napi_env napi, napi_callback_info info) {
    size_t argc = 1;
    napi_value argv[1];
    addon_of(napi, info, &argc, argv);
    char name[256];
    if (!get_text(napi, argv[0], name, sizeof name)) return integer(napi, VIGIL_ENAME);
    return integer(napi, vigil_segment_unlink(name));
}

void segment_define(struct addon *addon, napi_value exports) {
    addon_define(addon, exports, "segmentOpen", segment_open_method);
    addon_define(addon, exports, "segmentBuffer", segment_buffer);
    addon_define(addon, exports, "segmentGrow", segment_grow);
    addon_define(addon, exports, "segmentLength", segment_length);
    addon_define(addon, exports, "segmentClose", segment_close);
    addon_define(addon, exports, "segmentUnlink", segment_unlink);
}

void segment_end(struct addon *addon) {
    for (struct numbered *one = addon->segments, *next; one; one = next) {
        struct opened *opened = (struct opened *)one;
        next = one->next;
        vigil_buffer_destroy(opened->buffer);
        for (struct bytes *bytes = opened->bytes, *before; bytes; bytes = before) {
            before = bytes->before;
            free(bytes);
        }
        free(opened);
    }
}
