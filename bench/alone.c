/* SPDX-License-Identifier: MIT */
/*
 * Memory is measured in a process that has done nothing else: what was freed before would be used again, and not be
 * counted. The benchmark runs itself for that, as "vigil-bench --alone CONTESTANT", and sends it the job.
 */
#include "alone.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool alone;

bool is_alone(void) {
    return alone;
}

void measure_alone(const char *contestant, const struct job *job, double figures[FIGURES_MAX]) {
    const char *const argv[] = {"/proc/self/exe", "--alone", contestant, NULL};
    struct coprocess child;
    must(coprocess_start(&child, argv));
    coprocess_measure(&child, job, figures);
    coprocess_stop(&child);
}

int serve_alone(const struct contestant *contestant) {
    char name[32];
    unsigned long long n;
    double figures[FIGURES_MAX] = {NAN, NAN, NAN};
    if (scanf("%31s %llu", name, &n) != 2) return 1;
    const struct job job = {.name = name, .n = n};
    const struct skill *skill = skill_for(contestant, &job);
    must(skill != NULL);
    alone = true;
    skill->measure(&job, figures);
    for (size_t i = 0; i < FIGURES_MAX && !isnan(figures[i]); i++) printf("%.2f ", figures[i]);
    printf("\n");
    return 0;
}

uint64_t resident_bytes(void) {
    unsigned long size, resident;
    FILE *statm = fopen("/proc/self/statm", "r");
    must(statm != NULL && fscanf(statm, "%lu %lu", &size, &resident) == 2);
    fclose(statm);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_descriptors(void) {
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    must(folder != NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

void idle_loops(const struct job *job, const char *contestant, void (*open)(uint64_t index),
                double figures[FIGURES_MAX]) {
    if (!is_alone()) {
        measure_alone(contestant, job, figures);
        return;
    }
    struct rlimit limit;
    must(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    open(0); /* what the first causes is not per loop */
    uint64_t bytes = resident_bytes(), descriptors = open_descriptors();
    for (uint64_t i = 1; i <= job->n; i++) open(i);
    figures[0] = (double)(resident_bytes() - bytes) / (double)job->n;
    figures[1] = (double)(open_descriptors() - descriptors) / (double)job->n;
}
