/* SPDX-License-Identifier: MIT */
/*
 * demo.h - a contest for one mutex, between threads that block and event loops that must not.
 *
 * stage.c      the memory in which it takes place: the process's own, or a segment that two processes share
 * contest.c    the contestants, and what they note down about each of their visits to the lock
 * second.c     the second process, and how it is killed
 * check.c      whether all that is as the library promises
 * screen.c     the contest as it goes on, and the table in the end
 * picture.c    the same as an SVG
 * summary.c    the same as JSON
 * demo.c       the acts, one after the other
 */
#ifndef DEMO_H
#define DEMO_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <vigil/vigil.h>

#define MICROSECOND INT64_C(1000)
#define MILLISECOND INT64_C(1000000)
#define SECOND      INT64_C(1000000000)

#define NO_NEWS_NS (10 * SECOND) /* so long after the end of an act nobody can still be told of a death */

#define CONTESTANTS 6
#define TICKING     4 /* the contestant, a loop, that has a clock to look after as well */

/* KILLED: it was in line when its process was killed. Whoever held the lock then has been granted it all the same. */
enum ending { GRANTED, TIMED_OUT, CANCELLED, KILLED, ENDINGS };

/* A visit to the lock. Times are vigil_now_ns(). */
struct visit {
    int64_t called_ns;   /* just before the call: it cannot have been in line earlier */
    int64_t in_line_ns;  /* somebody has seen it in line by then; 0: nobody has */
    int64_t leaves_ns;   /* if granted, when; until then, and if not, it cannot have left the line earlier */
    int64_t ended_ns;    /* when it knew */
    int64_t released_ns; /* if granted, just before the unlock, or before the holder was killed */
    uint32_t endings;    /* how often it was told how it ended: once, we hope */
    enum ending ending;
    bool owner_died; /* it was told so */
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

/* What all the contestants share, and the two processes if there are two. */
struct stage {
    vigil_mutex mutex;

    /* Under the lock, and plain on purpose: with two in there at a time these go wrong. */
    uint32_t owner; /* the contestant, and one; 0: nobody */
    uint64_t counter;
    bool dead_in_line; /* for all we know */

    uint32_t ready;      /* so many contestants have all they need */
    uint32_t doomed;     /* the contestant, and one, that holds the lock until its process is killed */
    uint32_t intrusions; /* somebody was in there already */
    uint32_t failures;   /* calls that answered what they must not answer */
    struct showing {     /* for others to look at */
        uint32_t asking; /* 2 * visit + 1 from before the call until after its answer, an even number otherwise */
        uint32_t holding, endings[ENDINGS], ticks;
        uint32_t apart[25]; /* so that they do not share cache lines */
    } showing[CONTESTANTS];
    struct visit visits[]; /* the contestants' books, one after the other */
};

struct act {
    const char *title, *explanation, *column;
    vigil_mutex mutex; /* as it is in the beginning */
    bool slow, fair, two_processes;
    int64_t duration_ns, hold_ns, think_ns, deadline_ns, cancel_ns;
    int64_t shown_ns; /* how much of it is on the picture */

    /* What came of it. */
    struct stage *stage;
    int64_t began_ns;
    int64_t killed_ns; /* the second process; 0: it was not, or not yet */
    int64_t heir_ns;   /* when the next one had the lock, and was told; the same */
    int heir;          /* who that was */
    bool lost;         /* the second process has ended by itself, or never had the lock */
    struct record records[CONTESTANTS];
    uint64_t counted;              /* by a plain variable, under the lock */
    uint32_t intrusions, failures; /* as on the stage */
    uint32_t granted;              /* and by the records */
    uint32_t overlaps;             /* grants before the one before was released */
    uint32_t after_death;          /* grants to the living after the second process was killed */
    uint32_t misinformed;          /* grants that were told of a death and should not have been, or the reverse */
    bool wrong_death;              /* it was not as it should have been */
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
    bool waiting, holding, dead;
    int64_t called_ns;
    uint32_t endings[ENDINGS];
};

extern const char *const contestant_names[CONTESTANTS];
static inline bool is_loop(int contestant) {
    return contestant >= 4;
}

/* Two threads and a loop are the second process's. */
static inline bool is_in_second(const struct act *act, int contestant) {
    return act->two_processes && (contestant == 2 || contestant == 3 || contestant == 5);
}

/* demo.c: if it is an error, says what cannot be done, and why, and ends the demo. For any thread. */
void must(const char *what, int status);

/* stage.c */
uint32_t book_capacity(const struct act *act); /* visits that a contestant may note down */
void stage_open(struct act *act);
int stage_fd(void);                        /* a descriptor by which another process may enter */
void stage_enter(struct act *act, int fd); /* in that process */
void stage_close(struct act *act);         /* what is on it stays to be looked at, in memory of our own */
void stage_free(struct act *act);

/* contest.c */
void contest_begin(struct act *act); /* they have begun, or it was said why they cannot */
void contest_glimpse(int contestant, struct glimpse *glimpse);
uint32_t contest_ticks(void);
void start_thread(pthread_t *thread, void *(*main)(void *), void *argument);
void contest_end(void); /* blocks until everybody has gone home */
void rest(int64_t duration_ns);

/* second.c */
void second_begin(struct act *act, void (*play)(void)); /* which is called in the second process, and never returns */
bool second_has_ended(void);
void second_doom(void); /* from now on it will be killed as soon as it is time */
void second_end(void);

/* check.c */
bool check(struct act *act);

/* screen.c */
void screen_open(void);
void screen_show(const struct act *act); /* returns when the act's time is over */
void screen_show_end(const struct act *act);
void screen_table(const struct act *acts, int count);
void screen_verdict(const struct act *acts, int count);
const char *grouped(uint64_t number);         /* 1234567 as 1,234,567; good for the next three calls */
int in_lane(const struct act *act, int lane); /* the contestant: those of one process are next to each other */

/* picture.c */
void picture_draw(FILE *out, const struct act *acts, int count);

/* summary.c */
void summary_write(FILE *out, const struct act *acts, int count, bool right);

#endif
