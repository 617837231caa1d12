/* SPDX-License-Identifier: MIT */
/*
 * place.h - one place in the line of a lock of a cluster: join it, wait, be granted, leave. doc/remote.md has the
 * protocol and its argument.
 *
 * The keys of a lock NAME. L.n is a lease, in hex, and a number:
 *
 *     NAME!line/L.n      leased. Those that wait; their order is that of create_revision
 *     NAME!held/x.L.n    leased. The holder that has it alone
 *     NAME!held/s.L.n    leased. One of the holders that share it, or of a slot of a semaphore
 *     NAME!mark          not leased. There from the grant to the release of a holder that has it alone. If no such
 *                        holder is there, it says that one died, and which. Its value is L.n, a space, and the text
 *                        of the holder
 *     NAME!slots         not leased. How many slots the semaphore has
 *
 * Only the head of the line, which is the oldest key in it, moves its key from the line to the held ones, and only when
 * these allow it; each move is one transaction that compares all that it depends on. A key appears among the held ones
 * without having been in line only if the line is empty, in one transaction too.
 *
 * A place is remembered in a record: enough for another process of the machine to take it over. The place works on a
 * copy, and saves it where `saved` points to, before each call that changes keys and after each reply. All of it
 * runs on one thread, driven by replies, watches and timers (etcd.h); place_go decides what comes next.
 */
#ifndef VIGIL_REMOTE_PLACE_H
#define VIGIL_REMOTE_PLACE_H

#include "etcd.h"

#define PLACE_NAME 150u /* bytes of a name, at most */
#define PLACE_KEY  192u /* of a name, "!held/x.", a lease, a dot and a number */
#define PLACE_TEXT 192u

/* Tokens of one revision: see place_take_reserve. */
#define PLACE_TOKENS 32

enum place_mode { PLACE_ALONE, PLACE_SHARED, PLACE_SLOT };
enum place_at { PLACE_NOWHERE, PLACE_IN_LINE, PLACE_HELD };
/* Held, and granted to a process of this machine; or a call that deletes the key is on its way, perhaps of a process
 * that was killed: then it cannot be relied on any more. */
enum place_use { PLACE_UNUSED, PLACE_BUSY, PLACE_GOING };

struct place_record {
    int64_t lease;      /* 0: none */
    int64_t created;    /* create_revision of the key: in line, or held */
    int64_t renewed_ns; /* when the last renewal that succeeded was sent, or the grant; 0: not known to be granted */
    int64_t wanted_ns;  /* when it was first seen that others wait for what is held; 0: not yet */
    int64_t token;      /* the last one given while the place is held; 0: the next holder must ask the cluster */
    uint32_t number;    /* of the key */
    uint16_t ttl_s;
    uint8_t at;         /* enum place_at */
    uint8_t doubt;      /* a call whose reply was not seen may still create a key of this lease */
    uint16_t handovers; /* on this machine, since it was seen that no other waits */
    uint8_t died;       /* held: a holder died, and the lock has not been declared consistent since */
    uint8_t use;        /* enum place_use */
    uint32_t check;     /* of all the above: a process may be killed while it saves the record */
};

enum place_news {
    PLACE_GRANTED,  /* VIGIL_OK or VIGIL_OWNER_DIED; `token` is set */
    PLACE_NOT_FREE, /* it was only tried. It goes nowhere; the record may need place_leave */
    PLACE_FAILED,   /* status: why. The same */
    PLACE_WANTED,   /* it is held, and others wait */
    PLACE_LOST,     /* it was granted, and is held no longer, or for `left_ns` only */
    PLACE_LEFT      /* VIGIL_OK; or an error, and then the keys go when the lease ends */
};

enum place_goal { GOAL_NONE, GOAL_HOLD, GOAL_TRY, GOAL_KEEP, GOAL_LEAVE };

/* Not part of the place: a process may have thousands that wait in the line of its machine, and do without. */
struct place_texts {
    char text[PLACE_TEXT]; /* what others see of us: the owner's */
    char dead[PLACE_TEXT]; /* with VIGIL_OWNER_DIED: the text of the holder that died, for the owner to read */
    char line_key[PLACE_KEY], held_key[PLACE_KEY];
    char mark[PLACE_TEXT + 32];
    char ahead_key[PLACE_KEY]; /* that `ahead_watch` watches; "": another range */
};

struct place {
    /* The owner's, set before the first use; the rest is zero then. */
    struct etcd *etcd;
    const char *name;
    enum place_mode mode;
    uint16_t ttl_s;
    void (*told)(struct place *place, enum place_news news, int status);
    void *data;

    /* For the owner to read. */
    int64_t token;
    int64_t left_ns;
    bool wanted;               /* others wait for what is held */
    struct place_texts *texts; /* null: place_prepare has not been called */

    /* The place's own. */
    enum place_goal goal;
    struct place_record record;
    struct place_record *saved; /* null: nowhere */
    bool granted;               /* and the owner was told */
    bool unsure;                /* a call that may still be carried out keeps `doubt` */
    bool look, admit;           /* what comes next, of this */
    bool remark;                /* the mark must say that we hold it */
    bool unnamed;               /* the keys name a process of this machine that held it before us */
    bool dead_known;            /* a process of this machine died: texts->dead is about it, and newer than the mark */
    int64_t unmark;             /* a mark of a key of this lease may be left, and must be removed; 0: none */
    uint32_t unmark_number;     /* of that key */
    bool drops_lease;           /* GOAL_LEAVE: the lease as well */
    int64_t mark;               /* mod_revision of the mark, or of the number of slots; 0: none */
    int64_t leave_by_ns, next_renewal_ns;
    unsigned failures;
    struct etcd_call call, renewal;
    struct etcd_watch ahead_watch, own_watch;
    struct etcd_timer retry, clock;
};

/* Before place_take and place_inherit: false if there is no memory. And at the end. */
bool place_prepare(struct place *place);
void place_free(struct place *place);

/* Go for it, from the record in *saved (null: the place's own): then PLACE_GRANTED, perhaps before this returns; or
 * PLACE_NOT_FREE, if it is only tried; or PLACE_FAILED. Only for a place that has no goal, or keeps. `died`: the
 * process that saved the record was killed, and the owner has put its text into texts->dead. `later`: not before this
 * returns. */
void place_take(struct place *place, struct place_record *saved, bool died, bool only_try, bool later);

/* While granted: let the next process of the machine have it. The record stays in *saved. Until that changes, keep
 * renewing the lease: PLACE_WANTED and PLACE_LOST may follow. */
void place_keep(struct place *place);

/* Give up the key, in line or held: PLACE_LEFT, at the latest in some seconds, perhaps before this returns.
 * `drops_lease`: the lease as well. If *saved is the record of another lease by now, that is left alone. */
void place_leave(struct place *place, struct place_record *saved, bool drops_lease);

/* Stop, and make the record in *saved the place's own, to leave it: the process that saved it was killed (`died`), or
 * has let go of it. */
void place_inherit(struct place *place, struct place_record *saved, bool died);

/* Stop, at once and without a word. The record stays. */
void place_stop(struct place *place);

/* The record in *saved may be of a key that is gone: the next holder must ask the cluster. */
void place_spend_reserve(struct place_record *saved);

/* While granted with VIGIL_OWNER_DIED: what the lock protects is in order again. */
void place_consistent(struct place *place);

#endif
