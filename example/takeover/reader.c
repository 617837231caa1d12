/* SPDX-License-Identifier: MIT */
/* reader NAME: reads the book of that name, and repairs it if its writer has died. See book.h. */
#include "book.h"

/* Half a transfer is undone: what the left one lacks comes back. */
static void repair(struct book *book) {
    printf("reader: the owner died; left %d, right %d, together %d\n", book->left, book->right,
           book->left + book->right);
    book->left = TOTAL - book->right;
    must("consistent", vigil_mutex_consistent(&book->mutex));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: reader NAME\n");
        return 2;
    }
    vigil_buffer *buffer;
    struct book *book = open_book(argv[1], &buffer);
    int status = vigil_mutex_lock(&book->mutex); /* sleeps as long as the writer lives */
    must("lock", status);
    if (status == VIGIL_OWNER_DIED) repair(book);
    printf("reader: left %d, right %d\n", book->left, book->right);
    int right = book->left + book->right == TOTAL;
    must("unlock", vigil_mutex_unlock(&book->mutex));
    must("destroy", (int)vigil_buffer_destroy(buffer));
    must("unlink", vigil_segment_unlink(argv[1]));
    return right ? 0 : 1;
}
