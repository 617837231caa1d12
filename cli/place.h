/* SPDX-License-Identifier: MIT */
/* place.h - shows this process's place in the line on stderr: redrawn on a terminal, otherwise one line per change. */
#ifndef VIGIL_CLI_PLACE_H
#define VIGIL_CLI_PLACE_H

#include "cli.h"

/* Whether stderr is a terminal on which a line can be redrawn. */
bool terminal_redraws(void);

struct place {
    vigil_observer *observer; /* null: nothing is shown */
    const char *name;
    int64_t since_ns;
    bool redraws, drawn;
    uint32_t place;    /* as last shown; 0: not yet */
    bool orphans_told; /* if not redrawn: the message was printed */
};

/* `lines`: also if stderr is not a terminal. If the segment cannot be observed, nothing is shown. */
void place_begin(struct place *place, const char *name, int64_t since_ns, bool lines);
/* Looks again. Returns after how many milliseconds to call it next; -1: never. */
int place_show(struct place *place);
/* Instead of place_show, while only processes that a killed holder started are waited for. */
void place_show_orphans(struct place *place);
void place_end(struct place *place);

#endif
