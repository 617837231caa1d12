/* SPDX-License-Identifier: MIT */
/*
 * vigil/segment.h - segments: buffers that several processes share, with the lines and locks in them.
 *
 * A segment is a vigil_buffer like any other: views, atomics and the functions of vigil/memory.h work on it. Its
 * bytes are in a file in memory, which is mapped by every process that opens it by name or by a descriptor:
 *
 *     vigil_buffer *buffer;
 *     vigil_segment_open_or_create(&buffer, "example", &(vigil_segment_options){.length = 1 << 20});
 *     vigil_view counters;
 *     vigil_view_init(&counters, buffer, VIGIL_I32, 0, VIGIL_TO_END);
 *     vigil_atomics_add(counters, 3, 1, NULL); // and so do the others
 *     vigil_buffer_destroy(buffer);            // the others still have it
 *     vigil_segment_unlink("example");
 *
 * The file exists until it is unlinked and the last process has left, or the machine is switched off.
 *
 * Every word in it can be waited on (vigil/wait.h), and every lock can be put into it. Nothing has to be declared:
 * the library knows by the address. Threads and event loops of all its processes stand in one line, first come, first
 * served. A condition and its mutex must be in the same segment. The number of waiters, of all processes together, is
 * fixed when the segment is created; beyond that a wait returns VIGIL_ELIMIT, until others have ended. What a process
 * holds of a read-write lock, or of a semaphore whose permits are leased, counts as a waiter here. While such a
 * lock is held, its memory must not be used for anything else.
 *
 * MEMBERS. A process that opens a segment is a member of it, until it destroys the buffer, ends, is killed or
 * executes another program. The other members notice that reliably: a process that is merely stopped is still a
 * member. Opening a segment that this process already has open returns the same buffer, which must then be destroyed
 * as many times. A process may have 64 segments open. While any of its threads or event loops waits in a segment,
 * vigil_buffer_destroy returns VIGIL_EBUSY and does nothing. (The same is true of a request that was cancelled after
 * it had been called, until its agent has been dispatched.)
 *
 * DEATH. A member may be killed at any moment, even in the middle of any function of this library. Then, mostly within
 * milliseconds and at most some 50 ms later, and without a call by any other process:
 *
 *     its places in the lines are gone, and the order of the others is unchanged;
 *     a notification or signal that it was given, and did not return with, goes to the first waiter in line;
 *     a mutex that it held goes to the next waiter with VIGIL_OWNER_DIED (mutex.h);
 *     what it held of a read-write lock is given back, and if it was writing the next holder is told (rwlock.h);
 *     permits that it had of a semaphore whose permits are leased come back (sem.h);
 *     its arrival at a barrier is taken back; a once whose function it was running has failed.
 *
 * How long that takes does not depend on the number of members. It is the same for a member that leaves while it
 * holds locks. But if it has another segment open all the time, and opens this one again, it again holds the mutexes
 * that no other process has taken over.
 *
 * A process that opens a segment has one thread of the library, its keeper, for all its segments. The keeper blocks
 * all signals but faults, and sleeps until there is something to do. While the process waits, it wakes up about once a
 * second; with more than 20 waiters in the segment most keepers wake up less often, but at least every 90 seconds.
 * That is for processes that are stopped (SIGSTOP, a debugger): if it is the turn of a stopped process to take a lock,
 * the lock goes to the next waiter about a second later.
 *
 * LIMITS. The end of a thread, as opposed to that of its process, is not noticed, except for robust mutexes
 * (mutex.h). Nothing survives a restart of the machine. There is no priority inheritance. A process that is stopped
 * within the few instructions in which it changes a line delays the processes that need to change the same line, and
 * a process that is stopped while it opens a segment delays the processes that need to open it: it is not dead.
 *
 * FORK. The child is not a member, and cannot use what it inherited: views, atomics and vigil_buffer_grow return
 * VIGIL_EFORKED, the length is 0, the data null, and an access to an address kept from before the fork is a fault.
 * The child must destroy the buffer and open the segment for itself.
 *
 * GROWING. A named segment has memory for every byte of its length from the start, because touching a byte for which
 * the file system has no memory left would be a fault. Anonymous segments use memory for the pages that are touched.
 * Hence vigil_buffer_grow may also return VIGIL_ENOMEM or VIGIL_ESYSTEM.
 *
 * TRUST. The members of a segment trust each other: any of them can write anything into it. What former members have
 * left behind is not trusted when a process opens a segment that has no living member, apart from the user's bytes. A
 * file that is not a segment, or not a whole one, is refused with an error of its own:
 *
 *     VIGIL_EFOREIGN     not a file of this library, or not a regular file
 *     VIGIL_ETRUNCATED   a part of it is missing
 *     VIGIL_ECORRUPT     it is inconsistent
 *     VIGIL_EVERSION     created by a version of the library that has another format
 *     VIGIL_EMACHINE     created by a program with another word size or byte order
 *     VIGIL_EOWNER       owned by another user
 *
 * COMPATIBILITY. The format of the file has a number, which changes with every change of the format. Files with
 * another number are refused (VIGIL_EVERSION). While the major version of the library is 0, any minor version may
 * change it.
 *
 * It needs Linux with /proc and, for names, /dev/shm.
 */
