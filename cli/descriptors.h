/* SPDX-License-Identifier: MIT */
/* descriptors.h - what the vigil command and each of its programs do first. It needs _GNU_SOURCE. */
#ifndef VIGIL_CLI_DESCRIPTORS_H
#define VIGIL_CLI_DESCRIPTORS_H

#include <fcntl.h>
#include <unistd.h>

/* A segment that gets the number of a standard descriptor which was closed would be written to. In the place of each
 * that is missing comes one that can be neither read nor written, and that what we run does not get. */
static inline void fill_standard_descriptors(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_PATH | O_CLOEXEC);
}

#endif
