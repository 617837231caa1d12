/* SPDX-License-Identifier: MIT */
/* member.h - the processes that have a segment open: the steps J0 to J4, L1, L2, D1 and D2 of segment.h. */
#ifndef VIGIL_SHM_MEMBER_H
#define VIGIL_SHM_MEMBER_H

#include "segment.h"

/* How many of the members' records may be in use: the others need not be looked at. */
uint32_t segment_records(const struct segment *segment);

/* It is used, or to be used: see to it that it is looked at. */
void segment_use_record(struct segment *segment, uint32_t record);

/* Whether the record's member lives; false as well if it has none. Never false for one that lives. */
bool segment_member_alive(const struct segment *segment, uint32_t record);

/* The record of the member with that number; null: it has died and been struck off, or has left. */
struct segment_member *segment_find_member(const struct segment *segment, uint32_t number);

/* Whether the process with that number lives. Asks the kernel, and strikes it off if it is dead. */
bool segment_lives(struct segment *segment, uint32_t number);

/* Look at all members, and strike the dead ones off. */
struct segment_census {
    uint32_t departures, deaths; /* so far, modulo 2^32; too many of the latter may be counted, but never too few */
    uint32_t members, watchers;
};
struct segment_census segment_census(struct segment *segment);

/* J0, and U1: lock the door, waiting; false: errno. The caller unlocks it: the byte is SEGMENT_DOOR_AT. */
bool member_lock_door(struct segment *segment);

/*
 * Under the gate: become a member, J0 to J4. If no other member is alive, `empty` is called before J3, to empty the
 * lot: the caller passes it, because the lot uses src/shm and not the other way round.
 */
int member_join(struct segment *segment, void (*empty)(struct segment *segment));

/* Under the gate: L1 and L2. `leaves_something`: this process leaves something behind, as the dead do. */
void member_leave(struct segment *segment, bool leaves_something);

/* Asked, under the gate, before this process leaves, and in the child of a fork when it drops its copy: an error if it
 * cannot; VIGIL_OWNER_DIED if it leaves something behind, as the dead do. Null: nobody wants to know. */
extern int (*segment_leaving)(struct segment *segment);

#endif