#ifndef VIGIL_SEGMENT_H
#define VIGIL_SEGMENT_H

#include <stdint.h>

#include "memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The properties of a new segment. Zero in a field selects the default; a null pointer selects all defaults. */
typedef struct vigil_segment_options {
    uint64_t length;     /* in bytes, which are zero at first; default 4096 */
    uint64_t max_length; /* to which it may grow; default: length */
    uint32_t waiters;    /* how many may wait in it at once; default 1024, at most 2^20 */
    uint32_t members;    /* how many processes may have it open at once; default 64, at most 65536 */
    unsigned mode;       /* as for chmod(2); must include 0600, at most 0666; default 0600 */
    const char *label;   /* its purpose, up to 31 printable ASCII characters; default: none */
} vigil_segment_options;

/*
 * A name is 1 to 200 characters of A-Z a-z 0-9 . _ - and begins with a letter, a digit or _. Every user (by the
 * effective user id of the process) has separate names. To share a segment with another user, create it with a mode
 * that has bits for group or others, and pass a descriptor.
 *
 * vigil_segment_create - a new segment; VIGIL_EEXISTS if the name is taken. It is complete before any process can
 * open it.
 *
 * vigil_segment_open - an existing segment; VIGIL_ENOTFOUND if there is none.
 *
 * vigil_segment_open_or_create - of any number of processes that call this at once, one creates the segment and the
 * others open it. So it may be different from what the options say.
 *
 * Other errors of all three: VIGIL_ENULL, VIGIL_ENAME, VIGIL_ERANGE (`length` above `max_length`, or too many waiters
 * or members), VIGIL_EINVAL (an invalid mode or label), VIGIL_ENOMEM, VIGIL_ELIMIT (the segment has no room for
 * another member, or this process has too many segments open), VIGIL_ECOPIES (see wait.h), VIGIL_ESYSTEM and, when
 * opening, the errors above.
 */
VIGIL_API int vigil_segment_create(vigil_buffer **buffer, const char *name, const vigil_segment_options *options);
VIGIL_API int vigil_segment_open(vigil_buffer **buffer, const char *name);
VIGIL_API int vigil_segment_open_or_create(vigil_buffer **buffer, const char *name,
                                           const vigil_segment_options *options);

/*
 * vigil_segment_label - the label given when the segment was created: for programs to recognise their own segments,
 * and for people. Never null; empty if there is none, if the buffer is not a segment, and in the child of a fork. It
 * is valid until the buffer is destroyed.
 */
VIGIL_API const char *vigil_segment_label(vigil_buffer *buffer);

/*
 * vigil_segment_mend - repair at once whatever can be repaired: remove dead members, clean up what they left, and
 * rebuild every line from what each waiter's own slot says. The library does the first two by itself wherever there
 * are waiters; the last is against damage (vigil/observe.h finds it). Returns how many things were repaired, or
 * VIGIL_ENULL, VIGIL_EINVAL (the buffer is not a segment), VIGIL_EFORKED, VIGIL_ENOMEM.
 */
VIGIL_API int64_t vigil_segment_mend(vigil_buffer *buffer);

/*
 * vigil_segment_unlink - remove the name: VIGIL_OK. Members keep the segment; the name can be used for a new one.
 *
 * VIGIL_ENULL, VIGIL_ENAME, VIGIL_ENOTFOUND, VIGIL_EOWNER, VIGIL_ESYSTEM.
 */
VIGIL_API int vigil_segment_unlink(const char *name);

/*
 * vigil_segment_unlink_unused - the same, unless a living process has the segment open, or has a lock of its own on
 * the file (see vigil_segment_fd): then VIGIL_EBUSY.
 *
 * This is one step: a process that opens the segment meanwhile has either opened it before, or does not find it.
 * (That does not hold for a concurrent vigil_segment_unlink, which does not check.) Other errors as in
 * vigil_segment_open.
 */
VIGIL_API int vigil_segment_unlink_unused(const char *name);

/*
 * Segments without a name, for processes that inherit a descriptor or get it over a Unix socket.
 *
 * vigil_segment_create_anonymous - a new segment without a name. Errors as in vigil_segment_create.
 *
 * vigil_segment_fd - a new descriptor of a segment, named or not, by which other processes can open it. The caller
 * owns it, and passes it on and closes it. It is closed by exec unless the caller changes that. The caller may take
 * locks of its own on the file: flock, or F_OFD_SETLK except on the bytes from 2^62 - 1 on, which are the library's.
 * Returns zero or a positive number, or VIGIL_ENULL, VIGIL_EINVAL (the buffer is not a segment), VIGIL_EFORKED,
 * VIGIL_ESYSTEM.
 *
 * vigil_segment_open_fd - open the segment of a descriptor, which the caller still owns. VIGIL_EINVAL if it is not a
 * descriptor; VIGIL_EOWNER if another user owns the file and only that user may write it; other errors as in
 * vigil_segment_open.
 */
VIGIL_API int vigil_segment_create_anonymous(vigil_buffer **buffer, const vigil_segment_options *options);
VIGIL_API int vigil_segment_fd(vigil_buffer *buffer);
VIGIL_API int vigil_segment_open_fd(vigil_buffer **buffer, int fd);

#ifdef __cplusplus
}
#endif
#endif
