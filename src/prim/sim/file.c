/* SPDX-License-Identifier: MIT */
/*
 * file.c - prim_file.h in the simulator: files whose pages are at the same address in every process.
 *
 * Each descriptor is an open file description of its own, and has the same number in every process: sim_pass_fd. What
 * a process knew when it released a lock, or died with it, is known to a fiber that finds the lock free afterwards:
 * in the kernel, both take the lock that protects the list of locks.
 *
 * Every operation that another process could notice is a point at which others may run, or at which the victim may
 * die.
 */
#include "prim_file.h"

#include <errno.h>
#include <string.h>

#include "engine.h"

#define FILES        3u
#define FILE_BYTES   (192u << 10)
#define LOCKS        16u /* of one file; a power of two */
#define DESCRIPTIONS 32u
#define FIRST_FD     2000

static struct file {
    uint64_t bytes;
    unsigned mode;
    char path[PRIM_PATH_BYTES]; /* empty: it has no name */
    struct lock {
        uint64_t at;
        const struct description *holder; /* null: free */
        struct sim_view view;             /* what its earlier holders knew */
    } locks[LOCKS];
} files[FILES];
static unsigned file_count; /* no file's pages are used twice in one execution */
static _Alignas(1 << 16) char pages[FILES][FILE_BYTES];

static struct description {
    struct file *file;
    unsigned process;
    bool open;
    bool passed; /* received from another process */
    unsigned mappings;
} descriptions[DESCRIPTIONS];

bool sim_file_memory(const volatile void *variable) {
    return (uintptr_t)variable - (uintptr_t)pages < sizeof pages;
}

/* ---- Descriptors ---- */

static struct description *file_description_of(int fd) {
    struct description *found = &descriptions[(unsigned)(fd - FIRST_FD) % DESCRIPTIONS];
    if (fd < FIRST_FD || fd - FIRST_FD >= (int)DESCRIPTIONS || !found->open || found->process != sim_process) {
        errno = EBADF;
        return NULL;
    }
    return found;
}

static int file_describe(struct file *file) {
    for (unsigned i = 0; i < DESCRIPTIONS; i++) {
        if (!descriptions[i].open && !descriptions[i].mappings) {
            descriptions[i] = (struct description){.file = file, .process = sim_process, .open = true};
            return FIRST_FD + (int)i;
        }
    }
    sim_fail("more than %u descriptors", DESCRIPTIONS);
}

void sim_pass_fd(int fd, unsigned process) {
    struct description *passed = file_description_of(fd);
    sim_check(passed, "not a descriptor that can be passed on: %d", fd);
    passed->process = process;
    passed->passed = true;
}

/* `known`: what the holder knew; null: outside of an execution. */
static void file_free_lock(struct lock *lock, const struct sim_view *known) {
    lock->holder = NULL;
    if (known) {
        sim_view_join(&lock->view, known);
    }
}

static void file_free_locks(const struct description *holder, const struct sim_view *known) {
    for (unsigned i = 0; i < LOCKS; i++) {
        if (holder->file->locks[i].holder == holder) {
            file_free_lock(&holder->file->locks[i], known);
        }
    }
}

static const struct sim_view *file_known_now(void) {
    return sim_current ? &sim_current->knows.now : NULL;
}

static void file_passed_on(void) {
    if (sim_current) {
        sim_view_passed_on();
    }
}

static void file_end_if_unused(const struct description *used) {
    if (!used->open && !used->mappings) {
        file_free_locks(used, file_known_now());
        file_passed_on();
    }
}

void sim_file_process_died(unsigned process, const struct sim_view *known) {
    for (unsigned i = 0; i < DESCRIPTIONS; i++) {
        if (descriptions[i].process == process && (descriptions[i].open || descriptions[i].mappings)) {
            descriptions[i].open = false;
            descriptions[i].mappings = 0;
            file_free_locks(&descriptions[i], known);
        }
    }
}

/* The point before an operation on something that others can see as well. */
static void file_point(const char *operation, const volatile void *variable, bool writes) {
    const struct sim_site site = {operation, "", __FILE__, __LINE__};
    if (sim_point((struct sim_footprint){.variable = variable, .writes = writes}, &site)) {
        sim_trace(&site, NULL, "%s", "");
    }
}

void prim_file_close(int fd) {
    struct description *self = file_description_of(fd);
    if (self) {
        file_point("close", self->file, true);
        self->open = false;
        file_end_if_unused(self);
    }
}

