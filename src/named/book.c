/* SPDX-License-Identifier: MIT */
/* See book.h. */
#include "book.h"

#include <stddef.h>
#include <string.h>

#include "base/tuning.h"
#include "memory/segment.h"
#include "prim.h"
#include "prim_file.h"
#include "recovery/hold.h"
#include "sync/sem.h"

#define BOOK_LABEL     "vigil names"
#define BOOK_MEMBERS   16384u
#define BOOK_WAITERS   131072u
#define BOOK_LENGTH    (UINT64_C(1) << 25) /* some 100,000 names */
#define PATH_MEMBERS   8192u
#define PATH_WAITERS   16384u
#define BOOK_BUCKETS   256u
#define BOOK_PATH_NAME "lock" /* of the only entry of a path's book */
#define TIES_AT        (UINT64_C(3) << 60) /* in the file: behind the user's bytes, before the library's own locks */
#define TIES_EACH      (UINT64_C(1) << 32) /* bytes for each entry */

_Static_assert(sizeof(struct entry) == 384, "a path's book, with its entry, is in one page");
_Static_assert(offsetof(struct entry, lock) == 4 && offsetof(struct entry, permits) == 8 &&
                   offsetof(struct entry, use) == BOOK_WINDOW_BYTES,
               "as observers see it");

bool book_take_excess(struct entry *entry) {
    uint32_t seen = prim_load_relaxed(&entry->excess);
    while (seen && !prim_cas_acq_rel(&entry->excess, &seen, seen - 1)) {
    }
    return seen;
}

/* Opening. */

bool book_is_path(const char *name) {
    return strchr(name, '/') != NULL;
}

const char *book_name(const char *name) {
    return book_is_path(name) ? BOOK_PATH_NAME : name;
}

int book_open(vigil_buffer **buffer, const char *name, const vigil_named_options *options, bool create) {
    bool path = book_is_path(name);
    if (!path && !segment_name_good(name)) return VIGIL_ENAME;
    const vigil_segment_options wanted = {
        .length = BOOK_PAGE,
        .max_length = path ? BOOK_PAGE : BOOK_LENGTH,
        .members = path ? PATH_MEMBERS : BOOK_MEMBERS,
        .waiters = path ? PATH_WAITERS : BOOK_WAITERS,
        .mode = options && path ? options->mode : 0, /* all names of a user are in one file, which is the user's */
        .label = BOOK_LABEL,
    };
    int status = segment_open_book(buffer, path ? name : NULL, create ? &wanted : NULL, BOOK_BUCKETS);
    bool other = status == VIGIL_OK &&
                 (strcmp(vigil_segment_label(*buffer), BOOK_LABEL) != 0 || vigil_buffer_length(*buffer) < BOOK_PAGE);
    if (!other) return status;
    vigil_buffer_destroy(*buffer);
    return VIGIL_EFOREIGN;
}

/* Entries. */

static struct book *book_of(vigil_buffer *buffer) {
    return (struct book *)(void *)buffer->data;
}

static struct entry *book_entries(const void *data) {
    return (struct entry *)(void *)((unsigned char *)(uintptr_t)data + sizeof(struct book));
}

static uint32_t book_room(uint64_t length) {
    return length < sizeof(struct book) ? 0 : (uint32_t)((length - sizeof(struct book)) / sizeof(struct entry));
}

/* How many entries have been used. The number may be garbage, but there is room for so many. */
static uint32_t book_count(const void *data, uint64_t length) {
    uint32_t count = prim_load_acquire(&((struct book *)(uintptr_t)data)->count), room = book_room(length);
    return count < room ? count : room;
}

static uint32_t book_index(vigil_buffer *buffer, const struct entry *entry) {
    return (uint32_t)(entry - book_entries(book_of(buffer)));
}

static uint32_t book_hash(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return (hash ^ hash >> 15) % BOOK_HEADS;
}

static bool book_is_named(const struct entry *entry, const char *name) {
    return prim_load_acquire(&entry->state) == ENTRY_USED && strncmp(entry->name, name, BOOK_NAME_BYTES) == 0;
}

/* Follow the chain. Other processes may be changing it. */
static struct entry *book_find(const void *data, uint64_t length, const char *name) {
    struct book *book = (struct book *)(uintptr_t)data;
    uint32_t count = book_count(data, length), at = prim_load_acquire(&book->heads[book_hash(name)]);
    for (uint32_t steps = 0; at && at <= count && steps < count; steps++) {
        struct entry *entry = &book_entries(data)[at - 1];
        if (book_is_named(entry, name)) return entry;
        at = prim_load_acquire(&entry->next);
    }
    return NULL;
}

