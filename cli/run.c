/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_BYTES     64
#define OUT_OF_THE_WAY 32 /* above the descriptors that scripts use; from 64 on the kernel needs a larger table */

struct command {
    char **words;
    int tie_fd; /* the command inherits it: see vigil_named_tie */

    pid_t pid;
    int64_t since_ns;
};

bool run_mentions(int count, char **arguments, const char *option) {
    for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++) {
        if (strncmp(arguments[i], option, strlen(option)) == 0) return true;
    }
    return false;
}

bool run_arguments(int count, char **arguments, const struct cli_option *options, bool maybe, char **name,
                   char ***words) {
    struct cli_arguments parsed;
    if (!cli_options(count, arguments, options, &parsed)) return false;
    *words = parsed.command;
    *name = parsed.operands[0];
    if (parsed.operand_count < 1) cli_usage("a NAME is missing");
    else if (!maybe && (!*words || !**words))
        cli_usage("the command to run is missing: vigil %s NAME -- COMMAND", cli_now->name);
    else return true;
    return false;
}

bool run_mode(const char *text, unsigned *mode) {
    *mode = 0;
    if (!text) return true;
    size_t digits = strspn(text, "01234567");
    *mode = (unsigned)strtoul(text, NULL, 8);
    if (digits && digits <= 4 && !text[digits] && (*mode & 0600) == 0600 && !(*mode & ~0666u)) return true;
    cli_usage("--mode: invalid mode '%s'; write 0600 plus bits of 0066, such as 0660 or 0666", text);
    return false;
}

/* Names of locks and of segments are kept apart by the library, but would confuse people. */
static bool is_segment(const char *name) {
    vigil_buffer *buffer;
    if (strchr(name, '/') || vigil_segment_open(&buffer, name) != VIGIL_OK) return false;
    vigil_buffer_destroy(buffer);
    return true;
}

vigil_named *run_open(const char *name, const vigil_named_options *options) {
    bool semaphore = options->slots || options->existing;
    vigil_named *named = NULL;
    int status = vigil_named_open(&named, name, options);
    if (status == VIGIL_ENOTFOUND && semaphore)
        cli_fail_missing("there is no semaphore %s: create it with --slots N", name);
    else if (status != VIGIL_OK) cli_fail_segment(status, name);
    if (status != VIGIL_OK) return NULL;
    bool other = semaphore != (vigil_named_slots(named) != 0);
    if (other)
        cli_fail(VIGIL_OK, "%s is a %s, not a %s: choose another name, or remove it with vigil rm %s", name,
                 semaphore ? "lock" : "semaphore", semaphore ? "semaphore" : "lock", name);
    else if (is_segment(name))
        cli_fail(VIGIL_OK, "%s is a segment of words: choose another name, or remove it with vigil rm %s", name, name);
    else return named;
    vigil_named_close(named);
    return NULL;
}

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

/* Waiting. */

static void run_on_lock(vigil_named *named, int status, void *data) {
    (void)named;
    ((struct waiting *)data)->status = status;
}

/* Creates what waiting needs. */
static int run_begin(struct waiting *waiting) {
    if (waiting->agent) return VIGIL_OK;
    waiting->since_ns = vigil_now_ns();
    waiting->signals_fd = signalfd(-1, &signals.deadly, SFD_CLOEXEC | SFD_NONBLOCK);
    int status = waiting->signals_fd < 0 ? VIGIL_ESYSTEM : vigil_agent_create(&waiting->agent, 0);
    if (status == VIGIL_OK && vigil_agent_fd(waiting->agent) < 0) status = VIGIL_ESYSTEM; /* we could not be woken */
    if (status == VIGIL_OK)
        position_begin(&waiting->position, waiting->name, waiting->since_ns, waiting->wait_status || cli_wants_json);
    return status;
}

static bool signalled(const struct waiting *waiting) {
    struct signalfd_siginfo info;
    if (read(waiting->signals_fd, &info, sizeof info) != sizeof info) return false;
    signals.deadly_one = (int)info.ssi_signo;
    return true;
}

static int run_show(struct waiting *waiting) {
    waiting->orphans = vigil_named_orphans(waiting->named);
    return waiting->orphans ? position_show_orphans(&waiting->position) : position_show(&waiting->position);
}

static int run_await(struct waiting *waiting) {
    struct pollfd from[] = {{.fd = vigil_agent_fd(waiting->agent), .events = POLLIN},
                            {.fd = waiting->signals_fd, .events = POLLIN}};
    while (waiting->status == VIGIL_PENDING) {
        if (poll(from, 2, run_show(waiting)) < 0 && errno != EINTR) return VIGIL_ESYSTEM;
        if (from[1].revents && signalled(waiting)) return VIGIL_CANCELLED;
        if (from[0].revents) vigil_agent_dispatch(waiting->agent);
    }
    return waiting->status;
}

