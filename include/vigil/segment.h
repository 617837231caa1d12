/* SPDX-License-Identifier: MIT */
/*
 * vigil/segment.h - segments: buffers that several processes share, with the lines and locks in them.
 *
 * A segment is a vigil_buffer like any other: views, atomics and the functions of vigil/memory.h work on it. Its bytes
 * are in a file in memory, which every process maps that opens it by name or by a descriptor:
 *
 *     vigil_buffer *buffer;
 *     vigil_segment_open_or_create(&buffer, "example", &(vigil_segment_options){.length = 1 << 20});
 *     vigil_view counters;
 *     vigil_view_init(&counters, buffer, VIGIL_I32, 0, VIGIL_TO_END);
 *     vigil_atomics_add(counters, 3, 1, NULL); // and so do the others
 *     vigil_buffer_destroy(buffer);            // the others still have it
 *     vigil_segment_unlink("example");
 *
 * The file stays until it is unlinked and the last process has left, or the machine is switched off.
 *
 * Every word in it may be waited on (vigil/wait.h), and every lock may be put into it: nothing needs to be said, the
 * library knows by the address. Threads and event loops of all its processes stand in one line, first come, first
 * served. A condition and its mutex must be in the same segment. How many may wait at once, all processes together, is
 * decided when the segment is made; beyond that a wait answers VIGIL_ELIMIT, until others have ended. What a process holds
 * of a read-write lock, or of a semaphore whose permits are leased, takes one of these places too; and memory in which
 * somebody holds such a lock must not be used for anything else.
 *
 * MEMBERS. A process that opens a segment is a member of it, until it destroys the buffer, ends, is killed or executes
 * another program. The others learn which, reliably: a process that is merely stopped is still a member. To open a
 * segment that this process has open already answers the same buffer; then it is to be destroyed as many times. A
 * process may have 64 segments open. While any of its threads or event loops still waits in a segment,
 * vigil_buffer_destroy answers VIGIL_EBUSY and does nothing. (So it does for a request that was cancelled after it had
 * been called, until its agent has been dispatched.)
 *
 * DEATH. A member may be killed at any moment, in the middle of any function of this library too. Then, within some
 * milliseconds, without anybody having to call anything:
 *
 *     its places in the lines are gone, and the order of the others is as it was;
 *     a notification, or a condition's signal, that it had been given, and had not returned with, goes to the first in line;
 *     a mutex that it held goes to the next with VIGIL_OWNER_DIED (mutex.h);
 *     what it held of a read-write lock is given back, and if it was writing the next one is told (rwlock.h);
 *     permits that it had of a semaphore whose permits are leased come back (sem.h);
 *     its arrival at a barrier is taken back; a once whose function it was running has failed.
 *
 * How long that takes does not depend on the number of members. The same goes for a member that leaves with locks held. If
 * it comes back while it has had another segment open all the time it has them again.
 *
 * A process that opens a segment has one thread of the library's, its keeper, for all its segments. It handles no signals
 * and sleeps until there is something to do; while the process waits it wakes up about once in a second, or in ten
 * seconds among a thousand members. That is for processes that are stopped: a lock whose turn has come to a process that is
 * stopped (SIGSTOP, a debugger) goes to the next waiter about a second later.
 *
 * What is not offered: to notice the end of a thread, as opposed to its process; anything across a restart of
 * the machine; priority inheritance. A process that is stopped (SIGSTOP, a debugger) in the few instructions in which it
 * changes a line keeps the others waiting who want to change the same one, and one that is stopped while it opens a
 * segment those who want to open it: it is not dead.
 *
 * FORK. The child is no member, and what it inherited is dead for it: views, atomics and vigil_buffer_grow answer
 * VIGIL_EFORKED, the length is 0, the data null, and an address kept from before the fork is a fault. It destroys the
 * buffer and opens the segment for itself.
 *
 * GROWING. A named segment has memory for every byte of its length from the start, because touching one for which the
 * file system has none left would be a fault; anonymous ones use memory for the pages that are touched. Hence
 * vigil_buffer_grow may also answer VIGIL_ENOMEM, or VIGIL_ESYSTEM.
 *
 * TRUST. The members of a segment trust each other: any of them can write anything into it. What members have left behind
 * who are all gone is not trusted, apart from the user's bytes. What is not a segment, or not a whole one, is refused,
 * each with an error of its own:
 *
 *     VIGIL_EFOREIGN     not a file of this library's, or not a file at all
 *     VIGIL_ETRUNCATED   a part of it is missing
 *     VIGIL_ECORRUPT     it contradicts itself
 *     VIGIL_EVERSION     made by a version of the library that has another format
 *     VIGIL_EMACHINE     made by a program with another word size or byte order
 *     VIGIL_EOWNER       owned by another user
 *
 * COMPATIBILITY. The format of the file has a number, which changes with every change of the format; programs with another
 * number are refused (VIGIL_EVERSION). While the library's major version is 0, any minor version may change it.
 *
 * Needs Linux with /proc and, for names, /dev/shm.
 */
