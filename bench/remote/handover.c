/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/*
 * Two machines in turn: the one that holds waits until the other is in line, and releases. What passes from the end of
 * the release, and from its beginning, to the grant on the other machine. The times are of one clock.
 */
#include <sched.h>

#include "bench.h"

enum { HANDOVERS = 60, HANDOVERS_QUICK = 3, SETTLE_MS = 20 };

struct handover {
    _Atomic unsigned turn, held; /* which grant is next; how many there were */
    double began_ms, released_ms, granted_ms;
};

/* One way to lock. */
struct handover_way {
    const char *name;
    enum series after, whole;
    bool ours;
};

struct handover_end {
    const struct handover_way *way;
    struct seat seat;
    struct seat_lock lock;
    struct seat_key key;
};

static void handover_take(struct handover_end *end) {
    if (end->way->ours) seat_take(&end->lock);
    else seat_etcd_lock(&end->seat, end->way->name, &end->key);
}

static void handover_release(struct handover_end *end) {
    if (end->way->ours) seat_release(&end->lock);
    else seat_etcd_unlock(&end->seat, &end->key);
}

static void handover_await(struct handover_end *end, const _Atomic unsigned *counter, unsigned value) {
    while (atomic_load(counter) != value) seat_run_for_ms(&end->seat, 1);
}

/* The grants of number `machine`, `machine` + 2, and so on are ours. */
static void handover_play(const struct round *round, struct handover *shared, struct handover_end *end,
                          unsigned machine) {
    unsigned count = round->quick ? HANDOVERS_QUICK : HANDOVERS;
    for (unsigned i = machine; i < count; i += 2) {
        handover_await(end, &shared->turn, i); /* the other one holds it, or this is the first */
        handover_take(end);
        shared->granted_ms = now_ms();
        if (i) {
            handover_await(end, &shared->held, i); /* its release has ended too */
            sample(round, end->way->whole, shared->granted_ms - shared->began_ms);
            sample(round, end->way->after, shared->granted_ms - shared->released_ms);
        }
        atomic_store(&shared->turn, i + 1); /* the other one gets in line */
        if (i + 1 < count && end->way->ours) seat_await_line(&end->seat, end->way->name, 1);
        seat_run_for_ms(&end->seat, SETTLE_MS);
        double put_ms = now_ms();
        seat_put(&end->seat, "bench-put");
        if (end->way->ours) sample(round, HANDOVER_PUT, now_ms() - put_ms);
        double began_ms = shared->began_ms = now_ms();
        handover_release(end);
        shared->began_ms = began_ms;
        shared->released_ms = now_ms();
        atomic_store(&shared->held, i + 1);
    }
}

static void handover_run(const struct round *round, void *memory, unsigned machine, unsigned process) {
    static const struct handover_way ways[] = {
        {"bench-handover", HANDOVER, HANDOVER_WHOLE, true},
        {"bench-handover-etcd", HANDOVER_ETCD, HANDOVER_ETCD_WHOLE, false},
    };
    struct handover *shared = memory;
    struct handover_end end;
    (void)process;
    seat_open(&end.seat, round);
    for (unsigned i = 0; i < 2; i++) {
        end.way = &ways[i];
        if (end.way->ours) seat_lock_open(&end.lock, &end.seat, end.way->name, false);
        handover_play(round, &shared[i], &end, machine);
        if (end.way->ours) seat_lock_close(&end.lock);
    }
    seat_close(&end.seat);
}

void measure_handover(const struct round *round) {
    struct handover *shared = memory_shared(2 * sizeof *shared);
    pid_t first = machine_start(round, handover_run, shared, 0, 1);
    pid_t second = machine_start(round, handover_run, shared, 1, 1);
    machine_await(first);
    machine_await(second);
}
