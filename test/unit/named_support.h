/* SPDX-License-Identifier: MIT */
/*
 * named_support.h - what the tests of named locks share. Include after support.h and child.h.
 *
 * All names of a user are in one book. Where the system allows it, the tests have a /dev/shm of their own, in a mount
 * namespace, and so an empty book, which ends with them. Elsewhere, they share the user's book: their names begin with
 * `prefix`, and the parent of the process that runs them removes these, even if that process is killed.
 */
#ifndef VIGIL_TEST_NAMED_SUPPORT_H
#define VIGIL_TEST_NAMED_SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "named/book.h"
#include "vigil/named.h"
#include "vigil/observe.h"

static char prefix[32];
static char scratch[64]; /* a folder for paths */
static bool own_book;

/* Not skip(), which ends the whole program with the stand-in for cmocka. */
static inline void leave_out(const char *why) {
    fprintf(stderr, "left out: %s\n", why);
}

/* A name of this test's; `what` may be a format for `number`. */
static inline const char *numbered(const char *what, unsigned number) {
    static char names[4][64];
    static unsigned next;
    char *name = names[next++ % 4];
    snprintf(name, sizeof names[0], "%s%s%u", prefix, what, number);
    return name;
}

static inline const char *in_scratch(const char *what) {
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, what);
    return path;
}

static inline vigil_named *open_with(const char *name, const vigil_named_options *options) {
    vigil_named *named = NULL;
    assert_int_equal(vigil_named_open(&named, name, options), VIGIL_OK);
    assert_non_null(named);
    return named;
}

static inline vigil_named *open_it(const char *name) {
    return open_with(name, NULL);
}

static inline void close_it(vigil_named *named) {
    assert_int_equal(vigil_named_close(named), VIGIL_OK);
}

static inline int try_open(const char *name, const vigil_named_options *options) {
    vigil_named *named = NULL;
    int status = vigil_named_open(&named, name, options);
    if (status == VIGIL_OK) vigil_named_close(named);
    return status;
}

/* The entry itself, of a name that this process has open. */
static inline struct entry *entry_of(const char *name) {
    vigil_buffer *buffer = NULL;
    assert_int_equal(book_open(&buffer, name, NULL, false), VIGIL_OK);
    struct entry *entry =
        (struct entry *)(uintptr_t)book_peek(vigil_buffer_data(buffer), vigil_buffer_length(buffer), book_name(name));
    assert_non_null(entry);
    vigil_buffer_destroy(buffer); /* one of several opens */
    return entry;
}

/* Other processes. */

struct actor {
    pid_t pid;
    int from, to; /* pipes: what it says, and what it is told */
};

static inline void actor_say(const struct actor *actor, int status) {
    CHECK(write(actor->to, &status, sizeof status) == sizeof status);
}

static inline int actor_hear(const struct actor *actor) {
    int status = UNDECIDED;
    ssize_t length;
    do length = read(actor->from, &status, sizeof status);
    while (length < 0 && errno == EINTR);
    return length == sizeof status ? status : UNDECIDED;
}

/* The other process calls `play`, which may say and hear, and then pauses until it is killed. */
static inline struct actor actor_start(void (*play)(const struct actor *self, const char *name), const char *name) {
    int up[2], down[2];
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    pid_t pid = fork_here();
    if (pid == 0) {
        close(up[0]);
        close(down[1]);
        play(&(struct actor){.from = down[0], .to = up[1]}, name);
        for (;;) pause();
    }
    close(up[1]);
    close(down[0]);
    assert_true(pid > 0);
    return (struct actor){.pid = pid, .from = up[0], .to = down[1]};
}

static inline void actor_end(struct actor *actor) {
    assert_true(actor->pid > 0); /* kill(-1) would kill all processes */
    assert_int_equal(kill(actor->pid, SIGKILL), 0);
    assert_int_equal(waitpid(actor->pid, NULL, 0), actor->pid);
    close(actor->from);
    close(actor->to);
}

static inline vigil_named *child_open(const char *name) {
    vigil_named *named = NULL;
    CHECK(vigil_named_open(&named, name, NULL) == VIGIL_OK);
    return named;
}

/* The environment. */

static inline bool write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return written;
}

static inline bool map_user(unsigned user, unsigned group) {
    char users[64], groups[64];
    snprintf(users, sizeof users, "0 %u 1", user);
    snprintf(groups, sizeof groups, "0 %u 1", group);
    return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", users) &&
           write_file("/proc/self/gid_map", groups);
}

/* The program must have a single thread still. */
static inline bool own_shm(void) {
    unsigned user = geteuid(), group = getegid();
    bool separate = unshare(CLONE_NEWNS) == 0;
    if (!separate) separate = unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && map_user(user, group);
    return separate && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("test", "/dev/shm", "tmpfs", 0, "size=256m,mode=1777") == 0;
}

static inline void note_name(const char *name, void *data) {
    char (*names)[64] = data;
    for (unsigned i = 0; i < 64; i++) {
        if (names[i][0] || strncmp(name, prefix, strlen(prefix)) != 0 || strlen(name) >= sizeof names[0]) continue;
        strcpy(names[i], name);
        return;
    }
}

static inline void remove_all(void) {
    for (;;) {
        char names[64][64] = {{0}};
        vigil_named_list(note_name, names);
        if (!names[0][0]) return;
        for (unsigned i = 0; i < 64 && names[i][0]; i++) vigil_named_remove(names[i], true);
    }
}

/* Runs the tests in a child, and removes what that leaves. */
static inline int run_named_tests(int (*run)(void)) {
    if (!children_can_start_threads()) return NO_THREADS_IN_CHILDREN;
    snprintf(prefix, sizeof prefix, "test-%ld-", (long)getpid());
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        own_book = own_shm();
        snprintf(scratch, sizeof scratch, "/dev/shm/vigil-test-%ld", (long)getppid());
        if (mkdir(scratch, 0777) != 0 || chmod(scratch, 0777) != 0) _exit(1);
        int failed = run();
        fflush(NULL);
        _exit(failed);
    }
    int failed = exit_status_of(child);
    char command[128];
    snprintf(command, sizeof command, "rm -rf /dev/shm/vigil-test-%ld", (long)getpid());
    remove_all();
    return system(command) == 0 ? failed : 1;
}

#endif