int prim_file_reopen(int fd) {
    struct description *self = file_description_of(fd);
    return self ? file_describe(self->file) : -1;
}

/* ---- Names ---- */

void prim_file_path(char path[PRIM_PATH_BYTES], const char *name) {
    snprintf(path, PRIM_PATH_BYTES, "%s", name ? name : "names");
}

static struct file *file_named(const char *path) {
    for (unsigned i = 0; i < file_count; i++) {
        if (strcmp(files[i].path, path) == 0) {
            return &files[i];
        }
    }
    errno = ENOENT;
    return NULL;
}

void prim_file_path_of(char path[PRIM_PATH_BYTES], uint32_t user, const char *name) {
    (void)user;
    prim_file_path(path, name);
}

bool prim_file_list_all(void (*found)(uint32_t user, const char *name, void *data), void *data) {
    for (unsigned i = 0; i < file_count; i++) found(0, files[i].path, data);
    return true;
}

bool prim_file_list(void (*found)(const char *name, void *data), void *data) {
    for (unsigned i = 0; i < file_count; i++) found(files[i].path, data);
    return true;
}

int prim_file_find(const char *path) {
    file_point("find a file", files, false);
    struct file *found = file_named(path);
    return found ? file_describe(found) : -1;
}

/* There are no paths but names. */
int prim_path_find(const char *path) {
    return prim_file_find(path);
}

int prim_path_create(const char *path, unsigned mode) {
    (void)path;
    (void)mode;
    errno = EROFS;
    return -1;
}

bool prim_file_is_local(int fd) {
    return fd >= 0;
}

bool prim_file_unlink(const char *path) {
    file_point("unlink", files, true);
    struct file *found = file_named(path);
    if (found) {
        found->path[0] = 0;
    }
    return found;
}

int prim_file_anonymous(void) {
    sim_check(file_count < FILES, "more than %u files", FILES);
    return file_describe(&files[file_count++]);
}

bool prim_draft_open(struct prim_draft *draft) {
    *draft = (struct prim_draft){.fd = prim_file_anonymous()};
    return true;
}

bool prim_draft_link(const struct prim_draft *draft, const char *path) {
    file_point("link", files, true);
    if (file_named(path)) {
        errno = EEXIST;
        return false;
    }
    memcpy(file_description_of(draft->fd)->file->path, path, PRIM_PATH_BYTES);
    return true;
}

void prim_draft_end(const struct prim_draft *draft) {
    (void)draft;
}

/* ---- Content ---- */

bool prim_file_stat(int fd, struct prim_file_stat *look) {
    const struct description *self = file_description_of(fd);
    if (!self) {
        return false;
    }
    file_point("look at a file", self->file, false);
    *look = (struct prim_file_stat){
        .device = 1,
        .inode = (uint64_t)(self->file - files) + 1,
        .bytes = self->file->bytes,
        .regular = true,
        .owned = true,
        .for_others = self->file->mode & 022,
    };
    return true;
}

bool prim_file_permit(int fd, unsigned mode) {
    file_description_of(fd)->file->mode = mode;
    return true;
}

static char *file_pages_of(const struct file *file) {
    return pages[file - files];
}

int64_t prim_file_read(int fd, void *copy, size_t bytes) {
    const struct file *file = file_description_of(fd)->file;
    file_point("read", file, false);
    bytes = bytes < file->bytes ? bytes : file->bytes;
    memcpy(copy, file_pages_of(file), bytes);
    return (int64_t)bytes;
}

bool prim_file_write(int fd, const void *from, size_t bytes, uint64_t at) {
    memcpy(file_pages_of(file_description_of(fd)->file) + at, from, bytes);
    return true;
}

bool prim_file_back(int fd, uint64_t from, uint64_t to) {
    struct file *file = file_description_of(fd)->file;
    (void)from; /* all pages are there */
    sim_check(to <= FILE_BYTES, "a file of %llu bytes", (unsigned long long)to);
    if (to <= file->bytes) {
        return true;
    }
    file_point("extend", file, true);
    file->bytes = to > file->bytes ? to : file->bytes;
    return true;
}

void prim_file_unback(int fd, uint64_t from, uint64_t to) {
    memset(file_pages_of(file_description_of(fd)->file) + from, 0, to - from);
}

void prim_file_seal(int fd) {
    (void)fd;
}

void *prim_file_map(int fd, size_t bytes) {
    struct description *self = file_description_of(fd);
    sim_check(bytes <= FILE_BYTES, "a mapping of %zu bytes", bytes);
    self->mappings++;
    return file_pages_of(self->file);
}

