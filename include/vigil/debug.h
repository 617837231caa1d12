/* SPDX-License-Identifier: MIT */
/*
 * vigil/debug.h - which threads and event loops wait where, and for how long, to find out why a program hangs.
 *
 *     vigil_debug_dump(2);                                        to stderr
 *
 *     vigil: process 4711: 3 wait in 2 lines
 *     0x5581e32c4040: a lock, 2 in line
 *         blocking      thread 4713, for 12.071 s
 *         asynchronous  thread 4711, for 11.998 s, agent 0x5581e4a01200
 *     0x5581e32c4080: a word, 1 in line
 *         blocking      thread 4712, for 0.004 s
 *
 * An address is that of the word, which is that of the mutex, condition, semaphore ... itself. Its waiters are listed
 * in the order in which they will be served. Threads have the numbers that the tools of the system show; an
 * asynchronous wait has the number of the thread of its event loop. An event loop has one place in the line of a
 * lock, that of its oldest request: only its own thread knows how many of its requests queue behind that. A waiter
 * that has already been notified or called, and has not run since, is not in line any more. Waits in segments are not
 * shown: see observe.h.
 */
#ifndef VIGIL_DEBUG_H
#define VIGIL_DEBUG_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * vigil_debug_dump - write that to a descriptor: VIGIL_OK, or VIGIL_ESYSTEM if writing fails, or VIGIL_ECOPIES (see
 * wait.h).
 *
 * Any thread may call it at any time, while all others run on, but not a signal handler. It looks at one line at a
 * time, for a moment: what it shows of one line was true at one moment, but two lines are shown at different moments.
 * It allocates nothing. Of each line the first 256 waiters are shown, and the others counted, up to 10,000. Times are
 * accurate to some milliseconds, up to 49 days.
 */
VIGIL_API int vigil_debug_dump(int fd);

#ifdef __cplusplus
}
#endif
#endif
