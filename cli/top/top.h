/* SPDX-License-Identifier: MIT */
/* top.h - parts of vigil-top: looking (overview.c, processes.c), rows as text (frame.c), the terminal (screen.c). */
#ifndef VIGIL_CLI_TOP_H
#define VIGIL_CLI_TOP_H

#include "../cli.h"
#include "../show.h"
#include "../threads.h"

struct segment {
    char name[SHOW_NAME_MAX];
    int status, error; /* VIGIL_OK; or why there is no look, and errno */
    vigil_look look;
};

/* Under vigil run. */
struct process {
    char name[12]; /* its pid */
    enum served_status status;
    struct threads_look look;
};

/* A waiter; or a lock that is held and has no waiters; or a segment or process that cannot be read. */
struct row {
    enum { ROW_WAITER, ROW_HELD, ROW_UNREADABLE } type; /* waiters come first in every order */
    const struct segment *segment;                      /* null: the row is of a process */
    const struct process *process;
    const char *name; /* of either */
    uint64_t offset;
    uint32_t place, line_length; /* 1 is the first; 0: no waiters */
    uint32_t pid;                /* of a process's thread, its id; 0: no waiter, or a process that has gone */
    const char *as;              /* "thread", "loop"; of a process's thread, the kind of lock it waits for */
    int64_t wait_ns;             /* ROW_HELD: how long it has been held; 0: not known */
    bool asynchronous, called, dead;
    bool holder_dead; /* or the last holder died, and the lock is not yet declared consistent */
    char line_name[32];
    char task[160]; /* the waiter's command, or why the segment or process cannot be read */
    char held_by[160];
};

enum column { WAIT, LINE, PLACE, PID, AS, COMMAND, HELD_BY, COLUMNS };
#define ORDERS (PID + 1) /* rows can be sorted by the first columns, up to PID */

struct overview {
    char **patterns; /* shell patterns for names of segments and programs, and for pids; none: all */
    int pattern_count;
    bool all_users; /* names are USER:NAME */
    struct segment *segments;
    size_t segment_count;
    struct process *processes;
    size_t process_count;
    struct row *rows;
    size_t row_count;
    const struct row **shown; /* the rows that the filter leaves, in order */
    size_t shown_count;
    uint32_t member_count, dead_count, holder_count, waiter_count;
    char clock[16]; /* when: 14:03:59 */
};

/* Looks at everything again; no row is shown until overview_arrange. Returns VIGIL_OK; or why the segments cannot be
 * listed, with errno; or VIGIL_ENOMEM. */
int overview_look(struct overview *overview);
int overview_fail(int status); /* prints that error; returns the exit status */
/* Shows the rows that contain the filter's text, in upper or lower case; "": all rows. */
void overview_arrange(struct overview *overview, enum column order, bool reverse, const char *filter);
void overview_end(struct overview *overview);

/* overview.c, for processes.c: whether a pattern matches either name, or there is none. The other name may be null. */
bool overview_asks_for(const struct overview *overview, const char *name, const char *other_name);

/* processes.c, for overview.c. */
bool processes_look(struct overview *overview); /* false: no memory */
void processes_forget(struct overview *overview);
size_t processes_count(struct overview *overview); /* returns the maximum number of rows */
void processes_rows(struct overview *overview);

/* A line of text, at most `columns` wide. */
#define FRAME_BYTES 4096
struct frame {
    size_t columns;
    size_t from[COLUMNS], width[COLUMNS]; /* a width of 0: there is no room for this column */
};
void frame_layout(struct frame *frame, size_t columns);
/* Cuts a line of text; what is cut off is marked. */
void frame_cut(size_t columns, const char *line, char text[FRAME_BYTES]);
void frame_head(const struct frame *frame, const struct overview *overview, char text[FRAME_BYTES]);
void frame_titles(const struct frame *frame, char text[FRAME_BYTES]);
void frame_row(const struct frame *frame, const struct row *row, char text[FRAME_BYTES]);

/* Runs until the user quits. Returns the exit status. */
int screen_run(struct overview *overview, int64_t interval_ns);

#endif
