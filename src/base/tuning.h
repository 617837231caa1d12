/* SPDX-License-Identifier: MIT */
/*
 * tuning.h - times and counts that were chosen by measuring, or by what they have to be longer than. What differs
 * between systems, and in the simulator, is in prim_config.h (prim/sizes.h): PRIM_SPIN_..., PRIM_CROWD, PRIM_PASSES,
 * PRIM_LINGER, PRIM_GUARD_NS. prim.h, which includes nothing from here, has PRIM_SLICE_NS.
 *
 * After each: why it is what it is, and the row of `make bench` that shows a change, if there is one.
 */
#ifndef VIGIL_TUNING_H
#define VIGIL_TUNING_H

#include <stdint.h>

/*
 * Locks.
 */

/* How long the head of the line waits before the lock may be reserved for it; and how long its guards then wait.
 * Longer lets threads starve (mutex_share_16, mutex_longest_wait_16), shorter makes them sleep in turn
 * (mutex_contended_16). */
#define PATIENCE_NS UINT64_C(500000)
/* The same for a fair mutex, which is reserved by every release: after that time an event loop that does not run loses
 * its turn. Much longer than a time slice, and still short for a waiting user. */
#define FAIR_PATIENCE_NS UINT64_C(1000000000)
/* Waiters that a broadcast has moved to a mutex are called so many at once: while one has it, the next wake up
 * (cond_broadcast_64). */
#define BROADCAST_AT_ONCE 3
/* A thread that waits for a condition counts the waiters before it, up to the number of processors; with more of these
 * than this it does not count. The count reads a cache line of each, with the mutex held (cond_broadcast_64). */
#define COND_COUNTED 8
/* A keeper that guards a call to an event loop looks at the line after PRIM_GUARD_NS, then each time after twice as
 * long, up to this: ten wake-ups in a second for a loop that hangs. It is also how long it waits before it looks at all
 * lines, for calls that have no room in the table of guards: a pass over as much memory as the buckets have was
 * measured at 1 to 5 ms, 28 ms the first time. */
#define GUARD_MOST_NS UINT64_C(100000000)
/* One spin in so many is a full one, to find out whether spinning would pay again. Rare enough that a thread for which
 * spinning never pays spins only PRIM_SPIN_MOST / 64 pauses more for each wait; often enough that one for which it pays
 * again finds out within 64 waits. (pingpong_block with all processors busy: 3.1 us; one in 8, 5.0 us; one in 1,024,
 * 2.8 us, which is the same within the spread.) */
#define SPIN_PROBE_EVERY 64
/* PRIM_CROWD conflicts that follow each other in less than this, on average, make a crowd. A thread of a crowd sleeps
 * for SPIN_ASIDE_NS, to which the system's timers add some 50 us (rwlock_1_in_20). */
#define SPIN_CONFLICT_NS UINT64_C(1000)
#define SPIN_ASIDE_NS    UINT64_C(20000)

/* A writer that has closed the lanes of a lock lets them rest for so many times as long as that took, so that writers
 * spend at most a tenth of the time on it (page_cache_4, rwlock_1_in_1000). */
#define LANES_REST 9u

/*
 * Agents.
 */

/* The end of an agent fetches operations that many slots ahead, for they are wherever the caller has them: about as
 * many as a processor fetches at once. (1,000,000 in random order: 42 ns each, without fetching 110; no row.) */
#define CANCEL_AHEAD 8

/*
 * Buckets in a segment. A process needs some 100 ns inside one; it takes longer only if it has no processor, is
 * stopped, or has died there.
 */

/* How long a process waits for a bucket before it checks whether the holder lives. */
#define SHARED_HOLDER_CHECK_NS UINT64_C(20000000)
/* The check normally only reads the holder's pulse. Every so many checks, which is once in a second, it asks the kernel
 * in any case: a pulse that has been overwritten beats for ever. A patrol does so as often (KEEPER_PATROL_NS). */
