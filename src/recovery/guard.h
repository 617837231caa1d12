/* SPDX-License-Identifier: MIT */
/*
 * guard.h - event loops that have been called for a lock, and may not come.
 *
 * A thread that is called comes. An event loop may be busy for a minute, or its thread may block, perhaps behind its
 * own request. So whenever a loop is called, the keeper of its process guards the call: if the lock has not been
 * taken after a while, and others are in line, the keeper calls the next waiter in place of the loop. A release
 * therefore calls only the head of the line, be it a thread or a loop.
 *
 *     N1  note the line, under the lock of its bucket, in the step that calls the loop, if others are in line
 *     N2  wake the keeper, if it would sleep longer
 *     N3  when the time is over, the keeper locks the bucket again and looks at the line: recovery_pass_line
 *
 *     the noter                                     the keeper
 *     N1  store due                 (seq_cst)       R1  store asleep = 1, until = never   (seq_cst)
 *     N2  load asleep, until                        R2  load due; store until; sleep until then, if asleep is 1
 *
 * If R2 does not see N1 then N2 sees R1. A waiter that joins the line later has seen the lock held, and then its
 * release will call; or reserved, and then the waiter guards the reservation itself (sync/lock.h).
 *
 * N3 reads the lock's word only if a waiter is in its line: while one is, the lock's memory has not been freed.
 *
 * A loop of another process is called by relay. Then the keeper of that process guards the call, from when it hands
 * the slot on. If that process is stopped, its keeper is too: the patrol of the other keepers covers that case.
 *
 * The calls are noted in a table. If the table is full, the keeper looks at all lines instead.
 */
#ifndef VIGIL_GUARD_H
#define VIGIL_GUARD_H

#include "lot/lot.h"

/* (guard_note, which is N1 and N2, is in lot/lot.h. Several calls for one line have one entry.) */

/* For the keeper: when the first guarded call is due. PRIM_NEVER: there is none. */
uint64_t guard_due_ns(void);
/* N3 for all calls that are due. True: the table was full, and the caller must look at all lines. */
bool guard_pass(uint64_t now_ns);
/* Drop the entries of a segment that is being closed. */
void guard_forget(const struct lot *lot);
void guard_in_child(void);

#endif
