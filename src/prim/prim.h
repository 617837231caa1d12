/* SPDX-License-Identifier: MIT */
/*
 * prim.h - everything the library needs from the operating system and the processor, and nothing else.
 *
 * The build chooses an implementation by include path: prim/linux, prim/posix and prim/wasm for use, prim/sim for the
 * simulator. Each brings "prim_atomic.h" (the atomics, order in the name), "prim_config.h" (sizes, constants, the bell)
 * and an implementation of the functions below. Where PRIM_SEGMENTS is 0, the functions for memory that processes share
 * are not needed: alone/alone.c has them.
 *
 * The atomics, on any naturally aligned 32- or 64-bit integer or pointer:
 *
 *     prim_load_relaxed(p)  prim_load_acquire(p)  prim_load_seq_cst(p)
 *     prim_peek(p)                                relaxed, where nothing depends on the value: no step in the simulator
 *     prim_store_relaxed(p, v)  prim_store_release(p, v)  prim_store_seq_cst(p, v)
 *     prim_exchange_relaxed(p, v)  prim_exchange_acq_rel(p, v)                        return the old value
 *     prim_fetch_add_acq_rel(p, v)  prim_fetch_or_acq_rel(p, v)  prim_fetch_and_acq_rel(p, v)    the same
 *     prim_cas_acquire(p, &expected, v)  prim_cas_release(p, &expected, v)
 *     prim_cas_acq_rel(p, &expected, v)  prim_cas_seq_cst(p, &expected, v)            strong; on failure
 *                                                 return false and put the value found (relaxed) in expected
 *     prim_own_load(p)  prim_own_store(p, v)  prim_own_cas(p, &expected, v)           for memory that only this thread
 *                                                 and its signal handlers use: these see them in the order written
 *     prim_fence_seq_cst()
 *     prim_exchange_and_fence(p, v)               an exchange, seq_cst, and a fence: one instruction on x86-64
 *     prim_pause()                                one step of a spin: a hint to the processor
 */
#ifndef VIGIL_PRIM_H
#define VIGIL_PRIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prim_atomic.h"
#include "prim_config.h"

/* No function here is a cancellation point, and none changes errno unless its comment says so. */

#define PRIM_NEVER UINT64_MAX /* as a deadline */

/* The monotonic clock; and a cheaper reading of it, some milliseconds behind. */
uint64_t prim_now_ns(void);
uint64_t prim_now_coarse_ms(void);

/* How many processors the machine has: with one, spinning is pointless. */
unsigned prim_processors(void);

/*
 * Sleep while *word == expected, until prim_wake(word) or the deadline (absolute, PRIM_NEVER for none).
 * Comparing and falling asleep are one step for prim_wake. May return at any time for no reason.
 */
void prim_park(uint32_t *word, uint32_t expected, uint64_t deadline_ns);

/* Wake one sleeper on the word. The word's content does not matter any more. */
void prim_wake(uint32_t *word);

/* The same two for a word in memory that processes share. */
void prim_park_shared(uint32_t *word, uint32_t expected, uint64_t deadline_ns);
void prim_wake_shared(uint32_t *word);
/* Wake all sleepers on the word, including those that expected another value. */
void prim_wake_shared_all(uint32_t *word);

/*
 * Sleep while each of these words is as expected, until one of them is woken or the deadline. A word in memory that
 * processes share is woken by prim_wake_shared, a word of this process's own (`own`) by prim_wake. May return at any
 * time for no reason. Where the system can sleep on one word only, it returns at least every PRIM_SLICE_NS. If a word
 * does not exist any more, it returns. Returns the index of the word that was woken; -1: unknown.
 */
struct prim_word {
    uint32_t *word;
    uint32_t expected;
    bool own;
};
#define PRIM_WORDS 128u /* at most */
/* How late an interruption may be where the system can sleep on one word only: Linux before 5.16 (no futex_waitv), and
 * WebAssembly. 50 wake-ups in a second of each thread that can be interrupted; less than a person notices. */
#define PRIM_SLICE_NS UINT64_C(20000000)
int prim_park_any(const struct prim_word *words, unsigned count, uint64_t deadline_ns);

