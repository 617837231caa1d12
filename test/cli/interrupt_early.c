/* SPDX-License-Identifier: MIT */
/* To be loaded before the C library: a process that restores its signal mask has been interrupted just before. */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int sigprocmask(int how, const sigset_t *set, sigset_t *before) {
    if (how == SIG_SETMASK && !before) kill((pid_t)syscall(SYS_getpid), SIGINT);
    return (int)syscall(SYS_rt_sigprocmask, how, set, before, 8);
}
