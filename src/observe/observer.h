/* SPDX-License-Identifier: MIT */
/*
 * observer.h - reading a segment's lot from outside.
 *
 * A look needs what shared.h calls true: the owner of each slot, the key, the state, the place. It does not follow the
 * links. All of it changes while it is read, under locks that an observer does not take. So each slot is read between
 * two looks at what identifies it (claim, key and whether it is decided); if these differ it is read again, a few
 * times. Every number is checked before it is used as an index: the segment may be damaged, and a living member may
 * write to it.
 */
#ifndef VIGIL_OBSERVER_H
#define VIGIL_OBSERVER_H

#include "lot/lot.h"
#include "memory/segment.h"
#include "shm/backing.h"
#include "shm/events.h"
#include "named/book.h"
#include "vigil/observe.h"

#define OBSERVER_NUMBERS 4096u

/* A slot, as it was at one moment. */
struct seen_slot {
    uint32_t index, number; /* and its owner's number */
    struct slot slot;
};

struct vigil_observer {
    struct segment *segment;
    uint32_t *claims;
    struct slot *slots;
    struct bucket *buckets;
    uint64_t usable;           /* of the user's bytes, at the last look */
    struct book_window window; /* if only one entry of a book is observed: which */
    bool has_window;           /* one is: of the rest of the book nothing is shown */
    vigil_named_holder dead_owner;
    uint32_t *users; /* if has_window: the numbers of the processes that have the name open, sorted */
    uint32_t user_count;
    uint32_t seen_numbers[OBSERVER_NUMBERS]; /* if has_window: the numbers of processes in its events */
    uint64_t passes;                         /* over all slots, since it was opened: the cost of looks and checks */

    /* What the last look found. */
    struct seen_slot *seen;
    uint32_t seen_count, seen_room;
    vigil_seen_member *members;
    vigil_seen_line *lines;
    vigil_seen_waiter *waiters;
    vigil_seen_holder *holders;
    uint32_t room; /* of each of the last three */

    /* Recording. */
    uint64_t next_sequence;
    uint64_t missing_since_ns; /* since when the event of that sequence is awaited; 0: it is not */
    bool records;
    uint64_t recorded_until_ns; /* as we have last written to the header; 0: never */
    uint64_t replaced_until_ns; /* the request of another observer that was there before; 0: none */
    uint64_t lapses;            /* how often we renewed that too late, not reported yet */
};

/* Read the slot: false if it is free, or keeps changing. */
bool observer_read(const vigil_observer *observer, uint32_t index, struct seen_slot *seen);

/* Read all slots that are claimed: false if there is no memory for that. */
bool observer_read_all(vigil_observer *observer);

/* When the observer closes: end its recording, unless another observer records. */
void observer_end_request(vigil_observer *observer);

/* Where the entry's words are in the window, or BOOK_WINDOW_BYTES for `use`; UINT64_MAX: not in the window. */
static inline uint64_t observer_in_window(const vigil_observer *observer, uint64_t key) {
    uint64_t offset = key - observer->segment->layout.user_at - observer->window.at;
    return offset <= BOOK_WINDOW_BYTES ? offset : UINT64_MAX;
}

/* Whether the key is that of an existing word of the user's. */
bool observer_has_word(const vigil_observer *observer, uint64_t key);

/* The time, or now if it is in the future: it may be damaged. */
int64_t observer_past(uint64_t at_ns, uint64_t now_ns);

/* In line, or called and not there yet. */
static inline bool seen_waits(const struct seen_slot *seen) {
    return seen->slot.kind < SLOT_HOLDS && seen->slot.key % sizeof(uint32_t) == 0;
}

static inline bool seen_holds(const struct seen_slot *seen) {
    bool has_holds = seen->slot.of == SLOT_SEM || seen->slot.of == SLOT_RWLOCK;
    return seen->slot.kind == SLOT_HOLDS && has_holds && seen->slot.key % sizeof(uint32_t) == 1;
}

#endif
