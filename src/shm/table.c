/* SPDX-License-Identifier: MIT */
#include "table.h"

#include "segment.h"
#include "vigil/status.h"

uint64_t segments_now PRIM_PROCESS;
uint32_t vigil__holder PRIM_PROCESS = 1; /* here, because a process has a number while its table is not empty */

struct table_entry {
    uintptr_t start, end; /* of the mapping */
    struct segment *segment;
};
static struct table_entry tables[2][SEGMENTS_MOST] PRIM_PROCESS; /* sorted by start */

static struct table_entry *table_of(uint64_t now) {
    return tables[now / SEGMENTS_STEP % 2];
}

/* How many segments begin at or before the address. */
static uint32_t table_count_up_to(struct table_entry *table, uint32_t count, uintptr_t address) {
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        if (prim_load_acquire(&table[middle].start) <= address) low = middle + 1;
        else count = middle;
    }
    return low;
}

/*
 * The acquire of each field pairs with the release in table_put(): a reader that sees part of a later change also
 * sees, in its second load of segments_now, the switch that preceded that change.
 */
struct segment *segment_find(uintptr_t address) {
    uint64_t now = prim_load_acquire(&segments_now), before;
    struct segment *found;
    do {
        before = now;
        struct table_entry *table = table_of(before);
        uint32_t below = table_count_up_to(table, before & SEGMENTS_COUNT, address);
        bool inside = below > 0 && address < prim_load_acquire(&table[below - 1].end);
        found = inside ? prim_load_acquire(&table[below - 1].segment) : NULL;
        now = prim_load_acquire(&segments_now);
    } while (now != before);
    return found;
}

static void table_put(struct table_entry *place, struct table_entry value) {
    prim_store_release(&place->start, value.start);
    prim_store_release(&place->end, value.end);
    prim_store_release(&place->segment, value.segment);
}

static void table_switch_to(uint32_t count) {
    uint64_t changes = segments_now / SEGMENTS_STEP + 1;
    prim_store_release(&segments_now, changes * SEGMENTS_STEP + count);
}

void table_add(struct segment *segment) {
    struct table_entry *from = table_of(segments_now), *to = table_of(segments_now + SEGMENTS_STEP);
    uint32_t count = table_count();
    uintptr_t start = (uintptr_t)segment->base;
    uint32_t at = table_count_up_to(from, count, start);
    for (uint32_t i = 0; i < at; i++) table_put(&to[i], from[i]);
    table_put(&to[at], (struct table_entry){start, start + segment->layout.end, segment});
    for (uint32_t i = at; i < count; i++) table_put(&to[i + 1], from[i]);
    table_switch_to(count + 1);
}

void table_remove(struct segment *segment) {
    struct table_entry *from = table_of(segments_now), *to = table_of(segments_now + SEGMENTS_STEP);
    uint32_t left = 0;
    for (uint32_t i = 0; i < table_count(); i++) {
        if (from[i].segment != segment) table_put(&to[left++], from[i]);
    }
    table_switch_to(left);
}

void table_clear(void) {
    table_switch_to(0);
}

uint32_t table_count(void) {
    return segments_now & SEGMENTS_COUNT;
}

struct segment *table_segment(uint32_t index) {
    return table_of(segments_now)[index].segment;
}

struct segment *table_find_file(uint64_t device, uint64_t inode) {
    for (uint32_t i = 0; i < table_count(); i++) {
        struct segment *segment = table_segment(i);
        if (segment->device == device && segment->inode == inode) return segment;
    }
    return NULL;
}