uint64_t book_ties_at(vigil_buffer *buffer, const struct entry *entry) {
    return TIES_AT + TIES_EACH * book_index(buffer, entry);
}

static bool book_has_ties(vigil_buffer *buffer, const struct entry *entry) {
    return prim_load_relaxed(&entry->tied) &&
           prim_file_test(buffer->segment->fd, book_ties_at(buffer, entry), TIES_EACH) != PRIM_LOCK_FREE;
}

static bool book_holds(int status) {
    return status == VIGIL_OK || status == VIGIL_OWNER_DIED;
}

/* With the mutex held. */

static void book_link(struct book *book, struct entry *entries, uint32_t index) {
    uint32_t *head = &book->heads[book_hash(entries[index].name)];
    prim_store_relaxed(&entries[index].next, prim_load_relaxed(head));
    prim_store_release(head, index + 1);
}

static void book_unlink(struct book *book, struct entry *entries, uint32_t index, uint32_t count) {
    uint32_t *from = &book->heads[book_hash(entries[index].name)];
    for (uint32_t steps = 0; *from && *from <= count && steps < count; steps++) {
        if (*from == index + 1) {
            prim_store_release(from, prim_load_relaxed(&entries[index].next));
            return;
        }
        from = &entries[*from - 1].next;
    }
}

static void book_put_free(struct book *book, struct entry *entries, uint32_t index) {
    prim_store_relaxed(&entries[index].next, book->free);
    book->free = index + 1;
}

/* A process died with the mutex held. */
static void book_rebuild(vigil_buffer *buffer) {
    struct book *book = book_of(buffer);
    struct entry *entries = book_entries(book);
    uint32_t count = book_count(book, vigil_buffer_length(buffer));
    for (uint32_t i = 0; i < BOOK_HEADS; i++) prim_store_relaxed(&book->heads[i], 0);
    book->free = 0;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t state = prim_load_relaxed(&entries[i].state);
        entries[i].name[BOOK_NAME_BYTES - 1] = 0;
        if (state == ENTRY_USED) book_link(book, entries, i);
        else if (state != ENTRY_REMOVED) book_put_free(book, entries, i);
    }
}

/* If the word is damaged so that a process without a number has it, which no process in a segment is, unlock it. */
static void book_check_mutex(uint32_t *word) {
    uint32_t seen = prim_load_relaxed(word);
    if ((seen & 3) && !segment_holder_number(seen)) prim_cas_acq_rel(word, &seen, 0);
}

static int book_lock(vigil_buffer *buffer) {
    vigil_mutex *mutex = &book_of(buffer)->mutex;
    int status;
    while ((status = vigil_mutex_lock_for(mutex, BOOK_CHECK_NS)) == VIGIL_TIMED_OUT) book_check_mutex(&mutex->word);
    if (status != VIGIL_OWNER_DIED) return status;
    if (!BUG(book_not_rebuilt)) book_rebuild(buffer);
    return vigil_mutex_consistent(mutex);
}

static void book_unlock(vigil_buffer *buffer) {
    vigil_mutex_unlock(&book_of(buffer)->mutex);
}

/* What dead processes held has been given back, `use` and the lock itself. False: some of it may be later, because a
 * stopped process has locked a bucket. */
static bool book_all_given_back(const struct entry *entry) {
    return !hold_recovered(&entry->use) || !hold_recovered(&entry->use); /* it returns true if it had to do something */
}

/* If no process has it open, and none is tied to it, free the entry, which is in no chain. */
static bool book_free(vigil_buffer *buffer, uint32_t index) {
    struct book *book = book_of(buffer);
    struct entry *entries = book_entries(book), *entry = &entries[index];
    if (book_has_ties(buffer, entry) || !book_holds(vigil_rwlock_write_trylock(&entry->use))) return false;
    if (!BUG(book_freed_early) && !book_all_given_back(entry)) {
        vigil_rwlock_write_unlock(&entry->use);
        return false;
    }
    vigil_rwlock_consistent(&entry->use);
    memset(entry->name, 0, sizeof entry->name);
    memset(entry->text, 0, sizeof entry->text);
    memset(entry->data, 0, sizeof entry->data);
    entry->pid = entry->space = entry->slots = entry->tied = entry->excess = 0;
    prim_store_relaxed(&entry->turnstile.word, 0);
    prim_store_relaxed(&entry->lock.word, 0);
    prim_store_relaxed(&entry->permits.word, 0);
    prim_store_release(&entry->state, ENTRY_FREE);
    book_put_free(book, entries, index);
    vigil_rwlock_write_unlock(&entry->use);
    return true;
}

