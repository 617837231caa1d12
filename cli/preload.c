/* SPDX-License-Identifier: MIT */
/*
 * vigil run: executes a program with libvigil-pthread.so preloaded. The program replaces this process, so that
 * signals, exit status and pid are its own. The library's options are in the environment: see pthread/start.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "signals.h"

#define LIBRARY "libvigil-pthread.so"

/* In the folder of this program, as built, or where it is installed. */
static bool find_library(char path[PATH_MAX]) {
    static const char *const folders[] = {".", VIGIL_LIB_FROM_BIN};
    char self[PATH_MAX], candidate[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) return false;
    self[length] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s/" LIBRARY, self, folders[i]);
        if (realpath(candidate, path)) return true;
    }
    return false;
}

/* Puts the library before others in LD_PRELOAD. Their separators, space and colon, cannot be part of a path. */
static bool preload_library(void) {
    char path[PATH_MAX], all[4 * PATH_MAX];
    const char *others = getenv("LD_PRELOAD");
    if (!find_library(path)) {
        cli_fail(VIGIL_OK, LIBRARY " is not installed: it is built with vigil, on systems with glibc");
        return false;
    }
    if (strpbrk(path, " :")) {
        cli_fail(VIGIL_OK, "%s cannot be preloaded: its path contains a space or a colon", path);
        return false;
    }
    snprintf(all, sizeof all, "%s%s%s", path, others && *others ? ":" : "", others ? others : "");
    setenv("LD_PRELOAD", all, 1);
    return true;
}

/* The program writes the profile, and may have changed its working directory by then: make the path absolute. */
static bool set_profile(const char *file) {
    char path[PATH_MAX], folder[PATH_MAX];
    if (!*file) return setenv("VIGIL_RUN_PROFILE", "-", 1) == 0;
    bool absolute = file[0] == '/';
    if (!absolute && !getcwd(folder, sizeof folder)) return false;
    int length = snprintf(path, sizeof path, "%s%s%s", absolute ? "" : folder, absolute ? "" : "/", file);
    if (length < 0 || length >= 1024) { /* the size of the library's buffer */
        cli_usage("--profile: the path of the file is too long; the maximum is 1023 bytes");
        return false;
    }
    return setenv("VIGIL_RUN_PROFILE", path, 1) == 0;
}

static void set_flag(const char *name, bool on) {
    if (on) setenv(name, "1", 1);
    else unsetenv(name);
}

int cli_run(int count, char **arguments) {
    const char *profile = NULL, *report_signal = NULL;
    bool check = false;
    const struct cli_option options[] = {{"profile", 0, CLI_MAYBE, &profile},
                                         {"check", 0, CLI_FLAG, &check},
                                         {"signal", 0, CLI_TEXT, &report_signal},
                                         {0}};
    struct cli_arguments parsed;
    char pid[16];
    if (!cli_options(count, arguments, options, &parsed)) return cli_usage_status();
    if (!parsed.command || !*parsed.command) return cli_usage("the program to run is missing: vigil run -- PROGRAM");
    if (report_signal && strcmp(report_signal, "none") != 0 && !signal_named(report_signal))
        return cli_usage("--signal: unknown signal %s; write a name such as USR1, a number, or none", report_signal);
    unsetenv("VIGIL_RUN_PROFILE");
    if (profile && !set_profile(profile)) return CLI_RUN_CANNOT;
    set_flag("VIGIL_RUN_CHECK", check);
    set_flag("VIGIL_RUN_JSON", cli_wants_json);
    if (report_signal) setenv("VIGIL_RUN_SIGNAL", report_signal, 1);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("VIGIL_RUN_PID", pid, 1);
    if (!preload_library()) return CLI_RUN_CANNOT;
    execvp(parsed.command[0], parsed.command);
    int status = errno == ENOENT ? CLI_RUN_NO_COMMAND : CLI_RUN_NOT_RUN;
    cli_fail(VIGIL_ESYSTEM, "cannot run %s", parsed.command[0]);
    return status;
}
