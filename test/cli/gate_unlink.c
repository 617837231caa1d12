/* SPDX-License-Identifier: MIT */
/* To be preloaded: unlink makes the file GATE.begun, and goes on when there is a file GATE (of the environment). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int unlink(const char *path) {
    const char *gate = getenv("GATE");
    char begun[4096];
    snprintf(begun, sizeof begun, "%s.begun", gate);
    close(open(begun, O_WRONLY | O_CREAT, 0600));
    while (access(gate, F_OK) != 0) usleep(1000);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