static void book_free_removed(vigil_buffer *buffer) {
    const struct book *book = book_of(buffer);
    const struct entry *entries = book_entries(book);
    uint32_t count = book_count(book, vigil_buffer_length(buffer));
    for (uint32_t i = 0; i < count; i++) {
        if (prim_load_relaxed(&entries[i].state) == ENTRY_REMOVED) book_free(buffer, i);
    }
}

static int book_grow(vigil_buffer *buffer) {
    uint64_t length = vigil_buffer_length(buffer);
    int status = vigil_buffer_grow(buffer, length + BOOK_PAGE);
    return status == VIGIL_ERANGE ? VIGIL_ELIMIT : status;
}

/* A free entry. When there is none, look for removed ones before the book grows. */
static int book_take_free(vigil_buffer *buffer, struct entry **taken) {
    struct book *book = book_of(buffer);
    struct entry *entries = book_entries(book);
    uint32_t count = book_count(book, vigil_buffer_length(buffer));
    bool full = count == book_room(vigil_buffer_length(buffer));
    bool listed = book->free && book->free <= count;
    if (listed && prim_load_relaxed(&entries[book->free - 1].state) != ENTRY_FREE) book_rebuild(buffer); /* damaged */
    if (!book->free && full) book_free_removed(buffer);
    if (book->free && book->free <= count) {
        *taken = &entries[book->free - 1];
        book->free = prim_load_relaxed(&(*taken)->next);
        return VIGIL_OK;
    }
    int status = full ? book_grow(buffer) : VIGIL_OK;
    if (status != VIGIL_OK) return status;
    *taken = &entries[count];
    prim_store_relaxed(&(*taken)->state, ENTRY_FREE);
    prim_store_release(&book->count, count + 1);
    return VIGIL_OK;
}

static int book_create(vigil_buffer *buffer, const char *name, uint32_t slots, struct entry **made) {
    int status = book_take_free(buffer, made);
    if (status != VIGIL_OK) return status;
    struct entry *entry = *made;
    const vigil_mutex fair = VIGIL_MUTEX_FAIR;
    const vigil_sem permits = VIGIL_SEM_LEASED(slots);
    entry->turnstile = fair;
    if (slots) entry->permits = permits;
    prim_store_relaxed(&entry->slots, slots);
    strncpy(entry->name, name, BOOK_NAME_BYTES - 1);
    prim_store_release(&entry->state, ENTRY_USED);
    book_link(book_of(buffer), book_entries(book_of(buffer)), book_index(buffer, entry));
    return VIGIL_OK;
}

/* Using. */

static int book_hold(struct entry *entry, const char *name) {
    int status = vigil_rwlock_read_trylock(&entry->use);
    if (!book_holds(status)) return status;
    if (book_is_named(entry, name) || BUG(book_name_believed)) return VIGIL_OK;
    vigil_rwlock_read_unlock(&entry->use);
    return VIGIL_NOT_EQUAL;
}

static struct entry *book_use_locked(vigil_buffer *buffer, const char *name, uint32_t slots, bool create, int *status) {
    struct entry *entry = book_find(book_of(buffer), vigil_buffer_length(buffer), name);
    *status = entry ? VIGIL_OK : create ? book_create(buffer, name, slots, &entry) : VIGIL_ENOTFOUND;
    if (*status == VIGIL_OK) *status = book_hold(entry, name);
    return *status == VIGIL_OK ? entry : NULL;
}

struct entry *book_use(vigil_buffer *buffer, const char *name, uint32_t slots, bool create, int *status) {
    struct entry *entry = book_find(book_of(buffer), vigil_buffer_length(buffer), name);
    *status = entry ? book_hold(entry, name) : VIGIL_NOT_EQUAL;
    if (*status == VIGIL_OK) return entry;
    *status = book_lock(buffer);
    if (*status != VIGIL_OK) return NULL;
    entry = book_use_locked(buffer, name, slots, create, status);
    book_unlock(buffer);
    return entry;
}

