/* SPDX-License-Identifier: MIT */
/*
 * vigil/observe.h - look at a segment from outside: its members, holders and waiters, and the events in it.
 *
 *     vigil_observer *observer;
 *     vigil_look look;
 *     vigil_observer_open(&observer, "example");
 *     vigil_observer_look(observer, &look);
 *     for (uint32_t i = 0; i < look.line_count; i++)
 *         printf("%u wait at byte %llu\n", look.lines[i].waiter_count, (unsigned long long)look.lines[i].offset);
 *     vigil_observer_close(observer);
 *
 * An observer is not a member of the segment and takes none of its locks. It reads the memory of the segment while
 * the members go on, and they do not notice it, except while it records (below).
 *
 * A look is not a snapshot. Each waiter and each holder in it was there at one moment, but not all at the same
 * moment. A waiter that comes, goes or moves during the look may be missing, and one that has just gone may still be
 * there.
 *
 * Whatever has been written into the memory of the segment, looking and checking terminate and return. They do not
 * survive the loss of the memory itself. The library never shortens the file of a segment; if another program does,
 * as by truncate(2), observers and members that read the missing part are killed by SIGBUS.
 *
 * An observer may be used by one thread at a time. It needs no thread or event loop of its own.
 */
#ifndef VIGIL_OBSERVE_H
#define VIGIL_OBSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "named.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_observer vigil_observer;

/*
 * vigil_observer_open - observe an existing segment, or a lock of vigil/named.h by its name or path: VIGIL_OK. Of a
 * named lock, the label is "vigil lock" or "vigil sem"; its lines have the offsets 0 (the turnstile, where
 * VIGIL_NAMED_FAIR waits), 4 (the lock) and 8 (the slots); its members are the processes that have the name open, and
 * JOINED and LEFT mean that they open and close it. Errors as in vigil_segment_open; but a segment that
 * has no room for another member can be observed, and so can one whose lines are damaged.
 *
 * vigil_observer_open_fd - the same for the segment of a descriptor, which the caller still owns. Errors as in
 * vigil_segment_open_fd.
 *
 * vigil_observer_close - VIGIL_OK, or VIGIL_ENULL. It also ends the recording, unless another observer records.
 */
VIGIL_API int vigil_observer_open(vigil_observer **observer, const char *name);
VIGIL_API int vigil_observer_open_fd(vigil_observer **observer, int fd);
VIGIL_API int vigil_observer_close(vigil_observer *observer);

/*
 * vigil_observer_open_user - vigil_observer_open for a name of another user, by the user id. Only for a process that
 * may read and write that user's files, as root may. VIGIL_EOWNER otherwise.
 *
 * vigil_list_users - call `found` with each name, of segments and of vigil/named.h, of all users whose names may be
 * read. Returns how many, or VIGIL_ENULL, VIGIL_ESYSTEM.
 */
VIGIL_API int vigil_observer_open_user(vigil_observer **observer, uint32_t user, const char *name);
typedef void vigil_user_name(uint32_t user, const char *name, void *data);
VIGIL_API int64_t vigil_list_users(vigil_user_name *found, void *data);

/* A process that has the segment open. */
typedef struct vigil_seen_member {
    uint32_t number;  /* identifies it in this segment, until it leaves */
    uint32_t pid;     /* in its own pid namespace */
    char program[20]; /* the name by which it was started, without the directory: its first 16 bytes */
    bool alive;       /* false: it has died, and no member has removed it yet */
    bool other_space; /* `pid` is of another pid namespace than the observer's */
} vigil_seen_member;

/* What a waiter waits for, or a holder holds. */
typedef enum vigil_seen_kind {
    VIGIL_SEEN_WORD, /* a wait of vigil/wait.h */
    VIGIL_SEEN_COND,
    VIGIL_SEEN_MUTEX,
    VIGIL_SEEN_SEM,
    VIGIL_SEEN_RWLOCK,
    VIGIL_SEEN_BARRIER,
    VIGIL_SEEN_ONCE,
    VIGIL_SEEN_KINDS
} vigil_seen_kind;

/* Its name: "word", "condition", "mutex", "semaphore", "read-write lock", "barrier", "once"; or else "unknown". */
VIGIL_API const char *vigil_seen_kind_name(vigil_seen_kind kind);

typedef struct vigil_seen_waiter {
    uint32_t number;    /* of its process */
    uint32_t thread_id; /* as the tools of the system show it; 0: an event loop, which does not block */
    vigil_seen_kind kind;
    bool called;      /* it has been notified, or called for a lock, and has not run since */
    bool shared;      /* of a read-write lock: it wants to read */
    uint32_t permits; /* of a semaphore: how many it wants; 0 if that is not known */
    int64_t since_ns; /* on the clock of vigil_now_ns, but of a thread some milliseconds early, never late, if it waits
                       * for less than 49 days; from 0 to at_ns of the look, even if the memory is damaged */
} vigil_seen_waiter;

typedef struct vigil_seen_holder {
    uint32_t number;  /* of its process; if no member has it, that has died, and the lock will go to the next waiter */
    bool shared;      /* it reads */
    uint32_t count;   /* how many times, or how many permits */
    int64_t since_ns; /* since when the process has held any of it, as early as with threads. Known for read-write
                       * locks and leased permits; otherwise 0 */
} vigil_seen_holder;

/*
 * A word that has waiters or holders. A mutex can be seen only while it has waiters: otherwise it is a word like all
 * others, and only the program knows what it is. Read-write locks and leased semaphores are also seen while they are
 * held.
 */
