/* SPDX-License-Identifier: MIT */
/* Declarations only: there are no signals, and tests that use them are left out (../left_out.js). */
#ifndef VIGIL_WASM_SIGNAL_H
#define VIGIL_WASM_SIGNAL_H

#define SIGUSR1    10
#define SIGSEGV    11
#define SIGUSR2    12
#define SA_RESTART 1

typedef unsigned sigset_t;
struct sigaction {
    void (*sa_handler)(int);
    sigset_t sa_mask;
    int sa_flags;
};
int sigemptyset(sigset_t *set);
int sigaction(int signal, const struct sigaction *action, struct sigaction *before);

#endif