/*
 * A fence in every thread of the process, paid for by one. During the call each other thread has a moment such that the
 * caller sees, when the call has returned, what the thread did before that moment; and the thread sees, from that
 * moment on, what the caller did before the call. So where one side is frequent and the other rare, the frequent side
 * needs no fence, only its operations in the order of the program (prim_signal_fence).
 *
 * Only where PRIM_FENCES_EVERYWHERE is not 0. prim_can_fence_everywhere: whether the system does that; asked when the
 * library is loaded, unless it is PRIM_FENCES_ALWAYS. prim_fence_everywhere: false if the system does so no longer,
 * because the process has given the permission away. Then it has waited for PRIM_STORES_DRAIN_NS instead: until the
 * stores of a running thread are visible, which takes microseconds. A thread that loses its processor has a fence
 * there.
 */
#define PRIM_FENCES_ALWAYS   2
#define PRIM_STORES_DRAIN_NS UINT64_C(200000)
bool prim_can_fence_everywhere(void);
bool prim_fence_everywhere(void);

/*
 * A pulse, in memory that processes share: a word that is not zero as long as the thread that has begun it lives.
 * When the thread ends without having released the pulse, which is when its process ends, for whatever reason, the
 * system sets PRIM_PULSE_ENDED in the word and wakes one sleeper. At that moment other threads of the process may
 * still be running, and its locks on files may still be held.
 */
struct prim_pulse {
    uint64_t link;
    uint32_t word; /* zero: no pulse */
    uint32_t reserved;
};
#define PRIM_PULSE_ENDED 0x40000000u
/* False: the system cannot do that, and the word is zero. All pulses of a process are begun by the same thread, and
 * are begun and released one at a time. */
bool prim_pulse_begin(struct prim_pulse *pulse);
/* The word is zero from now on; no sleeper is woken. Any thread may call this, while the pulses' thread neither
 * begins nor releases one. */
void prim_pulse_release(struct prim_pulse *pulse);
/* In the child of a fork: the thread does not exist here, and has no pulses. */
void prim_pulse_forget(void);

/* A random number, unlikely to be the same in another process. */
uint32_t prim_random(void);

/*
 * Address space; null, and errno, when there is none. A part of it that has been opened is zeroed memory, of which
 * only the pages that are touched cost anything; false, and errno, when there is none. `dense`: large pages are
 * welcome.
 */
void *prim_map(size_t bytes);
bool prim_map_open(void *part, size_t bytes, bool dense);
void prim_unmap(void *mapping, size_t bytes);
/* From now on expect dense use of this part, which is open. */
void prim_map_densely(void *part, size_t bytes);
/* Make the mapping all zero again and give its pages back. Only while no other thread exists (after fork). */
void prim_map_clear(void *mapping, size_t bytes);
/* Whether there is memory at that address which this process does not share with its parent. Only in the child of a
 * fork, while it has one thread. */
bool prim_is_own(const void *address);

/*
 * A bell: how a notifier on any thread gets the attention of one event loop. A ring stays until it is taken; the
 * library never rings a bell twice without taking the ring in between. What was done before a ring is visible after
 * the ring is taken, and prim_bell_ring does not touch the bell any more once the ring can be taken.
 * prim_config.h has struct prim_bell.
 */
bool prim_bell_open(struct prim_bell *bell); /* false: see errno */
void prim_bell_close(struct prim_bell *bell);
void prim_bell_ring(struct prim_bell *bell);
/* Take the ring, if any. True: there was one. */
bool prim_bell_take(struct prim_bell *bell);
/* Sleep until there is a ring (which is not taken) or until the deadline; may return early for no reason. */
void prim_bell_wait(struct prim_bell *bell, uint64_t deadline_ns);
/* The descriptor to poll, readable when there is a ring or the alarm has gone off; -1, and errno, if none can be
 * created. */
int prim_bell_fd(struct prim_bell *bell);
/* Set the alarm (PRIM_NEVER: none). Only after prim_bell_fd has returned a descriptor. */
void prim_bell_alarm(struct prim_bell *bell, uint64_t deadline_ns);

/*
 * Descriptors of others, behind that of the bell: it is readable, and prim_bell_wait returns, while any of them is
 * ready for its events. Watch adds one that was not watched (`known` false) or changes its events: false, and errno,
 * if that is not possible. Ready stores at most `most` that are ready, and which of their events, and returns how many;
 * if it is called again and again, none is left out for ever. All on the bell's own thread.
 */
