/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* What 1,000 requests of one process cost while they wait for locks that another machine holds. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { WAITING = 1000, WAITING_QUICK = 20, SETTLED_MS = 1000 };

struct waiting {
    unsigned count, locks; /* requests; of how many locks */
    enum series series;
    _Atomic bool held, ends;
};

static double waiting_anonymous_mb(void) {
    char line[128];
    unsigned long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    must(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0) kb = strtoul(line + 8, NULL, 10);
    fclose(file);
    return (double)kb / 1024;
}

static unsigned waiting_connections(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    must(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char target[64];
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target);
        count += length > 7 && memcmp(target, "socket:", 7) == 0;
    }
    closedir(folder);
    return count;
}

static void waiting_name(char name[64], const struct waiting *shared, unsigned i) {
    snprintf(name, 64, "bench-waiting-%u-%u", shared->locks, i % shared->locks);
}

static void waiting_hold(const struct round *round, struct waiting *shared) {
    struct seat seat;
    struct seat_lock *locks = calloc(shared->locks, sizeof *locks);
    must(locks);
    seat_open(&seat, round);
    for (unsigned i = 0; i < shared->locks; i++) {
        char name[64];
        waiting_name(name, shared, i);
        seat_lock_open(&locks[i], &seat, name, true);
        seat_take(&locks[i]);
    }
    atomic_store(&shared->held, true);
    while (!atomic_load(&shared->ends)) seat_run_for_ms(&seat, 5);
    for (unsigned i = 0; i < shared->locks; i++) seat_lock_close(&locks[i]);
    seat_close(&seat);
}

static void waiting_never(vigil_remote_lock *lock, int status, void *data) {
    (void)lock, (void)status, (void)data;
    die("granted while another machine holds it");
}

static void waiting_await(const struct waiting *shared, struct seat *seat) {
    char name[64];
    for (unsigned i = 0; i < shared->locks; i++) {
        waiting_name(name, shared, i);
        seat_await_line(seat, name, 1);
    }
    seat_run_for_ms(seat, SETTLED_MS);
}

static void waiting_wait(const struct round *round, struct waiting *shared) {
    struct seat seat;
    struct seat_lock *locks = calloc(shared->count, sizeof *locks);
    must(locks);
    seat_open(&seat, round);
    while (!atomic_load(&shared->held)) seat_run_for_ms(&seat, 5);
    memset(locks, 1, shared->count * sizeof *locks); /* the bench's own memory does not count */
    double before_mb = waiting_anonymous_mb();
    for (unsigned i = 0; i < shared->count; i++) {
        char name[64];
        waiting_name(name, shared, i);
        seat_lock_open(&locks[i], &seat, name, true);
        must(vigil_remote_lock_take(locks[i].lock, 0, VIGIL_FOREVER, waiting_never, NULL) == VIGIL_PENDING);
    }
    waiting_await(shared, &seat);
    sample(round, shared->series, waiting_anonymous_mb() - before_mb);
    sample(round, WAITING_CONNECTIONS, waiting_connections());
    for (unsigned i = 0; i < shared->count; i++) must(vigil_remote_lock_cancel(locks[i].lock) == VIGIL_OK);
    for (unsigned i = 0; i < shared->count; i++) seat_lock_close(&locks[i]);
    seat_close(&seat);
    atomic_store(&shared->ends, true);
}

static void waiting_run(const struct round *round, void *memory, unsigned machine, unsigned process) {
    (void)process;
    if (machine == 0) waiting_hold(round, memory);
    else waiting_wait(round, memory);
}

static void waiting(const struct round *round, enum series series, bool each) {
    struct waiting *shared = memory_shared(sizeof *shared);
    shared->count = round->quick ? WAITING_QUICK : WAITING;
    shared->locks = each ? shared->count : 1;
    shared->series = series;
    pid_t holder = machine_start(round, waiting_run, shared, 0, 1);
    machine_await(machine_start(round, waiting_run, shared, 1, 1));
    machine_await(holder);
}

void measure_waiting(const struct round *round) {
    waiting(round, WAITING_MB, false);
    waiting(round, WAITING_LOCKS_MB, true);
}
