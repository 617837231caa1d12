/* SPDX-License-Identifier: MIT */
/* vigil NAME: finds the subcommand, answers --help and --version, and sees to it that what was printed has arrived. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const struct cli_command *cli_now;
bool cli_wants_json;

/* A segment that gets the number of a standard descriptor which was closed would be written to. In the place of each
 * that is missing comes one that can be neither read nor written, and that the command of vigil lock does not get. */
static void fill_standard_descriptors(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_PATH | O_CLOEXEC);
}

static void print_overview(FILE *out) {
    fputs("vigil - locks and lines of waiters for the shell, and a window into them\n\n"
          "usage: vigil SUBCOMMAND [OPTION...] [ARGUMENT...]\n\n",
          out);
    for (const struct cli_command *command = cli_commands; command->name; command++)
        fprintf(out, "  %-8s %s\n", command->name, command->summary);
    fputs("\nvigil SUBCOMMAND --help tells more, with examples. To begin, in two terminals:\n"
          "    vigil lock deploy -- sleep 10\n",
          out);
}

static const struct cli_command *find(const char *name) {
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (strcmp(command->name, name) == 0) return command;
    return NULL;
}

static int unknown(const char *name) {
    const struct cli_command *nearest = NULL;
    unsigned distance = 3;
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        unsigned here = cli_distance(name, command->name);
        if (here < distance && here < strlen(command->name)) distance = here, nearest = command;
    }
    if (nearest) return cli_usage("there is no subcommand %s (did you mean %s?)", name, nearest->name);
    return cli_usage("there is no subcommand %s", name);
}

static int help(const char *name) {
    const struct cli_command *command = name ? find(name) : NULL;
    if (name && !command) return unknown(name);
    if (command) fputs(command->help, stdout);
    else print_overview(stdout);
    return CLI_OK;
}

/* In the folder of this program, as it is built, or where it is installed: only an error comes back. */
static int run_program(const struct cli_command *command, char **arguments) {
    static const char *const folders[] = {".", VIGIL_LIBEXEC_FROM_BIN};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return cli_fail(VIGIL_ESYSTEM, "cannot find out where vigil is");
    self[length] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s/vigil-%s", self, folders[i], command->name);
        execv(path, arguments);
        if (errno != ENOENT) return cli_fail(VIGIL_ESYSTEM, "cannot run %s", path);
    }
    return cli_fail(VIGIL_OK, "the program vigil-%s is not there: %s", command->name, command->missing);
}

static bool is_help(const char *argument) {
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int run(int count, char **arguments) {
    const char *name = arguments[0];
    cli_now = find(name);
    if (cli_now && cli_now->run) return cli_now->run(count, arguments);
    cli_look_for_json(count, arguments);
    if (!cli_now) return unknown(name);
    for (int i = 1; i < count; i++)
        if (is_help(arguments[i])) return help(name);
    return run_program(cli_now, arguments);
}

static int begin(int count, char **arguments) {
    if (count == 0) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    if (is_help(arguments[0])) return help(NULL);
    if (strcmp(arguments[0], "help") == 0) return help(arguments[1]);
    if (strcmp(arguments[0], "--version") == 0) {
        printf("vigil %d.%d.%d\n", VIGIL_VERSION_MAJOR, VIGIL_VERSION_MINOR, VIGIL_VERSION_PATCH);
        return CLI_OK;
    }
    return run(count, arguments);
}

int main(int count, char **arguments) {
    fill_standard_descriptors();
    int status = begin(count - 1, arguments + 1);
    errno = 0;
    bool lost = ferror(stdout);
    if (fclose(stdout) == 0 && !lost) return status;
    cli_wants_json = false; /* that is what cannot be written */
    return errno ? cli_fail(VIGIL_ESYSTEM, "cannot write the output") : cli_fail(VIGIL_OK, "cannot write the output");
}
