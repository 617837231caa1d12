/* SPDX-License-Identifier: MIT */
/*
 * book.h - a book of names: a segment with an entry for each named lock.
 *
 * All names of a user are in one book; a path is a book with a single name. So a process needs one membership, one
 * mapping and one descriptor for any number of names, and every lock of vigil/named.h is in a segment, where the
 * library takes care of the dead.
 *
 *     0       struct book      the mutex, the number of entries, the heads of the hash chains
 *     then    struct entry     for each name; the book grows by a page at a time
 *
 * An entry has one of these states, and is changed with the mutex held:
 *
 *     FREE      not in a chain. Linked by `next` into the list of free entries
 *     USED      in the chain of its name
 *     REMOVED   in no chain. Processes that have it open go on, and so do those that are tied to it (named.c); it
 *               becomes FREE when there are none
 *
 * Each process that has a name open holds the entry's `use` to read: so the hold of a process that is killed is given
 * back like any other (recovery/hold.h). To free an entry, take `use` to write.
 *
 * To find a name without the mutex: follow its chain, take `use` to read by trying, and then compare state and name
 * again. An entry that is held so cannot be freed; whatever was read before may be old, or changing, and is not
 * believed. If that fails, find it with the mutex held, where it cannot change. So a process that is stopped while it
 * holds the mutex keeps others from creating and removing names, but not from opening those that exist.
 *
 * A process may be killed while it holds the mutex. The next one to take it makes the chains and the free list again
 * from the states (book_rebuild). The steps are ordered for that:
 *
 *     to create    take a FREE entry, fill it in, store USED (release), link it
 *     to remove    store REMOVED, unlink it; if no process has it open: clear it, store FREE, put it on the list
 *
 * The content of a file cannot be trusted: other users may have written it. Indexes are checked, walks are bounded,
 * and names end where their field ends.
 */
#ifndef VIGIL_BOOK_H
#define VIGIL_BOOK_H

#include <stdbool.h>

#include "prim.h"
#include "prim.h"
#include "vigil/named.h"
#include "vigil/mutex.h"
#include "vigil/rwlock.h"
#include "vigil/segment.h"
#include "vigil/sem.h"

#define BOOK_NAME_BYTES 204u
#define BOOK_TEXT_BYTES 64u
#define BOOK_HEADS      PRIM_NAME_HEADS
#define BOOK_PAGE       4096u

enum entry_state { ENTRY_FREE, ENTRY_USED, ENTRY_REMOVED };

struct entry {
    /* These are what an observer of the name sees, in this order: see observe/look.c. */
    vigil_mutex turnstile; /* fair: those that queue with VIGIL_NAMED_FAIR hold it while they wait for the lock */
    vigil_rwlock lock;     /* of a lock */
    vigil_sem permits;     /* of a semaphore, leased */
    vigil_rwlock use;      /* read: by processes that have the name open */

    uint32_t state; /* atomic */
    uint32_t next;  /* atomic: in the chain or on the free list; index + 1, 0: none */
    uint32_t slots; /* atomic; 0: a lock */
    uint32_t tied;  /* atomic: a holder has tied processes to it, since it was created: see named.c */

    /* Of the last holder that had it alone, written by that. */
    uint32_t pid, space;
    int64_t taken_at;
    char text[BOOK_TEXT_BYTES];
    char name[BOOK_NAME_BYTES];
    union {
        uint32_t excess; /* of a semaphore; atomic: permits that will be removed when they come back */
        uint32_t steals; /* of a lock; atomic: how often it has been stolen; holders wait for a change */
    };

    uint64_t data[VIGIL_NAMED_DATA / 8]; /* the users', changed only with the lock held */
};

struct book {
    vigil_mutex mutex;
    uint32_t count; /* atomic: entries that have been used */
    uint32_t free;  /* index + 1, 0: none */
    uint32_t unused[13];
    uint32_t heads[BOOK_HEADS]; /* atomic: index + 1, 0: none */
};

/* What an observer of a single name looks at: offsets in the user's bytes. */
struct book_window {
    uint64_t at; /* BOOK_NOWHERE: the name has been removed */
    uint32_t slots;
    char label[32];
    char name[BOOK_NAME_BYTES];
};
#define BOOK_NOWHERE      (UINT64_C(1) << 62)
#define BOOK_WINDOW_BYTES 12u /* turnstile, lock, permits */

/* Open the book that the name is in; `create`: make it if it is not there. A path has a slash. */
int book_open(vigil_buffer **buffer, const char *name, const vigil_named_options *options, bool create);
bool book_is_path(const char *name);

/* The name that a path's only entry has. */
const char *book_name(const char *name);

/* The entry of that name, with `use` held to read; null: see *status. */
struct entry *book_use(vigil_buffer *buffer, const char *name, uint32_t slots, bool create, int *status);

/* The first of the bytes in the file that are locked for processes tied to the entry, one for each slot: named.c. */
uint64_t book_ties_at(vigil_buffer *buffer, const struct entry *entry);

/* For observers and lists, without a lock: call `found` with a copy of each name that is in use. Returns how many. */
typedef void book_found(const char *name, void *data);
uint64_t book_each(const unsigned char *data, uint64_t length, book_found *found, void *data_of_caller);
/* The entry of that name; null: there is none. */
const struct entry *book_peek(const unsigned char *data, uint64_t length, const char *name);

/* There are too many permits: the caller removes one. */
bool book_take_excess(struct entry *entry);
/* For a caller that has the name open: change the number of slots of a semaphore. */
int book_set_slots(vigil_buffer *buffer, struct entry *entry, uint32_t slots);

/* Remove the name: VIGIL_OK, VIGIL_EBUSY, VIGIL_ENOTFOUND. */
int book_remove(vigil_buffer *buffer, const char *name, bool force);
int64_t book_remove_unused(vigil_buffer *buffer);

#endif
