/* SPDX-License-Identifier: MIT */
/*
 * observer.h - reading a segment's lot from outside.
 *
 * What a look needs is what shared.h calls true: whose each slot is, the key, the state, the place. The links are not
 * read. All of it changes while it is read, under locks that an observer does not take, so each slot is read between
 * two looks at what makes it what it is (claim, key and state); if these differ it is read again, a few times. Every
 * number is checked before anything is found by it: the segment may be damaged, and a living member may write to it.
 */
#ifndef VIGIL_OBSERVER_H
#define VIGIL_OBSERVER_H

#include "lot/lot.h"
#include "memory/segment.h"
#include "shm/events.h"
#include "vigil/observe.h"

/* A slot, as it was at one moment. */
struct seen_slot {
    uint32_t index, number; /* whose it is */
    struct slot slot;
};

struct vigil_observer {
    struct segment *segment;
    uint32_t *claims;
    struct slot *slots;
    struct bucket *buckets;
    uint64_t usable; /* of the user's bytes, when we last looked */
    uint64_t passes; /* over all slots, since it was opened: what looking and checking cost */

    /* What the last look found. */
    struct seen_slot *seen;
    uint32_t seen_count, seen_room;
    vigil_seen_member *members;
    vigil_seen_line *lines;
    vigil_seen_waiter *waiters;
    vigil_seen_holder *holders;
    uint32_t room; /* of each of the last three */

    /* Recording. */
    uint64_t next_turn;
    uint64_t missing_since_ns; /* the event of that turn has been awaited; 0: it has not */
    bool records;
    uint64_t recorded_until_ns; /* as we have said last */
    uint64_t lapses;            /* how often we said so too late, not told yet */
};

/* Read the slot: false if it is nobody's, or does not hold still. */
bool observer_read(const vigil_observer *observer, uint32_t index, struct seen_slot *seen);

/* Read all of them that are somebody's: false if there is no memory for that. */
bool observer_read_all(vigil_observer *observer);

/* Whether the key is that of a word of the user's that is there. */
bool observer_has_word(const vigil_observer *observer, uint64_t key);

/* The time, or now if it is none of the past: damaged ones are to be reckoned with like others. */
int64_t observer_past(uint64_t at_ns, uint64_t now_ns);

/* In line, or called and not come yet. */
static inline bool seen_waits(const struct seen_slot *seen) {
    return seen->slot.kind < SLOT_HOLDS && seen->slot.key % sizeof(uint32_t) == 0;
}

static inline bool seen_holds(const struct seen_slot *seen) {
    bool recorded = seen->slot.of == SLOT_SEM || seen->slot.of == SLOT_RWLOCK;
    return seen->slot.kind == SLOT_HOLDS && recorded && seen->slot.key % sizeof(uint32_t) == 1;
}

#endif
