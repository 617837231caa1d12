/* SPDX-License-Identifier: MIT */
/* vigil lock: run a command while holding a lock, or hold it until a process ends. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "held.h"
#include "run.h"
#include "show.h"

struct options {
    bool fair, shared, wait_status;
    const char *on_owner_died;
    uint64_t until_exit; /* the pid of --until-exit; 0: a command is run instead */
};

struct use {
    const struct options *options;
    const vigil_named_options *new;
    vigil_named *named;
};

/* The death of the last holder. */

/* Whether to go on all the same. Prints the warning or the failure. */
static bool accept_death(const struct use *use, const char *name) {
    char death[224];
    vigil_named_holder dead;
    bool known = vigil_named_death(use->named, &dead) == VIGIL_OK;
    show_owner_died(known ? &dead : NULL, death, sizeof death);
    if (strcmp(use->options->on_owner_died, "fail") == 0) {
        cli_fail(VIGIL_OK,
                 "%s: %s: repair what it left unfinished, then use --on-owner-died continue, or vigil doctor %s --fix",
                 name, death, name);
        return false;
    }
    cli_warn("%s: %s, and may have left something unfinished", name, death);
    return true;
}

static bool lock_set_environment(const char *name, bool shared, bool owner_died) {
    char token[HELD_TOKEN];
    held_token_of(name, token);
    return held_add(token, shared) && held_say_owner_died(owner_died);
}

static bool lock_prepare(void *data, const char *name, bool owner_died, int *status) {
    const struct use *use = data;
    *status = CLI_RUN_CANNOT;
    if (owner_died && !accept_death(use, name)) return false;
    if (lock_set_environment(name, use->options->shared, owner_died)) return true;
    *status = cli_fail(VIGIL_ENOMEM, "%s", name);
    return false;
}

/* If the command does not get that far, the next holder is told of the death as well. */
static void started(void *data, bool owner_died) {
    struct use *use = data;
    if (owner_died && !use->options->shared) vigil_named_consistent(use->named);
}

/*
 * --until-exit PID: hold the lock for a script that goes on. A process in the background takes it and holds it; the
 * one in the foreground ends with the exit status as soon as that has it, or has failed.
 */

/* A descriptor of the process, so that its number cannot be that of another one later; -1: the kernel has none. */
static int process_open(pid_t pid) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0 && errno == ENOSYS && (kill(pid, 0) == 0 || errno == EPERM)) errno = ENOSYS;
    return process;
}

static void await_end_of(pid_t pid, int process) {
    struct pollfd ended = {.fd = process, .events = POLLIN};
    while (process < 0 && (kill(pid, 0) == 0 || errno == EPERM)) poll(NULL, 0, 100);
    while (process >= 0 && poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
}

/*
 * What the script has open, other than the standard descriptors: files that others wait for the end of. They are closed
 * when the lock is held. Until then the script waits as well, and one of them may tell that it would wait for itself:
 * see VIGIL_EDEADLOCK in named.h.
 */
struct inherited {
    int fds[256], count;
};

static void inherited_find(struct inherited *inherited, int process, int told) {
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) && inherited->count < 256) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (fd > 2 && fd != process && fd != told && fd != dirfd(folder)) inherited->fds[inherited->count++] = fd;
    }
    if (folder) closedir(folder);
}

/* Keep nothing of the script busy: neither its files, nor its terminal, nor its folder. */
static void leave_script(const struct inherited *inherited) {
    int nothing = open("/dev/null", O_RDWR);
    setsid();
    for (int fd = 0; fd <= 2; fd++) dup2(nothing, fd);
    if (nothing > 2) close(nothing);
    for (int i = 0; i < inherited->count; i++) close(inherited->fds[i]);
    if (chdir("/") != 0) return; /* then it stays busy */
}

static void describe_process(vigil_named *named, pid_t pid) {
    char text[64];
    cli_process_line((uint32_t)pid, text, sizeof text);
    vigil_named_describe(named, text, (uint32_t)pid);
}

/* In the background. `told`: where the exit status is written to. */
static int hold_until_exit(struct waiting *waiting, struct use *use, int process, int told) {
    struct inherited inherited = {.count = 0};
    pid_t pid = (pid_t)use->options->until_exit;
    inherited_find(&inherited, process, told);
    waiting->named = use->named = run_open(waiting->name, use->new);
    if (!use->named) return CLI_RUN_CANNOT;
    int status = waiting_for(waiting), failed = CLI_OK;
    bool died = status == VIGIL_OWNER_DIED;
    if (status != VIGIL_OK && !died) failed = waiting_failed(waiting, status);
    else waiting_granted(waiting, died);
    if (!failed && died && !accept_death(use, waiting->name)) failed = CLI_RUN_CANNOT;
    if (!failed) {
        started(use, died);
        describe_process(use->named, pid);
        prctl(PR_SET_PDEATHSIG, 0);
        leave_script(&inherited);
        ssize_t written = write(told, &failed, sizeof failed);
        close(told);
        if (written == sizeof failed) await_end_of(pid, process);
    }
    vigil_named_unlock(use->named);
    waiting_end(waiting);
    vigil_named_close(use->named);
    return failed;
}

