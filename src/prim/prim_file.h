/* SPDX-License-Identifier: MIT */
/*
 * prim_file.h - what segments need from the operating system: files in memory, maps of them, locks that end with
 * their holder, and handlers of forks.
 *
 * As in prim.h, nothing here is a cancellation point. Functions that fail return false, -1 or null, and set errno.
 * All descriptors are closed by exec, and each is an open file description of its own.
 */
#ifndef VIGIL_PRIM_FILE_H
#define VIGIL_PRIM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRIM_PATH_BYTES 256

/* The path of this user's file of that name; null: of its book of names. */
void prim_file_path(char path[PRIM_PATH_BYTES], const char *name);

/* The same of another user. */
void prim_file_path_of(char path[PRIM_PATH_BYTES], uint32_t user, const char *name);

/* Call `found` for each file of a user there, with its name; a null pointer is that of the book. False: see errno. */
bool prim_file_list_all(void (*found)(uint32_t user, const char *name, void *data), void *data);

/* Call `found` with each name for which something exists at prim_file_path, whatever it is. False: see errno. */
bool prim_file_list(void (*found)(const char *name, void *data), void *data);

/* A descriptor to look at and to reopen. The file itself is not opened, and a symbolic link is not followed. */
int prim_file_find(const char *path);
/* Open to read and write. Only after prim_file_stat has said that it is a regular file: opening others may have
 * effects. */
int prim_file_reopen(int fd);
void prim_file_close(int fd);
/* The same at any path; symbolic links are followed. */
int prim_path_find(const char *path);
/* Create an empty file there, opened to read and write: EEXIST if there is one. Mode 0: 0666 less the umask. */
int prim_path_create(const char *path, unsigned mode);
/* Whether all that can open the file share its memory: not so on network file systems, and unknown on FUSE. */
bool prim_file_is_local(int fd);
bool prim_file_unlink(const char *path);

/* A new file, empty and without a name; prim_file_anonymous: one that can never get a name. */
struct prim_draft {
    int fd;
    char temporary[PRIM_PATH_BYTES]; /* if the system has no files without a name; else empty */
};
bool prim_draft_open(struct prim_draft *draft);
/* Give it its name, in one step: EEXIST if that is taken. */
bool prim_draft_link(const struct prim_draft *draft, const char *path);
/* The file has its name, or will never get one. The descriptor stays open. */
void prim_draft_end(const struct prim_draft *draft);
int prim_file_anonymous(void);

struct prim_file_stat {
    uint64_t device, inode;
    uint64_t bytes;
    bool regular;
    uint32_t owner;
    bool owned;      /* by this process's effective user */
    bool for_others; /* its owner lets others write */
};
bool prim_file_stat(int fd, struct prim_file_stat *look);
bool prim_file_permit(int fd, unsigned mode);
/* Returns how many bytes could be read; -1: see errno. */
int64_t prim_file_read(int fd, void *copy, size_t bytes);
bool prim_file_write(int fd, const void *from, size_t bytes, uint64_t at);
/*
 * Make sure that the file has the bytes from `from` up to `to`, and memory for them if the file system might lack it
 * later. Bytes that were not there are zero. Never shortens the file, and never changes a byte, even if other
 * processes do the same meanwhile.
 */
bool prim_file_back(int fd, uint64_t from, uint64_t to);
/* Give the memory of these bytes back, as far as it is in whole pages; they are zero then. The file stays as long. */
void prim_file_unback(int fd, uint64_t from, uint64_t to);
/* From now on no process can shorten the file, where the system can ensure that. */
void prim_file_seal(int fd);

/* Shared, to read and write, also beyond the end of the file: for when it grows. */
void *prim_file_map(int fd, size_t bytes);
/* Release the file: from now on, touching the mapping is a fault. Its addresses stay taken until it is unmapped. */
void prim_file_bar(void *mapping, size_t bytes);
void prim_file_unmap(void *mapping, size_t bytes);

/*
 * Locks on single bytes, which need not exist. They belong to the open file description: they end at the latest when
 * all its descriptors and mappings are gone.
 */
enum prim_lock { PRIM_LOCK_FAILED = -1, PRIM_LOCK_FREE, PRIM_LOCK_HELD };
/* Try to lock. HELD: another description has the lock. FREE: no other had it, and now it is ours. */
enum prim_lock prim_file_lock(int fd, uint64_t at);
/* The same together with others that share it. */
enum prim_lock prim_file_lock_shared(int fd, uint64_t at);
void prim_file_unlock(int fd, uint64_t at);
/* Whether another description has locked any of `count` bytes. */
enum prim_lock prim_file_test(int fd, uint64_t at, uint64_t count);
/* Whether another description has any lock, including one by flock(2). This call takes that lock itself for a
 * moment. */
bool prim_file_locked(int fd);


/*
 * Called around each fork, from when the library is loaded: before it, after the program's own handlers; after it,
 * before those. memory/segment.c defines them. False: they could not be registered, for lack of memory.
 */
struct prim_fork {
    void (*before)(void), (*in_parent)(void), (*in_child)(void);
};
extern const struct prim_fork segment_fork;
bool prim_fork_handled(void);

/* The number of this process's pid namespace, less its constant bits 28-31; zero: not known. */
uint32_t prim_process_space(void);
/* The program's name, cut to that many bytes; the rest is zero. */
void prim_process_name(char *name, size_t bytes);

#endif
