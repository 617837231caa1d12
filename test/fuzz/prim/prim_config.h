/* SPDX-License-Identifier: MIT */
/* Sizes for the fuzzer: so small that lines share buckets and every limit can be reached. */
#ifndef VIGIL_PRIM_CONFIG_H
#define VIGIL_PRIM_CONFIG_H

#include "sim/bugs.h"

#define PRIM_SEGMENTS 1

/* Whether an agent can watch descriptors of others: see prim_bell_watch. */
#define PRIM_WATCHES 0
#define PRIM_FENCES_EVERYWHERE 0
#define PRIM_BUCKET_BITS 1
#define PRIM_CHUNK_LIMIT 6u /* of which the first is not used: 320 waiters */
#define PRIM_CHUNK_LEAST 6u
#define PRIM_SLOT_CHUNK 64u
#define PRIM_SLOT_ALIGNMENT 64u
#define PRIM_SEAT_LIMIT  4u /* likewise: 3 agents */

#define PRIM_SPIN_MOST  1u
#define PRIM_SPIN_LEAST 0u
#define PRIM_SPIN_LOCK  1u
#define PRIM_SPIN_APART 1u
#define PRIM_CROWD UINT32_MAX
#define PRIM_PASSES     2u

/* How often a keeper wakes up to patrol while its process does not wait, before it stops: see recovery/watch.c. */
#define PRIM_LINGER 2u

/* Lanes for readers: see sync/lanes.h. */
#define PRIM_LANES       2u
#define PRIM_LANE_PLACES 2u
/* How many calls to event loops are guarded one by one: see recovery/guard.h. */
#define PRIM_GUARDS 4u
/* How long an event loop that was called may take to come, before its keeper calls the next waiter. */
#define PRIM_GUARD_NS UINT64_C(500000)

/* How many threads can be interrupted, plus one: see lot/interrupt.h. */
#define PRIM_INTERRUPTIBLE 4u

/* How much signal handlers can defer, on all threads together: see lot/critical.h. */
#define PRIM_DEFERRALS 2u
/* Signal handlers may call the library: see lot/critical.h. */
#define PRIM_SIGNALS 1

#define PRIM_EVENTS 4u
#define PRIM_NAME_HEADS 256u

#define PRIM_COPIES  0
#define PRIM_AT_LOAD __attribute__((unused))
#define BUG(name) (sim_bug == BUG_##name)


#define PRIM_PROCESS

struct prim_bell {
    int event_fd; /* its number */
    int poll_fd;  /* the same, once there is a descriptor; else -1 */
    int alarm_fd;
};

#endif
