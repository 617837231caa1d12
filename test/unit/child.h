/* SPDX-License-Identifier: MIT */
/* child.h - tests that fork, and what a process has open. Include after support.h. */
#ifndef VIGIL_TEST_CHILD_H
#define VIGIL_TEST_CHILD_H

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* For a child: cmocka's own assertions would continue into the parent's tests. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "in the child: %s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline pid_t fork_here(void) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) alarm(60); /* a child that hangs has failed */
    return child;
}

/* Returns -1 if there was no child, or it was killed. */
static inline int exit_status_of(pid_t child) {
    int ended;
    if (child < 0 || waitpid(child, &ended, 0) != child) return -1;
    if (WIFEXITED(ended)) return WEXITSTATUS(ended);
    fprintf(stderr, "a child was killed: %s\n", strsignal(WTERMSIG(ended)));
    return -1;
}

/* How many descriptors are open, and a constant number more. */
static inline unsigned descriptors(void) {
    unsigned count = 0;
    DIR *open_now = opendir("/proc/self/fd");
    assert_non_null(open_now);
    while (readdir(open_now)) count++;
    closedir(open_now);
    return count;
}

/*
 * Whether the child of a process with threads can start threads of its own, as it does when it opens a segment. On
 * Linux it can, but the thread sanitizer and some emulators fail, so this is tried first, without the library.
 */
#define NO_THREADS_IN_CHILDREN 77 /* exit status of a program that was skipped */

static inline void *child_wait_for_end(void *pipe_end) {
    char byte;
    while (read(*(int *)pipe_end, &byte, 1) > 0) continue;
    return NULL;
}

static inline void *child_do_nothing(void *unused) {
    return unused;
}

static inline bool children_can_start_threads(void) {
    int ends[2], ended = 1;
    pthread_t thread, childs;
    if (UNDER_TSAN || pipe(ends) != 0 || pthread_create(&thread, NULL, child_wait_for_end, &ends[0]) != 0) return false;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        close(STDERR_FILENO); /* an emulator that fails here prints messages */
        _exit(pthread_create(&childs, NULL, child_do_nothing, NULL) == 0 && pthread_join(childs, NULL) == 0 ? 0 : 1);
    }
    waitpid(child, &ended, 0);
    close(ends[1]);
    pthread_join(thread, NULL);
    close(ends[0]);
    return ended == 0;
}

#endif
