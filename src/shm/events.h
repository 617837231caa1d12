/* SPDX-License-Identifier: MIT */
/*
 * events.h - what happens in a segment, written down while an observer wants to know (vigil/observe.h).
 *
 * Nothing depends on any of this: it is for people. The segment has a ring of the last events, and the header says how
 * many there have been, and until when anybody wants them, on the monotonic clock: zero is never. So whoever has
 * something to tell looks at one word first, and an observer that is killed is forgotten after a second.
 *
 *     E1  take the next turn, by a CAS of header->events       the entry is that of the turn, modulo the ring
 *     E2  store turn = 0 (relaxed), fence                      whoever reads the entry now knows that it is being written
 *     E3  fill the entry in
 *     E4  store turn, counted from 1 (release)                 killed before: it never appears
 *
 * A reader copies an entry between two looks at its turn. If both say the turn that it is after, it has the whole of
 * it; unless a writer was so slow that the ring has gone round meanwhile, which mixes two events, and harms nobody.
 */
#ifndef VIGIL_EVENTS_H
#define VIGIL_EVENTS_H

#include "segment.h"
#include "vigil/observe.h"

struct segment_event {
    uint64_t turn;
    uint64_t at_ns;
    uint64_t key; /* of the word, as in the lot; 0: none */
    uint32_t number, by;
    uint32_t thread_id, pid;
    uint32_t count, place;
    uint32_t status;
    uint16_t type, kind; /* vigil_event_type, vigil_seen_kind */
    uint32_t shared, padding;
};
_Static_assert(sizeof(struct segment_event) == 64, "each has a cache line of its own");

/* How long one who says once that he records is believed. */
#define EVENTS_RECORDED_NS UINT64_C(1500000000)

static inline struct segment_event *segment_event(const struct segment *segment, uint64_t turn) {
    return (struct segment_event *)(void *)(segment->base + segment->layout.events_at) + turn % PRIM_EVENTS;
}

static inline bool events_wanted(const struct segment *segment) {
    return prim_peek(&segment_header(segment)->record_until_ns) != 0;
}

/* Only if they are. `at_ns` and `turn` need not be filled in. */
void event_write(const struct segment *segment, struct segment_event event);

/* The event of that turn, counted from 0: false if it is not there (yet, or any more). */
bool event_read(const struct segment *segment, uint64_t turn, struct segment_event *event);

#endif
