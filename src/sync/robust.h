/* SPDX-License-Identifier: MIT */
/*
 * robust.h - which robust mutexes a thread holds, so that they can be released when it ends.
 *
 * A thread that takes a robust mutex by a blocking call has a record of it: a slot of the process's own lot that is in
 * no line, also if the mutex is in a segment. The records are a list that hangs by prim_thread's `robust`, and only
 * their thread touches them; so there is no lock, and nothing to repair: with its process a record is gone, and what
 * the process held in segments is released as that of any dead process (recovery/recovery.h).
 *
 *     op          the mutex's word
 *     away_lot    its segment; zero: none
 *
 * While there is a record, and its thread is not in the middle of the calls below, the word says MUTEX_BY_THREAD. Only
 * the thread that has the record can unlock the mutex then: what the record says stays true until that thread removes
 * it, unless the process leaves the segment.
 */
#ifndef VIGIL_ROBUST_H
#define VIGIL_ROBUST_H

#include "lot/lot.h"

/* A record of nothing. Zero: every slot is taken, or there is no lot. */
uint32_t robust_new(void);
/* It is not needed any more. */
void robust_end(uint32_t record);

/* This thread has just taken the mutex: from now on it is recorded. */
void robust_note(uint32_t record, uint32_t *word);

/* This thread is about to unlock it: the record, which is one of nothing again; zero: it has none. */
uint32_t robust_remove(const uint32_t *word);

/* Whether that thread has a record of it. */
bool robust_has(const struct prim_thread *thread, const void *word);

#endif
