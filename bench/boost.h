/* SPDX-License-Identifier: MIT */
/* Boost.Interprocess's mutex and semaphore, for C. */
#ifndef BENCH_BOOST_H
#define BENCH_BOOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

size_t boost_size(void);
void boost_open(void *memory); /* memory for the calls below, in this process and its forks */
void boost_lock(void);
void boost_unlock(void);
void boost_lock_loop(uint64_t n);
void boost_ping(uint64_t n);
void boost_pong(uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
