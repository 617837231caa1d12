/* SPDX-License-Identifier: MIT */
#include "backing.h"

#include "events.h"
#include "prim_file.h"

#define BACKING_SLOTS 64u /* at first: a page of slots */

static uint64_t backing_page_end(uint64_t at) {
    return (at + SEGMENT_BACKED - 1) / SEGMENT_BACKED * SEGMENT_BACKED;
}

/* How many rows there are up to the end of the page that the row is in. Rows and pages are aligned. */
static uint32_t backing_members_with(const struct segment_layout *at, uint32_t members, uint32_t row) {
    uint64_t end = backing_page_end(at->members_at + sizeof(struct segment_member) * (row + UINT64_C(1)));
    uint64_t count = (end - at->members_at) / sizeof(struct segment_member);
    return count < members ? (uint32_t)count : members;
}

static uint64_t backing_member_at(const struct segment_layout *at, uint32_t row) {
    return at->members_at + sizeof(struct segment_member) * (uint64_t)row;
}

static bool backing_back_slots(int fd, const struct segment_layout *at, uint64_t from, uint64_t to) {
    return prim_file_back(fd, at->claims_at + SEGMENT_CLAIM_BYTES * from, at->claims_at + SEGMENT_CLAIM_BYTES * to) &&
           prim_file_back(fd, at->slots_at + SEGMENT_SLOT_BYTES * from, at->slots_at + SEGMENT_SLOT_BYTES * to);
}

static uint32_t backing_first_slots(const struct segment_layout *at) {
    return at->slots < BACKING_SLOTS ? (uint32_t)at->slots : BACKING_SLOTS;
}

bool backing_begin(int fd, struct segment_header *header) {
    const struct segment_layout *at = &header->layout;
    header->members_backed = backing_members_with(at, header->members, 0);
    header->slots_backed = backing_first_slots(at);
    return prim_file_back(fd, 0, backing_member_at(at, header->members_backed)) &&
           backing_back_slots(fd, at, 0, header->slots_backed) &&
           prim_file_back(fd, at->user_at, at->user_at + header->first_length);
}

static uint32_t backing_within(uint32_t number, uint32_t least, uint32_t most) {
    return number < least ? least : number < most ? number : most;
}

/* The number in the header may be damaged, but those of backing_begin have memory. */
uint32_t backing_members(const struct segment *segment) {
    uint32_t first = backing_members_with(&segment->layout, segment->members, 0);
    return backing_within(prim_load_acquire(&segment_header(segment)->members_backed), first, segment->members);
}

uint32_t backing_slots(const struct segment *segment) {
    uint32_t first = backing_first_slots(&segment->layout);
    return backing_within(prim_load_acquire(&segment_header(segment)->slots_backed), first,
                          (uint32_t)segment->layout.slots);
}

static void backing_raise(uint32_t *backed, uint32_t to) {
    uint32_t seen = prim_load_relaxed(backed);
    while (seen < to && !prim_cas_release(backed, &seen, to)) { /* B2 */
    }
}

bool backing_need_member(struct segment *segment, uint32_t row) {
    const struct segment_layout *at = &segment->layout;
    uint32_t from = backing_members(segment), to = backing_members_with(at, segment->members, row);
    if (row < from) return true;
    if (!prim_file_back(segment->fd, backing_member_at(at, from), backing_member_at(at, to))) return false; /* B1 */
    backing_raise(&segment_header(segment)->members_backed, to);
    return true;
}

bool backing_more_slots(struct segment *segment) {
    uint64_t from = backing_slots(segment), slots = segment->layout.slots,
             first = backing_first_slots(&segment->layout);
    uint64_t more = from < first ? first : 2 * from, to = more < slots ? more : slots; /* `from` may be damaged */
    if (from >= slots || !backing_back_slots(segment->fd, &segment->layout, from, to)) return false; /* B1 */
    backing_raise(&segment_header(segment)->slots_backed, (uint32_t)to);
    return true;
}

bool backing_need_events(struct segment *segment) {
    uint64_t from = segment->layout.events_at;
    uint32_t *backed = &segment_header(segment)->events_backed;
    if (prim_load_acquire(backed)) return true;
    if (!prim_file_back(segment->fd, from, from + sizeof(struct segment_event) * PRIM_EVENTS)) return false; /* B1 */
    prim_store_release(backed, 1);                                                                           /* B2 */
    return true;
}

static uint64_t backing_page_begin(uint64_t at) {
    return at / SEGMENT_BACKED * SEGMENT_BACKED;
}

/* Whole pages behind those of the first claims, and behind those of the first slots. */
static void backing_end_slots(struct segment *segment) {
    const struct segment_layout *at = &segment->layout;
    uint32_t first = backing_first_slots(at);
    if (prim_load_relaxed(&segment_header(segment)->slots_backed) <= first) return;
    prim_store_relaxed(&segment_header(segment)->slots_backed, first);
    prim_file_unback(segment->fd, backing_page_end(at->claims_at + SEGMENT_CLAIM_BYTES * first),
                     backing_page_begin(at->slots_at));
    prim_file_unback(segment->fd, backing_page_end(at->slots_at + SEGMENT_SLOT_BYTES * first),
                     backing_page_begin(at->events_at));
}

void backing_end_crowd(struct segment *segment) {
    struct segment_header *header = segment_header(segment);
    backing_end_slots(segment);
    if (!prim_load_relaxed(&header->events_backed) || events_wanted(segment)) return;
    prim_store_relaxed(&header->events_backed, 0);
    prim_file_unback(segment->fd, backing_page_end(segment->layout.events_at), segment->layout.user_at);
}
