/* SPDX-License-Identifier: MIT */
/* vigil SUBCOMMAND: finds the subcommand, handles --help and --version, and checks that all output was written. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "descriptors.h"

const struct cli_command *cli_now;
bool cli_wants_json;

static void print_overview(FILE *out) {
    fputs("vigil - locks and lines of waiters for the shell, and tools to inspect them\n\n"
          "usage: vigil SUBCOMMAND [OPTION...] [ARGUMENT...]\n\n",
          out);
    for (const struct cli_command *command = cli_commands; command->name; command++)
        fprintf(out, "  %-8s %s\n", command->name, command->summary);
    fputs("\nvigil SUBCOMMAND --help has details and examples. To begin, in two terminals:\n"
          "    vigil lock deploy -- sleep 10\n",
          out);
}

static const struct cli_command *main_find(const char *name) {
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (strcmp(command->name, name) == 0) return command;
    return NULL;
}

static int main_unknown(const char *name) {
    const struct cli_command *nearest = NULL;
    unsigned distance = CLI_FAR;
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        unsigned here = cli_distance(name, command->name);
        if (here < distance) distance = here, nearest = command;
    }
    if (nearest) return cli_usage("unknown subcommand %s (did you mean %s?)", name, nearest->name);
    return cli_usage("unknown subcommand %s", name);
}

static int help(int count, char **names) {
    const struct cli_command *command = count ? main_find(names[0]) : NULL;
    if (count && !command) return main_unknown(names[0]);
    if (count > 1) return cli_usage("unexpected argument %s: give one SUBCOMMAND", names[1]);
    if (command) fputs(command->help, stdout);
    else print_overview(stdout);
    return CLI_OK;
}

/* The program is in the folder of this one, as built, or where it is installed. Returns only on an error. */
static int run_program(const char *name, const char *missing, char **arguments) {
    static const char *const folders[] = {".", VIGIL_LIBEXEC_FROM_BIN};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return cli_fail(VIGIL_ESYSTEM, "cannot find the folder of vigil");
    self[length] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s/vigil-%s", self, folders[i], name);
        execv(path, arguments);
        if (errno != ENOENT) return cli_fail(VIGIL_ESYSTEM, "cannot run %s", path);
    }
    return cli_fail(VIGIL_OK, "the program vigil-%s is not installed: %s", name, missing);
}

static int version(int count, char **more) {
    if (count) return cli_usage("unexpected argument %s: --version takes none", more[0]);
    printf("vigil %d.%d.%d\n", VIGIL_VERSION_MAJOR, VIGIL_VERSION_MINOR, VIGIL_VERSION_PATCH);
    return CLI_OK;
}

/* Subcommands that are there for a cluster as well. */
static bool main_has_remote(const char *name) {
    static const char *const names[] = {"lock",  "sem", "wait", "notify", "load",
                                        "store", "cas", "show", "top",    "doctor"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* Whether --at is among the options. Without "--", a command begins with the second word that is no option. */
static bool main_mentions_at(int count, char **arguments) {
    int end = 1, words = 0;
    while (end < count && strcmp(arguments[end], "--") != 0) end++;
    bool open = end == count && cli_now->runs_command;
    for (int i = 1; i < end && (!open || words < 2); i++) {
        if (strcmp(arguments[i], "--at") == 0 || strncmp(arguments[i], "--at=", 5) == 0) return true;
        words += arguments[i][0] != '-';
    }
    return false;
}

/* A lock or word of a cluster is wanted: by --at, or by VIGIL_AT in the environment. */
static bool main_is_remote(int count, char **arguments) {
    const char *at = getenv("VIGIL_AT");
    if (!cli_now || !main_has_remote(cli_now->name)) return false;
    return (at && *at) || main_mentions_at(count, arguments);
}

static bool is_help(const char *argument) {
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int run(int count, char **arguments) {
    const char *name = arguments[0];
    cli_now = main_find(name);
    if (main_is_remote(count, arguments)) {
        cli_look_for_json(count, arguments);
        static const char missing[] =
            "install libvigil-etcd, or build vigil where libnghttp2, OpenSSL, protobuf-c and c-ares are";
        return run_program("at", missing, arguments - 1);
    }
    if (cli_now && cli_now->run) return cli_now->run(count, arguments);
    cli_look_for_json(count, arguments);
    if (!cli_now) return main_unknown(name);
    for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++)
        if (is_help(arguments[i])) return help(1, arguments);
    return run_program(cli_now->name, cli_now->missing, arguments);
}

static int main_begin(int count, char **arguments) {
    if (count == 0) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    bool wants_help = is_help(arguments[0]) || strcmp(arguments[0], "help") == 0;
    if (!wants_help && strcmp(arguments[0], "--version") != 0) return run(count, arguments);
    cli_look_for_json(count, arguments);
    return (wants_help ? help : version)(count - 1, arguments + 1);
}

static void write_text(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* there is no other place to say it */
}

/* Memory of a segment is gone, or garbled. Nothing of the library can be used any more; a command that runs under a
 * lock is killed by the kernel, as if this process had been killed (run.c). */
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code <= 0) { /* sent by a process */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    write_text("vigil ");
    write_text(cli_now ? cli_now->name : "");
    write_text(number == SIGBUS
                   ? ": a file in use was truncated by another process, or its file system has failed\n"
                   : ": the memory of a lock or segment in use is damaged: vigil doctor finds and repairs damage\n");
    _exit(cli_now && cli_now->runs_command ? CLI_RUN_CANNOT : CLI_CANNOT);
}

int main(int count, char **arguments) {
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &fault, NULL);
#ifndef __SANITIZE_ADDRESS__
    sigaction(SIGSEGV, &fault, NULL); /* links in damaged memory are followed without being checked */
#endif
    fill_standard_descriptors();
    int status = main_begin(count - 1, arguments + 1);
    errno = 0;
    bool lost = ferror(stdout);
    if (fclose(stdout) == 0 && !lost) return status;
    cli_wants_json = false; /* JSON goes to stdout, which cannot be written */
    return errno ? cli_fail(VIGIL_ESYSTEM, "cannot write the output") : cli_fail(VIGIL_OK, "cannot write the output");
}
