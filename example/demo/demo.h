/* SPDX-License-Identifier: MIT */
/*
 * demo.h - a contest for one mutex, between threads that block and event loops that must not.
 *
 * contest.c    the contestants, and what they note down about each of their visits to the lock
 * check.c      whether all that is as the library promises
 * screen.c     the contest as it goes on, and the table in the end
 * picture.c    the same as an SVG
 * demo.c       the acts, one after the other
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <vigil/vigil.h>

#define MICROSECOND INT64_C(1000)
#define MILLISECOND INT64_C(1000000)
#define SECOND      INT64_C(1000000000)

#define CONTESTANTS 6
#define TICKING     4 /* the contestant, a loop, that has a clock to look after as well */

enum ending { GRANTED, TIMED_OUT, CANCELLED, ENDINGS };

/* A visit to the lock. Times are vigil_now_ns(). */
struct visit {
    int64_t called_ns;   /* just before the call: it cannot have been in line earlier */
    int64_t in_line_ns;  /* somebody has seen it in line by then; 0: nobody has */
    int64_t leaves_ns;   /* if granted, when; if not, it cannot have left the line earlier */
    int64_t ended_ns;    /* when it knew */
    int64_t released_ns; /* if granted, just before the unlock */
    uint32_t endings;    /* how often it was told how it ended: once, we hope */
    enum ending ending;
};

struct tick {
    int64_t at_ns, late_ns, busy_ns;
    bool while_waiting; /* for the lock */
};

/* What one contestant noted down in one act. */
struct record {
    struct visit *visits;
    uint32_t count, capacity; /* a contestant whose book is full goes home early */
    struct tick *ticks;
    uint32_t tick_count, tick_capacity;
    int64_t longest_wait_ns;
    uint32_t endings[ENDINGS];
};

struct act {
    const char *title, *explanation, *column;
    vigil_mutex mutex; /* as it is in the beginning */
    bool slow, fair;
    int64_t duration_ns, hold_ns, think_ns, deadline_ns, cancel_ns;
    int64_t shown_ns; /* how much of it is on the picture */

    /* What came of it. */
    int64_t began_ns;
    struct record records[CONTESTANTS];
    uint64_t counted;              /* by a plain variable, under the lock */
    uint32_t intrusions;           /* somebody was in there already */
    uint32_t failures;             /* calls that answered what they must not answer */
    uint32_t granted;              /* and by the records */
    uint32_t not_once;             /* visits that did not end, or ended twice */
    uint32_t turns;                /* grants to somebody before whom others were certainly in line */
    uint32_t out_of_turn;          /* ... and one of them was still there */
    uint32_t turns_lost;           /* ... but had not come for the lock for a second */
    uint64_t ticks, waiting_ticks; /* of the ticking loop; those while it waited for the lock */
    bool no_tick;                  /* ... and there should have been some */
    int64_t latest_tick_ns, ticking_waited_ns;
};

/* What the screen shows of a contestant while it is at it. */
struct glimpse {
    bool waiting, holding;
    int64_t called_ns;
    uint32_t endings[ENDINGS];
};

extern const char *const contestant_names[CONTESTANTS];
static inline bool is_loop(int contestant) {
    return contestant >= 4;
}

/* contest.c */
void contest_begin(struct act *act);
void contest_glimpse(int contestant, struct glimpse *glimpse);
uint32_t contest_ticks(void);
void contest_end(void); /* blocks until everybody has gone home */

/* check.c */
bool check(struct act *act);

/* screen.c */
void screen_open(void);
void screen_show(const struct act *act); /* returns when the act's time is over */
void screen_show_end(const struct act *act);
void screen_table(const struct act *acts, int count);
void screen_verdict(const struct act *acts, int count);
const char *grouped(uint64_t number); /* 1234567 as 1,234,567; good for the next three calls */

/* picture.c */
void picture_draw(FILE *out, const struct act *acts, int count);

#endif
