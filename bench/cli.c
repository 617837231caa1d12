/* SPDX-License-Identifier: MIT */
/* The vigil command against flock(1): the cost of running a command under a lock, of passing the lock on and of
 * waiting. */
#include "queue.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vigil/vigil.h>

extern char **environ;

enum { STARTS_MAX = 1000, QUEUE_QUICK = 10 };

/* Microseconds from the start of the process to its end, without contention. */
static void overhead(const struct job *job, const struct runner *runner, double figures[FIGURES_MAX]) {
    static const char *const nothing[] = {"true", NULL};
    double times_us[STARTS_MAX];
    must(job->n <= STARTS_MAX);
    await_success(runner_start(runner, nothing)); /* creates the lock */
    for (uint64_t i = 0; i < job->n; i++) {
        uint64_t start_ns = now_ns();
        await_success(runner_start(runner, nothing));
        times_us[i] = (double)(now_ns() - start_ns) / 1e3;
    }
    figures[0] = median(times_us, job->n);
}

/* Microseconds per command, for n commands that queue for a lock, from the moment at which its holder releases it. */
static void drain(uint64_t n, const struct runner *runner, bool ordered, double figures[FIGURES_MAX]) {
    unsigned count = is_quick() ? QUEUE_QUICK : (unsigned)n;
    struct queue queue;
    if (!queue_form(&queue, runner, count, ordered)) return;
    figures[0] = (double)queue_drain_ns(&queue) / 1e3 / count;
    if (ordered) figures[1] = queue_out_of_turn(&queue);
    queue_disband(&queue);
}

static void handoff(const struct job *job, const struct runner *runner, double figures[FIGURES_MAX]) {
    drain(job->n, runner, false, figures);
}

static void handoff_in_order(const struct job *job, const struct runner *runner, double figures[FIGURES_MAX]) {
    drain(job->n, runner, true, figures);
}

/* Vigil. */

static vigil_observer *observer;

static unsigned count_seen(const char *name, bool holders) {
    vigil_look look;
    unsigned count = 0;
    if (observer == NULL && vigil_observer_open(&observer, name) != VIGIL_OK) return 0;
    must(vigil_observer_look(observer, &look) == VIGIL_OK);
    for (uint32_t i = 0; i < look.line_count; i++) {
        const vigil_seen_line *line = &look.lines[i];
        if (!holders) count += line->waiter_count;
        else if (line->kind == VIGIL_SEEN_RWLOCK) count += line->holder_count;
    }
    return count;
}

static unsigned vigil_holding(const char *name) {
    return count_seen(name, true);
}

static unsigned vigil_waiting(const char *name) {
    return count_seen(name, false);
}

static void measure_vigil(void (*measure)(const struct job *, const struct runner *, double[FIGURES_MAX]),
                          const char *option, const struct job *job, double figures[FIGURES_MAX]) {
    char name[32];
    snprintf(name, sizeof name, "bench-%d", (int)getpid());
    const struct runner runner = {{BENCH_VIGIL, "lock", name, option}, name, vigil_holding, vigil_waiting};
    measure(job, &runner, figures);
    if (observer != NULL) vigil_observer_close(observer);
    observer = NULL;
    int status = vigil_named_remove(name, true);
    must(status == VIGIL_OK || status == VIGIL_ENOTFOUND); /* not found: the processes could not be started */
}

static void vigil_overhead(const struct job *job, double figures[FIGURES_MAX]) {
    measure_vigil(overhead, NULL, job, figures);
}

/* A lock at a path, as flock has it. */
static void vigil_path_overhead(const struct job *job, double figures[FIGURES_MAX]) {
    char path[] = "/dev/shm/vigil-bench-path-XXXXXX";
    int fd = mkstemp(path);
    must(fd >= 0);
    close(fd);
    const struct runner runner = {{BENCH_VIGIL, "lock", path}, path, vigil_holding, vigil_waiting};
    overhead(job, &runner, figures);
    unlink(path);
}

