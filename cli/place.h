/* SPDX-License-Identifier: MIT */
/* place.h - shows on stderr where in the line this process stands: redrawn on a terminal, else a line each time. */
#ifndef VIGIL_CLI_PLACE_H
#define VIGIL_CLI_PLACE_H

#include "cli.h"

/* Whether a line on stderr can be drawn over: it is a terminal that knows how. */
bool terminal_redraws(void);

struct place {
    vigil_observer *observer; /* null: nothing is shown */
    const char *name;
    int64_t since_ns;
    bool redraws, drawn;
    uint32_t place;    /* as last shown; 0: not yet */
    bool orphans_told; /* where it is not redrawn */
};

/* `lines`: also where stderr is no terminal. What cannot be observed is not shown. */
void place_begin(struct place *place, const char *name, int64_t since_ns, bool lines);
/* Look again. How many milliseconds later it should be called next; -1: never. */
int place_show(struct place *place);
/* Instead, if what a killed holder has started is all that is waited for. */
void place_show_orphans(struct place *place);
void place_end(struct place *place);

#endif
