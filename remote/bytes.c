/* SPDX-License-Identifier: MIT */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_KEPT 65536u /* when it is empty */

uint8_t *bytes_room(struct bytes *bytes, size_t more) {
    if (bytes->capacity - bytes->end >= more) return bytes->data + bytes->end;
    size_t length = bytes_length(bytes), capacity = bytes->capacity ? bytes->capacity : 64;
    if (bytes->start) memmove(bytes->data, bytes->data + bytes->start, length);
    bytes->start = 0;
    bytes->end = length;
    while (capacity - length < more) capacity *= 2;
    if (capacity != bytes->capacity) {
        uint8_t *data = realloc(bytes->data, capacity);
        if (!data) return NULL;
        bytes->data = data;
        bytes->capacity = capacity;
    }
    return bytes->data + bytes->end;
}

void bytes_added(struct bytes *bytes, size_t count) {
    bytes->end += count;
}

bool bytes_add(struct bytes *bytes, const void *data, size_t length) {
    if (!length) return true;
    uint8_t *room = bytes_room(bytes, length);
    if (!room) return false;
    memcpy(room, data, length);
    bytes->end += length;
    return true;
}

void bytes_consume(struct bytes *bytes, size_t count) {
    bytes->start += count;
    if (bytes->start < bytes->end) return;
    bytes->start = bytes->end = 0;
    if (bytes->capacity > BYTES_KEPT) bytes_free(bytes);
}

void bytes_free(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}