typedef struct vigil_seen_line {
    uint64_t offset; /* of the word, in the segment's bytes */
    vigil_seen_kind kind;
    uint32_t value; /* of the 32-bit word there */
    bool owner_died;
    uint32_t waiter_count, holder_count;
    const vigil_seen_waiter *waiters; /* in the order of the line; those that have been called come first */
    const vigil_seen_holder *holders;
} vigil_seen_line;

typedef struct vigil_look {
    int64_t at_ns; /* the time of the look, on the clock of vigil_now_ns */
    const char *label;
    uint64_t length, max_length;         /* of the segment, in bytes */
    uint32_t members_most, waiters_most; /* the limits */
    uint32_t slots_used;                 /* of waiters_most: by waiters and holders, living and dead */
    uint32_t member_count, line_count;
    const vigil_seen_member *members;
    const vigil_seen_line *lines;         /* sorted by offset */
    uint32_t slots;                       /* of a named semaphore; else 0 */
    const vigil_named_holder *dead_owner; /* of a named lock: the holder that was killed; null: none was */
} vigil_look;

/*
 * vigil_observer_look - fill in `look`: VIGIL_OK. The observer owns what it points to, which is valid until the next
 * vigil_observer_look or vigil_observer_check with the same observer, or until that is closed. VIGIL_ENULL,
 * VIGIL_ENOMEM.
 */
VIGIL_API int vigil_observer_look(vigil_observer *observer, vigil_look *look);

/*
 * vigil_observer_check - look for damage: `found` is called for each finding, with a sentence for people. Returns how
 * many there were, at most 256 (then there may be more), or VIGIL_ENULL, VIGIL_ENOMEM.
 *
 * It checks the rules of the library's own structures: the header, the rows of the members, the owner of each
 * slot, and the order and links of every line. Findings that are true only for a moment, because a process is at
 * work there, are checked again and not counted. vigil_segment_mend repairs what can be repaired.
 */
typedef enum vigil_finding {
    VIGIL_FINDING_DEAD,   /* left behind by a process that has died; a member will clean it up */
    VIGIL_FINDING_STUCK,  /* a living process has been changing a line for long; it is probably stopped */
    VIGIL_FINDING_BROKEN, /* a rule is broken: a process has overwritten memory of the library */
    VIGIL_FINDINGS
} vigil_finding;
typedef void vigil_found(vigil_finding finding, const char *sentence, void *data);
VIGIL_API int64_t vigil_observer_check(vigil_observer *observer, vigil_found *found, void *data);

/*
 * Recording. While an observer records, the members write down events, at a cost of some 50 ns each; otherwise it
 * costs them one load. Only what happens in a line is seen: a lock or unlock of a mutex that has no waiters is not
 * recorded, so a mutex may be granted without a recorded release. Read-write locks and leased semaphores are recorded
 * every time.
 */
typedef enum vigil_event_type {
    VIGIL_EVENT_JOINED,   /* the process opened the segment */
    VIGIL_EVENT_LEFT,     /* it closed the segment */
    VIGIL_EVENT_DIED,     /* it was found dead by the process `by` */
    VIGIL_EVENT_WAITS,    /* it joined the line */
    VIGIL_EVENT_CALLED,   /* it was notified, or called for a lock, by the process `by` */
    VIGIL_EVENT_GAVE_UP,  /* it left the line: its deadline passed, or it was cancelled or interrupted */
    VIGIL_EVENT_GRANTED,  /* it took the lock, or `count` of it */
    VIGIL_EVENT_RELEASED, /* it released the lock, or `count` of it */
    VIGIL_EVENT_TYPES
} vigil_event_type;

typedef struct vigil_event {
    int64_t at_ns; /* on the clock of vigil_now_ns; never in the future */
    vigil_event_type type;
    vigil_seen_kind kind;
    uint64_t offset;    /* of the word; 0 for the first three */
    uint32_t number;    /* of the process that the event is about */
    uint32_t pid;       /* of JOINED: in its own pid namespace; else 0 */
    uint32_t thread_id; /* of WAITS, CALLED, GAVE_UP: the waiter; 0: an event loop. Of GRANTED, RELEASED: the caller */
    uint32_t by;        /* of DIED and CALLED */
    uint32_t count;     /* of GRANTED and RELEASED */
    uint32_t waiter;    /* of WAITS, CALLED and GAVE_UP: identifies the waiter, until it is gone */
    bool shared;        /* of GRANTED: to read */
    int status;         /* of CALLED: the outcome of its wait */
} vigil_event;

/*
 * vigil_observer_record - begin to record, or go on recording: VIGIL_OK, or VIGIL_ENULL. Call it once a second;
 * otherwise the recording ends.
 *
 * vigil_observer_events - fetch the events since the last call, oldest first, at most `most` of them. Returns how
 * many, or VIGIL_ENULL. The segment keeps the last VIGIL_EVENTS_KEPT events. `lost`, unless null, is increased by the
 * number of events that were overwritten before they were fetched, or that cannot be read, and by one for each time
 * that vigil_observer_record was called too late, when events may have been missed.
 */
#define VIGIL_EVENTS_KEPT 1024
VIGIL_API int vigil_observer_record(vigil_observer *observer);
VIGIL_API int64_t vigil_observer_events(vigil_observer *observer, vigil_event *events, size_t most, uint64_t *lost);

/*
 * vigil_segment_list - call `listed` with the name of each segment of this user, in no particular order. Returns how
 * many, or VIGIL_ENULL, VIGIL_ESYSTEM. A file that has such a name but is not a segment is listed too: try to
 * open it to find out.
 */
VIGIL_API int64_t vigil_segment_list(vigil_listed *listed, void *data);

#ifdef __cplusplus
}
#endif
#endif
