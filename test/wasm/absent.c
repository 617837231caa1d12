/* SPDX-License-Identifier: MIT */
/* absent.c - what WebAssembly does not have. A test that calls it belongs into left_out.js. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void absent(const char *function) {
    fprintf(stderr, "%s: not available in WebAssembly; list the test in left_out.js\n", function);
    _Exit(1);
}

#define ABSENT(prototype)                                                                                              \
    prototype {                                                                                                        \
        absent(__func__);                                                                                              \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-noreturn"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* that is how wasi-libc says it */

ABSENT(pid_t fork(void))
ABSENT(pid_t waitpid(pid_t child, int *status, int options))
ABSENT(unsigned alarm(unsigned seconds))
ABSENT(int dup(int fd))
ABSENT(int dup2(int fd, int as))
ABSENT(int pipe(int fds[2]))
ABSENT(int close(int fd))
ABSENT(ssize_t read(int fd, void *to, size_t bytes))
ABSENT(int open(const char *path, int flags, ...))
ABSENT(int fcntl(int fd, int command, ...))
ABSENT(FILE *tmpfile(void))
ABSENT(FILE *fopen(const char *restrict path, const char *restrict mode))
ABSENT(int fscanf(FILE *restrict file, const char *restrict format, ...))
ABSENT(int fileno(FILE *file))
ABSENT(void rewind(FILE *file))
ABSENT(int fclose(FILE *file))
ABSENT(char *fgets(char *restrict to, int most, FILE *restrict file))
ABSENT(int sigemptyset(sigset_t *set))
ABSENT(int sigaction(int signal, const struct sigaction *action, struct sigaction *before))
ABSENT(int pthread_kill(pthread_t thread, int signal))
ABSENT(int pthread_cancel(pthread_t thread))
ABSENT(void pthread_testcancel(void))
ABSENT(_Noreturn void pthread_exit(void *result))
ABSENT(int getrlimit(int resource, struct rlimit *limit))
ABSENT(int setrlimit(int resource, const struct rlimit *limit))
ABSENT(int epoll_create1(int flags))
ABSENT(int epoll_ctl(int loop, int operation, int fd, struct epoll_event *event))
ABSENT(int epoll_wait(int loop, struct epoll_event *events, int most, int timeout_ms))
ABSENT(char *strsignal(int signal))
