/* SPDX-License-Identifier: MIT */
/*
 * prim_file.h on Linux: tmpfs, memfd and open-file-description locks.
 *
 * By bare system calls, for the reasons given at the bells in prim.c.
 */
#define _GNU_SOURCE
#include "prim_file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FOLDER "/dev/shm"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* since Linux 6.3 */
#endif

static int file_open_at(const char *path, int flags, unsigned mode) {
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

/* Names and descriptors. */

void prim_file_path(char path[PRIM_PATH_BYTES], const char *name) {
    prim_file_path_of(path, (uint32_t)geteuid(), name);
}

void prim_file_path_of(char path[PRIM_PATH_BYTES], uint32_t user, const char *name) {
    snprintf(path, PRIM_PATH_BYTES, FOLDER "/vigil-%u%s%s", (unsigned)user, name ? "-" : "", name ? name : "");
}

bool prim_file_list_all(void (*found)(uint32_t user, const char *name, void *data), void *data) {
    DIR *folder = opendir(FOLDER);
    if (!folder) return false;
    for (const struct dirent *file; (file = readdir(folder));) {
        unsigned user;
        int length = 0;
        if (sscanf(file->d_name, "vigil-%u%n", &user, &length) != 1 || !length) continue;
        const char *rest = file->d_name + length;
        if (!*rest || *rest == '-') found(user, *rest ? rest + 1 : NULL, data);
    }
    closedir(folder);
    return true;
}

bool prim_file_list(void (*found)(const char *name, void *data), void *data) {
    char prefix[32];
    size_t length = (size_t)snprintf(prefix, sizeof prefix, "vigil-%u-", (unsigned)geteuid());
    DIR *folder = opendir(FOLDER);
    if (!folder) return false;
    for (const struct dirent *file; (file = readdir(folder));) {
        if (strncmp(file->d_name, prefix, length) == 0) found(file->d_name + length, data);
    }
    closedir(folder);
    return true;
}

static void file_link_to(char path[PRIM_PATH_BYTES], int fd) {
    snprintf(path, PRIM_PATH_BYTES, "/proc/self/fd/%d", fd);
}

int prim_file_find(const char *path) {
    return file_open_at(path, O_PATH | O_NOFOLLOW, 0);
}

int prim_path_find(const char *path) {
    return file_open_at(path, O_PATH, 0);
}

int prim_path_create(const char *path, unsigned mode) {
    int fd = file_open_at(path, O_RDWR | O_CREAT | O_EXCL, mode ? 0600 : 0666);
    if (fd >= 0 && mode) syscall(SYS_fchmod, fd, mode);
    return fd;
}

/* The numbers of statfs(2), of file systems that are shared by machines, or served by a program. */
bool prim_file_is_local(int fd) {
    static const uint32_t others[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x01021997, /* 9P */
        0x5346414f, /* AFS */
        0x6b414653, /* AFS */
        0x73757245, /* Coda */
        0x00c36400, /* Ceph */
        0x0bd00bd0, /* Lustre */
        0x01161970, /* GFS2 */
        0x7461636f, /* OCFS2 */
        0x19830326, /* BeeGFS */
        0x47504653, /* GPFS */
        0x65735546, /* FUSE */
    };
    struct statfs system;
    if (syscall(SYS_fstatfs, fd, &system) != 0) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if ((uint32_t)system.f_type == others[i]) return false;
    }
    return true;
}

int prim_file_reopen(int fd) {
    char path[PRIM_PATH_BYTES];
    file_link_to(path, fd);
    return file_open_at(path, O_RDWR | O_NONBLOCK | O_NOCTTY, 0);
}

void prim_file_close(int fd) {
    int errno_before = errno;
    syscall(SYS_close, fd);
    errno = errno_before;
}

bool prim_file_unlink(const char *path) {
    return unlink(path) == 0;
}

