/* SPDX-License-Identifier: MIT */
/* bytes.h - a buffer that grows at its end and is consumed at its beginning. All zero: empty. */
#ifndef VIGIL_REMOTE_BYTES_H
#define VIGIL_REMOTE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;
    size_t start, end, capacity;
};

static inline size_t bytes_length(const struct bytes *bytes) {
    return bytes->end - bytes->start;
}
static inline const uint8_t *bytes_first(const struct bytes *bytes) {
    return bytes->data + bytes->start;
}
/* Room for so many more; null: no memory. Then say how many of them there are. */
uint8_t *bytes_room(struct bytes *bytes, size_t more);
void bytes_added(struct bytes *bytes, size_t count);
bool bytes_add(struct bytes *bytes, const void *data, size_t length);
void bytes_consume(struct bytes *bytes, size_t count);
void bytes_free(struct bytes *bytes);

#endif
