/* SPDX-License-Identifier: MIT */
/* member.h - the processes that have a segment open: the steps J0 to J4, L1, L2, D1 and D2 of segment.h. */
#ifndef VIGIL_SHM_MEMBER_H
#define VIGIL_SHM_MEMBER_H

#include "segment.h"

/* How many of the members' rows may be in use: those from this index on need not be looked at. */
uint32_t segment_rows(const struct segment *segment);

/* The row is or will be in use: make sure that segment_rows includes it. */
void segment_use_row(struct segment *segment, uint32_t row);

/* Whether the row's member lives; false also if it has none. Never false for a member that lives. */
bool segment_member_alive(const struct segment *segment, uint32_t row);

/* The row of the member with that number; null: the member has been struck off or has left. */
struct segment_member *segment_find_member(const struct segment *segment, uint32_t number);

/* Whether the member with that number lives. If its pulse does not beat, asks the kernel, and strikes the member off
 * if it is dead. */
bool segment_member_lives(struct segment *segment, uint32_t number);
/* Ask the kernel whatever the pulse says, and strike the member off if it is dead. */
void segment_ask_kernel_about(struct segment *segment, uint32_t number);

/* Whether the claim is that of a present member. Does not ask the kernel. */
bool segment_has_claimant(const struct segment *segment, uint32_t claim);

/* Strike off the row's member if it is dead. True: it has been struck off, now or before, or there was none. If its
 * pulse beats, the kernel is not asked, and the member counts as living. */
bool segment_strike_off(struct segment *segment, uint32_t row);

/* The same, but asks the kernel even if the pulse beats. */
bool segment_ask_kernel(struct segment *segment, uint32_t row);

/* segment_strike_off for all rows. */
void segment_strike_off_all(struct segment *segment);

/* How many members have died so far, modulo 2^32. May count too many, but never too few. */
uint32_t segment_deaths(const struct segment *segment);

/* Wake the keeper of the row's member, if it sleeps. It will see what was stored before with seq_cst, or before a
 * fence. */
void segment_poke(struct segment_member *row);

/* The word of a member's pulse. */
static inline uint32_t segment_pulse(const struct segment_member *row) {
    return prim_load_seq_cst(&row->pulse.word);
}

static inline bool segment_pulse_beats(uint32_t pulse) {
    return pulse && !(pulse & PRIM_PULSE_ENDED);
}

/* J0, and U1: lock the door, waiting; false: see errno. The caller unlocks it: the byte is SEGMENT_DOOR_AT. */
bool member_lock_door(struct segment *segment);

/*
 * Under the gate: become a member, J0 to J4. If no other member is alive, calls `empty` before J3, to empty the lot:
 * the caller passes it, because the lot uses src/shm and not the other way round.
 */
int member_join(struct segment *segment, void (*empty)(struct segment *segment));

/* Under the gate: L1 and L2. `leaves_something`: this process leaves something to recover, as a dead member does. */
void member_leave(struct segment *segment, bool leaves_something);

/* Called, unless null, under the gate before this process leaves, and in the child of a fork when it closes its copy.
 * Returns an error if the process cannot leave; VIGIL_OWNER_DIED if it leaves something to recover, as a dead member
 * does; or VIGIL_OK. */
extern int (*segment_leaving)(struct segment *segment);

#endif
