/* SPDX-License-Identifier: MIT */
/*
 * events.h - events in a segment, recorded while an observer wants them (vigil/observe.h).
 *
 * Nothing depends on any of this: it is for people. The segment has a ring of the last events. The header says how
 * many there have been, and until when (record_until_ns, monotonic clock) an observer wants them; zero: none does. So
 * a writer loads one word first, and the request of an observer that is killed expires after EVENTS_RECORDED_NS.
 *
 *     E1  take the next sequence, by a CAS of header->events   the entry is that of the sequence, modulo the ring
 *     E2  store sequence = 0 (relaxed), fence                  a reader of the entry now sees that it is being written
 *     E3  fill the entry in
 *     E4  store sequence, counted from 1 (release)             killed before: the event never appears
 *
 * A reader copies an entry between two loads of its sequence. If both are what it wants, it has the whole event;
 * unless a writer was so slow that the ring has wrapped meanwhile: that mixes two events, and does no harm.
 */
#ifndef VIGIL_EVENTS_H
#define VIGIL_EVENTS_H

#include "segment.h"
#include "vigil/observe.h"

struct segment_event {
    uint64_t sequence;
    uint64_t at_ns;
    uint64_t key; /* of the word, as in the lot; 0: none */
    uint32_t number, by;
    uint32_t thread_id, pid;
    uint32_t count, slot;
    uint32_t status;
    uint16_t type, kind; /* vigil_event_type, vigil_seen_kind */
    uint32_t shared, padding;
};
_Static_assert(sizeof(struct segment_event) == 64, "each has a cache line of its own");

static inline struct segment_event *segment_event(const struct segment *segment, uint64_t sequence) {
    return (struct segment_event *)(void *)(segment->base + segment->layout.events_at) + sequence % PRIM_EVENTS;
}

static inline bool events_wanted(const struct segment *segment) {
    return prim_peek(&segment_header(segment)->record_until_ns) != 0;
}

/* Writes only if the request has not expired. `at_ns` and `sequence` need not be filled in. */
void event_write(const struct segment *segment, struct segment_event event);

/* Read the event of that sequence, counted from 0. False: it is not there yet, or not any more. */
bool event_read(const struct segment *segment, uint64_t sequence, struct segment_event *event);

#endif
