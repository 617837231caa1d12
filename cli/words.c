/* SPDX-License-Identifier: MIT */
/* wait, notify, load, store, add and cas on the words of a segment, with the semantics of JavaScript's Atomics. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "cli.h"

/* The options of a subcommand, besides --type. */
enum takes { TAKES_NOTHING, TAKES_NOTIFY, TAKES_UNTIL };

#define NOT_NOTIFIED INT64_C(-1)

/* NAME[:INDEX], and the other arguments of one of these subcommands. */
struct call {
    char name[256]; /* a copy: the arguments must stay as typed, since ps and vigil show read them */
    uint64_t index;
    const char *type;
    unsigned bits;
    int64_t timeout_ns;
    const char *until; /* of wait: null if there is EXPECTED instead */
    bool notifies;
    int64_t notified; /* by --notify; or NOT_NOTIFIED */
    struct cli_arguments arguments;
    int64_t values[2];

    vigil_buffer *buffer;
    vigil_view view;
};

static bool read_place(struct call *call) {
    const char *place = call->arguments.operands[0], *colon = strrchr(place, ':');
    snprintf(call->name, sizeof call->name, "%.*s", colon ? (int)(colon - place) : (int)strlen(place), place);
    if (!colon) return true;
    if (cli_parse_count(colon + 1, &call->index)) return true;
    cli_usage("invalid index '%s': write 0, 1, 2 and so on", colon + 1);
    return false;
}

static bool read_type(struct call *call) {
    call->bits = strcmp(call->type, "i64") == 0 ? 64 : 32;
    if (call->bits == 64 || strcmp(call->type, "i32") == 0) return true;
    cli_usage("--type: invalid type '%s'; write i32 or i64", call->type);
    return false;
}

static bool read_value(struct call *call, const char *text, int64_t *value) {
    int64_t wide;
    if (cli_parse_integer(text, call->bits, value)) return true;
    if (!cli_parse_integer(text, 64, &wide)) cli_usage("invalid integer '%s': write a decimal or 0x... number", text);
    else cli_usage("%s does not fit into 32 bits: is the word of --type i64?", text);
    return false;
}

/* After NAME there must be `values` integers; then there may be up to `more` other operands. */
static bool check_operands(const struct call *call, int values, int more) {
    int given = call->arguments.operand_count;
    if (given < 1) cli_usage("a NAME is missing");
    else if (call->until && given > 1) cli_usage("EXPECTED and --until exclude each other: give one of them");
    else if (given < 1 + values) cli_usage("a value is missing after the NAME");
    else if (given > 1 + values + more) cli_usage("too many operands");
    else return true;
    return false;
}

static bool read_options(struct call *call, int count, char **arguments, enum takes takes) {
    const struct cli_option type = {"type", 0, CLI_TEXT, &call->type};
    const struct cli_option only_type[] = {type, {0}};
    const struct cli_option and_notify[] = {type, {"notify", 0, CLI_FLAG, &call->notifies}, {0}};
    const struct cli_option and_until[] = {
        type, {"timeout", 0, CLI_DURATION, &call->timeout_ns}, {"until", 0, CLI_TEXT, &call->until}, {0}};
    const struct cli_option *const options[] = {
        [TAKES_NOTHING] = only_type, [TAKES_NOTIFY] = and_notify, [TAKES_UNTIL] = and_until};
    *call = (struct call){.type = "i32", .timeout_ns = VIGIL_FOREVER, .notified = NOT_NOTIFIED};
    return cli_options(count, arguments, options[takes], &call->arguments);
}

/* --until replaces the only value of wait. */
static bool read_call(struct call *call, int count, char **arguments, enum takes takes, int values, int more) {
    if (!read_options(call, count, arguments, takes)) return false;
    if (call->until) values = 0;
    if (!check_operands(call, values, more) || !read_type(call) || !read_place(call)) return false;
    for (int i = 0; i < values; i++)
        if (!read_value(call, call->arguments.operands[1 + i], &call->values[i])) return false;
    return !call->until || read_value(call, call->until, &call->values[0]);
}

static int check_word(struct call *call) {
    vigil_view_init(&call->view, call->buffer, call->bits == 64 ? VIGIL_I64 : VIGIL_I32, 0, VIGIL_TO_END);
    uint64_t length = vigil_view_length(call->view);
    if (call->index < length) return CLI_OK;
    return cli_fail(VIGIL_ERANGE, "%s has %" PRIu64 " words of type %s, and no index %" PRIu64, call->name, length,
                    call->type, call->index);
}