/* In the foreground, until the background process has the lock, or has ended. */
static int await_background(pid_t child, int told) {
    int status, end;
    ssize_t length;
    do length = read(told, &status, sizeof status);
    while (length < 0 && errno == EINTR);
    if (length == sizeof status) return status;
    while (waitpid(child, &end, 0) < 0 && errno == EINTR) {
    }
    return run_ended(end);
}

static int lock_until_exit(struct waiting *waiting, struct use *use) {
    int pipes[2], process = process_open((pid_t)use->options->until_exit);
    pid_t parent = getpid();
    if (process < 0 && errno != ENOSYS)
        return cli_fail(VIGIL_OK, "--until-exit: there is no process %llu",
                        (unsigned long long)use->options->until_exit);
    if (pipe2(pipes, O_CLOEXEC) != 0) return cli_fail(VIGIL_ESYSTEM, "%s", waiting->name);
    pid_t child = fork();
    if (child < 0) return cli_fail(VIGIL_ESYSTEM, "cannot start a process");
    if (child == 0) {
        close(pipes[0]);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(CLI_RUN_CANNOT);
        run_signals_begin();
        exit(run_end(hold_until_exit(waiting, use, process, pipes[1])));
    }
    close(pipes[1]);
    return await_background(child, pipes[0]);
}

static int lock_open_and_run(const struct options *options, unsigned mode, struct waiting *waiting, char **words) {
    static const struct run_steps steps = {lock_prepare, started};
    const vigil_named_options new = {.mode = mode};
    struct use use = {.options = options, .new = &new};
    char token[HELD_TOKEN];
    held_token_of(waiting->name, token);
    enum held_how held = held_for_us(token);
    if (held == HELD_ALONE || (held == HELD_SHARED && !options->shared))
        return cli_fail(VIGIL_OK,
                        "%s: this already runs under that lock, and would wait for itself: use the lock only once",
                        waiting->name);
    waiting->how = (options->shared ? VIGIL_NAMED_SHARED : 0) | (options->fair ? VIGIL_NAMED_FAIR : 0) |
                   (held == HELD_SHARED ? VIGIL_NAMED_AGAIN : 0);
    if (options->until_exit) return lock_until_exit(waiting, &use);
    run_signals_begin();
    waiting->named = use.named = run_open(waiting->name, &new);
    if (!use.named) return CLI_RUN_CANNOT;
    int status = run_under(waiting, words, &steps, &use);
    vigil_named_close(use.named);
    return status;
}

int cli_lock(int count, char **arguments) {
    struct options given = {.on_owner_died = "continue"};
    struct waiting waiting = {.timeout_ns = VIGIL_FOREVER, .conflict = CLI_RUN_TIMED_OUT};
    bool try = false, alone = false;
    const char *mode_text = NULL;
    char *name, **words;
    unsigned mode;
    const struct cli_option options[] = {
        {"timeout", 'w', CLI_DURATION, &waiting.timeout_ns},
        {"try", 'n', CLI_FLAG, &try},
        {"fair", 0, CLI_FLAG, &given.fair},
        {"shared", 's', CLI_FLAG, &given.shared},
        {"exclusive", 'x', CLI_FLAG, &alone},
        {"conflict-exit-code", 'E', CLI_COUNT, &waiting.conflict},
        {"mode", 0, CLI_TEXT, &mode_text},
        {"on-owner-died", 0, CLI_TEXT, &given.on_owner_died},
        {"until-exit", 0, CLI_COUNT, &given.until_exit},
        {"wait-status", 0, CLI_FLAG, &waiting.wait_status},
        {0},
    };
    bool no_command = run_mentions(count, arguments, "--until-exit");
    if (!run_arguments(count, arguments, options, no_command, &name, &words)) return cli_usage_status();
    if (!run_mode(mode_text, &mode)) return cli_usage_status();
    bool known = strcmp(given.on_owner_died, "continue") == 0 || strcmp(given.on_owner_died, "fail") == 0;
    if (!known) return cli_usage("--on-owner-died: invalid value '%s'; write continue or fail", given.on_owner_died);
    if (given.until_exit && words) return cli_usage("--until-exit holds the lock for a process, and runs no command");
    if (given.until_exit > INT32_MAX || (!given.until_exit && !words))
        return cli_usage("--until-exit: invalid process");
    if (alone && given.shared) return cli_usage("choose one of --shared and --exclusive");
    if (waiting.conflict > 255) return cli_usage("-E: an exit status is from 0 to 255");
    if (try) waiting.timeout_ns = 0;
    waiting.name = name;
    return run_end(lock_open_and_run(&given, mode, &waiting, words));
}
