/* SPDX-License-Identifier: MIT */
/* sizes.h - sizes and counts for systems with 64-bit addresses: part of prim_config.h of prim/linux and prim/posix. */
#ifndef VIGIL_PRIM_SIZES_H
#define VIGIL_PRIM_SIZES_H

/* The lot's size. All of it is address space; only what waiters touch becomes memory. */
#define PRIM_BUCKET_BITS    21         /* 2^21 buckets of 8 bytes */
#define PRIM_CHUNK_LIMIT    (1u << 20) /* 64 million waiters of 64 bytes, in chunks of 64 */
#define PRIM_CHUNK_LEAST    (1u << 6)
#define PRIM_SLOT_CHUNK     64u
#define PRIM_SLOT_ALIGNMENT (2u << 20) /* of a large page */
#define PRIM_SEAT_LIMIT     (1u << 16) /* agents */

/*
 * The rows of `make bench` that show a change are in brackets; base/tuning.h has the other times and counts.
 *
 * Calls of prim_pause before a thread sleeps: at most, and at least. The first must be longer than a round trip between
 * two running threads, about 0.6 us. The second is what each wait costs a thread for which spinning does not pay.
 * (pingpong_block, pingpong_async_run. With all processors busy, pingpong_block takes 3.1 us, with a least of 100
 * pauses 5.4 us; a most of 250 or 4,000 cannot be told from 1,000 then.)
 */
#define PRIM_SPIN_MOST  1000u
#define PRIM_SPIN_LEAST 20u
/* And while it waits for a bucket, which is usually locked for some ten instructions, or for a lock, before it joins
 * the line: longer than a short critical section. (mutex_contended_2 to _16, mutex_mixed; with all processors busy, 25
 * and 400 could not be told from 100. rwlock_1_in_20 at 32, 100 and 200: 42, 46, 39 million per second.) */
#define PRIM_SPIN_LOCK 100u
/* A thread that spins for a lock looks at its word after so many pauses: longer than the holder needs, with a cache
 * line that no other thread takes away, to go through its critical section several times. (In millions per second, at
 * 1, 2, 4 and then 8 pauses, at 8, 16, 32 and 64: mutex_contended_2 13.7, 15.2, 17.4, 25.8, 22.1; mutex_mixed 14.3,
 * 14.4, 15.7, 21.1, 20.7. mutex_contended_16 and mutex_share_16 cannot be told apart.) */
#define PRIM_SPIN_APART 32u
/* This many conflicts over locks, in quick succession, make a crowd: see lot/spin.c. (rwlock_1_in_20: 44 million per
 * second before the commit that brought this, 121 after it; with all processors busy, 4 and 64 could not be told from
 * 16.) */
#define PRIM_CROWD 16u

/* How often newcomers may take a mutex while a waiter that has been called has yet to come: at most 65534. (Without a
 * limit mutex_share_16 was 0.60, with it 0.80 to 0.97, and mutex_longest_wait_16 20 ms and 7 ms. It costs a tenth of
 * mutex_contended_16.) */
#define PRIM_PASSES 8000u

/* How often a keeper wakes up to patrol while its process does not wait, before it stops: see recovery/watch.c. Not
 * measured: a process that waits again within two patrols, which are two seconds, need not wake its keeper for that. */
#define PRIM_LINGER 2u

/* Cache lines for readers, shared if there are more threads than that, and the locks in each: see sync/lanes.h. A
 * writer goes through all that threads have used. */
#define PRIM_LANES       64u
#define PRIM_LANE_PLACES 8u
/* How many calls to event loops are guarded one by one: see recovery/guard.h. */
#define PRIM_GUARDS 4096u
/* How long an event loop that was called may take to come, before its keeper calls the next waiter: as PATIENCE_NS. */
#define PRIM_GUARD_NS UINT64_C(500000)

/* How many threads can be interrupted, plus one: see lot/interrupt.h. */
#define PRIM_INTERRUPTIBLE (1u << 14)

/* How many pieces of work signal handlers can defer, on all threads together: see lot/critical.h. */
#define PRIM_DEFERRALS 1024u
/* Signal handlers may call the library: see lot/critical.h. */
#define PRIM_SIGNALS 1

#endif
