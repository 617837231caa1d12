/* SPDX-License-Identifier: MIT */
#include "leash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEASH_AT       (INT64_C(3) << 60) /* in the file: behind the user's bytes, before the library's own locks */
#define OUT_OF_THE_WAY 32 /* above the numbers that scripts use; from 64 on the kernel needs a larger table */

/*
 * A single leash is a flock(2) lock: the kernel keeps these apart from the byte locks, of which each member of the
 * segment has one. If there are several leashes, each is a lock on a byte of its own.
 */
static bool set(const struct leash *leash, short type, uint64_t from, uint64_t count) {
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = LEASH_AT + (off_t)from, .l_len = (off_t)count};
    int whole = type == F_UNLCK ? LOCK_UN : type == F_RDLCK ? LOCK_SH : LOCK_EX;
    return leash->count == 1 ? flock(leash->fd, whole | LOCK_NB) == 0 : fcntl(leash->fd, F_OFD_SETLK, &lock) == 0;
}

int leash_open(struct leash *leash, vigil_buffer *buffer) {
    leash->fd = vigil_segment_fd(buffer);
    return leash->fd < 0 ? leash->fd : VIGIL_OK;
}

/* Processes start at different leashes: the first would always be taken. */
int leash_try(const struct leash *leash) {
    uint64_t first = (uint64_t)getpid();
    for (uint64_t i = 0; i < leash->count; i++) {
        if (set(leash, leash->shared ? F_RDLCK : F_WRLCK, (first + i) % leash->count, 1)) return VIGIL_OK;
        if (errno != EAGAIN && errno != EACCES) return VIGIL_ESYSTEM;
    }
    return VIGIL_TIMED_OUT;
}

/* Our own descriptors are closed by exec; an inherited leash is not, since it has survived one. */
static bool survives_exec(int fd) {
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC);
}

bool leash_inherited(const struct leash *leash) {
    struct stat ours, other;
    bool found = false;
    DIR *open_files = fstat(leash->fd, &ours) == 0 ? opendir("/proc/self/fd") : NULL;
    for (struct dirent *entry; !found && open_files && (entry = readdir(open_files)) != NULL;) {
        int fd = atoi(entry->d_name);
        found =
            survives_exec(fd) && fstat(fd, &other) == 0 && other.st_dev == ours.st_dev && other.st_ino == ours.st_ino;
    }
    if (open_files) closedir(open_files);
    return found;
}

void leash_hand_down(const struct leash *leash) {
    if (fcntl(leash->fd, F_DUPFD, OUT_OF_THE_WAY) < 0) fcntl(leash->fd, F_SETFD, 0); /* the limit is below 32 */
}

void leash_give_back(const struct leash *leash) {
    set(leash, F_UNLCK, 0, leash->count);
}

void leash_close(const struct leash *leash) {
    if (leash->fd >= 0) close(leash->fd);
}
