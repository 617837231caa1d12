/* SPDX-License-Identifier: MIT */
/*
 * await.h - n requests of one event loop take turns at a mutex that is held across an await. All have asked before the
 * first is granted the mutex a second time, so that n - 1 are in line from then on.
 */
#ifndef BENCH_AWAIT_H
#define BENCH_AWAIT_H

#include "bench.h"

/* await.c: around a measurement. await_close returns the nanoseconds per grant. */
void await_open(uint64_t n);
double await_close(void);

/* A request has been granted the mutex, and awaits something; it goes on. Whether it should ask again then. */
void await_begin(void);
bool await_end(void);

#endif
