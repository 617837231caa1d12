/* SPDX-License-Identifier: MIT */
/* The library's own threads of prim.h, where there are pthreads: for prim/linux and prim/posix. */
#define _GNU_SOURCE
#include "prim.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct prim_handle {
    pthread_t thread;
    void (*main)(void *);
    void *argument;
    bool detached;
};

static void *prim_thread_main(void *start) {
    struct prim_handle *handle = start;
    handle->main(handle->argument);
    if (handle->detached) free(handle);
    return NULL;
}

/* Not those that a thread causes itself: if they are blocked, the kernel ends the process without calling the program's
 * handler. */
static void prim_fill_with_signals(sigset_t *all) {
    static const int faults[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    sigfillset(all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(all, faults[i]);
}

static int prim_create_thread(struct prim_handle *handle, bool quiet) {
    sigset_t all, before;
    prim_fill_with_signals(&all);
    pthread_t thread;
    bool detached = handle->detached;
    if (quiet) pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits the mask */
    int failed = pthread_create(&thread, NULL, prim_thread_main, handle);
    if (quiet) pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed && detached) pthread_detach(thread);
    else if (!failed) handle->thread = thread; /* a detached thread may have ended, and freed the handle */
    return failed;
}

bool prim_thread_start(struct prim_handle **handle, void (*main)(void *), void *argument, bool quiet) {
    struct prim_handle *new = malloc(sizeof *new);
    if (!new) return false;
    new->main = main;
    new->argument = argument;
    new->detached = !handle;
    int failed = prim_create_thread(new, quiet);
    if (failed) {
        free(new);
        errno = failed;
        return false;
    }
    if (handle) *handle = new;
    return true;
}

void prim_thread_join(struct prim_handle *handle) {
    int state_before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_before);
    pthread_join(handle->thread, NULL);
    pthread_setcancelstate(state_before, NULL);
    free(handle);
}
