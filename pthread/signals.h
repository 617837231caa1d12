/* SPDX-License-Identifier: MIT */
/* signals.h - signals by their usual names. For the library and for the command, which is for musl too. */
#ifndef VIGIL_SIGNALS_H
#define VIGIL_SIGNALS_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* USR2, SIGUSR2, or a number. Zero: there is no signal of that name that a program can handle. */
static inline int signal_named(const char *name) {
    static const struct {
        const char *name;
        int number;
    } known[] = {{"HUP", SIGHUP},   {"INT", SIGINT},     {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
                 {"USR2", SIGUSR2}, {"ALRM", SIGALRM},   {"TERM", SIGTERM}, {"CHLD", SIGCHLD},
                 {"CONT", SIGCONT}, {"URG", SIGURG},     {"XCPU", SIGXCPU}, {"VTALRM", SIGVTALRM},
                 {"PROF", SIGPROF}, {"WINCH", SIGWINCH}, {"IO", SIGIO},     {"PWR", SIGPWR}};
    if (strncmp(name, "SIG", 3) == 0) name += 3;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return known[i].number;
    char *end;
    long number = strtol(name, &end, 10);
    return !*end && end != name && number > 0 && number < 65 && number != SIGKILL && number != SIGSTOP ? (int)number
                                                                                                       : 0;
}

#endif
