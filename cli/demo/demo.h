/* SPDX-License-Identifier: MIT */
/*
 * demo.h - a contest for one mutex, between threads that block and event loops that must not.
 *
 * stage.c      the memory in which it takes place: the process's own, or a segment that two processes share
 * contest.c    the contestants, and their records of each visit to the lock
 * second.c     the second process, and how it is killed
 * check.c      checks the records against the promises of the library
 * screen.c     the contest as it goes on, and the table at the end
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

#define NO_NEWS_NS (10 * SECOND) /* this long after the end of an act, no contestant is told of a death any more */

#define CONTESTANTS 6
#define TICKING     4 /* the contestant, a loop, that also runs a clock */

/* KILLED: it was in line when its process was killed. The visit that held the lock then counts as GRANTED. */
enum ending { GRANTED, TIMED_OUT, CANCELLED, KILLED, ENDINGS };

/* A visit to the lock. Times are vigil_now_ns(). */
struct visit {
    int64_t called_ns;   /* just before the call: it cannot have been in line earlier */
    int64_t in_line_ns;  /* it was seen in line at this time; 0: it was not seen */
    int64_t leaves_ns;   /* when it was granted; until then, or if it is not, it cannot have left the line earlier */
    int64_t ended_ns;    /* when it was told how it ended */
    int64_t released_ns; /* if granted: just before the unlock, or before the holder was killed */
    uint32_t endings;    /* how often it was told how it ended: must be once */
    enum ending ending;
    bool owner_died; /* it was told VIGIL_OWNER_DIED */
};

struct tick {
    int64_t at_ns, late_ns, busy_ns;
    bool while_waiting; /* for the lock */
};

/* The records of one contestant in one act. */
struct record {
    struct visit *visits;
    uint32_t count, capacity; /* a contestant stops early if its book is full */
    struct tick *ticks;
    uint32_t tick_count, tick_capacity;
    int64_t longest_wait_ns;
    uint32_t endings[ENDINGS];
};

/* The memory that all contestants share, of both processes if there are two. */
struct stage {
    vigil_mutex mutex;

    /* Under the lock, and not atomic on purpose: they go wrong if there are two holders at a time. */
    uint32_t owner; /* the contestant, plus one; 0: none */
    uint64_t counter;
    bool dead_in_line; /* there may be places of dead waiters in the line */

    uint32_t ready;      /* how many contestants are ready to start */
    uint32_t doomed;     /* the contestant, plus one, that holds the lock until its process is killed */
    uint32_t intrusions; /* how often another contestant held the lock already */
    uint32_t failures;   /* calls that returned an unexpected status */
    struct showing {     /* for the other contestants and the screen */
        uint32_t asking; /* 2 * visit + 1 from before the call until it has ended, an even number otherwise */
        uint32_t holding, endings[ENDINGS], ticks;
        uint32_t apart[25]; /* so that they do not share cache lines */
    } showing[CONTESTANTS];
    struct visit visits[]; /* the contestants' books, one after the other */
};

struct act {
    const char *title, *explanation, *column;
    vigil_mutex mutex; /* its initial value */
    bool slow, fair, two_processes;
    int64_t duration_ns, hold_ns, think_ns, deadline_ns, cancel_ns;
    int64_t shown_ns; /* how much of it is in the picture */

    /* The results. */
    struct stage *stage;
    int64_t began_ns;
    int64_t killed_ns; /* when the second process was killed; 0: it was not, or not yet */
    int64_t heir_ns;   /* when the next holder got the lock, and was told; 0: not, or not yet */
    int heir;          /* that contestant */
    bool lost;         /* the second process has ended by itself, or never had the lock */
    struct record records[CONTESTANTS];
    uint64_t counted;              /* grants, by a plain variable under the lock */
    uint32_t intrusions, failures; /* as on the stage */
    uint32_t granted;              /* grants, by the records */
    uint32_t overlaps;             /* grants before the previous holder had released the lock */
    uint32_t after_death;          /* grants after the second process was killed */
    uint32_t misinformed;          /* grants that were told of a death and should not have been, or the reverse */
    bool wrong_death;              /* the death was not handled correctly */
    uint32_t not_once;             /* visits that did not end, or ended twice */
    uint32_t turns;                /* grants while another contestant had certainly been in line earlier */
    uint32_t out_of_turn;          /* ... and was still in line */
    uint32_t turns_lost;           /* ... but had not come for the lock for a second */
    uint64_t ticks, waiting_ticks; /* of the ticking loop; those while it waited for the lock */
    bool no_tick;                  /* waiting_ticks is zero, but should not be */
    int64_t latest_tick_ns, ticking_waited_ns;
};

/* The state of a contestant that the screen shows. */
struct glimpse {
    bool waiting, holding, dead;
    int64_t called_ns;
    uint32_t endings[ENDINGS];
};

extern const char *const contestant_names[CONTESTANTS];
static inline bool is_loop(int contestant) {
    return contestant >= 4;
}

/* Two threads and a loop belong to the second process. */
static inline bool is_in_second(const struct act *act, int contestant) {
    return act->two_processes && (contestant == 2 || contestant == 3 || contestant == 5);
}

/* demo.c: if the status is an error, prints what cannot be done, and why, and ends the demo. Any thread may call it. */
void must(const char *what, int status);

/* stage.c */
uint32_t book_capacity(const struct act *act); /* visits that a contestant may record */
void stage_open(struct act *act);
int stage_fd(void);                        /* a descriptor for another process to open the stage */
void stage_enter(struct act *act, int fd); /* in that process */
void stage_close(struct act *act);         /* its content stays readable, in the process's own memory */
void stage_free(struct act *act);

/* contest.c */
void contest_begin(struct act *act); /* returns when all contestants have started; ends the demo if they cannot */
void contest_glimpse(int contestant, struct glimpse *glimpse);
uint32_t contest_ticks(void);
void start_thread(pthread_t *thread, void *(*main)(void *), void *argument);
void contest_end(void); /* blocks until all contestants have ended */
void rest(int64_t duration_ns);

/* second.c */
void second_begin(struct act *act, void (*play)(void)); /* `play` is called in the second process, and never returns */
bool second_has_ended(void);
void second_doom(void); /* starts the thread that will kill it */
void second_end(void);

/* check.c */
bool check(struct act *act);

/* screen.c */
void screen_open(void);
void screen_show(const struct act *act); /* returns when the act's time is over */
void screen_show_end(const struct act *act);
void screen_table(const struct act *acts, int count);
void screen_verdict(const struct act *acts, int count);
const char *grouped(uint64_t number);         /* 1234567 as 1,234,567; valid during the next three calls */
int in_lane(const struct act *act, int lane); /* the contestant in a lane: those of a process are side by side */

/* picture.c */
void picture_draw(FILE *out, const struct act *acts, int count);

/* summary.c */
void summary_write(FILE *out, const struct act *acts, int count, bool right);

#endif