/* A name that no segment can have, as their names begin without a dot. */
static bool file_open_temporary(struct prim_draft *draft) {
    static unsigned drafts;
    do {
        unsigned number = __atomic_fetch_add(&drafts, 1, __ATOMIC_RELAXED);
        snprintf(draft->temporary, PRIM_PATH_BYTES, FOLDER "/.vigil-%u-%ld-%u", (unsigned)geteuid(), (long)getpid(),
                 number);
        draft->fd = file_open_at(draft->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    } while (draft->fd < 0 && errno == EEXIST); /* left by a process that was killed, or from another PID namespace */
    return draft->fd >= 0;
}

bool prim_draft_open(struct prim_draft *draft) {
    draft->temporary[0] = 0;
    draft->fd = file_open_at(FOLDER, O_RDWR | O_TMPFILE, 0600);
    if (draft->fd >= 0) return true;
    /* What systems without O_TMPFILE return: see open(2). */
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) return false;
    return file_open_temporary(draft);
}

bool prim_draft_link(const struct prim_draft *draft, const char *path) {
    if (draft->temporary[0]) return link(draft->temporary, path) == 0;
    char from[PRIM_PATH_BYTES];
    file_link_to(from, draft->fd);
    return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

void prim_draft_end(const struct prim_draft *draft) {
    int errno_before = errno;
    if (draft->temporary[0]) unlink(draft->temporary);
    errno = errno_before;
}

int prim_file_anonymous(void) {
    int fd = (int)syscall(SYS_memfd_create, "vigil", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) fd = (int)syscall(SYS_memfd_create, "vigil", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

/* Content. */

/* On 64-bit systems, the C library's struct is the kernel's. */
bool prim_file_stat(int fd, struct prim_file_stat *look) {
    struct stat found;
    if (syscall(SYS_fstat, fd, &found) != 0) return false;
    *look = (struct prim_file_stat){
        .device = found.st_dev,
        .inode = found.st_ino,
        .bytes = (uint64_t)found.st_size,
        .regular = S_ISREG(found.st_mode),
        .owner = found.st_uid,
        .owned = found.st_uid == geteuid(),
        .for_others = (found.st_mode & (S_IWGRP | S_IWOTH)) != 0,
    };
    return true;
}

bool prim_file_permit(int fd, unsigned mode) {
    return syscall(SYS_fchmod, fd, mode) == 0;
}

int64_t prim_file_read(int fd, void *copy, size_t bytes) {
    int64_t had = 0;
    while (had < (int64_t)bytes) {
        long more = syscall(SYS_pread64, fd, (char *)copy + had, bytes - (size_t)had, had);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return -1;
        if (more == 0) break;
        had += more;
    }
    return had;
}

bool prim_file_write(int fd, const void *from, size_t bytes, uint64_t at) {
    long written;
    do written = syscall(SYS_pwrite64, fd, from, bytes, at);
    while (written < 0 && errno == EINTR);
    if (written >= 0 && written < (long)bytes) errno = ENOSPC;
    return written == (long)bytes;
}

/* In one piece, as a failed call is undone; and without signals, as each would undo what has been allocated so far. */
static bool file_allocate(int fd, uint64_t from, uint64_t to) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    long failed;
    do {
        failed = syscall(SYS_fallocate, fd, 0, from, to - from);
    } while (failed && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* returns its errors, and leaves errno alone */
    return !failed;
}

/*
 * A file system with a limit may be full when a page is touched, which is a fault: there, the memory is allocated
 * now. Not where there is no limit (anonymous files), so that a large size does not take all memory of the machine:
 * there only the last byte is allocated.
 */
bool prim_file_back(int fd, uint64_t from, uint64_t to) {
    struct prim_file_stat file;
    struct statfs system;
    if (from >= to) return true;
    if (!prim_file_stat(fd, &file) || syscall(SYS_fstatfs, fd, &system) != 0) return false;
    uint64_t new_from = file.bytes > from ? file.bytes : from;
    if (system.f_blocks == 0) return file.bytes >= to || file_allocate(fd, to - 1, to);
    if (new_from < to && (to - new_from) / (uint64_t)system.f_bsize > system.f_bavail) {
        errno = ENOSPC; /* don't fill it up just to find out */
        return false;
    }
    return file_allocate(fd, from, to);
}

void prim_file_unback(int fd, uint64_t from, uint64_t to) {
    int errno_before = errno;
    if (from < to) syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from);
    errno = errno_before;
}

void prim_file_seal(int fd) {
    int errno_before = errno;
    syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK);
    errno = errno_before;
}

/*
 * The addresses are taken and given back through the C library, so that the thread sanitizer knows of them. The file
 * is mapped by a bare call, because the sanitizer must not know of the descriptor.
 */
void *prim_file_map(int fd, size_t bytes) {
    void *mapping = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    long mapped =
        syscall(SYS_mmap, mapping, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0L);
    if (mapped == (long)mapping) return mapping;
    int why = errno;
    munmap(mapping, bytes);
    errno = why;
    return NULL;
}

void prim_file_bar(void *mapping, size_t bytes) {
    void *barred = mmap(mapping, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    assert(barred == mapping);
    (void)barred;
}

void prim_file_unmap(void *mapping, size_t bytes) {
    int errno_before = errno;
    munmap(mapping, bytes);
    errno = errno_before;
}

/* Locks. */

static struct flock file_lock_on(uint64_t at, short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
}

static enum prim_lock file_lock_as(int fd, uint64_t at, short type) {
    struct flock lock = file_lock_on(at, type);
    if (syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0) return PRIM_LOCK_FREE;
    return errno == EAGAIN || errno == EACCES ? PRIM_LOCK_HELD : PRIM_LOCK_FAILED;
}

enum prim_lock prim_file_lock(int fd, uint64_t at) {
    return file_lock_as(fd, at, F_WRLCK);
}

enum prim_lock prim_file_lock_shared(int fd, uint64_t at) {
    return file_lock_as(fd, at, F_RDLCK);
}

void prim_file_unlock(int fd, uint64_t at) {
    struct flock lock = file_lock_on(at, F_UNLCK);
    int errno_before = errno;
    syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock);
    errno = errno_before;
}

enum prim_lock prim_file_test(int fd, uint64_t at, uint64_t count) {
    struct flock lock = file_lock_on(at, F_WRLCK);
    lock.l_len = (off_t)count;
    if (syscall(SYS_fcntl, fd, F_OFD_GETLK, &lock) != 0) return PRIM_LOCK_FAILED;
    return lock.l_type == F_UNLCK ? PRIM_LOCK_FREE : PRIM_LOCK_HELD;
}

bool prim_file_locked(int fd) {
    if (prim_file_test(fd, 0, INT64_MAX) != PRIM_LOCK_FREE || syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) != 0)
        return true;
    syscall(SYS_flock, fd, LOCK_UN);
    return false;
}