/* Opening names from C; and the memory of the file of a lock for which no process waits. */
static void vigil_open_names(const struct job *job, double figures[FIGURES_MAX]) {
    vigil_named **names = calloc((size_t)job->n, sizeof *names);
    char name[48], path[] = "/dev/shm/vigil-bench-path-XXXXXX";
    struct stat file;
    must(names != NULL);
    int64_t since_ns = vigil_now_ns();
    for (uint64_t i = 0; i < job->n; i++) {
        snprintf(name, sizeof name, "bench-%d-%d", (int)getpid(), (int)i);
        must(vigil_named_open(&names[i], name, NULL) == VIGIL_OK);
    }
    figures[0] = (double)(vigil_now_ns() - since_ns) / 1000 / (double)job->n;
    for (uint64_t i = 0; i < job->n; i++) {
        snprintf(name, sizeof name, "bench-%d-%d", (int)getpid(), (int)i);
        must(vigil_named_close(names[i]) == VIGIL_OK && vigil_named_remove(name, true) == VIGIL_OK);
    }
    free(names);
    vigil_named *lock;
    int fd = mkstemp(path);
    must(fd >= 0);
    close(fd);
    must(vigil_named_open(&lock, path, NULL) == VIGIL_OK && vigil_named_lock(lock, 0) == VIGIL_OK);
    must(stat(path, &file) == 0);
    figures[1] = (double)file.st_blocks / 2; /* of 512 bytes */
    must(vigil_named_close(lock) == VIGIL_OK);
    unlink(path);
}

static void vigil_handoff(const struct job *job, double figures[FIGURES_MAX]) {
    measure_vigil(handoff, NULL, job, figures);
}

static void vigil_handoff_fair(const struct job *job, double figures[FIGURES_MAX]) {
    measure_vigil(handoff_in_order, "--fair", job, figures);
}

static void vigil_idle(const struct job *job, double figures[FIGURES_MAX]) {
    measure_vigil(idle_waiters, NULL, job, figures);
}

const struct skill our_cli[] = {
    {"cli_lock_overhead", vigil_overhead, false},
    {"cli_lock_path_overhead", vigil_path_overhead, false},
    {"named_open", vigil_open_names, false},
    {"cli_handoff", vigil_handoff, false},
    {"cli_handoff_fair", vigil_handoff_fair, false},
    {"idle_waiters", vigil_idle, false},
    {0},
};

/* flock. */

/* In /proc/locks, a waiter for a file's lock has an arrow, indented by its place in line; the inode follows a colon. */
static unsigned count_locks(const char *path, bool waiting) {
    struct stat file;
    char inode[32], *line = NULL;
    size_t room = 0;
    unsigned count = 0;
    must(stat(path, &file) == 0);
    snprintf(inode, sizeof inode, ":%llu ", (unsigned long long)file.st_ino);
    FILE *locks = fopen("/proc/locks", "r");
    must(locks != NULL);
    while (getline(&line, &room, locks) >= 0)
        count += strstr(line, " FLOCK ") && strstr(line, inode) && !!strstr(line, "->") == waiting;
    free(line);
    fclose(locks);
    return count;
}

static unsigned flock_holding(const char *path) {
    return count_locks(path, false);
}

static unsigned flock_waiting(const char *path) {
    return count_locks(path, true);
}

static void measure_flock(void (*measure)(const struct job *, const struct runner *, double[FIGURES_MAX]),
                          const struct job *job, double figures[FIGURES_MAX]) {
    char path[] = "/dev/shm/vigil-bench-flock-XXXXXX";
    int fd = mkstemp(path);
    must(fd >= 0);
    close(fd);
    const struct runner runner = {{"flock", path}, path, flock_holding, flock_waiting};
    measure(job, &runner, figures);
    unlink(path);
}

static void flock_overhead(const struct job *job, double figures[FIGURES_MAX]) {
    measure_flock(overhead, job, figures);
}

static void flock_handoff(const struct job *job, double figures[FIGURES_MAX]) {
    measure_flock(handoff, job, figures);
}

static void flock_handoff_in_order(const struct job *job, double figures[FIGURES_MAX]) {
    measure_flock(handoff_in_order, job, figures);
}

static void flock_idle(const struct job *job, double figures[FIGURES_MAX]) {
    measure_flock(idle_waiters, job, figures);
}

static bool flock_open(void) {
    int pid, status;
    char *const words[] = {"flock", "--version", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    bool started = posix_spawnp(&pid, words[0], &actions, NULL, words, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return started && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const struct skill flock_skills[] = {
    {"cli_lock_overhead", flock_overhead, false}, {"cli_lock_path_overhead", flock_overhead, false},
    {"cli_handoff", flock_handoff, false},        {"cli_handoff_fair", flock_handoff_in_order, false},
    {"idle_waiters", flock_idle, false},          {0},
};
const struct contestant contestant_flock = {.name = "flock", .skills = {flock_skills}, .open = flock_open};
