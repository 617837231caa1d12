/* SPDX-License-Identifier: MIT */
#ifndef VIGIL_PRIM_CONFIG_H
#define VIGIL_PRIM_CONFIG_H

#include <stdint.h>

_Static_assert(sizeof(void *) == 4, "wasm32: prim_bell_fd returns an address as an int");

/* Private memory only: there are no segments. It is shared by all instances of the module, as by threads. */
#define PRIM_SEGMENTS 0

/* Whether an agent can watch descriptors of others: see prim_bell_watch. */
#define PRIM_WATCHES 0

/* Whether there may be prim_fence_everywhere. */
#define PRIM_FENCES_EVERYWHERE 0

/* There is one copy of the library in a memory. */
#define PRIM_COPIES  0
#define PRIM_AT_LOAD __attribute__((unused))

/* The lot's size: 1.1 MiB of memory, of which the system provides what is touched. */
#define PRIM_BUCKET_BITS    12        /* 4,096 buckets of 8 bytes */
#define PRIM_CHUNK_LIMIT    (1u << 8) /* 16,384 waiters of 64 bytes, in chunks of 64 */
#define PRIM_CHUNK_LEAST    (1u << 6)
#define PRIM_SLOT_CHUNK     64u
#define PRIM_SLOT_ALIGNMENT 64u        /* of a cache line */
#define PRIM_SEAT_LIMIT     (1u << 10) /* agents */

/* Calls of prim_pause before a thread sleeps: at most, and at least. There is no instruction that pauses, so one call
 * takes about a nanosecond, and these are more than elsewhere: prim/sizes.h says what they depend on. */
#define PRIM_SPIN_MOST  4000u
#define PRIM_SPIN_LEAST 100u
/* And while it waits for a bucket, which is usually locked for some ten instructions, or for a lock, before it joins
 * the line. */
#define PRIM_SPIN_LOCK 500u
/* A thread that spins for a lock looks at its word after so many: see prim/sizes.h. */
#define PRIM_SPIN_APART 32u
/* This many conflicts over locks, in quick succession, make a crowd: see lot/spin.c. */
#define PRIM_CROWD 16u

/* How often newcomers may take a mutex while a waiter that has been called has yet to come: at most 65534. */
#define PRIM_PASSES 8000u

/* How often a keeper wakes up to patrol while its process does not wait, before it stops: see recovery/watch.c. */
#define PRIM_LINGER 2u

/* No lanes for readers: see sync/lanes.h. They would make the module larger. */
#define PRIM_LANES       0u
#define PRIM_LANE_PLACES 1u
/* How many calls to event loops are guarded one by one: see recovery/guard.h. */
#define PRIM_GUARDS 256u
/* How long an event loop that was called may take to come, before its keeper calls the next waiter. Here blocked
 * workers are such loops too, and a page comes after its frame. */
#define PRIM_GUARD_NS UINT64_C(4000000)

/* How many threads can be interrupted, plus one: see lot/interrupt.h. */
#define PRIM_INTERRUPTIBLE 1024u

/* There are no signal handlers: see lot/critical.h. */
#define PRIM_SIGNALS   0
#define PRIM_DEFERRALS 1u

/* For headers that describe segments. */
#define PRIM_EVENTS 1024u

/* Per-thread data. */
#define PRIM_SELF _Thread_local

/* Planted bugs exist in the simulator only: see prim/sim/prim_config.h. */
#define BUG(name) 0

/* For variables of which each process has its own: see prim/sim/prim_config.h. */
#define PRIM_PROCESS

/* See prim.h, bell_word.h, and prim_wasm.h for what an embedder does with it. */
struct prim_bell {
    uint32_t word;
    uint64_t alarm_ns; /* PRIM_NEVER: none */
};

#endif