/*
 * Slots. There are as many permits, free or held, as slots and `excess`: a process that decrements `excess` removes a
 * permit. Permits of a killed holder come back all the same, so a process that has acquired one removes that if there
 * is an excess, and acquires another (named_end_stage). If a process is killed in between, more or fewer permits may be
 * left than there are slots.
 */
static void book_remove_excess(struct entry *entry) {
    while (book_take_excess(entry)) {
        if (sem_remove_one(&entry->permits)) continue;
        prim_fetch_add_acq_rel(&entry->excess, 1); /* all are held */
        return;
    }
}

int book_set_slots(vigil_buffer *buffer, struct entry *entry, uint32_t slots) {
    int status = book_lock(buffer);
    if (status != VIGIL_OK) return status;
    uint32_t before = prim_load_relaxed(&entry->slots);
    uint32_t more = slots > before ? slots - before : 0, fewer = slots < before ? before - slots : 0;
    for (; more && book_take_excess(entry); more--) {
    }
    if (more) status = sem_add(&entry->permits, more);
    if (status == VIGIL_OK) {
        prim_store_relaxed(&entry->slots, slots);
        prim_fetch_add_acq_rel(&entry->excess, fewer);
        book_remove_excess(entry);
    }
    book_unlock(buffer);
    return status;
}

/* Looking. */

/* Other processes may be changing the name, and another user may write anything there at any time: so only the copy is
 * checked and passed on. */
static bool book_copy_name(const struct entry *entry, char name[BOOK_NAME_BYTES]) {
    if (prim_load_acquire(&entry->state) != ENTRY_USED) return false;
    memcpy(name, entry->name, BOOK_NAME_BYTES);
    prim_fence_seq_cst();
    bool whole = prim_load_relaxed(&entry->state) == ENTRY_USED && !name[BOOK_NAME_BYTES - 1];
    return whole && segment_name_good(name);
}

uint64_t book_each(const unsigned char *data, uint64_t length, book_found *found, void *data_of_caller) {
    const struct entry *entries = book_entries(data);
    uint64_t listed = 0;
    for (uint32_t i = 0, count = book_count(data, length); i < count; i++) {
        char name[BOOK_NAME_BYTES];
        if (!book_copy_name(&entries[i], name)) continue;
        listed++;
        found(name, data_of_caller);
    }
    return listed;
}

const struct entry *book_peek(const unsigned char *data, uint64_t length, const char *name) {
    return book_room(length) ? book_find(data, length, name) : NULL;
}

/* Removing. */

static int book_remove_entry(vigil_buffer *buffer, struct entry *entry, bool force) {
    struct book *book = book_of(buffer);
    struct entry *entries = book_entries(book);
    uint32_t index = book_index(buffer, entry), count = book_count(book, vigil_buffer_length(buffer));
    if (!force) {
        int status = vigil_rwlock_write_trylock(&entry->use);
        if (!book_holds(status)) return status == VIGIL_TIMED_OUT ? VIGIL_EBUSY : status;
        bool in_use = book_has_ties(buffer, entry);
        if (!in_use) prim_store_release(&entry->state, ENTRY_REMOVED);
        vigil_rwlock_write_unlock(&entry->use);
        if (in_use) return VIGIL_EBUSY;
    }
    prim_store_release(&entry->state, ENTRY_REMOVED);
    book_unlink(book, entries, index, count);
    book_free(buffer, index);
    return VIGIL_OK;
}

int book_remove(vigil_buffer *buffer, const char *name, bool force) {
    int status = book_lock(buffer);
    if (status != VIGIL_OK) return status;
    struct entry *entry = book_find(book_of(buffer), vigil_buffer_length(buffer), name);
    status = entry ? book_remove_entry(buffer, entry, force) : VIGIL_ENOTFOUND;
    book_unlock(buffer);
    return status;
}

int64_t book_remove_unused(vigil_buffer *buffer) {
    int status = book_lock(buffer);
    if (status != VIGIL_OK) return status;
    struct entry *entries = book_entries(book_of(buffer));
    int64_t removed = 0;
    for (uint32_t i = 0, count = book_count(book_of(buffer), vigil_buffer_length(buffer)); i < count; i++) {
        bool used = prim_load_relaxed(&entries[i].state) == ENTRY_USED;
        bool died = prim_load_relaxed(&entries[i].lock.word) >> 31;
        if (used && !died && book_remove_entry(buffer, &entries[i], false) == VIGIL_OK) removed++;
    }
    book_unlock(buffer);
    return removed;
}
