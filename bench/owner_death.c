/* SPDX-License-Identifier: MIT */
/* How long a lock is unavailable when its holder is killed. */
#include "bench.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEATHS_MAX = 1000, DEATHS_QUICK = 5, SLEEP_NS_MAX = 25000000 };

/* Shared by the holder, the waiter and the killer, which is this process. */
struct inheritance {
    struct robust_lock lock;
    unsigned deaths;
    sem_t held, asked, coming, inherited;
    uint64_t inherited_ns;
};

static void await(sem_t *event) {
    while (sem_wait(event) != 0) must(errno == EINTR);
}

static void hold(void *argument) {
    struct inheritance *inheritance = argument;
    inheritance->lock.lock();
    sem_post(&inheritance->held);
    for (;;) pause();
}

static void inherit_all(void *argument) {
    struct inheritance *inheritance = argument;
    for (unsigned i = 0; i < inheritance->deaths; i++) {
        await(&inheritance->asked);
        sem_post(&inheritance->coming);
        inheritance->lock.inherit();
        inheritance->inherited_ns = now_ns();
        inheritance->lock.repair();
        sem_post(&inheritance->inherited);
    }
}

/* Whether the process's first thread sleeps. Its name, in brackets, may contain anything. */
static bool is_asleep(int pid) {
    char path[32], line[256];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    must(file != NULL && fgets(line, sizeof line, file) != NULL);
    fclose(file);
    const char *name_end = strrchr(line, ')');
    must(name_end != NULL);
    return name_end[2] == 'S';
}

/*
 * A waiter that polls whether the holder lives has just done so when it begins to wait. So that death comes at any
 * moment between two polls, let the waiter sleep for a while, each time another one and evenly spread.
 */
static void let_sleep(uint32_t death) {
    uint32_t part = death * 2654435769u; /* of 2^32: the golden section */
    struct timespec rest = {.tv_nsec = (long)(((uint64_t)part * SLEEP_NS_MAX) >> 32)};
    nanosleep(&rest, NULL);
}

/* Once the waiter has said that it is coming, the lock is all that it can sleep for. */
static void await_sleep(struct inheritance *inheritance, int pid) {
    const struct timespec moment = {.tv_nsec = 50000};
    await(&inheritance->coming);
    while (!is_asleep(pid)) nanosleep(&moment, NULL);
}

static double one_death_ms(struct inheritance *inheritance, const struct arena *arena, int waiter_pid, uint32_t death) {
    struct partner holder;
    partner_start(&holder, arena, hold, inheritance);
    await(&inheritance->held);
    sem_post(&inheritance->asked);
    await_sleep(inheritance, waiter_pid);
    let_sleep(death);
    uint64_t killed_ns = now_ns();
    partner_kill(&holder);
    await(&inheritance->inherited);
    partner_wait(&holder);
    return (double)(inheritance->inherited_ns - killed_ns) / 1e6;
}

static struct inheritance *inheritance_open(struct robust_lock lock, unsigned deaths) {
    struct inheritance *inheritance = shared_memory(sizeof *inheritance);
    sem_t *events[] = {&inheritance->held, &inheritance->asked, &inheritance->coming, &inheritance->inherited};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) must(sem_init(events[i], 1, 0) == 0);
    inheritance->lock = lock;
    inheritance->deaths = deaths;
    return inheritance;
}

void owner_death(const struct job *job, const struct arena *arena, struct robust_lock lock,
                 double figures[FIGURES_MAX]) {
    unsigned deaths = is_quick() ? DEATHS_QUICK : (unsigned)job->n;
    double times_ms[DEATHS_MAX];
    must(deaths <= DEATHS_MAX);
    struct inheritance *inheritance = inheritance_open(lock, deaths);
    struct partner waiter;
    arena->open();
    partner_start(&waiter, arena, inherit_all, inheritance);
    for (unsigned i = 0; i < deaths; i++) times_ms[i] = one_death_ms(inheritance, arena, waiter.pid, i);
    partner_wait(&waiter);
    arena->close();
    shared_memory_free(inheritance, sizeof *inheritance);
    figures[0] = median(times_ms, deaths); /* which sorts them */
    figures[1] = times_ms[deaths - 1];
}
