/* SPDX-License-Identifier: MIT */
/* bounded.h - a queue with little room between threads, which block, and an event loop, which does not. */
#ifndef BENCH_BOUNDED_H
#define BENCH_BOUNDED_H

#include "bench.h"

enum { RING_ROOM = 64 };

/* What the queue's mutex protects. */
struct ring {
    uint64_t items[RING_ROOM];
    unsigned first, count;
};

static inline bool ring_is_full(const struct ring *ring) {
    return ring->count == RING_ROOM;
}

static inline void ring_push(struct ring *ring, uint64_t item) {
    ring->items[(ring->first + ring->count++) % RING_ROOM] = item;
}

static inline uint64_t ring_pop(struct ring *ring) {
    uint64_t item = ring->items[ring->first];
    ring->first = (ring->first + 1) % RING_ROOM;
    ring->count--;
    return item;
}

static inline unsigned ring_pop_all(struct ring *ring, uint64_t items[RING_ROOM]) {
    unsigned count = ring->count;
    for (unsigned i = 0; i < count; i++) items[i] = ring_pop(ring);
    return count;
}

struct bounded {
    void (*open)(void), (*close)(void);
    /* By threads, which block while there is no room, or no item. */
    void (*put)(uint64_t item);
    uint64_t (*take)(void);
    /* An event loop that puts the items 1 to n, each made by bounded_make; and one that takes n items, all that there
     * are at a time, and hands each to bounded_use. */
    void (*loop_put)(uint64_t n);
    void (*loop_take)(uint64_t n);
};

/* Work of 50 ns for each item, at either end. */
uint64_t bounded_make(uint64_t item);
void bounded_use(uint64_t item);

/* bounded.c: million items per second that pass from two threads to a loop, and from a loop to two threads. */
void bounded_both_ways(const struct job *job, const struct bounded *queue, double figures[FIGURES_MAX]);

#endif
