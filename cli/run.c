/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 64

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

/* Waiting. */

static void run_on_lock(vigil_named *named, int status, void *data) {
    (void)named;
    ((struct waiting *)data)->status = status;
}

/* Creates what waiting needs. */
static int run_begin(struct waiting *waiting) {
    if (waiting->agent) return VIGIL_OK;
    waiting->since_ns = vigil_now_ns();
    waiting->signals_fd = run_deadly_fd();
    int status = waiting->signals_fd < 0 ? VIGIL_ESYSTEM : vigil_agent_create(&waiting->agent, 0);
    if (status == VIGIL_OK && vigil_agent_fd(waiting->agent) < 0) status = VIGIL_ESYSTEM; /* we could not be woken */
    if (status == VIGIL_OK)
        position_begin(&waiting->position, waiting->name, waiting->since_ns, waiting->wait_status || cli_wants_json);
    return status;
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
        if (from[1].revents && run_take_deadly(waiting->signals_fd)) return VIGIL_CANCELLED;
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
    if (run_deadly()) return CLI_RUN_SIGNAL + run_deadly();
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