#define SHARED_ASK_CHECKS 50u
/* How long the closing of a segment waits for a bucket. */
#define LEAVE_PATIENCE_NS UINT64_C(20000000)
/* How long recovery waits for all buckets together when a caller is about to be refused: a time slice or more. */
#define RECOVERY_TRY_NS UINT64_C(50000000)
/* How long a keeper waits for one bucket: it has slots to hand on meanwhile. */
#define RECOVERY_LOCK_NS   UINT64_C(2000000)
#define KEEPER_PATIENCE_NS UINT64_C(2000000)
/* How long mending waits for all buckets together. */
#define MEND_PATIENCE_NS UINT64_C(1000000000)
/* Mending counts a slot as impossible if it was so at that many checks, that far apart. A slot that a process is just
 * changing looks impossible between two of its stores; if the process loses its processor there, for a time slice of 3
 * to 4 ms. Together the checks take twice that. */
#define NONSENSE_CHECKS   8
#define NONSENSE_APART_NS UINT64_C(1000000)

/*
 * Keepers, and the deaths of processes.
 */

/* Without pulses, a keeper asks for dead members so often (owner_death_recovery). */
#define KEEPER_POLL_NS UINT64_C(20000000)
/* At first: a member that has just joined will have a pulse soon. */
#define KEEPER_FIRST_NS UINT64_C(500000)
/* After a pulse has ended, until the kernel has released the dead member's lock: at first, and at most
 * (owner_death_recovery, owner_death_worst). */
#define KEEPER_ENDED_NS      UINT64_C(50000)
#define KEEPER_ENDED_MOST_NS UINT64_C(5000000)
/* One keeper patrols the segment so often, for all; the others believe that for so long. */
#define KEEPER_PATROL_NS UINT64_C(1000000000)
#define KEEPER_RECENT_NS UINT64_C(500000000)
/* How often one of the keepers that need not patrol wakes up, and how seldom each may (idle_waiters_1000,
 * idle_waiters_wakeups). */
#define KEEPER_PATROL_EACH_NS UINT64_C(50000000)
#define KEEPER_PATROL_MOST_NS UINT64_C(60000000000)
/* Members about which a patrol asks the kernel, whatever their pulses say. Few, because the kernel goes through the
 * locks of all members for each: measured at 0.4 us with 100 members, 6 us with 1,000, 140 us with 10,000. A pulse that
 * was overwritten is rare, so it may take some minutes until all have been asked about. (idle_waiters_1000) */
#define KEEPER_ASKS 4u
/* How long a joiner waits at a door that is locked, before it tries again. Joining keeps it locked for 0.1 to 0.2 ms,
 * as measured by strace; there is nothing to sleep on, since the lock is the kernel's. */
#define MEMBER_DOOR_NS UINT64_C(1000000)

/*
 * Names.
 */

/* How long a process waits for the mutex of a book, which is held for some microseconds, before it checks whether the
 * word has been damaged. Only for that: recovery deals with dead holders. */
#define BOOK_CHECK_NS INT64_C(1000000000)
/* How often the next holder tries for a tie that orphans have: the lock is the kernel's, and a blocking wait for it
 * could not be interrupted, nor be an event loop's. A try is one system call; 10 ms after the last orphan has ended are
 * short compared with the run of a command. */
#define TIE_TRY_NS INT64_C(10000000)

/*
 * Observers.
 */

/* A time stamp of 32 bits, in ms, that is up to so far ahead of the observer's clock reading counts as now: it was
 * written after that. Longer than any pause of the observer between the two; what is lost is one minute of the 49 days
 * after which such stamps repeat. */
#define OBSERVER_AHEAD_MS 60000u

/* How long events are recorded after one call of vigil_observer_record, which is due once a second. */
#define EVENTS_RECORDED_NS UINT64_C(1500000000)
/* An event that has not appeared for so long never will: its writer is dead, or stopped. */
#define EVENT_GIVE_UP_NS UINT64_C(100000000)
/* A finding counts if it was there at each of that many looks, that far apart, and, in doubt, at more. Keepers clean up
 * after dead processes in less. */
#define OBSERVER_LOOKS    6
#define OBSERVER_APART_NS UINT64_C(20000000)
#define OBSERVER_AGAIN    10

#endif
