/* SPDX-License-Identifier: MIT */
/* table.h - which segments this process has open, and which addresses belong to which. */
#ifndef VIGIL_SHM_TABLE_H
#define VIGIL_SHM_TABLE_H

#include "prim.h"

struct segment;

/*
 * Which segment an address belongs to; null: memory of this process alone.
 *
 * The segments of this process are in two tables. A change fills in the one that is not in use and then switches over,
 * by a store to segments_now: how many segments there are in the low bits, above them how many times it has
 * changed; the lowest of these says which table. A reader that finds the same number afterwards has read a table that
 * nobody was writing; also one that interrupts the writer.
 */
#define SEGMENTS_MOST  64u
#define SEGMENTS_COUNT 0xffu /* the bits of it */
#define SEGMENTS_STEP  0x100u
extern uint64_t segments_now;
struct segment *segment_find(uintptr_t address);

static inline struct segment *segment_of(const volatile void *address) {
    if (!(prim_load_acquire(&segments_now) & SEGMENTS_COUNT)) return NULL;
    return segment_find((uintptr_t)address);
}

/*
 * All that follows is called under the gate (memory/segment.c). The caller of table_add has checked that there are
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
