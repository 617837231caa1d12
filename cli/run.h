/* SPDX-License-Identifier: MIT */
/*
 * run.h - what lock and sem have in common: to wait for something without being deaf to signals, and to run a command.
 *
 *     run_signals_begin();                             from now on they wait for us
 *     status = leash_open(&leash, buffer);
 *     status = waiting_for(&waiting, &something);      as often as needed
 *     status = waiting_for_leash(&waiting, &leash);
 *     if (run_start(&command, &status)) status = run_finish(&command);
 *     leash_give_back(&leash);                         before what was waited for
 *     leash_close(&leash);
 *     waiting_end(&waiting);
 *     return run_end(status);
 */
#ifndef VIGIL_CLI_RUN_H
#define VIGIL_CLI_RUN_H

#include <sys/types.h>

#include "cli.h"
#include "leash.h"
#include "place.h"

/* NAME and the words of the command. True, or it has been said what is wrong: answer cli_usage_status(). */
bool run_arguments(int count, char **arguments, const struct cli_option *options, char **name, char ***words);

/* Open the segment of that name. If there is none it is made, with that label; null: it must exist. VIGIL_OK, or it has
 * been said what is wrong. Whether an old one has the right label is for the caller to see. */
int run_open(vigil_buffer **buffer, const char *name, const char *label);
/* Says that it is something else, and what to do. Answers the exit status. */
int run_other_kind(const char *name, const char *label, const char *wanted);

void run_signals_begin(void);
/* The exit status, when all is given back; or, if a signal has come before the command began, or has interrupted that, to
 * die of it. */
int run_end(int status);

/* Something that is had at once, or has to be waited for. */
struct want {
    int (*try)(void *object);
    int (*ask)(vigil_agent *agent, vigil_request *request, void *object, int64_t timeout_ns, vigil_callback *callback);
    void *object;
};
struct waiting {
    const char *name;
    int64_t timeout_ns; /* for everything that is waited for, together; 0: only try */
    bool wait_status;   /* say the place in line where there is no terminal, too */

    int64_t waited_ns;
    vigil_agent *agent;
    int signals_fd;
    int64_t since_ns;
    struct place place;
    bool has_orphans; /* it is ours, but not the leash */
    bool is_orphan;   /* and never will be: we have inherited that */
    vigil_request request;
    int answer;
};
/* The answer of `try` or `ask`, or what the callback is told. VIGIL_CANCELLED: a signal has come, see run_end; after
 * this the request, if there is one, ends with waiting_end. */
int waiting_for(struct waiting *waiting, const struct want *want);
/* For who has been granted the lock: until nothing runs any more that a killed holder has started. The same answers. */
int waiting_for_leash(struct waiting *waiting, const struct leash *leash);
/* It is ours, and nothing is shown of the line any more. */
void waiting_granted(struct waiting *waiting, bool owner_died);
/* It is not to be had: says why, unless it was a signal, and answers the exit status. */
int waiting_failed(struct waiting *waiting, int status);
void waiting_end(struct waiting *waiting);

struct command {
    char **words;
    const struct leash *leash;

    pid_t pid;
    int64_t since_ns;
};
/* True; or it has been said why not, and `status` is the exit status. Not if a signal has come already. */
bool run_start(struct command *command, int *status);
/* Passes signals on until the command has ended: its exit status, or CLI_RUN_SIGNAL and the signal's number. */
int run_finish(const struct command *command);

#endif