/* If the process has several descriptions of the file, it does not matter which of them was mapped. */
void prim_file_unmap(void *mapping, size_t bytes) {
    (void)bytes;
    for (unsigned i = 0; i < DESCRIPTIONS; i++) {
        struct description *self = &descriptions[i];
        if (self->mappings && self->process == sim_process && file_pages_of(self->file) == mapping) {
            file_point("unmap", self->file, true);
            self->mappings--;
            file_end_if_unused(self);
            return;
        }
    }
    sim_fail("not mapped: %p", mapping);
}

void prim_file_bar(void *mapping, size_t bytes) {
    (void)bytes;
    sim_fail("simulated processes do not fork: %p", mapping);
}

/* ---- Locks ---- */

static struct lock *file_lock_at(struct file *file, uint64_t at) {
    unsigned i = at % LOCKS;
    for (unsigned tried = 0; file->locks[i].at && file->locks[i].at != at; tried++) {
        sim_check(tried < LOCKS, "more than %u locks on a file", LOCKS);
        i = (i + 1) % LOCKS;
    }
    file->locks[i].at = at;
    return &file->locks[i];
}

/* The result for the current fiber. If the holder is in another process that lives, that process may die right
 * after. */
static enum prim_lock file_answer(const struct sim_site *site, const struct lock *lock,
                                  const struct description *asking) {
    bool held = lock->holder && lock->holder != asking;
    if (sim_current) {
        sim_trace(site, NULL, "byte %u: %s", (unsigned)(lock->at % LOCKS), held ? "held" : "free");
    }
    if (held) {
        sim_was_seen(lock->holder->process);
    } else if (sim_current) {
        sim_view_join(&sim_current->knows.now, &lock->view);
    }
    return held ? PRIM_LOCK_HELD : PRIM_LOCK_FREE;
}

static const struct sim_site locking = {"lock a byte", "", __FILE__, __LINE__};
static const struct sim_site testing = {"test a lock", "", __FILE__, __LINE__};

enum prim_lock prim_file_lock(int fd, uint64_t at) {
    const struct description *self = file_description_of(fd);
    struct lock *lock = file_lock_at(self->file, at);
    sim_point((struct sim_footprint){.variable = lock, .writes = true}, &locking);
    if (!lock->holder) {
        lock->holder = self;
    }
    return file_answer(&locking, lock, self);
}

enum prim_lock prim_file_lock_shared(int fd, uint64_t at) {
    return prim_file_lock(fd, at);
}

void prim_file_unlock(int fd, uint64_t at) {
    const struct description *self = file_description_of(fd);
    struct lock *lock = file_lock_at(self->file, at);
    file_point("unlock a byte", lock, true);
    if (lock->holder == self) {
        file_free_lock(lock, file_known_now());
        file_passed_on();
    }
}

/* A byte that has never been locked is free. */
enum prim_lock prim_file_test(int fd, uint64_t at, uint64_t count) {
    const struct description *self = file_description_of(fd);
    enum prim_lock found = PRIM_LOCK_FREE;
    for (unsigned i = 0; i < LOCKS && found == PRIM_LOCK_FREE; i++) {
        const struct lock *lock = &self->file->locks[i];
        if (!lock->at || lock->at - at >= count) {
            continue;
        }
        sim_point((struct sim_footprint){.variable = lock}, &testing);
        found = file_answer(&testing, lock, self);
    }
    return found;
}

bool prim_file_locked(int fd) {
    return prim_file_test(fd, 0, INT64_MAX) != PRIM_LOCK_FREE;
}

/* ---- Processes ---- */

bool prim_fork_handled(void) {
    return true; /* there is no fork here */
}

uint32_t prim_process_space(void) {
    return 1;
}

void prim_process_name(char *name, size_t bytes) {
    snprintf(name, bytes, "process %u", sim_process);
}

/* ---- Between executions ---- */

void sim_file_reset(void) {
    for (unsigned i = 0; i < file_count; i++) {
        memset(pages[i], 0, files[i].bytes);
    }
    memset(files, 0, file_count * sizeof *files);
    memset(descriptions, 0, sizeof descriptions);
    file_count = 0;
}

const char *sim_file_leak(void) {
    for (unsigned i = 0; i < DESCRIPTIONS; i++) {
        const struct description *left = &descriptions[i];
        if (left->mappings || (left->open && !left->passed)) {
            return left->mappings ? "a file was not unmapped" : "a descriptor was not closed";
        }
    }
    return NULL;
}
