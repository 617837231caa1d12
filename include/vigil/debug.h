/* SPDX-License-Identifier: MIT */
/*
 * vigil/debug.h - who waits where, and for how long. For people who look for the reason why nothing happens.
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
 * An address is that of the word, which is that of the mutex, condition, semaphore ... itself. Its waiters stand there
 * in the order in which they are to be served. Threads have the numbers that the system's tools show; that of an
 * asynchronous wait is the one whose event loop it is. An event loop has one place in the line of a lock, that of its
 * oldest request: how many of its requests queue behind it only its own thread knows. Who has been notified or called
 * already, and just has not run since, is not in line any more.
 */
#ifndef VIGIL_DEBUG_H
#define VIGIL_DEBUG_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * vigil_debug_dump - write that to a descriptor: VIGIL_OK, or VIGIL_ESYSTEM if it cannot be written to.
 *
 * Any thread, at any time, while everything runs on: it looks at one line at a time, for a moment, so what it shows of
 * one line was so at one moment, and what it shows of two lines may not have been. It allocates nothing. Of each line
 * the first 256 are shown, and the others counted up to 10,000. Times are right to some milliseconds, up to 49 days.
 */
VIGIL_API int vigil_debug_dump(int fd);

#ifdef __cplusplus
}
#endif
#endif
