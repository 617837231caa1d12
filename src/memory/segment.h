/* SPDX-License-Identifier: MIT */
/* segment.h - what segment.c does for the rest of src/memory and for observers. Segments inside: shm/segment.h. */
#ifndef VIGIL_MEMORY_SEGMENT_H
#define VIGIL_MEMORY_SEGMENT_H

#include "shm/segment.h"

/* For an observer: map the segment of that name, or behind a descriptor. It is no member, and in no table. */
int segment_glimpse(struct segment **segment, const char *name);
int segment_glimpse_behind(struct segment **segment, int fd, bool by_name);
void segment_forget(struct segment *segment);

/* Whether the header is still valid, with the layout that it had when the segment was opened. */
bool segment_is_intact(const struct segment *segment);

/* For vigil_buffer_grow: G1 (shm/segment.h). For vigil_buffer_destroy: end one of the opens. */
int segment_extend(struct segment *segment, uint64_t new_length);
int64_t segment_close(struct segment *segment);

#endif
