/* SPDX-License-Identifier: MIT */
/* table.h - which segments this process has open, and which addresses belong to which. */
#ifndef VIGIL_SHM_TABLE_H
#define VIGIL_SHM_TABLE_H

#include "prim.h"

struct segment;

/*
 * Which segment an address belongs to; null: memory of this process alone.
 *
 * The segments of this process are in two tables. A writer fills in the table that is not in use and then switches
 * over, by a store to segments_now: the low bits are the number of segments, the bits above count the changes, and
 * the lowest of those says which table is in use. A reader that finds segments_now unchanged afterwards has read a
 * table that was not being written; that holds also for a signal handler that interrupts the writer.
 */
#define SEGMENTS_MOST  64u
#define SEGMENTS_COUNT 0xffu /* the bits of the number of segments */
#define SEGMENTS_STEP  0x100u
extern uint64_t segments_now;
struct segment *segment_find(uintptr_t address);

/* Whether this process has a segment open: a constant where the system has none. */
static inline bool segments_open(void) {
    return PRIM_SEGMENTS && (prim_load_acquire(&segments_now) & SEGMENTS_COUNT);
}

static inline struct segment *segment_of(const volatile void *address) {
    return segments_open() ? segment_find((uintptr_t)address) : NULL;
}

/*
 * All functions below are called under the gate (memory/segment.c). The caller of table_add has checked that there are
 * fewer than SEGMENTS_MOST.
 */
void table_add(struct segment *segment);
void table_remove(struct segment *segment);
void table_clear(void);

/* How many segments there are, and each of them, in the order of their addresses. */
uint32_t table_count(void);
struct segment *table_segment(uint32_t index);

/* The segment in that file; null: this process does not have it open. */
struct segment *table_find_file(uint64_t device, uint64_t inode);

#endif
