/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* Many processes on 4 machines that lock and unlock without a pause: grants a second. */
#include <time.h>

#include "bench.h"

enum { MACHINES = 4, CROWD = 16, CONTEND_MS = 2000, CONTEND_QUICK_MS = 200 };

struct contend {
    bool ours;
    unsigned processes;
    _Atomic unsigned ready;
    _Atomic bool ends;
    _Atomic uint64_t grants;
};

static void contend_pair(struct seat *seat, struct seat_lock *lock, struct contend *shared) {
    struct seat_key key;
    if (shared->ours) seat_take(lock);
    else seat_etcd_lock(seat, "bench-contend-etcd", &key);
    atomic_fetch_add(&shared->grants, 1);
    if (shared->ours) seat_release(lock);
    else seat_etcd_unlock(seat, &key);
}

static void contend_run(const struct round *round, void *memory, unsigned machine, unsigned process) {
    struct contend *shared = memory;
    struct seat seat;
    struct seat_lock lock;
    (void)machine, (void)process;
    seat_open(&seat, round);
    if (shared->ours) seat_lock_open(&lock, &seat, "bench-contend", false);
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < shared->processes) seat_run_for_ms(&seat, 5);
    while (!atomic_load(&shared->ends)) contend_pair(&seat, &lock, shared);
    if (shared->ours) seat_lock_close(&lock);
    seat_close(&seat);
}

static void contend_nap(int ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static void contend(const struct round *round, enum series series, unsigned crowd, bool ours) {
    struct contend *shared = memory_shared(sizeof *shared);
    pid_t pids[MACHINES];
    shared->ours = ours;
    shared->processes = MACHINES * crowd;
    for (unsigned i = 0; i < MACHINES; i++) pids[i] = machine_start(round, contend_run, shared, i, crowd);
    while (atomic_load(&shared->ready) < shared->processes) contend_nap(1);
    contend_nap(round->quick ? 50 : 500); /* all are in line */
    uint64_t before = atomic_load(&shared->grants);
    double began_ms = now_ms();
    contend_nap(round->quick ? CONTEND_QUICK_MS : CONTEND_MS);
    double grants = (double)(atomic_load(&shared->grants) - before);
    sample(round, series, grants / (now_ms() - began_ms) * 1000);
    atomic_store(&shared->ends, true);
    for (unsigned i = 0; i < MACHINES; i++) machine_await(pids[i]);
}

void measure_contention(const struct round *round) {
    unsigned crowd = round->quick ? 4 : CROWD;
    contend(round, GRANTS_64, crowd, true);
    contend(round, GRANTS_64_ETCD, crowd, false);
    contend(round, GRANTS_4, 1, true);
    contend(round, GRANTS_4_ETCD, 1, false);
}
