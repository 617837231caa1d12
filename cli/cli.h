/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the subcommands of vigil have in common.
 *
 * Each subcommand is one function in one file, cli_lock in lock.c and so on, and one row of the table in help.c, next
 * to the text of its --help. It gets its own arguments, reads its options with cli_options, and returns an exit status.
 */
#ifndef VIGIL_CLI_H
#define VIGIL_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <vigil/vigil.h>

/* Exit statuses. Subcommands that run a command (lock, sem) return its exit status; their own are those that env(1),
 * timeout(1) and the shells use. */
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
    CLI_RUN_SIGNAL = 128 /* plus the signal's number */
};

struct cli_command {
    const char *name;
    /* Gets its own arguments; the first is its name. Null: a separate program, vigil-NAME. */
    int (*run)(int count, char **arguments);
    const char *summary; /* one line */
    const char *help;    /* usage, options, an example: the whole text of --help */
    bool runs_command;   /* its failures are CLI_RUN_..., and what follows "--" is the command */
    const char *missing; /* separate program: how to get it if it is not installed */
    bool has_no_name;    /* runs_command: the command begins with the first operand */
};
extern const struct cli_command cli_commands[]; /* ends with a null name */

/* The subcommand that is running, for messages; null before it is known. */
extern const struct cli_command *cli_now;
/* Whether --json was given. Every subcommand has that option, without a row in its own table. */
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
 * order; --name VALUE and --name=VALUE are the same; "--" ends the options, and operands follow. For subcommands that
 * run a command, the command follows; it may also begin, without "--", with the second operand. An argument that
 * begins like a negative number is an operand. All subcommands have --json (see above) and --help, which prints the
 * help.
 */
struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum { CLI_FLAG, CLI_TEXT, CLI_DURATION, CLI_COUNT, CLI_MAYBE } type;
    void *value; /* bool *, const char **, int64_t * (nanoseconds), uint64_t *; CLI_MAYBE: const char **, "" if none */
};
struct cli_arguments {
    char **operands;
    int operand_count;
    char **command; /* ended by a null pointer; null: there is none */
};
/* False: the help or an error message was printed; return cli_usage_status(). */
bool cli_options(int count, char **arguments, const struct cli_option *options, struct cli_arguments *parsed);
int cli_usage_status(void);
/* Errors in options before --json must be JSON as well: cli_options looks for it first, up to "--". */
void cli_look_for_json(int count, char **arguments);
/* Prints what is wrong with the arguments, and a pointer to --help. Returns cli_usage_status(). */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Edit distance from `typed` to `name`: letters changed, added, left out, or swapped with the next. CLI_FAR: too
 * many. */
#define CLI_FAR 3u
unsigned cli_distance(const char *typed, const char *name);

/* Values (values.c): true if the whole text is a valid value. */
/* 250ms, 30s, 5m, 1.5h, 20us, 7ns; a plain number: seconds. More than CLI_DURATION_DAYS: VIGIL_FOREVER. */
#define CLI_DURATION_DAYS 106751
bool cli_parse_duration(const char *text, int64_t *ns);
bool cli_parse_count(const char *text, uint64_t *count);                 /* 12, 0x1f, 4k, 1M, 2G: powers of 1024 */
bool cli_parse_integer(const char *text, unsigned bits, int64_t *value); /* -2^(bits-1) to 2^bits-1; decimal or 0x... */
void cli_print_duration(char text[16], int64_t ns); /* for people: 250 ns, 12.5 ms, 3.2 s, 4m05s, 2h03m, 5d02h */

/* Messages (message.c), to stderr, in one write each: "vigil lock: ...". Unprintable characters are made visible.
 * With --json a failure is an object on stdout. Subcommands that run a command leave stdout to it, and write
 * failures and warnings as objects, one per line, to stderr. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What a status means; for VIGIL_ESYSTEM, what errno means. */
const char *cli_why(int status, int error);

/* Prints a failure: the text, then the reason (vigil_strerror, or errno for VIGIL_ESYSTEM). VIGIL_OK: the text says
 * it all. Returns the exit status, CLI_CANNOT or CLI_RUN_CANNOT. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for an error that vigil_segment_... or vigil_observer_open returned for a name. */
int cli_fail_segment(int status, const char *name);
/* The same for an error of vigil_segment_list. */
int cli_fail_list(int status);
/* The same for VIGIL_ENOTFOUND; the text says it all, including how to create the segment. */
int cli_fail_missing(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A copy for people, cut to fit: printable ASCII and UTF-8 unchanged, all other bytes as \xNN. Returns `copy`. */
char *cli_visible(char *copy, size_t bytes, const char *text);
/* Bytes of the first character; 0: not UTF-8, or a control character. */
size_t cli_utf8(const char *text);
bool cli_colour(FILE *stream); /* a terminal, TERM is not dumb, and NO_COLOR is not set */

/* Names (names.c). */
/* The user's name, or the number if it has none. */
void cli_user(uint32_t number, char *text, size_t bytes);
/* vigil_observer_open, also for USER:NAME. */
int cli_observe(vigil_observer **observer, const char *name);
/* Whether it is the name of a lock or a semaphore. */
bool cli_is_lock(const char *name);
/* Calls `listed` for each segment, lock and semaphore; with `all_users` as USER:NAME. Returns how many, or an error. */
int64_t cli_list_names(bool all_users, vigil_listed *listed, void *data);

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

/* Processes, as /proc shows them (process.c). `text` is the command line, cut to fit, control characters made
 * visible. If /proc does not have that process, it is the program's name from the member's row. */
void cli_command_line(const vigil_seen_member *member, char *text, size_t bytes);
/* The same; but for `vigil lock` and `vigil sem`, the command that they run. */
void cli_task(const vigil_seen_member *member, char *text, size_t bytes);
/* The command line of a process; empty if it cannot be read. */
void cli_process_line(uint32_t pid, char *text, size_t bytes);
/* The process of that command; or, for other programs, the member's own. */
uint32_t cli_task_pid(const vigil_seen_member *member);
/* The parent of a process; 0: it has ended, or cannot be seen. */
pid_t cli_parent_of(pid_t pid);
/* Skips the folders of the program's path. */
const char *cli_without_folder(const char *command);

#endif