/* Processes. */

static pthread_once_t file_loaded = PTHREAD_ONCE_INIT;
static bool file_fork_handled;

static void file_load(void) {
    file_fork_handled = pthread_atfork(segment_fork.before, segment_fork.in_parent, segment_fork.in_child) == 0;
}

/* As in prim.c. The order of the two makes no difference. */
__attribute__((constructor(101))) static void file_load_first(void) {
    pthread_once(&file_loaded, file_load);
}

bool prim_fork_handled(void) {
    pthread_once(&file_loaded, file_load);
    return file_fork_handled;
}

/* A process stays in its namespace, but its children may be in another: they have another pid. */
uint32_t prim_process_space(void) {
    static uint64_t known; /* atomic: the pid, and in bits 32-63 its namespace */
    uint64_t now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    uint32_t pid = (uint32_t)getpid();
    struct stat found;
    if ((uint32_t)now == pid) return (uint32_t)(now >> 32);
    uint64_t space = stat("/proc/self/ns/pid", &found) == 0 ? (uint64_t)found.st_ino & 0x0fffffffu : 0;
    __atomic_store_n(&known, space << 32 | pid, __ATOMIC_RELAXED);
    return (uint32_t)space;
}

void prim_process_name(char *name, size_t bytes) {
    size_t length = strnlen(program_invocation_short_name, bytes);
    memset(name, 0, bytes);
    memcpy(name, program_invocation_short_name, length);
}