int waiting_for(struct waiting *waiting) {
    int status = vigil_named_trylock(waiting->named, waiting->how);
    if (status != VIGIL_TIMED_OUT || waiting->timeout_ns <= 0) return status;
    status = run_begin(waiting);
    if (status != VIGIL_OK) return status;
    waiting->status = VIGIL_PENDING;
    status =
        vigil_named_lock_async(waiting->agent, waiting->named, waiting->how, waiting->timeout_ns, run_on_lock, waiting);
    if (status == VIGIL_PENDING) status = run_await(waiting);
    waiting->waited_ns = vigil_now_ns() - waiting->since_ns;
    return status;
}

void waiting_granted(struct waiting *waiting, bool owner_died) {
    struct cli_json json;
    position_end(&waiting->position);
    if (!cli_wants_json) return;
    json_begin(&json, stderr);
    json_object(&json, NULL);
    json_text(&json, "event", "granted");
    json_text(&json, "name", waiting->name);
    json_integer(&json, "waited_ns", waiting->waited_ns);
    json_bool(&json, "owner_died", owner_died);
    json_end(&json, '}');
}

void waiting_end(struct waiting *waiting) {
    vigil_named_cancel(waiting->named);
    if (!waiting->since_ns) return;
    position_end(&waiting->position);
    if (waiting->agent) vigil_agent_destroy(waiting->agent);
    if (waiting->signals_fd >= 0) close(waiting->signals_fd);
}

int waiting_failed(struct waiting *waiting, int status) {
    char waited[16], holder[256];
    int error = errno;
    position_end(&waiting->position);
    errno = error;
    if (signals.deadly_one) return CLI_RUN_SIGNAL + signals.deadly_one;
    if (status == VIGIL_EDEADLOCK)
        return cli_fail(VIGIL_OK, "%s: a killed holder of the lock started this, which would now wait for itself",
                        waiting->name);
    if (status != VIGIL_TIMED_OUT) return cli_fail(status, "%s", waiting->name);
    cli_print_duration(waited, waiting->waited_ns);
    position_holder(waiting->name, holder, sizeof holder);
    if (waiting->orphans) snprintf(holder, sizeof holder, "; processes that a killed holder started still run");
    if (waiting->timeout_ns > 0)
        cli_fail(status, "waited %s for %s%s%s", waited, waiting->name, holder, cli_wants_json ? "" : "; gave up");
    else if (cli_wants_json) cli_fail(status, "%s%s", waiting->name, holder);
    return (int)waiting->conflict; /* with --try, the exit status is enough */
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

static bool run_start(struct command *command, int *status) {
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

static int run_finish(const struct command *command) {
    int end = forward_signals(command);
    int status = run_ended(end);
    if (cli_wants_json) run_print_done(command, status);
    return status;
}

/* In vigil show and in messages to waiters, the holder appears as the command that it runs. */
static void describe(const struct waiting *waiting, char **words, pid_t pid) {
    char text[TEXT_BYTES];
    size_t used = 0;
    text[0] = 0;
    for (; *words && used < sizeof text - 1; words++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "", *words);
    vigil_named_describe(waiting->named, text, (uint32_t)pid);
}

/* With the lock or slot held. */
static int run_held(struct waiting *waiting, struct command *command, const struct run_steps *steps, void *data,
                    bool owner_died) {
    int status = CLI_OK;
    waiting_granted(waiting, owner_died);
    bool ready = !steps->prepare || steps->prepare(data, waiting->name, owner_died, &status);
    if (!ready || !run_start(command, &status)) return status;
    describe(waiting, command->words, command->pid);
    if (steps->started) steps->started(data, owner_died);
    return run_finish(command);
}

int run_under(struct waiting *waiting, char **words, const struct run_steps *steps, void *data) {
    struct command command = {.words = words, .tie_fd = vigil_named_tie(waiting->named)};
    describe(waiting, words, getpid());
    int status = command.tie_fd < 0 ? command.tie_fd : waiting_for(waiting);
    if (status == VIGIL_OK || status == VIGIL_OWNER_DIED) {
        status = run_held(waiting, &command, steps, data, status == VIGIL_OWNER_DIED);
        if (vigil_named_unlock(waiting->named) == VIGIL_ESTOLEN)
            cli_warn("%s: it was stolen while the command ran, and another holder may have been at work beside it",
                     waiting->name);
    } else {
        status = waiting_failed(waiting, status);
    }
    waiting_end(waiting);
    return status;
}
