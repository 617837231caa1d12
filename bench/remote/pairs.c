/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* Lock and unlock without contention, and a put, in turn. */
#include "bench.h"

enum { PAIRS = 200, PAIRS_QUICK = 5 };

static void pair_etcd(struct seat *seat) {
    struct seat_key key;
    seat_etcd_lock(seat, "bench-pair-etcd", &key);
    seat_etcd_unlock(seat, &key);
}

static void pair_ours(struct seat_lock *lock) {
    seat_take(lock);
    seat_release(lock);
}

static void pairs_run(const struct round *round, void *shared, unsigned machine, unsigned process) {
    (void)shared, (void)machine, (void)process;
    struct seat seat;
    struct seat_lock back, kept;
    seat_open(&seat, round);
    seat_lock_open(&back, &seat, "bench-pair", true);
    seat_lock_open(&kept, &seat, "bench-pair-kept", false);
    pair_etcd(&seat); /* each has its lease now */
    pair_ours(&back);
    pair_ours(&kept);
    for (int i = 0; i < (round->quick ? PAIRS_QUICK : PAIRS); i++) {
        double times[6];
        times[0] = now_ms();
        seat_put(&seat, "bench-put");
        times[1] = now_ms();
        pair_ours(&back);
        times[2] = now_ms();
        pair_ours(&kept);
        times[3] = now_ms();
        pair_etcd(&seat);
        times[4] = now_ms();
        seat_txn(&seat, "bench-put");
        times[5] = now_ms();
        for (unsigned j = 0; j < 5; j++) sample(round, (enum series)(PUT + j), times[j + 1] - times[j]);
    }
    seat_lock_close(&back);
    seat_lock_close(&kept);
    seat_close(&seat);
}

void measure_pairs(const struct round *round) {
    machine_await(machine_start(round, pairs_run, NULL, 0, 1));
}
