/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the subcommands of vigil have in common.
 *
 * Each subcommand is one function in one file, cli_lock in lock.c and so on, and one row of the table in help.c, next
 * to the text of its --help. It gets its own arguments, reads its options with cli_options, and answers an exit status.
 */
#ifndef VIGIL_CLI_H
#define VIGIL_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <vigil/vigil.h>

/* Exit statuses. Those that run a command (lock, sem) answer the command's own, and so have theirs where env(1),
 * timeout(1) and the shells have them. */
enum {
    CLI_OK = 0,
    CLI_NOT_EQUAL = 1,
    CLI_TIMED_OUT = 2,
    CLI_CANNOT = 3,
    CLI_USAGE = 64,
    CLI_RUN_TIMED_OUT = 124,
    CLI_RUN_CANNOT = 125,  /* usage as well */
    CLI_RUN_NOT_RUN = 126, /* the command was found, but could not be run */
    CLI_RUN_NO_COMMAND = 127,
    CLI_RUN_SIGNAL = 128 /* and the signal's number */
};

struct cli_command {
    const char *name;
    /* Its own arguments, of which the first is its name. Null: a program of its own, vigil-NAME. */
    int (*run)(int count, char **arguments);
    const char *summary; /* a line */
    const char *help;    /* usage, options, an example: the whole text of --help */
    bool runs_command;   /* its failures are CLI_RUN_..., and what follows "--" is the command */
    const char *missing; /* of a program of its own: how to get it if it is not there */
    bool has_no_name;    /* of one that runs a command: that begins with the first operand */
};
extern const struct cli_command cli_commands[]; /* ends with a null name */

/* The one that is running, null before there is one: for messages. */
extern const struct cli_command *cli_now;
/* Whether there is a --json: every subcommand has that option, without a row for it among its own. */
extern bool cli_wants_json;

int cli_lock(int count, char **arguments);
int cli_sem(int count, char **arguments);
int cli_create(int count, char **arguments);
int cli_rm(int count, char **arguments);
int cli_ls(int count, char **arguments);
int cli_wait(int count, char **arguments);
int cli_notify(int count, char **arguments);
int cli_load(int count, char **arguments);
int cli_store(int count, char **arguments);
int cli_add(int count, char **arguments);
int cli_cas(int count, char **arguments);
int cli_show(int count, char **arguments);
int cli_trace(int count, char **arguments);
int cli_doctor(int count, char **arguments);
int cli_run(int count, char **arguments);

/*
 * Options (options.c). A subcommand has an array of these, ended by a null name. Options and operands may come in any
 * order, --name VALUE and --name=VALUE are the same; "--" ends the options: what follows are operands. For those that
 * run a command it is the command; that may also begin, without "--", with the second operand. An argument that begins
 * like a negative number is an operand. All have --json (see above) and --help, which prints the help.
 */
struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum { CLI_FLAG, CLI_TEXT, CLI_DURATION, CLI_COUNT, CLI_MAYBE } type;
    void *value; /* bool *, const char **, int64_t * (nanoseconds), uint64_t *; CLI_MAYBE: const char **, "" without a value */
};
struct cli_arguments {
    char **operands;
    int operand_count;
    char **command; /* ended by a null pointer; null: there is none */
};
/* True; or the help was printed, or it has been said what is wrong: answer cli_usage_status(). */
bool cli_options(int count, char **arguments, const struct cli_option *options, struct cli_arguments *parsed);
int cli_usage_status(void);
/* Errors in options before --json are to be JSON as well: cli_options looks for it first, up to "--". */
void cli_look_for_json(int count, char **arguments);
/* Say what is wrong with how it was called, and where to look: answers cli_usage_status(). */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many slips made it of the name: letters that were changed, added, left out, or swapped with the next. CLI_FAR: it is
 * something else. */
#define CLI_FAR 3u
unsigned cli_distance(const char *typed, const char *name);

/* Values (values.c): true if the whole text is one. */
/* 250ms, 30s, 5m, 1.5h, 20us, 7ns; a plain number: seconds. More than CLI_DURATION_DAYS: VIGIL_FOREVER. */
#define CLI_DURATION_DAYS 106751
bool cli_parse_duration(const char *text, int64_t *ns);
bool cli_parse_count(const char *text, uint64_t *count);                 /* 12, 0x1f, 4k, 1M, 2G: powers of 1024 */
bool cli_parse_integer(const char *text, unsigned bits, int64_t *value); /* -2^(bits-1) to 2^bits-1; decimal or 0x... */
void cli_print_duration(char text[16], int64_t ns); /* for people: 250 ns, 12.5 ms, 3.2 s, 4m05s, 2h03m, 5d02h */

/* Messages (message.c), all to stderr and in one write each: "vigil lock: ...". What is not printable in them is made
 * visible. With --json a failure is an object on stdout; and those that run a command, whose stdout is the
 * command's, write both failures and warnings as objects, a line each, to stderr. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What a status means, or, if it is the system that has refused, what its errno means. */
const char *cli_why(int status, int error);

/* It cannot be done: what, why (vigil_strerror, and errno where that says more), and what to try. VIGIL_OK: the text
 * says it all. Answers the exit status, CLI_CANNOT or CLI_RUN_CANNOT. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what vigil_segment_... or vigil_observer_open answered about a name. */
int cli_fail_segment(int status, const char *name);
/* There is none (VIGIL_ENOTFOUND), and the text says it all, also how to make one. */
int cli_fail_missing(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A copy for people, cut to fit: printable ASCII and UTF-8 as it is, all else as \xNN. Answers `copy`. */
char *cli_visible(char *copy, size_t bytes, const char *text);
/* How many bytes its first character has; 0: that is no UTF-8, or a control character. */
size_t cli_utf8(const char *text);
bool cli_colour(FILE *stream); /* a terminal, TERM is not dumb, and NO_COLOR is not set */

/* JSON (json.c): a writer that knows where commas go. One object or array, ended by a newline. */
struct cli_json {
    FILE *out;
    unsigned depth;
    bool more; /* a comma is due */
};
void json_begin(struct cli_json *json, FILE *out);
void json_object(struct cli_json *json, const char *key); /* null key: in an array, or the outermost */
void json_array(struct cli_json *json, const char *key);
void json_end(struct cli_json *json, char bracket);                       /* '}' or ']' */
void json_text(struct cli_json *json, const char *key, const char *text); /* bytes that are not UTF-8 become U+FFFD */
void json_integer(struct cli_json *json, const char *key, int64_t value);
void json_unsigned(struct cli_json *json, const char *key, uint64_t value);
void json_bool(struct cli_json *json, const char *key, bool value);
void json_null(struct cli_json *json, const char *key);

/* Processes, as /proc shows them (process.c). `text` is the command line, cut to fit, control characters made visible;
 * the program's name from the member's record if there is no such process here, or another one by now. */
void cli_command_line(const vigil_seen_member *member, char *text, size_t bytes);
/* The same; but of `vigil lock` and `vigil sem`, the command that they run. */
void cli_task(const vigil_seen_member *member, char *text, size_t bytes);
/* Where the name of its program begins: the rest of that path is in ps. */
const char *cli_without_folder(const char *command);

#endif
