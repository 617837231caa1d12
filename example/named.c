/* SPDX-License-Identifier: MIT */
/*
 * One lock with a name, for a shell, a thread that blocks and an event loop that must not. The shell's command holds
 * the lock "deploy" first; meanwhile the thread and the loop of this program wait in its line.
 *
 *     named [NAME]
 *
 * In a shell, `vigil lock deploy -- COMMAND` stands in the same line, and `vigil show deploy` shows it. NAME may also
 * be a path, such as ./deploy.lock. If the command vigil is not in $PATH, this program begins by itself.
 *
 * The program checks that its thread and its loop do not hold the lock at once, and exits with 1 if they do.
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vigil/vigil.h>

static const char *name;
static int inside;        /* plain: the lock protects it */
static atomic_bool wrong; /* the lock does not: it is also set when that has been released */

static vigil_named *open_or_exit(void) {
    vigil_named *named;
    int status = vigil_named_open(&named, name, NULL);
    if (status == VIGIL_OK) return named;
    fprintf(stderr, "%s: %s\n", name, vigil_strerror(status));
    exit(1);
}

/* With the lock held, or not: `status` says. */
static void deploy(vigil_named *named, const char *whose, int status) {
    if (status == VIGIL_OWNER_DIED) status = vigil_named_consistent(named); /* there is nothing to repair here */
    wrong |= status != VIGIL_OK || ++inside != 1;
    printf("%s: %s\n", whose, vigil_status_name(status));
    inside--;
    wrong |= vigil_named_unlock(named) != VIGIL_OK;
}

/* The thread. A handle can hold the lock once: so it has its own. */
static void block(vigil_agent *agent, void *argument) {
    vigil_named *named = open_or_exit();
    (void)agent, (void)argument;
    deploy(named, "the thread", vigil_named_lock(named, 0));
    vigil_named_close(named);
}

/* The loop. */
static void on_lock(vigil_named *named, int status, void *data) {
    deploy(named, "the loop", status);
    *(bool *)data = true;
}

static void loop_until(vigil_agent *loop, const bool *done) {
    struct pollfd readable = {.fd = vigil_agent_fd(loop), .events = POLLIN};
    while (!*done) {
        poll(&readable, 1, -1); /* and the descriptors of the program's own */
        vigil_agent_dispatch(loop);
    }
}

/* A shell that takes the lock, says so by a line to descriptor 9, and holds the lock for a while. */
static pid_t start_shell(bool *holds) {
    int ready[2];
    char byte;
    if (pipe(ready) != 0) exit(1);
    pid_t shell = fork();
    if (shell == 0) {
        close(ready[0]);
        dup2(ready[1], 9);
        close(ready[1]);
        execlp("vigil", "vigil", "lock", name, "--", "sh", "-c", "echo 'the shell: ok'; echo >&9; sleep 0.2", NULL);
        _exit(127);
    }
    close(ready[1]);
    *holds = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    return shell;
}

int main(int count, char **arguments) {
    vigil_agent *loop;
    vigil_worker *worker;
    bool done = false, shell_held;
    int end;
    name = count > 1 ? arguments[1] : "deploy";
    setvbuf(stdout, NULL, _IOLBF, 0);
    pid_t shell = start_shell(&shell_held);

    vigil_named *named = open_or_exit();
    if (vigil_agent_create(&loop, VIGIL_AGENT_MAY_NOT_BLOCK) != VIGIL_OK) return 1;
    if (vigil_worker_start(&worker, block, NULL) != VIGIL_OK) return 1;
    int status = vigil_named_lock_async(loop, named, 0, VIGIL_FOREVER, on_lock, &done);
    if (status != VIGIL_PENDING) on_lock(named, status, &done); /* it was free, and there is no call */
    loop_until(loop, &done);

    wrong |= vigil_agent_destroy(loop) != VIGIL_OK; /* from here on this thread may block */
    vigil_worker_stop(worker);
    wrong |= vigil_worker_join(worker) != VIGIL_OK;
    wrong |= vigil_named_close(named) != VIGIL_OK;
    wrong |= waitpid(shell, &end, 0) != shell || (shell_held && end != 0);
    return wrong;
}
