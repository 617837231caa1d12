/* SPDX-License-Identifier: MIT */
/*
 * record.h - what happens to locks, written down while `vigil trace` wants to know.
 *
 * The discipline is that of src/shm/events.h: `record_until_ns` says until when it is wanted, and is zero while it is
 * not, so that this is one load. A thread that has something to write takes the next sequence number, clears that of
 * its entry in the ring, fills the entry in, and stores the sequence last.
 *
 * Recorded is what threads wait for: an unlock leaves an event if its thread had waited for the lock. All others only
 * store their thread in the lock, where the next thread that has waited finds which thread released it. So a lock that
 * is taken a million times while another thread waits does not fill the ring.
 */
#ifndef VIGIL_RECORD_H
#define VIGIL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "serve.h"

/* serve.c. */
extern struct serve served;

static inline bool is_recorded(void) {
    return __builtin_expect(__atomic_load_n(&served.head.record_until_ns, __ATOMIC_RELAXED) != 0, 0);
}

/* Only while it is recorded. by: the thread that has released it, of GOT; or zero. `at_ns` zero: now. */
void record_event(enum serve_event_type type, enum wait_kind kind, const void *lock, uint32_t by, int64_t at_ns);

/* The thread holds the lock, for which it has waited. */
void record_hold(const void *lock);

/* It is about to release it; `releaser` is in the lock. */
void record_release(enum wait_kind kind, const void *lock, uint32_t *releaser);

#endif
