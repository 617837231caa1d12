/* SPDX-License-Identifier: MIT */
/* segment.h - what segment.c does for the rest of src/memory and for observers. Segments inside: shm/segment.h. */
#ifndef VIGIL_MEMORY_SEGMENT_H
#define VIGIL_MEMORY_SEGMENT_H

#include "shm/segment.h"

/* How a file was found, which decides whether another user's file is accepted. */
enum segment_way { SEGMENT_BY_NAME, SEGMENT_BY_FD, SEGMENT_BY_PATH };

/* Whether a segment may have that name. */
bool segment_name_good(const char *name);

/* A book: at that path, or, if that is null, this user's. `options`: what to create if there is none; null: nothing.
 * VIGIL_EFILESYSTEM: at the path, processes cannot share memory. */
int segment_open_book(vigil_buffer **buffer, const char *path, const vigil_segment_options *options, uint32_t buckets);
/* Unlink the file at the path if no process uses it; with `force` in any case. */
int segment_unlink_path(const char *path, bool force);

/* For an observer: map the segment of that name, or behind a descriptor. It is no member, and in no table. */
int segment_glimpse(struct segment **segment, const char *name);
int segment_glimpse_behind(struct segment **segment, int fd, enum segment_way way);
/* The same for a book (named/book.h): at that path; null: this user's. */
int segment_glimpse_book(struct segment **segment, const char *path);
/* The same for a segment of another user, or, without a name, that user's book; its file's mode decides. */
int segment_glimpse_user(struct segment **segment, uint32_t user, const char *name);
void segment_forget(struct segment *segment);

/* Whether the header is still valid, with the layout that it had when the segment was opened. */
bool segment_is_intact(const struct segment *segment);

/* For vigil_buffer_grow: G1 (shm/segment.h). For vigil_buffer_destroy: end one of the opens. */
int segment_extend(struct segment *segment, uint64_t new_length);
int64_t segment_close(struct segment *segment);

#endif
