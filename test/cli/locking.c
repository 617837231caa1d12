/* SPDX-License-Identifier: MIT */
/*
 * What the tests of vigil lock and vigil sem run under a lock, and what runs them.
 *
 *     locking signals LOG             logs each signal it gets, as "2 terminal" or "2 process", until it is killed
 *     locking end LOG COMMAND...      runs it with INT and QUIT as they are by default, and logs "exit 7" or "signal 2"
 *     locking alone FILE LOG          makes FILE, works a little and removes it. If it was there already: that is fine
 *                                     after a death, which VIGIL_OWNER_DIED tells, else it logs that. Logs "done"
 *     locking among N FOLDER LOG      works a little; logs if more than N processes do so at once. Logs "done"
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One write to the end of the file: several processes may do so. */
static void say(const char *path, const char *format, ...) {
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)length) != length) abort();
    close(fd);
}

_Noreturn static void signals(const char *log) {
    sigset_t all;
    siginfo_t info;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    say(log, "begun %d\n", (int)getpid());
    for (;;) {
        int number = sigwaitinfo(&all, &info);
        if (number > 0) say(log, "%d %s\n", number, info.si_code == SI_KERNEL ? "terminal" : "process");
    }
}

static int end(const char *log, char **words) {
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        execvp(words[0], words);
        _exit(127);
    }
    int status;
    say(log, "begun %d\n", (int)pid);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) say(log, "signal %d\n", WTERMSIG(status));
    else say(log, "exit %d\n", WEXITSTATUS(status));
    return 0;
}

static void work(void) {
    for (volatile int i = 0; i < 20000; i++) {
    }
    sched_yield();
}

static int alone(const char *file, const char *log) {
    const char *told = getenv("VIGIL_OWNER_DIED");
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) say(log, told ? "cleaned\n" : "not alone\n");
    work();
    if (unlink(file) != 0) say(log, "not alone at the end\n");
    say(log, "done\n");
    return 0;
}

static int among(int most, const char *folder, const char *log) {
    char path[4096];
    int slot = 0;
    for (; slot < most; slot++) {
        snprintf(path, sizeof path, "%s/%d", folder, slot);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) break;
        close(fd);
    }
    if (slot == most) say(log, "too many\n");
    work();
    say(log, "done\n");
    return 0;
}

int main(int count, char **words) {
    const char *what = count > 2 ? words[1] : "";
    if (strcmp(what, "signals") == 0) signals(words[2]);
    if (strcmp(what, "end") == 0 && count > 3) return end(words[2], words + 3);
    if (strcmp(what, "alone") == 0 && count == 4) return alone(words[2], words[3]);
    if (strcmp(what, "among") == 0 && count == 5) return among(atoi(words[2]), words[3], words[4]);
    fprintf(stderr, "locking: called wrongly\n");
    return 2;
}
