/* SPDX-License-Identifier: MIT */
/*
 * run.h - common parts of lock and sem: waiting for a lock or slot and for signals at once, and running a command.
 *
 *     run_signals_begin();                             from now on signals stay pending
 *     status = run_under(buffer, &leash, &waiting, words, &steps, data);
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

/* What lock and sem do differently; `data` is theirs. */
struct run_steps {
    /* By waiting_for, as often as needed. VIGIL_OK or VIGIL_OWNER_DIED: the lock or slot is acquired. */
    int (*acquire)(void *data, struct waiting *waiting);
    /* With it and the leash held. False: do not run the command; `status` is the exit status. May be null. */
    bool (*prepare)(void *data, const char *name, bool owner_died, int *status);
    /* The command has started. May be null. */
    void (*started)(void *data, bool owner_died);
    void (*release)(void *data);
};
/*
 * Acquires, waits until no process of a killed holder runs any more (the leash), runs the command, and releases.
 * Returns the command's exit status, or CLI_RUN_SIGNAL plus the number of the signal that ended it; or that of a
 * failure, which was printed.
 */
int run_under(vigil_buffer *buffer, struct leash *leash, struct waiting *waiting, char **words,
              const struct run_steps *steps, void *data);

#endif
