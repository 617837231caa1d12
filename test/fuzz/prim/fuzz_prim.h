/* SPDX-License-Identifier: MIT */
/*
 * fuzz_prim.h - an operating system for the fuzzer: one real thread, and time that passes only when we say so.
 *
 * Where the library would put the running thread to sleep, the next thread gets its turn, above it on the single
 * stack, until it yields. Then either the sleeper has been woken, or its deadline has come. So blocking waiters stand
 * in line with all others, and yet the same bytes always give the same run.
 */
#ifndef VIGIL_FUZZ_PRIM_H
#define VIGIL_FUZZ_PRIM_H

#include "prim.h"

#define FUZZ_THREADS      4
#define FUZZ_TIME_ENDS_NS (UINT64_C(1) << 62) /* a sleep beyond this lasts forever */

extern uint64_t fuzz_now_ns;
extern unsigned fuzz_thread;        /* the running thread */
extern unsigned fuzz_early_returns; /* how many of the next sleeps end early, spuriously */
extern bool fuzz_no_descriptors;    /* the operating system refuses them */

/* The fuzz target provides these two. The running thread is asleep: lets the others act. */
void fuzz_others_act(void);
/* The running thread would sleep forever: wakes it. */
void fuzz_rescue(void);

/* Starts again as a forked child does; the running thread is the only one that exists. */
void fuzz_fork(void);
/* A thread that is not asleep ends, and a new one takes its number. */
void fuzz_thread_ends(unsigned thread);
/* How many free slots the other threads keep. */
unsigned fuzz_slots_kept(void);

/* Whether the descriptor is readable, or would be if it had been requested. */
bool fuzz_bell_rung(const struct prim_bell *bell);
uint64_t fuzz_bell_alarm_ns(const struct prim_bell *bell);

/* Reports an error, and aborts. */
_Noreturn void fuzz_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define CHECK(condition, ...) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, __VA_ARGS__))

/* Traces each action on one line, if fuzz_tracing is set. */
extern bool fuzz_tracing;
void fuzz_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
