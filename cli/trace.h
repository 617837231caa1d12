/* SPDX-License-Identifier: MIT */
/*
 * trace.h - the story of a recording: waits, holds, hand-overs and deaths in a segment, or in a process under vigil
 * run. In the story of a process, its threads take the place of a segment's processes.
 *
 * source.c         segments and processes as sources of events
 * trace.c          records: asks the source for events, as often as needed
 * trace_story.c    makes the story from the events
 * trace_chrome.c   the story for Perfetto and chrome://tracing
 * timeline.c       the story as a picture
 */
#ifndef VIGIL_CLI_TRACE_H
#define VIGIL_CLI_TRACE_H

#include "cli.h"
#include "source.h"

#define STORY_NONE UINT32_MAX

/* A process was called at the turnstile of a lock, and has neither got the lock yet nor begun to wait for it. */
struct story_passing {
    int64_t at_ns;
    uint32_t wait; /* at the turnstile; may be STORY_NONE */
    bool pending;
};

/* A process that is, or was, a member; or a thread. Numbers are reused: two entries may have the same one. */
struct story_process {
    uint32_t number, pid; /* pid 0: it left before it could be looked at */
    char program[20];
    char command[160];
    char task[64]; /* of vigil lock and vigil sem: the command that they run; of others the same as `command` */
    bool gone;     /* it has died or left */
    bool named;    /* program, command and task are known */
    uint32_t
        handover; /* index in story.handovers: the lock was handed to it, but it has not been seen to hold it yet */
    uint32_t last_hold; /* index in story.spans: the hold that it released last */
    struct story_passing passing;
};

enum span_type { SPAN_WAIT, SPAN_HOLD };

/* How a span ended. */
enum span_end {
    SPAN_OPEN,   /* it had not ended when the recording ended */
    SPAN_CALLED, /* a wait */
    SPAN_GAVE_UP,
    SPAN_RELEASED, /* a hold */
    SPAN_DIED,
    SPAN_LEFT,
    SPAN_UNSEEN /* its end was not seen; it certainly lasted until `to_ns` */
};

/* A wait or a hold, from from_ns to to_ns. */
struct story_span {
    int64_t from_ns, to_ns;
    int64_t seen_ns; /* while it is open: when it was last seen */
    uint64_t offset;
    uint32_t process;   /* index in story.processes */
    uint32_t word;      /* index in story.words */
    uint32_t thread_id; /* 0: an event loop, or not known. Of a hold: the thread that waited for it, or took it */
    uint32_t waiter;    /* of a wait: vigil_event.waiter of its events; STORY_NONE: not known */
    uint32_t count;     /* of a hold: how many of its permits have not been released yet; 1 for other locks */
    enum span_type type;
    enum span_end ending;
    vigil_seen_kind kind;
    bool shared; /* a hold together with others */
    bool looked; /* a look has shown it; its own event may still follow */
};

struct story_handover {
    int64_t at_ns;
    uint32_t from, to;         /* processes */
    uint32_t held, wait, hold; /* spans: what `from` gave, how `to` waited, what it got; each may be STORY_NONE */
};

struct story_death {
    int64_t at_ns;
    uint32_t process, by;
};

struct story_loss {
    int64_t at_ns;
    uint64_t count;
};

/* A word that was waited for or held. */
struct story_word {
    uint64_t offset;
    vigil_seen_kind kind;
    char name[SOURCE_NAME]; /* "lock", "mutex at byte 64", unique */
    int64_t released_ns;    /* the last release */
    uint32_t last_hold;     /* the hold that ended last, if no process has got the word since; or STORY_NONE */
    bool turnstile;         /* of vigil lock --fair: it keeps the order, and holding it is no part of the story */
};

#define STORY_LIST(type)                                                                                               \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        uint32_t count, room;                                                                                          \
    }

struct story {
    const struct source *source;
    uint32_t pid; /* the process whose threads it shows; zero: it shows the processes of a segment */
    int64_t from_ns, to_ns;
    int64_t synced_ns; /* an event from before this time may be of what the last look has shown already */
    uint64_t event_count, lost;
    char label[32];
    bool full; /* no room for more: later events are missing */
    STORY_LIST(struct story_process) processes;
    STORY_LIST(struct story_span) spans;
    STORY_LIST(struct story_handover) handovers;
    STORY_LIST(struct story_death) deaths;
    STORY_LIST(struct story_loss) losses;
    STORY_LIST(struct story_word) words;
    STORY_LIST(uint32_t) open;    /* spans */
    STORY_LIST(uint32_t) present; /* processes */
};

/*
 * Call in this order: story_begin; story_sync, with a look that began after the recording did; story_event for each
 * event and story_members for each look; if events were lost, story_lost and story_sync again; story_leave if the
 * process whose threads it shows has ended; story_end, which drops the hand-overs of locks that no hold has followed.
 */
void story_begin(struct story *story, const struct source *source, int64_t from_ns);
void story_sync(struct story *story, const vigil_look *look);
void story_event(struct story *story, const vigil_event *event);
void story_members(struct story *story, const vigil_look *look);
void story_lost(struct story *story, uint64_t count, int64_t at_ns);
void story_leave(struct story *story, int64_t at_ns);
void story_end(struct story *story, int64_t to_ns);
void story_free(struct story *story);

const char *story_ending(const struct story *story, const struct story_span *span); /* for people */
uint32_t story_spans(const struct story *story, enum span_type type);               /* how many */

/* Both return whether all could be written. `name`: that of the segment or process. */
bool chrome_write(FILE *out, const char *name, const struct story *story);
bool timeline_draw(FILE *out, const char *name, const struct story *story);

#endif