/* CLI_OK; or the exit status, after a message was printed. */
static int open_word(struct call *call) {
    int status = vigil_segment_open(&call->buffer, call->name);
    if (status == VIGIL_ENOTFOUND && cli_is_lock(call->name))
        return cli_fail(VIGIL_OK, "%s is a lock or a semaphore, which has no words: choose another name", call->name);
    if (status == VIGIL_ENOTFOUND)
        return cli_fail_missing("there is no segment %s: vigil create %s creates it, vigil ls lists the segments",
                                call->name, call->name);
    if (status != VIGIL_OK) return cli_fail_segment(status, call->name);
    int failed = check_word(call);
    if (failed) vigil_buffer_destroy(call->buffer); /* a process that exits without this counts as dead */
    return failed;
}

static int exit_status(int status) {
    return status == VIGIL_NOT_EQUAL ? CLI_NOT_EQUAL : status == VIGIL_TIMED_OUT ? CLI_TIMED_OUT : CLI_OK;
}

/* --notify: wakes all waiters at the word that was written. */
static int notify_all(struct call *call) {
    call->notified = vigil_atomics_notify(call->view, call->index, VIGIL_ALL);
    return call->notified < 0 ? (int)call->notified : VIGIL_OK;
}

/* Closes the segment, and prints the result of the operation. Returns the exit status. */
static int words_finish(struct call *call, int status, const char *key, int64_t value, bool silent) {
    int failed = status < 0 ? cli_fail(status, "%s:%" PRIu64, call->name, call->index) : CLI_OK;
    vigil_buffer_destroy(call->buffer);
    if (failed) return failed;
    if (cli_wants_json) {
        struct cli_json json;
        json_begin(&json, stdout);
        json_object(&json, NULL);
        json_text(&json, "status", vigil_status_name(status));
        json_integer(&json, key, value);
        if (call->notified != NOT_NOTIFIED) json_integer(&json, "notified", call->notified);
        json_end(&json, '}');
    } else if (!silent) {
        printf("%" PRId64 "\n", value);
    }
    return exit_status(status);
}

int cli_load(int count, char **arguments) {
    struct call call;
    if (!read_call(&call, count, arguments, TAKES_NOTHING, 0, 0)) return cli_usage_status();
    int failed = open_word(&call);
    if (failed) return failed;
    int64_t value = 0;
    int status = vigil_atomics_load(call.view, call.index, &value);
    return words_finish(&call, status, "value", value, false);
}

int cli_store(int count, char **arguments) {
    struct call call;
    if (!read_call(&call, count, arguments, TAKES_NOTIFY, 1, 0)) return cli_usage_status();
    int failed = open_word(&call);
    if (failed) return failed;
    int status = vigil_atomics_store(call.view, call.index, call.values[0]);
    if (status == VIGIL_OK && call.notifies) status = notify_all(&call);
    return words_finish(&call, status, "value", call.values[0], true);
}

int cli_add(int count, char **arguments) {
    struct call call;
    if (!read_call(&call, count, arguments, TAKES_NOTIFY, 1, 0)) return cli_usage_status();
    int failed = open_word(&call);
    if (failed) return failed;
    int64_t old = 0;
    int status = vigil_atomics_add(call.view, call.index, call.values[0], &old);
    if (status == VIGIL_OK && call.notifies) status = notify_all(&call);
    return words_finish(&call, status, "old", old, false);
}

int cli_cas(int count, char **arguments) {
    struct call call;
    if (!read_call(&call, count, arguments, TAKES_NOTIFY, 2, 0)) return cli_usage_status();
    int failed = open_word(&call);
    if (failed) return failed;
    int64_t old = 0;
    int status = vigil_atomics_compare_exchange(call.view, call.index, call.values[0], call.values[1], &old);
    if (status == VIGIL_OK && call.notifies) status = notify_all(&call);
    return words_finish(&call, status, "old", old, false);
}

int cli_notify(int count, char **arguments) {
    struct call call;
    uint64_t most = VIGIL_ALL;
    if (!read_call(&call, count, arguments, TAKES_NOTHING, 0, 1)) return cli_usage_status();
    const char *text = call.arguments.operand_count > 1 ? call.arguments.operands[1] : NULL;
    if (text && !cli_parse_count(text, &most)) return cli_usage("invalid COUNT '%s': write 0, 1, 2 and so on", text);
    int failed = open_word(&call);
    if (failed) return failed;
    int64_t woken = vigil_atomics_notify(call.view, call.index, most > VIGIL_ALL ? VIGIL_ALL : (int64_t)most);
    return words_finish(&call, woken < 0 ? (int)woken : VIGIL_OK, "notified", woken, false);
}

