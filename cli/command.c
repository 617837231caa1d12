/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUT_OF_THE_WAY 32 /* above the descriptors that scripts use; from 64 on the kernel needs a larger table */

/*
 * Signals. They are blocked from the start and taken when it suits us, so that none arrives at a bad moment. Until
 * the command starts, a signal ends this process, after it has left the segment; later, signals are passed on to the
 * command. Signals that were ignored when this process was started remain ignored.
 */
static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGCONT};
static struct {
    sigset_t before; /* the mask with which this process was started, which the command gets */
    sigset_t taken, deadly;
    bool child_ignored; /* SIGCHLD was ignored when we were started; then there would be no exit status */
    int deadly_one;     /* the signal that has come and ends us; 0: none */
} signals;

static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void run_signals_begin(void) {
    sigemptyset(&signals.deadly);
    sigemptyset(&signals.taken);
    sigaddset(&signals.taken, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) {
        int number = forwarded[i];
        if (is_ignored(number)) continue;
        sigaddset(&signals.taken, number);
        if (number != SIGWINCH && number != SIGCONT) sigaddset(&signals.deadly, number);
    }
    signals.child_ignored = is_ignored(SIGCHLD);
    if (signals.child_ignored) signal(SIGCHLD, SIG_DFL);
    sigset_t blocked = signals.taken;
    /* A message may go to a closed pipe, or to a terminal that stops background processes that write to it. That must
     * not end or stop this process while it holds the lock. */
    sigaddset(&blocked, SIGPIPE);
    sigaddset(&blocked, SIGTTOU);
    sigprocmask(SIG_BLOCK, &blocked, &signals.before);
}

static void die_of(int number) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

int run_end(int status) {
    if (signals.deadly_one) die_of(signals.deadly_one);
    return status;
}

int run_deadly(void) {
    return signals.deadly_one;
}

int run_deadly_fd(void) {
    return signalfd(-1, &signals.deadly, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool run_take_deadly(int fd) {
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != sizeof info) return false;
    signals.deadly_one = (int)info.ssi_signo;
    return true;
}

/* The command. */

/*
 * In the child, which runs in the parent's memory until it executes the command. The command must not outlive the
 * parent, which holds the lock for it: the kernel kills the command when the parent is killed. Processes that the
 * command has started by then keep the tie.
 */
static void run_prepare(const struct command *command, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CLI_RUN_CANNOT); /* the parent had ended before */
    if (fcntl(command->tie_fd, F_DUPFD, OUT_OF_THE_WAY) < 0) fcntl(command->tie_fd, F_SETFD, 0); /* the limit is 32 */
    if (signals.child_ignored) signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, &signals.before, NULL); /* a pending signal may end the child here */
}

/* The exit status of the command. A shell's loop goes on unless it sees that its child was ended by SIGINT: so if the
 * command was, this process ends by SIGINT as well. */
int run_ended(int end) {
    if (WIFSIGNALED(end) && WTERMSIG(end) == SIGINT) signals.deadly_one = SIGINT;
    return WIFSIGNALED(end) ? CLI_RUN_SIGNAL + WTERMSIG(end) : WEXITSTATUS(end);
}

static int not_run(const char *word, int error) {
    bool is_line = error == ENOENT && strchr(word, ' ');
    cli_fail(VIGIL_OK, "%s: %s%s", word, strerror(error), is_line ? "; for a line of shell, use -- sh -c '...'" : "");
    return error == ENOENT ? CLI_RUN_NO_COMMAND : CLI_RUN_NOT_RUN;
}

/* A signal that came before the command started would be lost: it reached this process, and not the command. */
static bool came_before(int *status) {
    const struct timespec at_once = {0};
    int number = sigtimedwait(&signals.deadly, NULL, &at_once);
    if (number <= 0) return false;
    signals.deadly_one = number;
    *status = CLI_RUN_SIGNAL + number;
    return true;
}

/* Passes on signals that came while the command was being started: a signal from the terminal may not have reached
 * the command. Twice is better than never. */
static void pass_on_early(const struct command *command) {
    const struct timespec at_once = {0};
    for (int number; (number = sigtimedwait(&signals.deadly, NULL, &at_once)) > 0;) kill(command->pid, number);
}

enum { NOT_BEGUN = -1, BEGUN = 0 }; /* or errno: why it cannot be run */

