/* SPDX-License-Identifier: MIT */
/*
 * run.h - common parts of lock and sem: waiting for a lock or slot and for signals at once, and running a command.
 *
 *     run_signals_begin();                             from now on signals stay pending
 *     status = leash_open(&leash, buffer);
 *     status = waiting_for(&waiting, &something);      as often as needed
 *     status = waiting_for_leash(&waiting, &leash);
 *     if (run_start(&command, &status)) status = run_finish(&command);
 *     leash_give_back(&leash);                         before the lock or slot
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

/* Reads NAME and the words of the command. False: an error message was printed; return cli_usage_status(). */
bool run_arguments(int count, char **arguments, const struct cli_option *options, char **name, char ***words);

/* Opens the segment of that name, or creates it with that label; null: it must exist. On an error, a message was
 * printed. The caller must check the label of an existing segment. */
int run_open(vigil_buffer **buffer, const char *name, const char *label);
/* Prints that the segment is something else, and what to do. Returns the exit status. */
int run_other_kind(const char *name, const char *label, const char *wanted);

void run_signals_begin(void);
/* To be called when all is released. Returns the exit status; but if a signal came before the command started, or the
 * command was interrupted, this process ends by that signal. */
int run_end(int status);

/* An object that can be acquired at once, or has to be waited for. */
struct want {
    int (*try)(void *object);
    int (*ask)(vigil_agent *agent, vigil_request *request, void *object, int64_t timeout_ns, vigil_callback *callback);
    void *object;
};
struct waiting {
    const char *name;
    int64_t timeout_ns; /* for all waits together; 0: only try */
    bool wait_status;   /* print the place in line, also if stderr is not a terminal */

    int64_t waited_ns;
    vigil_agent *agent;
    int signals_fd;
    int64_t since_ns;
    struct place place;
    bool has_orphans; /* we have the lock, but not the leash */
    bool is_orphan;   /* we have inherited the leash, so it never becomes free */
    vigil_request request;
    int answer;
};
/* Returns the status of `try` or `ask`, or that of the callback. VIGIL_CANCELLED: a signal has come, see run_end; a
 * request that is still pending ends with waiting_end. */
int waiting_for(struct waiting *waiting, const struct want *want);
/* With the lock held: waits until no process runs any more that a killed holder started. Returns the same. */
int waiting_for_leash(struct waiting *waiting, const struct leash *leash);
/* The lock is acquired: stops showing the line. */
void waiting_granted(struct waiting *waiting, bool owner_died);
/* The lock was not acquired: prints why, unless it was a signal, and returns the exit status. */
int waiting_failed(struct waiting *waiting, int status);
void waiting_end(struct waiting *waiting);

struct command {
    char **words;
    const struct leash *leash;

    pid_t pid;
    int64_t since_ns;
};
/* Starts the command, unless a signal has come already. False: `status` is the exit status; a failure was printed. */
bool run_start(struct command *command, int *status);
/* Passes signals on until the command has ended. Returns its exit status, or CLI_RUN_SIGNAL plus the signal's number.
 * */
int run_finish(const struct command *command);

#endif
