/* SPDX-License-Identifier: MIT */
/*
 * Many processes at once, for a script. None of them outlives the script, whose pid is PARENT, however that ends.
 *
 *     crowd room COUNT                       whether the system lets us have so many processes
 *     crowd busy PARENT                      keeps a processor busy until it is killed
 *     crowd run PARENT COUNT COMMAND...      runs the command in so many processes at once, and waits for all of them.
 *                                            Fails, and kills the others, as soon as one of them has failed
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void end_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* it was gone before that */
}

/* The pid of a new process that runs `words`, or only sleeps if that is null; negative: it could not be started. */
static pid_t start(char **words) {
    pid_t parent = getpid(), pid = fork();
    if (pid != 0) return pid;
    end_with(parent);
    while (!words) pause();
    execvp(words[0], words);
    perror(words[0]);
    _exit(127);
}

static void kill_all(const pid_t *pids, long count) {
    for (long i = 0; i < count; i++)
        if (pids[i]) kill(pids[i], SIGKILL);
    for (long i = 0; i < count; i++)
        if (pids[i]) waitpid(pids[i], NULL, 0);
}

/* Returns how many could be started. */
static long start_all(pid_t *pids, long count, char **words) {
    long started = 0;
    while (started < count && (pids[started] = start(words)) > 0) started++;
    return started;
}

static int room(long count) {
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    long started = pids ? start_all(pids, count, NULL) : 0;
    kill_all(pids, started);
    free(pids);
    return started == count ? 0 : 1;
}

static void forget(pid_t *pids, long count, pid_t pid) {
    for (long i = 0; i < count; i++)
        if (pids[i] == pid) pids[i] = 0;
}

/* Whether all of them have ended well; if one has not, the others are left for kill_all. */
static bool await_all(pid_t *pids, long count) {
    for (long ended = 0; ended < count; ended++) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        forget(pids, count, pid);
        if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        const char *what = WIFSIGNALED(status) ? "signal" : "exit status";
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        fprintf(stderr, "crowd: pid %d, after %ld others: %s %d\n", (int)pid, ended, what, number);
        return false;
    }
    return true;
}

static int run(long count, char **words) {
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    long started = pids ? start_all(pids, count, words) : 0;
    if (started < count) fprintf(stderr, "crowd: %ld of %ld processes could be started\n", started, count);
    bool well = started == count && await_all(pids, count);
    if (!well) kill_all(pids, started);
    free(pids);
    return well ? 0 : 1;
}

_Noreturn static void busy(void) {
    for (volatile unsigned turns = 0;; turns++) continue;
}

int main(int count, char **words) {
    const char *what = count > 2 ? words[1] : "";
    if (strcmp(what, "room") == 0) return room(atol(words[2]));
    if (count > 2) end_with((pid_t)atol(words[2]));
    if (strcmp(what, "busy") == 0) busy();
    if (strcmp(what, "run") == 0 && count > 4) return run(atol(words[3]), words + 4);
    fprintf(stderr, "crowd: called wrongly\n");
    return 2;
}
