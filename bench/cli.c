/* SPDX-License-Identifier: MIT */
/* The vigil command against flock(1): what it costs to run something under a lock, and to pass the lock on. */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vigil/vigil.h>

extern char **environ;

enum { STARTS_MAX = 1000, QUEUE_MAX = 2000, QUEUE_QUICK = 10, WORDS_MAX = 12 };

/* Who runs commands under a lock that has this name. */
struct runner {
    const char *words[WORDS_MAX]; /* before those of the command */
    const char *name;
    unsigned (*holding)(const char *name), (*waiting)(const char *name); /* how many of them there are right now */
};

static int start(const struct runner *runner, const char *const *command, int input) {
    const char *words[2 * WORDS_MAX] = {0};
    size_t count = 0;
    while (runner->words[count] != NULL) words[count] = runner->words[count], count++;
    for (; *command != NULL; command++) words[count++] = *command;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    int pid;
    must(posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)words, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void await_success(int pid) {
    int status;
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Microseconds from the start of the process to its end, nobody else being there. */
static void overhead(const struct job *job, const struct runner *runner, double figures[FIGURES_MAX]) {
    static const char *const nothing[] = {"true", NULL};
    double times_us[STARTS_MAX];
    must(job->n <= STARTS_MAX);
    await_success(start(runner, nothing, -1)); /* the lock is made */
    for (uint64_t i = 0; i < job->n; i++) {
        uint64_t start_ns = now_ns();
        await_success(start(runner, nothing, -1));
        times_us[i] = (double)(now_ns() - start_ns) / 1e3;
    }
    figures[0] = median(times_us, job->n);
}

static void until(unsigned (*count)(const char *), const char *name, unsigned least) {
    const struct timespec moment = {.tv_nsec = 100000};
    while (count(name) < least) nanosleep(&moment, NULL);
}

/* How many of the numbers that the commands have written are not where they should be. */
static unsigned out_of_turn(const char *path, unsigned queue) {
    FILE *file = fopen(path, "r");
    must(file != NULL);
    unsigned count = 0, number;
    for (unsigned i = 0; i < queue; i++) count += fscanf(file, "%u", &number) != 1 || number != i;
    fclose(file);
    return count;
}

/*
 * Microseconds for each of n commands, from the moment at which somebody lets go of the lock for which they queue. Each
 * of them is seen in line before the next one is started.
 */
static void handoff_into(const char *path, unsigned queue, const struct runner *runner, double figures[FIGURES_MAX]) {
    static const char *const hold[] = {"cat", NULL};
    static int pids[QUEUE_MAX];
    int gate[2];
    must(pipe2(gate, O_CLOEXEC) == 0);
    int holder = start(runner, hold, gate[0]);
    until(runner->holding, runner->name, 1);
    for (unsigned i = 0; i < queue; i++) {
        char line[128];
        snprintf(line, sizeof line, "echo %u >>%s", i, path);
        pids[i] = start(runner, (const char *const[]){"sh", "-c", line, NULL}, -1);
        until(runner->waiting, runner->name, i + 1);
    }
    uint64_t start_ns = now_ns();
    close(gate[1]);
    await_success(holder);
    for (unsigned i = 0; i < queue; i++) await_success(pids[i]);
    figures[0] = (double)(now_ns() - start_ns) / 1e3 / queue;
    figures[1] = out_of_turn(path, queue);
    close(gate[0]);
}

static void handoff(const struct job *job, const struct runner *runner, double figures[FIGURES_MAX]) {
    unsigned queue = is_quick() ? QUEUE_QUICK : (unsigned)job->n;
    char path[] = "/tmp/vigil-bench-XXXXXX";
    int fd = mkstemp(path);
    must(fd >= 0 && queue <= QUEUE_MAX);
    close(fd);
    handoff_into(path, queue, runner, figures);
    unlink(path);
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
    must(vigil_segment_unlink(name) == VIGIL_OK);
}

static void vigil_overhead(const struct job *job, double figures[FIGURES_MAX]) {
    measure_vigil(overhead, NULL, job, figures);
}

static void vigil_handoff(const struct job *job, double figures[FIGURES_MAX]) {
    measure_vigil(handoff, "--fair", job, figures);
}

const struct skill our_cli[] = {
    {"cli_lock_overhead", vigil_overhead, false},
    {"cli_handoff", vigil_handoff, false},
    {0},
};

/* flock. */

/* In /proc/locks, those who wait for a file's lock have an arrow, indented by their place in line; its inode is
 * behind a colon. */
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
    {"cli_lock_overhead", flock_overhead, false},
    {"cli_handoff", flock_handoff, false},
    {0},
};
const struct contestant contestant_flock = {.name = "flock", .skills = {flock_skills}, .open = flock_open};
