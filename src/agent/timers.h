/* SPDX-License-Identifier: MIT */
/*
 * timers.h - the deadlines of one agent's operations. Used by the agent's thread only.
 *
 * A radix heap: no deadline is before `last_ns`. A deadline's level is the highest digit, in base 1024, in which it
 * differs from last_ns; its bin there is that digit. So everything in a lower level is earlier than everything in a
 * higher one, lower bins are earlier than higher ones, and each bin of level 0 holds a single nanosecond. To get at
 * the earliest deadline, the lowest bin is dealt out over the levels below it, and last_ns moves up to where that
 * bin begins.
 *
 * Adding and removing cost a handful of instructions; a deadline is dealt out at most once per level, typically twice
 * in its life. A removed deadline is gone at once. The links are in the operations: nothing is allocated.
 */
#ifndef VIGIL_TIMERS_H
#define VIGIL_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "vigil/wait.h"

/* Level 1 has bins of about a microsecond, level 2 of a millisecond, level 3 of a second. */
#define TIMER_DIGIT_BITS 10
#define TIMER_BINS       (1u << TIMER_DIGIT_BITS)
#define TIMER_LEVELS     7

struct timer_bin {
    vigil_op *first;
    uint64_t least_ns; /* no deadline here is earlier; exact unless the earliest was removed */
};

struct timers {
    uint64_t last_ns;
    uint32_t levels; /* bit n: level n is not empty */
    struct {
        uint32_t words;                /* bit n: word n of `bin` is not zero */
        uint64_t bin[TIMER_BINS / 64]; /* bit n % 64 of word n / 64: bin n is not empty */
    } taken[TIMER_LEVELS];
    struct timer_bin (*bin)[TIMER_BINS]; /* of each level; of its pages, only those in use cost anything */
};

/* The timers are zeroed. False: no memory, and errno. */
bool timers_open(struct timers *timers);
void timers_close(struct timers *timers);

/* Add an operation by its deadline_ns, which may have passed since timers_due was last called, but not before that. */
void timers_add(struct timers *timers, vigil_op *op, uint64_t now_ns);
void timers_remove(struct timers *timers, vigil_op *op);
/* `to` is a copy of `from` and takes over its deadline. */
void timers_move(vigil_op *from, vigil_op *to);
/* No deadline passes before this; PRIM_NEVER if there are none. */
uint64_t timers_next(const struct timers *timers);
/* An operation from the earliest bin; null: there are none. */
vigil_op *timers_first(const struct timers *timers);
/* Remove and return the earliest operation that is due; null: none is. */
vigil_op *timers_due(struct timers *timers, uint64_t now_ns);

#endif
