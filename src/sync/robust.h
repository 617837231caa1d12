/* SPDX-License-Identifier: MIT */
/*
 * robust.h - which robust mutexes a thread holds, so that they can be released when it ends.
 *
 * A thread that takes a robust mutex by a blocking call has a note of it: a slot of the process's own lot that is in
 * no line, also if the mutex is in a segment. The notes are a list that starts at prim_thread's `robust`, and only
 * their thread touches them. So there is no lock, and nothing to repair: a note disappears with its process, and what
 * the process held in segments is released as for any dead process (recovery/recovery.h).
 *
 *     op          the mutex's word
 *     away_lot    its segment; zero: none
 *
 * While there is a note, and its thread is not inside one of the calls below, the word says MUTEX_BY_THREAD. Then
 * only the thread that has the note can unlock the mutex: the note stays true until that thread removes it, unless
 * the process leaves the segment.
 */
#ifndef VIGIL_ROBUST_H
#define VIGIL_ROBUST_H

#include "lot/lot.h"

/* An empty note. Zero: every slot is taken, there is no lot, or the end of the thread would not be noticed. */
uint32_t robust_new(void);
/* The note is not needed any more. */
void robust_end(uint32_t note);

/* This thread has just taken the mutex: the note is about it from now on. */
void robust_add(uint32_t note, uint32_t *word);

/* This thread is about to unlock the mutex: returns its note, empty again; zero: there is none. */
uint32_t robust_remove(const uint32_t *word);

/* Whether the thread has a note of the mutex. */
bool robust_has(const struct prim_thread *thread, const void *word);

#endif
