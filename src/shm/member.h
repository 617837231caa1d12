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

/* Whether the process with that number lives. If its pulse does not beat, asks the kernel; strikes it off if it is
 * dead. */
bool segment_lives(struct segment *segment, uint32_t number);
/* The same, whatever its pulse says. */
void segment_ask_about(struct segment *segment, uint32_t number);

/* The same for a claim. Does not ask the kernel. */
bool segment_has_claimant(const struct segment *segment, uint32_t claim);

/* Strike off the record's member if it is dead: true if that has happened, now or before. */
bool segment_strike_off(struct segment *segment, uint32_t record);

/* The same, but the kernel is asked even if the pulse beats. */
bool segment_ask(struct segment *segment, uint32_t record);

/* Strike off all members that are dead. One whose pulse beats is not asked for. */
void segment_strike_off_all(struct segment *segment);

/* How many members have died so far, modulo 2^32: too many may be counted, but never too few. */
uint32_t segment_deaths(const struct segment *segment);

/* Wake the record's keeper, if that sleeps. What was stored before, with seq_cst or before a fence, it will see. */
void segment_poke(struct segment_member *record);

/* What the pulse of a member says. */
static inline uint32_t segment_pulse(const struct segment_member *record) {
    return prim_load_seq_cst(&record->pulse.word);
}

static inline bool segment_pulse_beats(uint32_t pulse) {
    return pulse && !(pulse & PRIM_PULSE_ENDED);
}

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
