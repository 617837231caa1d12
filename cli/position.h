/* SPDX-License-Identifier: MIT */
/* position.h - shows this process's position in the line on stderr: redrawn on a terminal, else a line per change. */
#ifndef VIGIL_CLI_POSITION_H
#define VIGIL_CLI_POSITION_H

#include "cli.h"
#include "redraw.h"

struct position {
    vigil_observer *observer; /* null: nothing is shown */
    const char *name;
    int64_t since_ns;
    bool redraws, drawn;
    uint32_t number;   /* as last shown; 0: not yet */
    bool orphans_shown; /* if not redrawn: the message was printed */
};

/* `lines`: also if stderr is not a terminal. If the segment cannot be observed, nothing is shown. */
void position_begin(struct position *position, const char *name, int64_t since_ns, bool lines);
/* Looks again. Returns after how many milliseconds to call it next; -1: never. */
int position_show(struct position *position);
/* Instead of position_show, while only processes that a killed holder started are waited for. */
int position_show_orphans(struct position *position);
/* For a message: "; held for 3 s by pid 4711: make"; empty if no holder is seen. */
void position_holder(const char *name, char *text, size_t bytes);
void position_end(struct position *position);

#endif
