/* SPDX-License-Identifier: MIT */
/* Abseil's mutex and condition, for C. */
#ifndef BENCH_ABSL_H
#define BENCH_ABSL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void absl_lock(void);
void absl_unlock(void);
void absl_wait(void);
void absl_broadcast(void);
void absl_lock_loop(uint64_t n);
void absl_read_loop(uint64_t n, unsigned who);

#ifdef __cplusplus
}
#endif
#endif
