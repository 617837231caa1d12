/* SPDX-License-Identifier: MIT */
/*
 * prim_file.h - what segments need from the operating system: files in memory, maps of them, locks that end with
 * their holder, and word of every fork.
 *
 * As in prim.h, nothing here is a cancellation point. What fails answers false, -1 or null, and errno says why. All
 * descriptors are closed by exec, and each is an open file description of its own.
 */
#ifndef VIGIL_PRIM_FILE_H
#define VIGIL_PRIM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRIM_PATH_BYTES 256

/* Where this user's file of that name is. */
void prim_file_path(char path[PRIM_PATH_BYTES], const char *name);

/* Call `found` with each name for which prim_file_path is a file, or with what looks like one. False: errno. */
bool prim_file_list(void (*found)(const char *name, void *data), void *data);

/* To look at, and to reopen: whatever it is, it is not opened itself, and a symbolic link is not followed. */
int prim_file_find(const char *path);
/* To read and write. Only once prim_file_look has said that it is a regular file: others may do things when opened. */
int prim_file_reopen(int fd);
void prim_file_close(int fd);
bool prim_file_unlink(const char *path);

/* A new file, empty and without a name; and one that can never have one. */
struct prim_draft {
    int fd;
    char temporary[PRIM_PATH_BYTES]; /* where the system knows no files without a name; else empty */
};
bool prim_draft_open(struct prim_draft *draft);
/* Give it its name, in one step: EEXIST if that is taken. */
bool prim_draft_link(const struct prim_draft *draft, const char *path);
/* It has its name, or never will. The descriptor stays open. */
void prim_draft_end(const struct prim_draft *draft);
int prim_file_anonymous(void);

struct prim_file_look {
    uint64_t device, inode;
    uint64_t bytes;
    bool regular;
    bool owned;      /* by this process's effective user */
    bool for_others; /* its owner lets others write */
};
bool prim_file_look(int fd, struct prim_file_look *look);
bool prim_file_permit(int fd, unsigned mode);
/* How many bytes were there to read; -1: errno. */
int64_t prim_file_read(int fd, void *copy, size_t bytes);
/*
 * At least so many bytes, the new ones zero, with memory for them if the file system might lack it later. Never
 * shortens the file, whoever else extends it meanwhile.
 */
bool prim_file_extend(int fd, uint64_t bytes);
/* Nobody can shorten it any more, where the system can promise that. */
void prim_file_seal(int fd);

/* Shared, to read and write, and beyond the end of the file as well: for when it grows. */
void *prim_file_map(int fd, size_t bytes);
/* Let go of the file: from now on, touching the mapping is a fault. Its addresses stay taken until it is unmapped. */
void prim_file_bar(void *mapping, size_t bytes);
void prim_file_unmap(void *mapping, size_t bytes);

/*
 * Locks on single bytes, which need not exist. They belong to the description: at the latest they end when every
 * descriptor and mapping of it is gone.
 */
enum prim_lock { PRIM_LOCK_FAILED = -1, PRIM_LOCK_FREE, PRIM_LOCK_HELD };
/* Take it if nobody has it. HELD: another description has it. FREE: none had, and now it is ours. */
enum prim_lock prim_file_lock(int fd, uint64_t at);
void prim_file_unlock(int fd, uint64_t at);
/* Whether another description has any of so many. */
enum prim_lock prim_file_test(int fd, uint64_t at, uint64_t count);
/* Whether another description has any at all, be it by flock(2). For a moment we may have that. */
bool prim_file_locked(int fd);


/*
 * Called around each fork, from when the library is loaded: before it, after the program's own handlers; after it,
 * before those. It is for memory/segment.c to say what. False: for want of memory they are not called.
 */
struct prim_fork {
    void (*before)(void), (*in_parent)(void), (*in_child)(void);
};
extern const struct prim_fork segment_fork;
bool prim_fork_handled(void);

/* The program's name, cut to the bytes there are; the rest is zero. */
void prim_process_name(char *name, size_t bytes);

#endif
