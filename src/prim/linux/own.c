/* SPDX-License-Identifier: MIT */
/*
 * Whether memory is this process's own, as the kernel tells in /proc. By bare system calls: see Bells in prim.c.
 *
 * /proc/self/pagemap tells it of one page, by one read; but a process that has changed its user, as daemons do, may not
 * open it. /proc/self/maps has a line for each mapping, and any process may read its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "prim.h"

enum own { OWN_UNKNOWN, OWN_YES, OWN_NO };

static int own_open(const char *path) {
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* A child inherits the entries of private memory that was written to, and of shared memory either none, or such that
 * have PAGE_SHARED. */
#define PAGE_THERE  (3ull << 62) /* in memory, or swapped out */
#define PAGE_SHARED (1ull << 61) /* of a file, or of anonymous memory that is shared */

static enum own own_by_page(uintptr_t page) {
    int fd = own_open("/proc/self/pagemap");
    if (fd < 0) return OWN_UNKNOWN;
    uint64_t entry;
    bool found = lseek(fd, (off_t)(page * sizeof entry), SEEK_SET) >= 0 &&
                 syscall(SYS_read, fd, &entry, sizeof entry) == sizeof entry;
    syscall(SYS_close, fd);
    if (!found) return OWN_UNKNOWN;
    return (entry & PAGE_THERE) && !(entry & PAGE_SHARED) ? OWN_YES : OWN_NO;
}

/* "start-end perms ...", as in "7f1c0000-7f1d0000 rw-s". */
static enum own own_by_line(const char *line, uintptr_t address) {
    char *next;
    uintptr_t start = strtoul(line, &next, 16), end = *next == '-' ? strtoul(next + 1, &next, 16) : 0;
    if (address < start || address >= end) return OWN_UNKNOWN;
    return next[4] == 's' ? OWN_NO : OWN_YES;
}

/* A line has 40 characters or more; what is wanted of it ends before the 39th. */
static enum own own_in_lines(int fd, uintptr_t address) {
    char line[40], buffer[2048];
    size_t length = 0;
    for (ssize_t got; (got = syscall(SYS_read, fd, buffer, sizeof buffer)) > 0;) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] == '\n') length = 0;
            else if (length < sizeof line) line[length++] = buffer[i];
            else continue;
            if (length != sizeof line - 1) continue;
            line[length++] = 0; /* the rest of the line is passed over */
            enum own own = own_by_line(line, address);
            if (own != OWN_UNKNOWN) return own;
        }
    }
    return OWN_NO;
}

static enum own own_by_mapping(uintptr_t address) {
    int fd = own_open("/proc/self/maps");
    if (fd < 0) return OWN_UNKNOWN;
    enum own own = own_in_lines(fd, address);
    syscall(SYS_close, fd);
    return own;
}

/* Without /proc, or a descriptor to read it, memory that is shared with the parent is not noticed. */
static bool own_if_mapped(uintptr_t address, uintptr_t page_bytes) {
    unsigned char resident;
    return mincore((void *)(address & ~(page_bytes - 1)), 1, &resident) == 0 || errno != ENOMEM;
}

bool prim_is_own(const void *address) {
    int errno_before = errno;
    uintptr_t at = (uintptr_t)address, page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    enum own own = own_by_page(at / page_bytes);
    if (own == OWN_UNKNOWN) own = own_by_mapping(at);
    bool is_own = own == OWN_UNKNOWN ? own_if_mapped(at, page_bytes) : own == OWN_YES;
    errno = errno_before;
    return is_own;
}
