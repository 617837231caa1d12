/* SPDX-License-Identifier: MIT */
/*
 * alone.c - what stands in for memory that processes share where the system has none (PRIM_SEGMENTS is 0 in
 * prim_config.h): the functions of VIGIL_SYSTEM_SOURCES, and of prim.h, that the core calls.
 *
 * There segment_of returns null and is_shared false, both of them constants. So these functions are never called,
 * except for the last one, and an optimising compiler leaves most of the calls out. To abort is to state that.
 */
#include <stdlib.h>

#include "lot/line.h"
#include "memory/segment.h"
#include "recovery/hold.h"
#include "recovery/watch.h"

_Static_assert(!PRIM_SEGMENTS, "else VIGIL_SYSTEM_SOURCES is what to build");

uint32_t vigil__holder PRIM_PROCESS = 1; /* the inline functions of the public headers use it */

#define ALONE(prototype)                                                                                               \
    prototype {                                                                                                        \
        abort();                                                                                                       \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-noreturn"

/* shm */
ALONE(struct segment *segment_find(uintptr_t address))
ALONE(struct segment_member *segment_find_member(const struct segment *segment, uint32_t number))
ALONE(bool segment_member_lives(struct segment *segment, uint32_t number))
ALONE(bool segment_has_claimant(const struct segment *segment, uint32_t claim))
ALONE(uint32_t segment_rows(const struct segment *segment))

/* lot */
ALONE(struct lot *lot_in(struct segment *segment))
ALONE(bool shared_lock_until(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns))
ALONE(bool shared_trylock(struct lot *lot, struct bucket *bucket, uint64_t deadline_ns))
ALONE(void shared_decide(struct lot *lot, struct wakes *wakes, uint32_t slot, uint32_t outcome))
ALONE(uint32_t shared_acquire(struct lot *lot))
ALONE(void shared_release(struct lot *lot, uint32_t slot))
ALONE(void lot_record_event(const struct lot *lot, int type, uint32_t slot, uint64_t key, uint32_t status))
ALONE(void lot_record_lock_event(const struct lot *lot, int type, enum slot_kind kind, const uint32_t *word,
                                 uint32_t count, bool shared))

/* recovery */
ALONE(int hold_change(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t to, struct hold hold))
ALONE(int hold_change_locked(struct lot *lot, uint32_t *word, uint32_t to, struct hold hold))
ALONE(int hold_steal(struct lot *lot, uint32_t *word, uint32_t *seen, uint32_t keep, struct hold hold))
ALONE(bool hold_is_ours(struct lot *lot, const uint32_t *word, uint32_t number))
ALONE(bool hold_recovered(const volatile void *word))
ALONE(bool hold_has_no_waiter(const volatile void *word))
ALONE(bool recovery_now(struct lot *lot))
ALONE(void watch_spin(const struct lot *lot))
ALONE(void watch_lie_down(struct lot *lot))
ALONE(void watch_serve(struct lot *lot, struct rest *rest))
ALONE(void watch_get_up(struct lot *lot))

/* memory */
ALONE(int segment_extend(struct segment *segment, uint64_t new_length))
ALONE(int64_t segment_close(struct segment *segment))

/* prim */
ALONE(void prim_park_shared(uint32_t *word, uint32_t expected, uint64_t deadline_ns))
ALONE(void prim_wake_shared(uint32_t *word))
ALONE(void prim_wake_shared_all(uint32_t *word))
ALONE(void prim_pulse_release(struct prim_pulse *pulse))

/* In the child of a fork, where there is nothing to forget. */
void prim_pulse_forget(void) {
}
