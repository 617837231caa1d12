/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* A process that waits has a thread of the library's besides its own; one command runs at a time. */
enum { TASKS_EACH = 2, TASKS_MORE = 16 };

static const struct timespec one_by_one = {.tv_nsec = 100000}, all_together = {.tv_nsec = 10000000};

/* Processes. */

static int start(const struct runner *runner, const char *const *command, int input, int errors) {
    const char *words[2 * RUNNER_WORDS_MAX] = {0};
    size_t count = 0;
    while (runner->words[count] != NULL) words[count] = runner->words[count], count++;
    for (; *command != NULL; command++) words[count++] = *command;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (errors >= 0) posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    int pid;
    must(posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)words, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

int runner_start(const struct runner *runner, const char *const *command) {
    return start(runner, command, -1, -1);
}

void await_success(int pid) {
    int status;
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Room. */

static void *sleep_for_ever(void *nothing) {
    for (;;) pause();
    return nothing;
}

_Noreturn static void have_tasks(unsigned count) {
    pthread_attr_t attributes;
    pthread_t thread;
    bool had = pthread_attr_init(&attributes) == 0 && pthread_attr_setguardsize(&attributes, 0) == 0 &&
               pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0;
    while (had && count-- > 0) had = pthread_create(&thread, &attributes, sleep_for_ever, NULL) == 0;
    _exit(had ? 0 : 1);
}

/*
 * Whether that many tasks can be created: the limits of the user, of all control groups above and of the system
 * decide it, and what others use of each. A child that creates them for a moment finds out.
 */
static bool has_room_for_tasks(unsigned count) {
    int status, pid = fork();
    must(pid >= 0);
    if (pid == 0) have_tasks(count);
    must(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The queue. */

static bool has_one_ended(void) {
    siginfo_t end = {0};
    return waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid != 0;
}

/* False if a process has ended meanwhile: none may end before the lock is released. */
static bool until(unsigned (*count)(const char *), const char *name, unsigned least, const struct timespec *pause) {
    while (count(name) < least) {
        if (has_one_ended()) return false;
        nanosleep(pause, NULL);
    }
    return true;
}

static void start_next(struct queue *queue) {
    char line[128];
    snprintf(line, sizeof line, "echo %u >>%s", queue->started, queue->written_to);
    const char *const command[] = {"sh", "-c", line, NULL};
    queue->pids[queue->started++] = start(queue->runner, command, -1, queue->complaints);
}

static bool stand_in_line(struct queue *queue, bool ordered) {
    static const char *const hold[] = {"cat", NULL};
    const struct runner *runner = queue->runner;
    queue->holder = start(runner, hold, queue->input[0], queue->complaints);
    if (!until(runner->holding, runner->name, 1, &one_by_one)) return false;
    while (queue->started < queue->count) {
        start_next(queue);
        if (ordered && !until(runner->waiting, runner->name, queue->started, &one_by_one)) return false;
        if (has_one_ended()) return false;
    }
    return until(runner->waiting, runner->name, queue->count, &all_together);
}

static void open_files(struct queue *queue) {
    strcpy(queue->written_to, "/tmp/vigil-bench-XXXXXX");
    int fd = mkstemp(queue->written_to);
    must(fd >= 0);
    close(fd);
    must(pipe2(queue->input, O_CLOEXEC) == 0);
    queue->complaints = memfd_create("complaints", MFD_CLOEXEC);
    queue->pids = calloc(queue->count, sizeof *queue->pids);
    must(queue->complaints >= 0 && queue->pids != NULL);
}

/* The first line of their error output. */
static void say_why(const struct queue *queue) {
    char text[256] = "";
    ssize_t length = pread(queue->complaints, text, sizeof text - 1, 0);
    text[length > 0 ? strcspn(text, "\n") : 0] = '\0';
    say_left_out("%s: one of %u processes did not stay in line when %u had been started: %s", queue->runner->words[0],
                 queue->count, queue->started, text);
}

bool queue_form(struct queue *queue, const struct runner *runner, unsigned count, bool ordered) {
    *queue = (struct queue){.runner = runner, .count = count};
    unsigned tasks = TASKS_EACH * count + TASKS_MORE;
    if (!has_room_for_tasks(tasks)) {
        say_left_out("%u processes in line: this system does not let us have %u tasks", count, tasks);
        return false;
    }
    open_files(queue);
    if (stand_in_line(queue, ordered)) return true;
    say_why(queue);
    queue_disband(queue);
    return false;
}

static void let_go(struct queue *queue) {
    if (queue->input[1] >= 0) close(queue->input[1]);
    queue->input[1] = -1;
}

uint64_t queue_drain_ns(struct queue *queue) {
    uint64_t start_ns = now_ns();
    let_go(queue);
    await_success(queue->holder);
    for (unsigned i = 0; i < queue->started; i++) await_success(queue->pids[i]);
    queue->holder = 0;
    queue->started = 0;
    return now_ns() - start_ns;
}

unsigned queue_out_of_turn(const struct queue *queue) {
    FILE *file = fopen(queue->written_to, "r");
    must(file != NULL);
    unsigned count = 0, number;
    for (unsigned i = 0; i < queue->count; i++) count += fscanf(file, "%u", &number) != 1 || number != i;
    fclose(file);
    return count;
}

/* The holder last, so that no other begins with its command. */
void queue_disband(struct queue *queue) {
    for (unsigned i = 0; i < queue->started; i++) kill(queue->pids[i], SIGKILL);
    for (unsigned i = 0; i < queue->started; i++) waitpid(queue->pids[i], NULL, 0);
    if (queue->holder > 0) {
        kill(queue->holder, SIGKILL);
        waitpid(queue->holder, NULL, 0);
    }
    let_go(queue);
    close(queue->input[0]);
    close(queue->complaints);
    unlink(queue->written_to);
    free(queue->pids);
}
