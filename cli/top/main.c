/* SPDX-License-Identifier: MIT */
/* vigil-top: the program that `vigil top` runs. It is separate because of ncurses, which vigil itself does not need. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../descriptors.h"
#include "top.h"

#define COLUMNS_ELSEWHERE 80 /* if the width of the terminal is not known */
#define INTERVAL_LEAST_NS 10000000

static const struct cli_command command = {.name = "top"};
const struct cli_command *cli_now = &command;
bool cli_wants_json;

static size_t columns_there(void) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) return size.ws_col;
    return COLUMNS_ELSEWHERE;
}

static void print_text(const struct overview *overview) {
    char text[FRAME_BYTES];
    struct frame frame;
    frame_layout(&frame, columns_there());
    frame_head(&frame, overview, text);
    puts(text);
    frame_titles(&frame, text);
    puts(text);
    for (size_t i = 0; i < overview->shown_count; i++) {
        frame_row(&frame, overview->shown[i], text);
        puts(text);
    }
}

static void top_json_process(struct cli_json *json, const struct process *process) {
    if (process->status == SERVED_OK) {
        threads_json(json, &process->look);
        return;
    }
    json_object(json, NULL);
    json_text(json, "status", "unreadable");
    json_unsigned(json, "pid", strtoul(process->name, NULL, 10));
    json_text(json, "error", served_why(process->status));
    json_end(json, '}');
}

static void top_print_json(const struct overview *overview) {
    struct cli_json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "status", vigil_status_name(VIGIL_OK));
    json_array(&json, "segments");
    for (size_t i = 0; i < overview->segment_count; i++) {
        const struct segment *segment = &overview->segments[i];
        if (segment->status == VIGIL_OK) {
            show_json(&json, segment->name, &segment->look);
            continue;
        }
        json_object(&json, NULL);
        json_text(&json, "status", vigil_status_name(segment->status));
        json_text(&json, "name", segment->name);
        json_text(&json, "error", cli_why(segment->status, segment->error));
        json_end(&json, '}');
    }
    json_end(&json, ']');
    json_array(&json, "processes");
    for (size_t i = 0; i < overview->process_count; i++) {
        if (overview->processes[i].status != SERVED_NOT) top_json_process(&json, &overview->processes[i]);
    }
    json_end(&json, ']');
    json_end(&json, '}');
}

static void is_named(const char *name, void *data) {
    const char **sought = data;
    if (*sought && strcmp(name, *sought) == 0) *sought = NULL;
}

/* A number is a pid, unless a segment has that name. Zero; or the exit status, after a message was printed. */
static int check_process(const char *pattern) {
    struct served served;
    const char *sought = pattern;
    cli_list_names(false, is_named, &sought);
    if (!sought || !served_is_process(pattern)) return CLI_OK;
    enum served_status status = served_open(&served, pattern);
    if (status != SERVED_OK) return served_fail(status, pattern);
    served_close(&served);
    return CLI_OK;
}

static int print_once(struct overview *overview) {
    int status = overview_look(overview);
    if (status != VIGIL_OK) return overview_fail(status);
    overview_arrange(overview, WAIT, false, "");
    if (cli_wants_json) top_print_json(overview);
    else print_text(overview);
    if (fflush(stdout) != 0 || ferror(stdout)) return cli_fail(VIGIL_ESYSTEM, "cannot write the output");
    return CLI_OK;
}

int main(int count, char **arguments) {
    bool once = false, all_users = false;
    int64_t interval_ns = 1000000000;
    const struct cli_option options[] = {{"once", 0, CLI_FLAG, &once},
                                         {"all-users", 0, CLI_FLAG, &all_users},
                                         {"interval", 0, CLI_DURATION, &interval_ns},
                                         {"json", 0, CLI_FLAG, &cli_wants_json},
                                         {0}};
    struct cli_arguments parsed;
    fill_standard_descriptors();
    setlocale(LC_ALL, "");
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (interval_ns < INTERVAL_LEAST_NS) return cli_usage("--interval must be at least 10ms");

    int status = CLI_OK;
    for (int i = 0; i < parsed.operand_count && status == CLI_OK; i++) status = check_process(parsed.operands[i]);
    if (status != CLI_OK) return status;
    struct overview overview = {
        .patterns = parsed.operands, .pattern_count = parsed.operand_count, .all_users = all_users};
    if (once || cli_wants_json) status = print_once(&overview);
    else if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) status = screen_run(&overview, interval_ns);
    else status = cli_fail(VIGIL_OK, "standard input or output is not a terminal: use --once to print once");
    overview_end(&overview);
    return status;
}
