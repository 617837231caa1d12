/* SPDX-License-Identifier: MIT */
/* command.h - run a command as its parent: signals, its start, and its end. */
#ifndef VIGIL_CLI_COMMAND_H
#define VIGIL_CLI_COMMAND_H

#include <sys/types.h>

#include "cli.h"

struct command {
    char **words;
    int tie_fd; /* the command inherits it: see vigil_named_tie; -1: none */

    pid_t pid;
    pid_t group; /* run_signal_all: a process group that the command leads; 0: none */
    bool ended;  /* as run_attend has seen */
    int64_t since_ns;
};

/* From now on signals stay pending. */
void run_signals_begin(void);
/* The exit status for a process that has ended, as of waitpid. If it was interrupted, run_end ends this process so. */
int run_ended(int end);
/* To be called when all is released. Returns the exit status; but if a signal came before the command started, or the
 * command was interrupted, this process ends by that signal. */
int run_end(int status);

/* Until the command starts: a descriptor that is readable when a signal has come that ends this process; take it; and
 * which one was taken, 0: none. */
int run_deadly_fd(void);
bool run_take_deadly(int fd);
int run_deadly(void);

/* False: it could not be started, why was printed, and `status` is the exit status. */
bool run_start(struct command *command, int *status);
/* Waits until it has ended, and passes on signals meanwhile. Returns the exit status. */
int run_finish(const struct command *command);

/*
 * For a parent that does more than wait: a descriptor that is readable when a signal has come; and what to call then,
 * which passes signals on, and returns whether the command has ended, with *exit_status.
 *
 * With run_keep_orphans, called before the command starts, processes that it leaves behind become children of this
 * process, and run_signal_all reaches everything that the command has started; without /proc, the command and a process
 * group that it leads. It returns how many processes that were, at least.
 */
int run_signals_fd(void);
bool run_attend(struct command *command, int *exit_status);
void run_keep_orphans(void);
unsigned run_signal_all(struct command *command, int number);

#endif
