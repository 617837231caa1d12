/* SPDX-License-Identifier: MIT */
/* writer NAME: moves money in the book of that name, until it is killed in the middle of it. See book.h. */
#include <unistd.h>

#include "book.h"

static void fill(struct book *book) {
    if (book->opened) return;
    book->left = TOTAL;
    book->opened = 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: writer NAME\n");
        return 2;
    }
    vigil_buffer *buffer;
    struct book *book = open_book(argv[1], &buffer);
    for (int transfer = 1;; transfer++) {
        must("lock", vigil_mutex_lock(&book->mutex));
        fill(book);
        book->left -= 100;
        if (transfer == 3) {
            printf("writer: 100 taken from the left, not yet given to the right, and the mutex is mine\n");
            fflush(stdout);
            for (;;) pause(); /* kill -9 me */
        }
        book->right += 100;
        must("unlock", vigil_mutex_unlock(&book->mutex));
    }
}
