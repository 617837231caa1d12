/* SPDX-License-Identifier: MIT */
/*
 * backing.h - memory for the members' rows, claims, slots and events of a segment, as they are needed.
 *
 * Touching a byte for which the file system has no memory left is a fault, and reading a byte that has no memory yet
 * takes some. So the header says how many rows and slots have memory, and no process touches others:
 *
 *     B1  prim_file_back the next ones                  killed: they have memory, and no process knows
 *     B2  CAS the number in the header up (release)     a process that loads the number (acquire) may touch them
 *
 * Both numbers only rise, until a process joins and finds no other member alive: it gives back what is left of a crowd
 * (backing_end_crowd). Each process also keeps the highest number of slots that it has seen (lot_share), so that
 * damage to the header does not hide the slots of its own waiters.
 */
#ifndef VIGIL_SHM_BACKING_H
#define VIGIL_SHM_BACKING_H

#include "segment.h"

/* Back what a new segment needs first, with the user's bytes, and say so in its header. False: see errno. */
bool backing_begin(int fd, struct segment_header *header);

/* How many members' rows, and slots, may be touched. */
uint32_t backing_members(const struct segment *segment);
uint32_t backing_slots(const struct segment *segment);

/* Make sure that the row may be touched. False: see errno. */
bool backing_need_member(struct segment *segment, uint32_t row);
/* Back as many slots again. False: there are no more, or there is no memory. */
bool backing_more_slots(struct segment *segment);
bool backing_need_events(struct segment *segment);

/* For a joiner that has found no other member alive, and has emptied the lot. */
void backing_end_crowd(struct segment *segment);

#endif
