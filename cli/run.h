/* SPDX-License-Identifier: MIT */
/*
 * run.h - common parts of lock and sem: waiting for a lock or slot and for signals at once, and running a command.
 *
 *     run_signals_begin();                             from now on signals stay pending
 *     status = run_under(&waiting, words, &steps, data);
 *     return run_end(status);
 */
#ifndef VIGIL_CLI_RUN_H
#define VIGIL_CLI_RUN_H

#include "cli.h"
#include "command.h"
#include "position.h"

/* Reads NAME and the words of the command. False: an error message was printed; return cli_usage_status(). With
 * `maybe`, there may be no command: null. */
bool run_arguments(int count, char **arguments, const struct cli_option *options, bool maybe, char **name,
                   char ***words);

/* Whether an option with which no command is needed may be among the arguments: it may be the command's as well. */
bool run_mentions(int count, char **arguments, const char *option);

/* Reads the octal mode of --mode; null: none was given. False: an error message was printed. */
bool run_mode(const char *text, unsigned *mode);

/* Opens a lock, or a semaphore if `options` has slots or says that it must exist. On an error, a message was printed,
 * and the result is null. */
vigil_named *run_open(const char *name, const vigil_named_options *options);

/* A lock or slot that is wanted. */
struct waiting {
    const char *name;
    vigil_named *named;
    unsigned how;       /* VIGIL_NAMED_... */
    int64_t timeout_ns; /* 0: only try */
    uint64_t conflict;  /* the exit status if it is not available in time */
    bool wait_status;   /* print the position in line, also if stderr is not a terminal */

    int64_t waited_ns;
    bool orphans; /* it waits for processes that a killed holder started */
    vigil_agent *agent;
    int signals_fd;
    int64_t since_ns;
    struct position position;
    int status; /* VIGIL_PENDING, or that of the callback */
};
/* Returns the status of vigil_named_lock_async, or that of the callback. VIGIL_CANCELLED: a signal has come, see
 * run_end; a request that is still pending ends with waiting_end. */
int waiting_for(struct waiting *waiting);
/* The lock was not acquired: prints why, unless it was a signal, and returns the exit status. */
int waiting_failed(struct waiting *waiting, int status);
/* The lock is acquired: stops showing the line. */
void waiting_granted(struct waiting *waiting, bool owner_died);
void waiting_end(struct waiting *waiting);

/* What lock and sem do differently; `data` is theirs. */
struct run_steps {
    /* With the lock or slot held. False: do not run the command; `status` is the exit status. May be null. */
    bool (*prepare)(void *data, const char *name, bool owner_died, int *status);
    /* The command has started. May be null. */
    void (*started)(void *data, bool owner_died);
};
/*
 * Acquires, runs the command, and releases. Returns the command's exit status, or CLI_RUN_SIGNAL plus the number of the
 * signal that ended it; or that of a failure, which was printed.
 */
int run_under(struct waiting *waiting, char **words, const struct run_steps *steps, void *data);

#endif