#define PRIM_READABLE 1u
#define PRIM_WRITABLE 2u
struct prim_ready {
    void *data;
    unsigned events; /* after an error or hang-up: all */
};
bool prim_bell_watch(struct prim_bell *bell, int fd, unsigned events, void *data, bool known);
void prim_bell_unwatch(struct prim_bell *bell, int fd);
unsigned prim_bell_ready(struct prim_bell *bell, struct prim_ready *ready, unsigned most);

/* Per-thread data. Zero at first; the fields belong to the modules named. */
struct prim_thread {
    uint64_t chunk_free;    /* lot/slot: free slots of its chunk that this thread has taken */
    uint32_t chunk;         /* lot/slot */
    uint32_t spare_chunk;   /* lot/slot: a chunk, and slots of it that the thread has released */
    uint64_t spare_slots;
    uint32_t spin_caution;  /* lot/spin: by how much to shorten spins, after spins in vain */
    uint32_t spins;         /* lot/spin: how many so far */
    uint32_t conflicts;     /* lot/spin: how often the thread has found a lock taken */
    uint64_t conflicts_ns;  /* lot/spin: when the last PRIM_CROWD of these began */
    uint32_t may_not_block; /* low 16 bits: lot/critical; PRIM_MAY_NOT_BLOCK once per agent that forbids it, and once by
                               prim if the thread cannot sleep */
    uint32_t deferred;      /* lot/critical */
    uint32_t id;            /* prim: see prim_thread_id */
    uint32_t interruptible; /* lot/interrupt: its cell; zero: it cannot be interrupted */
    uint32_t holds_interruptions; /* lot/interrupt: not zero while interruptions are held back */
    bool exit_hooked;       /* prim */
    struct lot_lane *lane;  /* sync/lanes: its lane; null: none yet */
    uint32_t hold_number;   /* recovery/hold: of the hold by which the thread took a lock in a segment last */
    uint32_t robust;        /* sync/robust: the newest of its notes of mutexes that it holds */
    /* sync/robust: to be called when the thread ends, and for the forking thread in a fork's child; null: nothing. */
    void (*robust_on_end)(struct prim_thread *, bool in_child);
    bool heeds_signals;     /* lot/interrupt: a signal handler that has run while it slept interrupts its wait */
    bool signalled;         /* prim: such a handler has run, since the thread has cleared this */
    void (*on_exit)(struct prim_thread *); /* debug/check: to be called when the thread ends; null: nothing */
};
#define PRIM_MAY_NOT_BLOCK 0x10000u
#ifdef PRIM_SELF /* inline: locking a bucket must cost next to nothing */
extern PRIM_SELF struct prim_thread prim_thread_self;
static inline struct prim_thread *prim_self(void) {
    return &prim_thread_self;
}
#else
struct prim_thread *prim_self(void);
#endif

/* The ids of this thread and of the process, as the system's tools show them. */
uint32_t prim_thread_id(void);
uint32_t prim_process_id(void);

/* Write a text for users. False: see errno. */
bool prim_write(int fd, const char *text, size_t bytes);

/* How many forks lie between this process and the one that loaded the library (the first copy of it: lot/copies.h). */
extern uint32_t prim_generation;

/*
 * Called by the library before any slot exists. `at_exit(thread)` is called when a thread ends for which
 * prim_keep_self has returned true. `in_child` is called in the child after each fork, before the program's own fork
 * handlers if those were registered after the library was loaded. False: that is not possible.
 */
bool prim_start(void (*at_exit)(struct prim_thread *), void (*in_child)(void));
/* False: at_exit will not be called, so the thread must not keep anything. It may be false unless memory may be
 * allocated. */
bool prim_keep_self(bool may_allocate);

/* Run the library's one initialisation once, however many threads call this at the same time; the others wait for
 * it. */
void prim_once(void (*initialise)(void));

/*
 * Several copies of the library may be in one process, in different shared objects. Each offers what it has, of so many
 * bytes, and all get what was offered first, by whichever copy. Null: the copy that all of them ask is of another
 * version or offered something of another size, and this copy must not use it.
 */
void *prim_meet(void *mine, size_t bytes);

/* Start a thread of the library's. `quiet`: it must not handle signals of the program. `handle` null: the thread is
 * detached, else it must be joined. False: see errno. */
struct prim_handle;
bool prim_thread_start(struct prim_handle **handle, void (*main)(void *), void *argument, bool quiet);
void prim_thread_join(struct prim_handle *handle);

#endif
