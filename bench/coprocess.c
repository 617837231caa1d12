/* SPDX-License-Identifier: MIT */
/* A child process that replies with a line to each line it is sent. */
#include "bench.h"

#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool coprocess_start(struct coprocess *child, const char *const argv[]) {
    int question[2], answer[2];
    must(pipe(question) == 0 && pipe(answer) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, question[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answer[1], STDOUT_FILENO);
    const int ends[] = {question[0], question[1], answer[0], answer[1]};
    for (size_t i = 0; i < 4; i++) posix_spawn_file_actions_addclose(&actions, ends[i]);
    int error = posix_spawnp(&child->pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(question[0]);
    close(answer[1]);
    if (error != 0) {
        close(question[1]);
        close(answer[0]);
        return false;
    }
    child->to = fdopen(question[1], "w");
    child->from = fdopen(answer[0], "r");
    must(child->to != NULL && child->from != NULL);
    return true;
}

bool coprocess_ask(struct coprocess *child, const char *question, char *answer, size_t size) {
    fprintf(child->to, "%s\n", question);
    if (fflush(child->to) != 0 || fgets(answer, (int)size, child->from) == NULL) return false;
    answer[strcspn(answer, "\n")] = '\0';
    return true;
}

void coprocess_stop(struct coprocess *child) {
    fclose(child->to);
    fclose(child->from);
    waitpid(child->pid, NULL, 0);
}

void coprocess_measure(struct coprocess *child, const struct job *job, double figures[FIGURES_MAX]) {
    char question[64], answer[128];
    snprintf(question, sizeof question, "%s %llu", job->name, (unsigned long long)job->n);
    must(coprocess_ask(child, question, answer, sizeof answer));
    must(sscanf(answer, "%lf %lf %lf", &figures[0], &figures[1], &figures[2]) >= 1);
}
