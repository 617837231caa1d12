/* SPDX-License-Identifier: MIT */
/*
 * bench.h - the benchmark of the locks of a cluster.
 *
 * In each round, each measurement runs on a cluster of one node and on one of three, with its peers interleaved. What
 * is measured is added to a series, in memory that all processes share; the report has the median or the 99th
 * percentile over all rounds. A machine is a process, and those that it starts, with a /dev/shm and a host name of its
 * own.
 */
#ifndef BENCH_REMOTE_H
#define BENCH_REMOTE_H

#include <stdatomic.h>
#include <stdio.h>

#include "cluster.h"
#include "remote.h"

enum series {
    PUT,
    PAIR,
    PAIR_KEPT,
    PAIR_ETCD,
    TXN,
    HANDOVER_PUT,
    HANDOVER,
    HANDOVER_WHOLE,
    HANDOVER_ETCD,
    HANDOVER_ETCD_WHOLE,
    GRANTS_64,
    GRANTS_64_ETCD,
    GRANTS_4,
    GRANTS_4_ETCD,
    COMMAND,
    COMMAND_ETCD,
    WAITING_MB,
    WAITING_LOCKS_MB,
    WAITING_CONNECTIONS,
    SERIES
};

/* main.c */
#define SAMPLES_MAX 8192
struct samples {
    _Atomic unsigned count;
    double values[SAMPLES_MAX];
};
struct round {
    const char *at;         /* etcd://... */
    struct samples *series; /* SERIES of them, in shared memory */
    bool quick;
};
void sample(const struct round *round, enum series series, double value);
_Noreturn void die(const char *what);
#define must(condition) ((condition) ? (void)0 : die(#condition))

/* What is measured. */
void measure_pairs(const struct round *round);
void measure_handover(const struct round *round);
void measure_contention(const struct round *round);
void measure_command(const struct round *round);
void measure_waiting(const struct round *round);

/* report.c. `all` has SERIES of one node, and then those of three. */
void report_table(FILE *out, const struct samples *all);
void report_json(FILE *out, const struct samples *all);
void report_markdown(FILE *out, const struct samples *all);

/* machines.c */
/* Whether processes may have a mount namespace of their own here. */
bool machines_possible(void);
/* Runs `body` on a machine of its own, in `count` processes at once; returns the process to wait for. */
typedef void machine_body(const struct round *round, void *shared, unsigned machine, unsigned process);
pid_t machine_start(const struct round *round, machine_body *body, void *shared, unsigned machine, unsigned count);
/* Waits until it has ended; dies if it failed. */
void machine_await(pid_t pid);
void *memory_shared(size_t bytes);

/* seat.c: a client. Each function returns when it is done. */
struct seat {
    vigil_agent *agent;
    vigil_remote *remote;
    int64_t lease; /* for etcd's own lock; 0: none yet */
};
struct seat_lock {
    struct seat *seat;
    vigil_remote_lock *lock;
    bool done;
    int status;
};
void seat_open(struct seat *seat, const struct round *round);
void seat_close(struct seat *seat);
void seat_run(struct seat *seat, const bool *done);
void seat_run_for_ms(struct seat *seat, int ms);
void seat_put(struct seat *seat, const char *key);
void seat_txn(struct seat *seat, const char *key); /* the same put, as a transaction */
/* etcd's lock service. */
struct seat_key {
    char data[128];
    size_t length;
};
void seat_etcd_lock(struct seat *seat, const char *name, struct seat_key *key);
void seat_etcd_unlock(struct seat *seat, const struct seat_key *key);
/* Ours. */
void seat_lock_open(struct seat_lock *lock, struct seat *seat, const char *name, bool gives_back);
void seat_lock_close(struct seat_lock *lock);
void seat_take(struct seat_lock *lock);
void seat_release(struct seat_lock *lock);
/* Until so many wait in the cluster's line for it. */
void seat_await_line(struct seat *seat, const char *name, unsigned count);

double now_ms(void);

#endif
