/* SPDX-License-Identifier: MIT */
/* alone.h - measurements of memory, each in a process of its own. */
#ifndef BENCH_ALONE_H
#define BENCH_ALONE_H

#include "bench.h"

/* Whether this is such a process. If not, a skill has one do its work, by measure_alone. */
bool is_alone(void);
void measure_alone(const char *contestant, const struct job *job, double figures[FIGURES_MAX]);
/* main of such a process: reads the job, prints the figures. */
int serve_alone(const struct contestant *contestant);

uint64_t resident_bytes(void);

enum { IDLE_LOOPS_MAX = 1000 };
static const int64_t HOUR_NS = 3600 * INT64_C(1000000000);
/*
 * Memory and descriptors per event loop that waits, both to be woken and for a timer of an hour. `open` makes one, and
 * leaves it for the end of the process; the index is at most IDLE_LOOPS_MAX.
 */
void idle_loops(const struct job *job, const char *contestant, void (*open)(uint64_t index),
                double figures[FIGURES_MAX]);

#endif
