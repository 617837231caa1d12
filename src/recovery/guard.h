/* SPDX-License-Identifier: MIT */
/*
 * guard.h - event loops that have been called for a lock, and may not come.
 *
 * A thread that is called comes. An event loop may be busy for a minute, or its thread may block, perhaps behind its own
 * request. So whenever a loop is called its process's keeper guards the call: if the lock is still there after a while,
 * and others are in line, the next one is called in the loop's place. A release therefore calls the head of the line and
 * nobody else, whoever that is.
 *
 *     N1  note the line, under the lock of its bucket, in the step that calls the loop, if others are in line
 *     N2  wake the keeper, if it sleeps longer
 *     N3  the keeper, when the time is over, locks the bucket again and looks at the line: recovery_pass_line
 *
 *     who notes                                     keeper
 *     N1  store due                 (seq_cst)       R1  store asleep = 1, until = never   (seq_cst)
 *     N2  load asleep, until                        R2  load due; store until; sleep until then, while it is asleep
 *
 * If R2 does not see N1 then N2 sees R1. A waiter that joins the line later has seen the lock held, and then its release
 * will call; or reserved, and then it looks after itself (sync/lock.h).
 *
 * N3 looks at the lock's word only if somebody is in its line, and so has not had its memory back.
 *
 * A loop of another process is called by mail: then it is that process's keeper that guards it, from when it hands the
 * letter on. Whether the process is stopped nobody can guard: for that there is the keeper's look.
 *
 * The calls are noted in a table. If there is no room in it, the keeper looks at all lines instead.
 */
#ifndef VIGIL_GUARD_H
#define VIGIL_GUARD_H

#include "lot/lot.h"

/* (guard_note, which is N1 and N2, is in lot/lot.h. Calls for one line are one.) */

/* The keeper: when the first of them is due; PRIM_NEVER: there are none. */
uint64_t guard_due_ns(void);
/* N3 of all that are due. True: there was no room in the table, and all lines are to be looked at. */
bool guard_pass(uint64_t now_ns);
/* The segment is closed. */
void guard_forget(const struct lot *lot);
void guard_in_child(void);

#endif