#ifndef VIGIL_SEGMENT_H
#define VIGIL_SEGMENT_H

#include <stdint.h>

#include "memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a new segment is to be like. Zero, in each field, is for the default; a null pointer is for all of them. */
typedef struct vigil_segment_options {
    uint64_t length;     /* in bytes, all zero at first; default 4096 */
    uint64_t max_length; /* that it may grow to; default: length */
    uint32_t waiters;    /* how many may wait in it at once; default 1024, at most 2^20 */
    uint32_t members;    /* how many processes may have it open at once; default 64, at most 65536 */
    unsigned mode;       /* who may open it, as for chmod(2), to read and write in any case; default 0600 */
    const char *label;   /* what it is for, up to 31 printable ASCII characters; default: none */
} vigil_segment_options;

/*
 * A name is 1 to 200 characters of A-Z a-z 0-9 . _ - and does not begin with a dot. Every user (the process's effective
 * one) has names of their own. For another user, make the segment with a mode that has bits for group or others
 * and pass a descriptor.
 *
 * vigil_segment_create: a new one; VIGIL_EEXISTS if the name is taken. It is complete before anybody can open it.
 * vigil_segment_open: one that exists; VIGIL_ENOTFOUND if there is none.
 * vigil_segment_open_or_create: of any number of processes that call this at once, one creates it and the others
 *     open that one. It may thus be different from what the options say.
 *
 * Besides, what each of them may answer: VIGIL_ENULL, VIGIL_ENAME, VIGIL_ERANGE (`length` above `max_length`, or more
 * waiters or members than may be), VIGIL_EINVAL (a mode or a label that means nothing here), VIGIL_ENOMEM, VIGIL_ELIMIT (as many
 * members, or segments in this process, as may be), VIGIL_ESYSTEM, and, when opening, the errors above.
 */
VIGIL_API int vigil_segment_create(vigil_buffer **buffer, const char *name, const vigil_segment_options *options);
VIGIL_API int vigil_segment_open(vigil_buffer **buffer, const char *name);
VIGIL_API int vigil_segment_open_or_create(vigil_buffer **buffer, const char *name,
                                           const vigil_segment_options *options);

/*
 * vigil_segment_label - what the options said when it was made: for programs to tell theirs from others', and for people.
 * Never null; empty if there is none, or if the buffer is no segment. It is good until the buffer is destroyed.
 */
VIGIL_API const char *vigil_segment_label(vigil_buffer *buffer);

/*
 * vigil_segment_mend - put right whatever can be, at once: strike off who has died, clear away what they have left, and
 * build every line anew from what each waiter says of itself. The library does the first two by itself, where anybody
 * waits; the last is against damage (vigil/observe.h finds it). How many things were put right; or VIGIL_ENULL,
 * VIGIL_EINVAL (a buffer that is no segment), VIGIL_EFORKED, VIGIL_ENOMEM.
 */
VIGIL_API int64_t vigil_segment_mend(vigil_buffer *buffer);

/*
 * vigil_segment_unlink - take the name away. Members keep the segment; the name is free for a new one.
 *
 * VIGIL_ENULL, VIGIL_ENAME, VIGIL_ENOTFOUND, VIGIL_EOWNER, VIGIL_ESYSTEM.
 */
VIGIL_API int vigil_segment_unlink(const char *name);

/*
 * vigil_segment_unlink_unused - the same, if no living process has the segment open, or a lock of its own on the file
 * (see vigil_segment_fd); else VIGIL_EBUSY.
 *
 * In one step: who opens it meanwhile is there before, or does not find it. (Not beside vigil_segment_unlink, which asks
 * nobody.) Other errors as vigil_segment_open's.
 */
VIGIL_API int vigil_segment_unlink_unused(const char *name);

/*
 * Without a name: for processes that inherit a descriptor or get it over a Unix socket.
 *
 * vigil_segment_create_anonymous: errors as vigil_segment_create's.
 * vigil_segment_fd: a new descriptor of a segment, named or not, for others to open it by. It is the caller's, to pass
 *     on and to close, and is closed by exec unless the caller changes that. Locks of its own may be taken on the file
 *     (flock, or F_OFD_SETLK except on the bytes behind 2^62 - 2, which are the library's). Zero or positive; or VIGIL_ENULL,
 *     VIGIL_EINVAL (a buffer that is no segment), VIGIL_EFORKED, VIGIL_ESYSTEM.
 * vigil_segment_open_fd: open the segment behind a descriptor, which remains the caller's. VIGIL_EINVAL if it is none;
 *     other errors as vigil_segment_open's. VIGIL_EOWNER is for another user's file that only its owner may write.
 */
VIGIL_API int vigil_segment_create_anonymous(vigil_buffer **buffer, const vigil_segment_options *options);
VIGIL_API int vigil_segment_fd(vigil_buffer *buffer);
VIGIL_API int vigil_segment_open_fd(vigil_buffer **buffer, int fd);

#ifdef __cplusplus
}
#endif
#endif
