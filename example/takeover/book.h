/* SPDX-License-Identifier: MIT */
/*
 * What the two programs share: a book with two accounts, in a segment. Money moves from the left one to the right one,
 * and whenever the mutex is free the two together are TOTAL.
 *
 *     writer    moves money; in the third transfer it stops half-way, with the mutex held, and is killed there
 *     reader    wants to read, finds that the owner of the mutex has died, and repairs the book
 */
#ifndef BOOK_H
#define BOOK_H

#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>

#define TOTAL 1000

struct book {
    vigil_mutex mutex;
    int32_t opened; /* whether the accounts have been filled */
    int32_t left, right;
};

static inline void must(const char *what, int status) {
    if (status >= 0) return;
    fprintf(stderr, "%s: %s\n", what, vigil_strerror(status));
    exit(1);
}

static inline struct book *open_book(const char *name, vigil_buffer **buffer) {
    must("open", vigil_segment_open_or_create(buffer, name, NULL));
    return vigil_buffer_data(*buffer);
}

#endif
