/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

static struct act acts[] = {
    {.title = "Slow motion, fair.",
     .explanation = "First come, first served.",
     .column = "slow motion, fair",
     .mutex = VIGIL_MUTEX_FAIR,
     .slow = true,
     .fair = true,
     .duration_ns = 5 * SECOND,
     .shown_ns = 5 * SECOND,
     .hold_ns = 50 * MILLISECOND,
     .think_ns = 60 * MILLISECOND,
     .deadline_ns = 150 * MILLISECOND,
     .cancel_ns = 100 * MILLISECOND},
    {.title = "Full speed, default.",
     .explanation = "Who runs takes it; who has waited for 0.5 ms is next.",
     .column = "full speed, default",
     .mutex = VIGIL_MUTEX_INIT,
     .duration_ns = 2 * SECOND,
     .shown_ns = 5 * MILLISECOND,
     .hold_ns = 20 * MICROSECOND,
     .think_ns = 50 * MICROSECOND,
     .deadline_ns = 300 * MICROSECOND,
     .cancel_ns = 200 * MICROSECOND},
    {.title = "Full speed, fair.",
     .explanation = "First come, first served: each time another has to wake up.",
     .column = "full speed, fair",
     .mutex = VIGIL_MUTEX_FAIR,
     .fair = true,
     .duration_ns = 2 * SECOND,
     .shown_ns = 5 * MILLISECOND,
     .hold_ns = 20 * MICROSECOND,
     .think_ns = 50 * MICROSECOND,
     .deadline_ns = 300 * MICROSECOND,
     .cancel_ns = 200 * MICROSECOND},
};
#define ACTS ((int)(sizeof acts / sizeof acts[0]))

static const char usage[] = "demo [--quick] [--svg FILE]\n"
                            "\n"
                            "Four threads and two event loops contend for one mutex. Shows how it goes, checks that\n"
                            "all is as it should be, and draws a picture of it.\n"
                            "\n"
                            "  --quick      in one second instead of ten\n"
                            "  --svg FILE   where the picture goes; build/demo.svg otherwise\n"
                            "  --help       this\n"
                            "\n"
                            "On a terminal it is drawn live; NO_COLOR=1 keeps it without colours. Exits with 1 if\n"
                            "anything was wrong, with 2 if it cannot do what it is asked.\n";

static void make_quick(struct act *act) {
    int64_t divisor = act->slow ? 10 : 8;
    act->duration_ns /= divisor;
    if (!act->slow) return;
    act->shown_ns /= divisor;
    act->hold_ns /= divisor;
    act->think_ns /= divisor;
    act->deadline_ns /= divisor;
    act->cancel_ns /= divisor;
}

static void free_records(struct act *act) {
    for (int i = 0; i < CONTESTANTS; i++) {
        free(act->records[i].visits);
        free(act->records[i].ticks);
    }
}

/* False: it has been told what to do instead. */
static bool read_arguments(int count, char **arguments, const char **svg, int *result) {
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--quick") == 0) {
            for (int j = 0; j < ACTS; j++) make_quick(&acts[j]);
        } else if (strcmp(arguments[i], "--svg") == 0 && i + 1 < count) {
            *svg = arguments[++i];
        } else {
            bool help = strcmp(arguments[i], "--help") == 0;
            fputs(usage, help ? stdout : stderr);
            *result = help ? 0 : 2;
            return false;
        }
    }
    return true;
}

static bool perform(struct act *act) {
    contest_begin(act);
    screen_show(act);
    contest_end();
    screen_show_end(act);
    return check(act);
}

int main(int count, char **arguments) {
    const char *svg = "build/demo.svg";
    int result = 0;
    if (!read_arguments(count, arguments, &svg, &result)) return result;
    FILE *picture = fopen(svg, "w");
    if (!picture) {
        perror(svg);
        return 2;
    }
    screen_open();
    for (int i = 0; i < ACTS; i++) {
        if (!perform(&acts[i])) result = 1;
    }
    screen_table(acts, ACTS);
    screen_verdict(acts, ACTS);
    picture_draw(picture, acts, ACTS);
    if (ferror(picture) || fclose(picture) != 0) {
        perror(svg);
        result = 2;
    }
    printf("\nThe picture: %s\n", svg);
    for (int i = 0; i < ACTS; i++) free_records(&acts[i]);
    return result;
}
