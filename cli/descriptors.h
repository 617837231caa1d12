/* SPDX-License-Identifier: MIT */
/* descriptors.h - the first thing that the vigil command and its separate programs do. Needs _GNU_SOURCE. */
#ifndef VIGIL_CLI_DESCRIPTORS_H
#define VIGIL_CLI_DESCRIPTORS_H

#include <fcntl.h>
#include <unistd.h>

/* If a standard descriptor is closed, a segment could get its number, and output would be written into the segment.
 * So each missing one is replaced by a descriptor that can be neither read nor written and is closed by exec. */
static inline void fill_standard_descriptors(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_PATH | O_CLOEXEC);
}

#endif
