/* SPDX-License-Identifier: MIT */
/*
 * at.h - vigil-at: the subcommands of vigil for locks and words of a cluster, with --at or VIGIL_AT. vigil executes it
 * with its own arguments; it is a program of its own because it needs libvigil-etcd.
 *
 * Each subcommand opens the cluster with at_open, starts what it wants, and calls at_run until that has ended.
 */
#ifndef VIGIL_CLI_AT_H
#define VIGIL_CLI_AT_H

#include <vigil/remote.h>

#include "../cli.h"

struct at {
    vigil_remote_options options;
    const char *text;           /* --at, or VIGIL_AT */
    char name[VIGIL_REMOTE_NAME + 1];
    char endpoints[1024];       /* `text` without the name */
    vigil_agent *agent;
    vigil_remote *remote;
};

/* Rows of a table of options that are the same for all subcommands. */
#define AT_OPTIONS(at)                                                                                                 \
    {"at", 0, CLI_TEXT, &(at).text}, {"ttl", 0, CLI_DURATION, &(at).options.ttl_ns},                                   \
        {"cacert", 0, CLI_TEXT, &(at).options.cacert}, {"cert", 0, CLI_TEXT, &(at).options.cert},                      \
        {"key", 0, CLI_TEXT, &(at).options.key}, {"user", 0, CLI_TEXT, &(at).options.user}

/* The name is part of --at, or else the first operand: *operands is moved past it. False: an error message was printed;
 * return cli_usage_status(). `maybe`: there may be none. */
bool at_read(struct at *at, char ***operands, int *operand_count, bool maybe);

/* On an error, a message was printed. */
bool at_open(struct at *at);
void at_close(struct at *at);

/* Dispatches until *done, or until `fd` (-1: none) is readable, or for `timeout_ms` (-1: for ever). Returns whether it
 * is done. */
bool at_run(struct at *at, const bool *done, int fd, int timeout_ms);

/* Prints why a status of the cluster was an error. Returns the exit status. */
int at_fail(const struct at *at, int status);

/* "pid 4711 on web1: ./deploy.sh". Returns `text`. */
char *at_say_holder(const vigil_remote_holder *holder, char *text, size_t bytes);

int at_lock(int count, char **arguments);
int at_sem(int count, char **arguments);
int at_wait(int count, char **arguments);
int at_notify(int count, char **arguments);
int at_load(int count, char **arguments);
int at_store(int count, char **arguments);
int at_cas(int count, char **arguments);
int at_show(int count, char **arguments);
int at_top(int count, char **arguments);
int at_doctor(int count, char **arguments);

#endif
