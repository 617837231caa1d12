/* SPDX-License-Identifier: MIT */
/* child.h - tests that fork. To be included after support.h. */
#ifndef VIGIL_TEST_CHILD_H
#define VIGIL_TEST_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

/* In a child: cmocka's own assertions would run on into the parent's tests. */
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
    if (child == 0) alarm(60); /* a child that hangs is a child that failed */
    return child;
}

/* -1 if there was none, or it was killed. */
static inline int exit_status_of(pid_t child) {
    int ended;
    if (child < 0 || waitpid(child, &ended, 0) != child) return -1;
    if (WIFEXITED(ended)) return WEXITSTATUS(ended);
    fprintf(stderr, "a child was killed: %s\n", strsignal(WTERMSIG(ended)));
    return -1;
}

#endif
