/* SPDX-License-Identifier: MIT */
/*
 * vigil/observe.h - look at a segment from outside: who has it open, who holds what, who waits where, what happens.
 *
 *     vigil_observer *observer;
 *     vigil_look look;
 *     vigil_observer_open(&observer, "example");
 *     vigil_observer_look(observer, &look);
 *     for (uint32_t i = 0; i < look.line_count; i++)
 *         printf("%u wait at byte %llu\n", look.lines[i].waiter_count, (unsigned long long)look.lines[i].offset);
 *     vigil_observer_close(observer);
 *
 * An observer is no member of the segment, and takes none of its locks: it reads the segment's memory while the members
 * go on, and they do not notice. What they are not told either is whether it is there, except while it records (below).
 *
 * A look is not a photograph. Each waiter and each holder in it was so at one moment, but not all at the same one. One who
 * comes, goes or moves while it is being looked at may be missing, and one who has just gone may still be there.
 *
 * Whatever has been written into the segment's memory, looking and checking end, and answer. What they cannot bear is
 * that the memory goes away. The library never shortens a segment's file; whoever does so by hand, as with truncate(2),
 * kills by SIGBUS whoever looks at what is gone, observer or member.
 *
 * An observer is for one thread at a time. It needs no thread or event loop of its own.
 */
#ifndef VIGIL_OBSERVE_H
#define VIGIL_OBSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_observer vigil_observer;

/*
 * vigil_observer_open - of a segment that exists: VIGIL_OK. Errors as vigil_segment_open's; but a segment in which every
 * place for members is taken can be observed, and one with a damaged lot as well.
 *
 * vigil_observer_open_fd - the same for the segment behind a descriptor, which remains the caller's: errors as
 * vigil_segment_open_fd's.
 *
 * vigil_observer_close - VIGIL_OK, or VIGIL_ENULL.
 */
VIGIL_API int vigil_observer_open(vigil_observer **observer, const char *name);
VIGIL_API int vigil_observer_open_fd(vigil_observer **observer, int fd);
VIGIL_API int vigil_observer_close(vigil_observer *observer);

/* A process that has the segment open. */
typedef struct vigil_seen_member {
    uint32_t number;   /* by which it is known in this segment, until it leaves */
    uint32_t pid;      /* in its own pid namespace */
    char program[20];  /* the name by which it was started, without the folder; its first 16 bytes */
    bool alive;        /* false: it has died, and nobody has struck it off yet */
} vigil_seen_member;

/* What somebody waits for, or holds. */
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

/* Its name for people: "word", "condition", "mutex", "semaphore", "read-write lock", "barrier", "once"; else "unknown". */
VIGIL_API const char *vigil_seen_kind_name(vigil_seen_kind kind);

typedef struct vigil_seen_waiter {
    uint32_t number;    /* its process's */
    uint32_t thread_id; /* as the system's tools show it; 0: an event loop, which does not block */
    vigil_seen_kind kind;
    bool called;        /* it has been notified, or it is its turn; it just has not run since */
    bool shared;        /* of a read-write lock: it wants to read */
    uint32_t permits;   /* of a semaphore: how many it wants; 0 if that is not known */
    int64_t since_ns;   /* on the clock of vigil_now_ns: from 0 to at_ns of the look, even if it is damaged */
} vigil_seen_waiter;

typedef struct vigil_seen_holder {
    uint32_t number;  /* its process's; if no member has it, it has died, and the lock will go to the next */
    bool shared;      /* it reads */
    uint32_t count;   /* how many times, or how many permits */
    int64_t since_ns; /* the same; 0: that is not known. It is for read-write locks and leased permits: since the
                       * process has held any of it */
} vigil_seen_holder;

/*
 * A place that is waited at, or held. A mutex can be seen only while somebody waits at it: otherwise it is a word like all
 * others, and only the program knows what it is. Read-write locks and leased semaphores are seen while they are held too.
 */
typedef struct vigil_seen_line {
    uint64_t offset; /* of the word, in the segment's bytes */
    vigil_seen_kind kind;
    uint32_t value; /* of the 32-bit word that is there */
    bool owner_died;
    uint32_t waiter_count, holder_count;
    const vigil_seen_waiter *waiters; /* first come, first served: in that order; those who were called come first */
    const vigil_seen_holder *holders;
} vigil_seen_line;

typedef struct vigil_look {
    int64_t at_ns; /* when: on the clock of vigil_now_ns */
    const char *label;
    uint64_t length, max_length;            /* of the segment, in bytes */
    uint32_t members_most, waiters_most;    /* how many there may be at once */
    uint32_t places_used;                   /* of those for waiters, by waiters and holders, living and dead */
    uint32_t member_count, line_count;
    const vigil_seen_member *members;
    const vigil_seen_line *lines; /* by offset */
} vigil_look;

