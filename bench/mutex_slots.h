/* SPDX-License-Identifier: MIT */
/*
 * mutex_slots.h - many small objects, each with a mutex of its own, as in a table of connections or accounts. To be
 * included after the contestant's slot_mutex, slot_lock, slot_unlock and SLOT_MUTEX_INIT: in the same file, the
 * compiler can inline them.
 */
#ifndef BENCH_MUTEX_SLOTS_H
#define BENCH_MUTEX_SLOTS_H

#include "bench.h"

#include <stdlib.h>

enum { SLOT_THREADS = 4 };

static struct slot {
    slot_mutex mutex;
    uint32_t count;
} * slots;
static uint64_t slot_count;

static void slot_take(uint64_t random) {
    struct slot *slot = &slots[(random >> 32) * slot_count >> 32];
    slot_lock(&slot->mutex);
    slot->count++;
    slot_unlock(&slot->mutex);
}

static uint64_t slots_counted(void) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < slot_count; i++) sum += slots[i].count;
    return sum;
}

static void mutex_random(const struct job *job, double figures[FIGURES_MAX]) {
    slots = calloc(job->n, sizeof *slots);
    slot_count = job->n;
    must(slots != NULL);
    for (uint64_t i = 0; i < slot_count; i++) slots[i] = (struct slot){.mutex = SLOT_MUTEX_INIT};
    figures[0] = contest_of_turns(SLOT_THREADS, (struct turns){slot_take, slots_counted});
    free(slots);
}

#endif