/*
 * Signals that end a wait, unless they were ignored when this process was started. They are blocked before it joins
 * the segment, and taken when it has left the line. So is SIGPIPE: output that cannot be written is reported as an
 * error, as on a full disk.
 */
static sigset_t block_signals(void) {
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE};
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction action;
        sigaction(ending[i], NULL, &action);
        if (action.sa_handler != SIG_IGN) sigaddset(&blocked, ending[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    return blocked;
}

static void wait_ended(vigil_op *op, int status) {
    *(int *)op->data = status;
}

/* Until the operation has ended. VIGIL_CANCELLED: a signal has come first. */
static int words_await(vigil_agent *agent, vigil_op *op, int signals_fd) {
    struct pollfd from[] = {{.fd = vigil_agent_fd(agent), .events = POLLIN}, {.fd = signals_fd, .events = POLLIN}};
    int *status = op->data;
    while (*status == VIGIL_PENDING) {
        poll(from, 2, -1);
        vigil_agent_dispatch(agent);
        if (*status == VIGIL_PENDING && from[1].revents && vigil_cancel(op) == VIGIL_OK) return VIGIL_CANCELLED;
    }
    return *status;
}

/* One wait, if the word is `expected`. */
static int wait_while(vigil_agent *agent, const struct call *call, int64_t expected, int64_t timeout_ns,
                      int signals_fd) {
    int outcome = VIGIL_PENDING;
    vigil_op op = {.data = &outcome};
    int status = vigil_atomics_wait_async(agent, &op, call->view, call->index, expected, timeout_ns, wait_ended);
    return status == VIGIL_PENDING ? words_await(agent, &op, signals_fd) : status;
}

/* Until the word is the value. Each wait compares the word with what was loaded: if it has changed since, the wait
 * returns VIGIL_NOT_EQUAL at once, and if it changes later, its notification ends the wait. */
static int wait_until(vigil_agent *agent, const struct call *call, int signals_fd) {
    int64_t value, now_ns = vigil_now_ns();
    int64_t end_ns = call->timeout_ns < INT64_MAX - now_ns ? now_ns + call->timeout_ns : INT64_MAX;
    struct pollfd signals = {.fd = signals_fd, .events = POLLIN};
    for (;;) {
        int status = vigil_atomics_load(call->view, call->index, &value);
        if (status < 0 || value == call->values[0]) return status;
        if (vigil_now_ns() >= end_ns) return VIGIL_TIMED_OUT; /* also if the word never stops changing */
        if (poll(&signals, 1, 0) > 0) return VIGIL_CANCELLED;
        status = wait_while(agent, call, value, vigil_until(end_ns), signals_fd);
        if (status < 0 || status == VIGIL_CANCELLED) return status;
    }
}

static int wait_for(const struct call *call, int signals_fd) {
    vigil_agent *agent;
    int status = vigil_agent_create(&agent, 0);
    if (status != VIGIL_OK) return status;
    if (vigil_agent_fd(agent) < 0) { /* a waiter that cannot be woken must not join the line */
        int error = errno;
        vigil_agent_destroy(agent);
        errno = error;
        return VIGIL_ESYSTEM;
    }
    if (call->until) status = wait_until(agent, call, signals_fd);
    else status = wait_while(agent, call, call->values[0], call->timeout_ns, signals_fd);
    vigil_agent_destroy(agent);
    return status;
}

static void die_of_signal(sigset_t *blocked) {
    int number = sigwaitinfo(blocked, NULL);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, blocked, NULL);
    raise(number);
}

int cli_wait(int count, char **arguments) {
    struct call call;
    if (!read_call(&call, count, arguments, TAKES_UNTIL, 1, 0)) return cli_usage_status();
    sigset_t blocked = block_signals();
    int signals_fd = signalfd(-1, &blocked, SFD_CLOEXEC);
    if (signals_fd < 0) return cli_fail(VIGIL_ESYSTEM, "cannot receive signals");
    int failed = open_word(&call);
    if (failed) return failed;
    int64_t since_ns = vigil_now_ns();
    int status = wait_for(&call, signals_fd);
    if (status == VIGIL_CANCELLED) {
        vigil_buffer_destroy(call.buffer);
        die_of_signal(&blocked);
    }
    if (status >= 0 && !cli_wants_json) puts(vigil_status_name(status));
    return words_finish(&call, status, "waited_ns", vigil_now_ns() - since_ns, true);
}