static int not_begun(const struct command *command, int error) {
    int end;
    if (command->pid < 0) return cli_fail(VIGIL_ESYSTEM, "cannot start a process");
    waitpid(command->pid, &end, 0);
    return error == NOT_BEGUN ? run_ended(end) : not_run(command->words[0], error);
}

bool run_start(struct command *command, int *status) {
    volatile int error = NOT_BEGUN;
    if (came_before(status)) return false;
    pid_t parent = getpid();
    command->since_ns = vigil_now_ns();
    command->pid = vfork();
    if (command->pid == 0) {
        run_prepare(command, parent);
        error = BEGUN;
        execvp(command->words[0], command->words);
        error = errno;
        _exit(CLI_RUN_NO_COMMAND);
    }
    if (command->pid > 0 && error == BEGUN) {
        pass_on_early(command);
        return true;
    }
    *status = not_begun(command, error);
    return false;
}

/* The terminal sends its signals to all of our process group, and so to the command, unless that has left the group.
 * But when the terminal is gone, the kernel sends SIGHUP and SIGCONT to the session leader only. */
static bool command_has_had(const struct command *command, const siginfo_t *info) {
    if (info->si_code != SI_KERNEL || info->si_signo == SIGALRM || getpgid(command->pid) != getpgrp()) return false;
    return (info->si_signo != SIGHUP && info->si_signo != SIGCONT) || getsid(0) != getpid();
}

/* Until the command has ended. Returns its status as of waitpid. */
static int forward_signals(const struct command *command) {
    for (;;) {
        int status;
        siginfo_t info;
        int number = sigwaitinfo(&signals.taken, &info);
        if (number == SIGCHLD) {
            if (waitpid(command->pid, &status, WNOHANG) == command->pid) return status;
        } else if (number > 0 && !command_has_had(command, &info)) {
            kill(command->pid, number);
        }
    }
}

static void run_print_done(const struct command *command, int status) {
    struct cli_json json;
    json_begin(&json, stderr);
    json_object(&json, NULL);
    json_text(&json, "event", "done");
    json_integer(&json, "exit_status", status);
    json_integer(&json, "ran_ns", vigil_now_ns() - command->since_ns);
    json_end(&json, '}');
}

int run_finish(const struct command *command) {
    int end = forward_signals(command);
    int status = run_ended(end);
    if (cli_wants_json) run_print_done(command, status);
    return status;
}

/* For a parent that does more than wait. */

int run_signals_fd(void) {
    return signalfd(-1, &signals.taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Orphans of the command are ours as well, if run_keep_orphans was called. */
static bool run_reap(struct command *command, int *end) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != command->pid) continue;
        command->ended = true;
        *end = status;
    }
    return command->ended;
}

bool run_attend(struct command *command, int *exit_status) {
    const struct timespec at_once = {0};
    siginfo_t info;
    int end = 0;
    bool ended = false;
    for (int number; (number = sigtimedwait(&signals.taken, &info, &at_once)) > 0;) {
        if (number == SIGCHLD) ended |= run_reap(command, &end);
        else if (!command_has_had(command, &info)) kill(command->pid, number);
    }
    if (!ended) return false;
    *exit_status = run_ended(end);
    if (cli_wants_json) run_print_done(command, *exit_status);
    return true;
}

void run_keep_orphans(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool run_is_descendant(pid_t pid) {
    for (int depth = 0; pid > 1 && depth < 1000; depth++) {
        pid = cli_parent_of(pid);
        if (pid == getpid()) return true;
    }
    return false;
}

/* What can be reached without /proc: the command, and the group that it leads, if it does. */
static unsigned run_signal_command(struct command *command, int number) {
    bool runs = command->pid > 0 && !command->ended;
    if (runs && getpgid(command->pid) == command->pid) command->group = command->pid;
    if (command->group) return kill(-command->group, number) == 0;
    return runs && kill(command->pid, number) == 0;
}

unsigned run_signal_all(struct command *command, int number) {
    unsigned count = run_signal_command(command, number);
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        bool had = pid == command->pid || (command->group && getpgid(pid) == command->group);
        if (pid > 1 && pid != getpid() && !had && run_is_descendant(pid) && kill(pid, number) == 0) count++;
    }
    if (folder) closedir(folder);
    return count;
}
