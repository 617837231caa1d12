/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../cli.h"
#include "../descriptors.h"
#include "demo.h"

static struct act acts[] = {
    {.title = "Slow motion, fair.",
     .explanation = "First come, first served.",
     .column = "slow motion",
     .mutex = VIGIL_MUTEX_FAIR,
     .slow = true,
     .fair = true,
     .duration_ns = 5 * SECOND,
     .shown_ns = 5 * SECOND,
     .hold_ns = 50 * MILLISECOND,
     .think_ns = 60 * MILLISECOND,
     .deadline_ns = 150 * MILLISECOND,
     .cancel_ns = 100 * MILLISECOND},
    {.title = "Two processes, fair.",
     .explanation = "One of them is killed in the middle, with the lock held.",
     .column = "two processes",
     .mutex = VIGIL_MUTEX_FAIR,
     .slow = true,
     .fair = true,
     .two_processes = true,
     .duration_ns = 2500 * MILLISECOND,
     .shown_ns = 2500 * MILLISECOND,
     .hold_ns = 40 * MILLISECOND,
     .think_ns = 60 * MILLISECOND,
     .deadline_ns = 150 * MILLISECOND,
     .cancel_ns = 100 * MILLISECOND},
    {.title = "Full speed, default.",
     .explanation = "A running thread may take it first; after 0.5 ms a waiter is next.",
     .column = "fast, default",
     .mutex = VIGIL_MUTEX_INIT,
     .duration_ns = 2 * SECOND,
     .shown_ns = 5 * MILLISECOND,
     .hold_ns = 20 * MICROSECOND,
     .think_ns = 50 * MICROSECOND,
     .deadline_ns = 300 * MICROSECOND,
     .cancel_ns = 200 * MICROSECOND},
    {.title = "Full speed, fair.",
     .explanation = "First come, first served: each time another waiter has to wake up.",
     .column = "fast, fair",
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

#define SOMETHING_WRONG 1 /* as an exit status */

static const struct cli_command self = {
    .name = "demo", .help = "usage: vigil demo [--quick] [--svg FILE] [--json]\n\nSee vigil demo --help.\n"};
const struct cli_command *cli_now = &self;
bool cli_wants_json;

static bool quick;
static const char *svg;

/* Several threads may fail at the same time: one of them prints it, the others wait here for the end. */
void must(const char *what, int status) {
    static pthread_mutex_t last_word = PTHREAD_MUTEX_INITIALIZER;
    if (status >= 0) return;
    int error = errno;
    pthread_mutex_lock(&last_word);
    fflush(stdout); /* before the message */
    errno = error;
    exit(cli_fail(status, "%s", what));
}

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

static void end_act(struct act *act) {
    for (int i = 0; i < CONTESTANTS; i++) free(act->records[i].ticks);
    stage_free(act);
}

/* Called before the demo runs, so that it does not run in vain. A file that this has created is removed again: if the
 * demo is interrupted, no empty file stays. */
static bool can_write(const char *path) {
    bool was_there = access(path, F_OK) == 0;
    FILE *file = fopen(path, "a");
    if (!file) return false;
    fclose(file);
    if (!was_there) remove(path);
    return true;
}

static bool demo_draw(const char *path) {
    FILE *picture = fopen(path, "w");
    if (!picture) return false;
    picture_draw(picture, acts, ACTS);
    bool drawn = !ferror(picture);
    return fclose(picture) == 0 && drawn;
}

static bool perform(struct act *act) {
    contest_begin(act);
    if (cli_wants_json) {
        rest(act->duration_ns);
        contest_end();
    } else {
        screen_show(act);
        contest_end();
        screen_show_end(act);
    }
    return check(act);
}

static void report(bool right) {
    if (cli_wants_json) {
        summary_write(stdout, acts, ACTS, right);
        return;
    }
    screen_table(acts, ACTS);
    screen_verdict(acts, ACTS);
    if (svg) printf("\nThe picture: %s\n", svg);
}

static int demo_show(void) {
    bool right = true;
    if (svg && !can_write(svg)) return cli_fail(VIGIL_ESYSTEM, "cannot write %s", svg);
    if (!cli_wants_json) screen_open();
    for (int i = 0; i < ACTS; i++) right &= perform(&acts[i]);
    if (svg && !demo_draw(svg)) return cli_fail(VIGIL_ESYSTEM, "cannot write %s", svg);
    report(right);
    for (int i = 0; i < ACTS; i++) end_act(&acts[i]);
    if (fflush(stdout) != 0 || ferror(stdout)) return cli_fail(VIGIL_ESYSTEM, "cannot write the output");
    return right ? CLI_OK : SOMETHING_WRONG;
}

int main(int count, char **arguments) {
    const struct cli_option options[] = {{"quick", 0, CLI_FLAG, &quick}, {"svg", 0, CLI_TEXT, &svg}, {0}};
    struct cli_arguments parsed;
    fill_standard_descriptors();
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (parsed.operand_count) return cli_usage("unexpected argument %s: it takes options only", parsed.operands[0]);
    for (int i = 0; quick && i < ACTS; i++) make_quick(&acts[i]);
    return demo_show();
}
