/* SPDX-License-Identifier: MIT */
/* top.h - the parts of vigil-top: what there is (scene.c, processes.c), how it reads in rows (frame.c), the terminal
 * (screen.c). */
#ifndef VIGIL_CLI_TOP_H
#define VIGIL_CLI_TOP_H

#include "../cli.h"
#include "../show.h"
#include "../threads.h"

struct segment {
    char name[SHOW_NAME_MAX];
    int status, error; /* VIGIL_OK, or why it cannot be looked at, and errno: then there is no look */
    vigil_look look;
};

/* Under vigil run. */
struct process {
    char name[12]; /* its number */
    enum served_status status;
    struct threads_look look;
};

/* One who waits; or a line that is held and in which nobody waits; or a segment or process that cannot be read. */
struct row {
    enum { ROW_WAITER, ROW_HELD, ROW_UNREADABLE } type; /* first the waiters, whatever they are sorted by */
    const struct segment *segment;                      /* null: it is of a process */
    const struct process *process;
    const char *name; /* of either */
    uint64_t offset;
    uint32_t place, line_length; /* 1 is the first; 0: nobody waits */
    uint32_t pid;                /* of a process's thread, its id; 0: nobody, or somebody who has gone */
    const char *as;              /* "thread", "loop"; of a process's thread, what it waits for */
    int64_t wait_ns;             /* of a line that is held: for how long that has been so, if it is known */
    bool asynchronous, called, dead;
    bool holder_dead; /* or the last one was, and nobody has made good what that left */
    char place_name[32];
    char task[160]; /* who waits, or why it cannot be read */
    char held_by[160];
};

enum column { WAIT, LINE, PLACE, PID, AS, COMMAND, HELD_BY, COLUMNS };
#define ORDERS (PID + 1) /* the first so many can be sorted by */

struct scene {
    char **patterns; /* as of a shell, for the names of those to look at; of processes, also numbers. None: all */
    int pattern_count;
    struct segment *segments;
    size_t segment_count;
    struct process *processes;
    size_t process_count;
    struct row *rows;
    size_t row_count;
    const struct row **shown; /* those that the filter leaves, in order */
    size_t shown_count;
    uint32_t member_count, dead_count, holder_count, waiter_count;
    char clock[16]; /* when: 14:03:59 */
};

/* Look at everything anew, and show nothing. False: there is no memory. */
bool scene_look(struct scene *scene);
/* Show the rows that contain the filter's text, capitals or not; "": all of them. */
void scene_arrange(struct scene *scene, enum column order, bool reverse, const char *filter);
void scene_end(struct scene *scene);

/* processes.c, for scene.c. */
bool processes_look(struct scene *scene); /* false: there is no memory */
void processes_forget(struct scene *scene);
size_t processes_count(struct scene *scene); /* how many rows there are at most */
void processes_rows(struct scene *scene);

/* A line of text, at most so many columns wide. */
#define FRAME_BYTES 4096
struct frame {
    size_t columns;
    size_t from[COLUMNS], width[COLUMNS];
};
void frame_layout(struct frame *frame, size_t columns);
void frame_head(const struct frame *frame, const struct scene *scene, char text[FRAME_BYTES]);
void frame_titles(const struct frame *frame, char text[FRAME_BYTES]);
void frame_row(const struct frame *frame, const struct row *row, char text[FRAME_BYTES]);

/* Until the user has seen enough: the exit status. */
int screen_run(struct scene *scene, int64_t interval_ns);

#endif
