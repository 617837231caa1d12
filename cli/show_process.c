/* SPDX-License-Identifier: MIT */
/* vigil show PID: asks a process under vigil run for its report. See pthread/serve.h for how. */
#include <stdlib.h>

#include "served.h"
#include "show.h"
#include "threads.h"

#define PATIENCE_NS INT64_C(5000000000)

/* The report that the process would give. */
static int print_none(const struct threads_look *look) {
    struct cli_json json;
    if (!cli_wants_json) {
        printf("vigil: process %u (%s): no thread waits\n", look->pid, look->program);
        return CLI_OK;
    }
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "status", vigil_status_name(VIGIL_OK));
    json_unsigned(&json, "pid", look->pid);
    json_text(&json, "program", look->program);
    json_unsigned(&json, "waiting", 0);
    json_unsigned(&json, "not_shown", 0);
    json_array(&json, "locks");
    json_end(&json, ']');
    json_array(&json, "deadlocks");
    json_end(&json, ']');
    json_end(&json, '}');
    return CLI_OK;
}

/* The text comes from another process, perhaps another user's: it must not move the cursor of this terminal. */
static void print_visible(const char *text, size_t length) {
    for (size_t i = 0, bytes; i < length; i += bytes) {
        bytes = text[i] == '\n' ? 1 : cli_utf8(text + i);
        if (bytes) fwrite(text + i, 1, bytes, stdout);
        else bytes = 1, printf("\\x%02x", (unsigned char)text[i]);
    }
}

static int show_process_ask(struct served *served, const char *pid) {
    const struct served_question question = {cli_wants_json ? SERVE_JSON : SERVE_TEXT, true, PATIENCE_NS};
    char *text;
    size_t length;
    enum served_answer answer = served_ask(served, &question, &text, &length);
    if (answer == SERVED_ANSWERED) print_visible(text, length);
    free(text);
    switch (answer) {
    case SERVED_ANSWERED: return CLI_OK;
    case SERVED_NO_SIGNAL:
        return cli_fail(VIGIL_OK, "process %s uses the signal itself: use another one, by vigil run --signal", pid);
    case SERVED_REFUSED: return cli_fail(VIGIL_ESYSTEM, "cannot signal process %s", pid);
    case SERVED_SILENT: return cli_fail(VIGIL_OK, "process %s does not respond: is it stopped?", pid);
    default:
        return cli_fail(VIGIL_OK, "process %s blocks signal %d: use another one, by vigil run --signal", pid,
                        (int)served->file->head.signal);
    }
}

/* If no thread waits, the process is not asked, and no system call of the program is interrupted. */
static int show_process_show(struct served *served, const char *pid) {
    struct threads_look look;
    bool quiet = served->file->head.signal && !served->file->head.profiles && threads_look(&look, served, false);
    if (!quiet) return show_process_ask(served, pid);
    int status = look.count ? show_process_ask(served, pid) : print_none(&look);
    threads_forget(&look);
    return status;
}

int show_process(const char *pid) {
    struct served served;
    enum served_status status = served_open(&served, pid);
    if (status != SERVED_OK) return served_fail(status, pid);
    int exit_status = show_process_show(&served, pid);
    served_close(&served);
    return exit_status;
}
