/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* The commands, from start to end. */
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { COMMANDS = 10, COMMANDS_QUICK = 1 };

extern char **environ;

static double command_ms(char *const *words) {
    double began_ms = now_ms();
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, words[0], NULL, NULL, words, environ) != 0) return 0;
    must(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return 0; /* there is none */
    must(status == 0);
    return now_ms() - began_ms;
}

static char *command_word(const char *text) {
    return (char *)(uintptr_t)text;
}

static void command_run(const struct round *round, void *shared, unsigned machine, unsigned process) {
    (void)shared, (void)machine, (void)process;
    char at[600], endpoints[600];
    snprintf(at, sizeof at, "%s/bench-command", round->at);
    snprintf(endpoints, sizeof endpoints, "--endpoints=%s", round->at + strlen("etcd://"));
    char *ours[] = {command_word(BENCH_VIGIL), "lock", "--at", at, "--", "true", NULL};
    char *theirs[] = {"etcdctl", endpoints, "lock", "bench-command-etcd", "true", NULL};
    for (int i = 0; i < (round->quick ? COMMANDS_QUICK : COMMANDS); i++) {
        sample(round, COMMAND, command_ms(ours));
        double theirs_ms = command_ms(theirs);
        if (theirs_ms > 0) sample(round, COMMAND_ETCD, theirs_ms);
    }
}

void measure_command(const struct round *round) {
    machine_await(machine_start(round, command_run, NULL, 0, 1));
}
