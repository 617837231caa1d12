/* SPDX-License-Identifier: MIT */
/* vigil wait, notify, load, store and cas with --at: the word is a key of the cluster. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../command.h"
#include "at.h"

struct call {
    struct at at;
    struct cli_arguments parsed;
    char **operands;
    int operand_count;
    int64_t values[2];
    int64_t timeout_ns;
    const char *until;
    bool notifies;

    bool done;
    int status;
    int64_t value, notified;
    vigil_remote_wait *wait;
};
#define NOT_NOTIFIED (-1)

static bool at_read_values(struct call *call, int values, int more) {
    if (call->operand_count < values) cli_usage("a value is missing after the NAME");
    else if (call->operand_count > values + more) cli_usage("too many operands");
    else {
        for (int i = 0; i < values; i++) {
            if (cli_parse_integer(call->operands[i], 64, &call->values[i])) continue;
            cli_usage("invalid value '%s': write a decimal number, or 0x...", call->operands[i]);
            return false;
        }
        return true;
    }
    return false;
}

static bool at_read_call(struct call *call, int count, char **arguments, const struct cli_option *options, int values,
                         int more) {
    if (!cli_options(count, arguments, options, &call->parsed)) return false;
    call->operands = call->parsed.operands;
    call->operand_count = call->parsed.operand_count;
    if (!at_read(&call->at, &call->operands, &call->operand_count, false)) return false;
    return at_read_values(call, call->until ? 0 : values, more);
}

static void at_done(int status, int64_t value, void *data) {
    struct call *call = data;
    call->status = status;
    call->value = value;
    call->done = true;
}

/* Until what was started has ended; `status` as it was returned. */
static void at_finish_call(struct call *call, int status) {
    call->done = false;
    if (status == VIGIL_PENDING) at_run(&call->at, &call->done, -1, -1);
    else call->status = status;
}

static void at_notify_all(struct call *call) {
    int64_t value = call->value;
    int status = call->status;
    at_finish_call(call, vigil_remote_word_notify(call->at.remote, call->at.name, VIGIL_ALL, at_done, call));
    call->notified = call->value;
    if (call->status == VIGIL_OK) call->status = status;
    call->value = value;
}

static int at_exit_status(int status) {
    return status == VIGIL_NOT_EQUAL ? CLI_NOT_EQUAL : status == VIGIL_TIMED_OUT ? CLI_TIMED_OUT : CLI_OK;
}

static void at_print(const struct call *call, const char *key, bool silent) {
    struct cli_json json;
    if (!cli_wants_json) {
        if (!silent) printf("%" PRId64 "\n", call->value);
        return;
    }
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "status", vigil_status_name(call->status));
    json_integer(&json, key, call->value);
    if (call->notified != NOT_NOTIFIED) json_integer(&json, "notified", call->notified);
    json_end(&json, '}');
}

static int at_answer(struct call *call, const char *key, bool silent) {
    int failed = CLI_OK;
    if (call->status == VIGIL_ETYPE)
        failed = cli_fail(VIGIL_OK, "%s: the key holds something else than a decimal number: choose another name",
                          call->at.name);
    else if (call->status < 0) failed = at_fail(&call->at, call->status);
    if (!failed) at_print(call, key, silent);
    at_close(&call->at);
    return failed ? failed : at_exit_status(call->status);
}

#define AT_CALL                                                                                                        \
    { .timeout_ns = VIGIL_FOREVER, .notified = NOT_NOTIFIED }

int at_load(int count, char **arguments) {
    struct call call = AT_CALL;
    const struct cli_option options[] = {AT_OPTIONS(call.at), {0}};
    if (!at_read_call(&call, count, arguments, options, 0, 0)) return cli_usage_status();
    if (!at_open(&call.at)) return CLI_CANNOT;
    at_finish_call(&call, vigil_remote_word_load(call.at.remote, call.at.name, at_done, &call));
    return at_answer(&call, "value", false);
}

int at_store(int count, char **arguments) {
    struct call call = AT_CALL;
    const struct cli_option options[] = {AT_OPTIONS(call.at), {"notify", 0, CLI_FLAG, &call.notifies}, {0}};
    if (!at_read_call(&call, count, arguments, options, 1, 0)) return cli_usage_status();
    if (!at_open(&call.at)) return CLI_CANNOT;
    at_finish_call(&call, vigil_remote_word_store(call.at.remote, call.at.name, call.values[0], at_done, &call));
    if (call.status == VIGIL_OK && call.notifies) at_notify_all(&call);
    call.value = call.values[0];
    return at_answer(&call, "value", true);
}

