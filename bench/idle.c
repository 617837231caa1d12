/* SPDX-License-Identifier: MIT */
/* The cost of processes that only wait. */
#include "queue.h"

#include <dirent.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT_QUICK = 10, SETTLE_S = 2, WATCH_S = 10 };

/* Of all its threads, including those that have ended. */
static uint64_t cpu_ns_of(int pid) {
    clockid_t clock;
    struct timespec used;
    must(clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t switches_in(const char *path) {
    char line[256];
    unsigned long long count = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0; /* the thread has ended */
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1) break;
    fclose(file);
    return count;
}

/*
 * How often its threads have gone to sleep: a thread that sleeps must wake up before it can make a system call, and
 * then goes to sleep again. To count the calls themselves would take a tracer, which wakes up what it traces.
 */
static uint64_t sleeps_of(int pid) {
    char path[64];
    uint64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    must(threads != NULL);
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", pid, entry->d_name);
        count += switches_in(path);
    }
    closedir(threads);
    return count;
}

struct use {
    uint64_t at_ns, cpu_ns, sleeps;
};

static struct use use_of(int pid) {
    return (struct use){.sleeps = sleeps_of(pid), .cpu_ns = cpu_ns_of(pid), .at_ns = now_ns()};
}

static void rest(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

/* Each process has a window of its own, as looking at all of them takes a while. */
static void watch(const struct queue *queue, double seconds, double figures[FIGURES_MAX]) {
    struct use *before = calloc(queue->count, sizeof *before);
    double percent = 0, most = 0;
    must(before != NULL);
    for (unsigned i = 0; i < queue->count; i++) before[i] = use_of(queue->pids[i]);
    rest(seconds);
    for (unsigned i = 0; i < queue->count; i++) {
        struct use after = use_of(queue->pids[i]);
        double elapsed_ns = (double)(after.at_ns - before[i].at_ns);
        double sleeps = (double)(after.sleeps - before[i].sleeps) * WATCH_S * 1e9 / elapsed_ns;
        percent += 100 * (double)(after.cpu_ns - before[i].cpu_ns) / elapsed_ns;
        if (sleeps > most) most = sleeps;
    }
    free(before);
    figures[0] = percent;
    figures[1] = most;
}

void idle_waiters(const struct job *job, const struct runner *runner, double figures[FIGURES_MAX]) {
    double scale = is_quick() ? 0.01 : 1;
    struct queue queue;
    if (!queue_form(&queue, runner, is_quick() ? COUNT_QUICK : (unsigned)job->n, false)) return;
    rest(SETTLE_S * scale);
    watch(&queue, WATCH_S * scale, figures);
    queue_disband(&queue);
}