/*
 * vigil_observer_look - fill it in: VIGIL_OK. What it points to is the observer's, and good until the next look of the
 * same observer or until that is closed. VIGIL_ENULL, VIGIL_ENOMEM.
 */
VIGIL_API int vigil_observer_look(vigil_observer *observer, vigil_look *look);

/*
 * vigil_observer_check - look for whatever should not be: `found` is called for each thing, with a sentence for people.
 * How many there were, at most 256: then there may be more. Or VIGIL_ENULL, VIGIL_ENOMEM.
 *
 * It knows the rules of the library's own structures: the header, the members' records, whose each place is, the order
 * and the links of every line. What is only so for a moment, because somebody is at work there, is looked at again, and
 * not counted. vigil_segment_mend puts right what can be.
 */
typedef enum vigil_finding {
    VIGIL_FINDING_DEAD,   /* what somebody who has died left behind; it is cleared away as soon as a member looks */
    VIGIL_FINDING_STUCK,  /* somebody alive has been inside a line for long, as only a stopped process is */
    VIGIL_FINDING_BROKEN, /* a rule is broken: somebody has written where he should not have */
    VIGIL_FINDINGS
} vigil_finding;
typedef void vigil_found(vigil_finding finding, const char *sentence, void *data);
VIGIL_API int64_t vigil_observer_check(vigil_observer *observer, vigil_found *found, void *data);

/*
 * Recording. While an observer records, the members write down what happens. It costs them some 50 ns for each event;
 * while nobody records, one load. What does not happen in a line is not seen: of a mutex, a lock or unlock while nobody
 * waits for it, so that one may be granted and its release not be noted. Read-write locks and leased semaphores are
 * noted each time.
 */
typedef enum vigil_event_type {
    VIGIL_EVENT_JOINED,   /* the process has opened the segment */
    VIGIL_EVENT_LEFT,     /* it has closed it */
    VIGIL_EVENT_DIED,     /* it was found dead, by the process `by` */
    VIGIL_EVENT_WAITS,    /* it stands in line from now on */
    VIGIL_EVENT_CALLED,   /* it was notified, or called for a lock, by the process `by` */
    VIGIL_EVENT_GAVE_UP,  /* it has left the line: its deadline, or it was cancelled */
    VIGIL_EVENT_GRANTED,  /* it holds the lock, or `count` of it, from now on */
    VIGIL_EVENT_RELEASED, /* ... until now */
    VIGIL_EVENT_TYPES
} vigil_event_type;

typedef struct vigil_event {
    int64_t at_ns; /* on the clock of vigil_now_ns: never in the future */
    vigil_event_type type;
    vigil_seen_kind kind;
    uint64_t offset;    /* of the word; 0 for the first three */
    uint32_t number;    /* the process to whom it happens */
    uint32_t pid;       /* of JOINED: in its own pid namespace; else 0 */
    uint32_t thread_id; /* of WAITS, CALLED and GAVE_UP; 0: an event loop. Of GRANTED and RELEASED: where it was done */
    uint32_t by;        /* of DIED and CALLED */
    uint32_t count;     /* of GRANTED and RELEASED */
    uint32_t place;     /* of WAITS, CALLED and GAVE_UP: the same number for the same waiter, until it is gone */
    bool shared;        /* of GRANTED: to read */
    int status;         /* of CALLED: what it is told */
} vigil_event;

/*
 * vigil_observer_record - begin to record: VIGIL_OK; also to go on doing so, which is to be said once a second, or it
 * ends. VIGIL_ENULL; VIGIL_ESYSTEM if we may not write to the segment.
 *
 * vigil_observer_events - what has happened since the last time, oldest first, at most `most` events: how many. There is
 * room for VIGIL_EVENTS_KEPT until they are fetched; `lost`, unless null, is increased by those that were too many, and by
 * one for each time that vigil_observer_record came too late, when nobody knows what has happened.
 */
#define VIGIL_EVENTS_KEPT 1024
VIGIL_API int vigil_observer_record(vigil_observer *observer);
VIGIL_API int64_t vigil_observer_events(vigil_observer *observer, vigil_event *events, size_t most, uint64_t *lost);

/*
 * vigil_segment_list - call `named` with the name of each of this user's segments, in no particular order: how many. A
 * file that has such a name but is no segment is among them: it is opening it that tells. VIGIL_ENULL, VIGIL_ESYSTEM.
 */
typedef void vigil_named(const char *name, void *data);
VIGIL_API int64_t vigil_segment_list(vigil_named *named, void *data);

#ifdef __cplusplus
}
#endif
#endif
