/* SPDX-License-Identifier: MIT */
/* Abseil's mutex and condition, for C. */
#ifndef BENCH_ABSL_H
#define BENCH_ABSL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A library that was built for debugging looks for deadlocks: not here. */
void absl_be_fast(void);
void absl_lock(void);
void absl_unlock(void);
void absl_wait(void);
void absl_broadcast(void);
void absl_read_lock(void);
void absl_read_unlock(void);
/* n objects with a mutex each, as in mutex_slots.h. */
void absl_slots_open(uint64_t n);
void absl_slot_take(uint64_t random);
uint64_t absl_slots_counted(void);
void absl_slots_close(void);
void absl_lock_loop(uint64_t n);
void absl_read_loop(uint64_t n, unsigned who);

#ifdef __cplusplus
}
#endif
#endif