int at_cas(int count, char **arguments) {
    struct call call = AT_CALL;
    const struct cli_option options[] = {AT_OPTIONS(call.at), {"notify", 0, CLI_FLAG, &call.notifies}, {0}};
    if (!at_read_call(&call, count, arguments, options, 2, 0)) return cli_usage_status();
    if (!at_open(&call.at)) return CLI_CANNOT;
    at_finish_call(&call,
                   vigil_remote_word_cas(call.at.remote, call.at.name, call.values[0], call.values[1], at_done, &call));
    if (call.status == VIGIL_OK && call.notifies) at_notify_all(&call);
    return at_answer(&call, "old", false);
}

int at_notify(int count, char **arguments) {
    struct call call = AT_CALL;
    uint64_t most = VIGIL_ALL;
    const struct cli_option options[] = {AT_OPTIONS(call.at), {0}};
    if (!at_read_call(&call, count, arguments, options, 0, 1)) return cli_usage_status();
    if (call.operand_count && !cli_parse_count(call.operands[0], &most))
        return cli_usage("invalid COUNT '%s': write 0, 1, 2 and so on", call.operands[0]);
    if (!at_open(&call.at)) return CLI_CANNOT;
    int64_t at_most = most > VIGIL_ALL ? VIGIL_ALL : (int64_t)most;
    at_finish_call(&call, vigil_remote_word_notify(call.at.remote, call.at.name, at_most, at_done, &call));
    return at_answer(&call, "notified", false);
}

/* Signals end the wait; the key is removed from the line before this process ends by the signal. */
static int at_wait_once(struct call *call, int64_t expected, int64_t deadline_ns) {
    int signals_fd = run_deadly_fd();
    int64_t left_ns = deadline_ns == VIGIL_FOREVER ? VIGIL_FOREVER : deadline_ns - vigil_now_ns();
    int status = vigil_remote_word_wait(call->at.remote, call->at.name, expected, left_ns < 0 ? 0 : left_ns, at_done,
                                        call, &call->wait);
    call->done = status != VIGIL_PENDING;
    if (call->done) call->status = status;
    while (!at_run(&call->at, &call->done, signals_fd, -1)) {
        if (!run_take_deadly(signals_fd)) continue;
        vigil_remote_word_cancel(call->wait);
        call->status = VIGIL_CANCELLED;
        call->done = true;
    }
    close(signals_fd);
    return call->status;
}

static int at_load_once(struct call *call) {
    at_finish_call(call, vigil_remote_word_load(call->at.remote, call->at.name, at_done, call));
    return call->status;
}

/* --until: look whenever the word is notified. */
static void at_wait_until(struct call *call, int64_t wanted, int64_t deadline_ns) {
    while (at_load_once(call) == VIGIL_OK && call->value != wanted) {
        int status = at_wait_once(call, call->value, deadline_ns);
        if (status != VIGIL_OK && status != VIGIL_NOT_EQUAL) return;
    }
}

static void at_drain(struct call *call) {
    static const bool never = false;
    while (vigil_remote_close(call->at.remote) == VIGIL_EBUSY) at_run(&call->at, &never, -1, 100);
    vigil_agent_destroy(call->at.agent);
}

int at_wait(int count, char **arguments) {
    struct call call = AT_CALL;
    const struct cli_option options[] = {
        AT_OPTIONS(call.at), {"timeout", 0, CLI_DURATION, &call.timeout_ns}, {"until", 0, CLI_TEXT, &call.until}, {0}};
    if (!at_read_call(&call, count, arguments, options, 1, 0)) return cli_usage_status();
    int64_t wanted = 0;
    if (call.until && !cli_parse_integer(call.until, 64, &wanted))
        return cli_usage("invalid value '%s': write a decimal number, or 0x...", call.until);
    if (!at_open(&call.at)) return CLI_CANNOT;
    run_signals_begin();
    int64_t deadline_ns = call.timeout_ns == VIGIL_FOREVER ? VIGIL_FOREVER : vigil_now_ns() + call.timeout_ns;
    if (call.until) at_wait_until(&call, wanted, deadline_ns);
    else at_wait_once(&call, call.values[0], deadline_ns);
    int failed = call.status < 0 ? at_fail(&call.at, call.status) : CLI_OK;
    at_drain(&call);
    if (failed || run_deadly()) return run_end(failed);
    if (cli_wants_json) {
        struct cli_json json;
        json_begin(&json, stdout);
        json_object(&json, NULL);
        json_text(&json, "status", vigil_status_name(call.status));
        json_end(&json, '}');
    } else {
        puts(vigil_status_name(call.status));
    }
    return at_exit_status(call.status);
}
