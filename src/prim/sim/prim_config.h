/* SPDX-License-Identifier: MIT */
/* Sizes for the simulator: so small that everything that can collide does. */
#ifndef VIGIL_PRIM_CONFIG_H
#define VIGIL_PRIM_CONFIG_H

#include <stdint.h>

#include "bugs.h"

#define PRIM_SEGMENTS 1

/* Whether an agent can watch descriptors of others: see prim_bell_watch. */
#define PRIM_WATCHES 0
#define PRIM_FENCES_EVERYWHERE PRIM_FENCES_ALWAYS
#define PRIM_BUCKET_BITS 1
#define PRIM_CHUNK_LIMIT 64u
#define PRIM_CHUNK_LEAST 64u
#define PRIM_SLOT_CHUNK 2u /* so that refilling is ordinary */
#define PRIM_SLOT_ALIGNMENT 64u
#define PRIM_SEAT_LIMIT  8u

/* One step of spinning shows what spinning can do; more would only repeat it. */
#define PRIM_SPIN_MOST  1u
#define PRIM_SPIN_LEAST 0u
#define PRIM_SPIN_LOCK  1u
#define PRIM_SPIN_APART 1u
#define PRIM_CROWD UINT32_MAX /* a thread that stands aside is one that runs later: that is tried anyway */
#define PRIM_PASSES     2u

/* How often a keeper wakes up to patrol while its process does not wait, before it stops: see recovery/watch.c. */
#define PRIM_LINGER 2u

/* See sync/lanes.h: locks share places, and threads may share lanes. */
#define PRIM_LANES       4u
#define PRIM_LANE_PLACES 1u
/* How many calls to event loops are guarded one by one: see recovery/guard.h. */
#define PRIM_GUARDS 2u
/* How long an event loop that was called may take to come, before its keeper calls the next waiter. */
#define PRIM_GUARD_NS UINT64_C(500000)

/* How many threads can be interrupted, plus one: see lot/interrupt.h. */
#define PRIM_INTERRUPTIBLE 4u

/* How many pieces of work signal handlers can defer, on all threads together: see lot/critical.h. */
#define PRIM_DEFERRALS 2u
/* Signal handlers may call the library: see lot/critical.h. */
#define PRIM_SIGNALS 1

#define PRIM_EVENTS 8u

/* Chains of a book of names: see named/book.h. */
#define PRIM_NAME_HEADS 2u

#define PRIM_COPIES 0
#define PRIM_AT_LOAD __attribute__((unused))

#define BUG(name) (sim_bug == BUG_##name)

/* For variables of which each process has its own, though the simulated processes share memory: see process.c. */
#define PRIM_PROCESS __attribute__((section("vigil_process")))

struct prim_bell {
    int event_fd; /* its number */
    int poll_fd;  /* the same, once there is a descriptor; else -1 */
    uint32_t word[2]; /* the bell where bells are words: see sim_word_bells. The second is for bell_in_two_words */
};

#endif
