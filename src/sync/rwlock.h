/* SPDX-License-Identifier: MIT */
/* rwlock.h - what named locks need of a read-write lock besides vigil/rwlock.h. */
#ifndef VIGIL_SYNC_RWLOCK_H
#define VIGIL_SYNC_RWLOCK_H

#include "vigil/rwlock.h"

/* Read while others read, past any waiter: VIGIL_OK or VIGIL_OWNER_DIED. VIGIL_NOT_EQUAL: none reads. Other statuses
 * as those of vigil_rwlock_read_trylock. */
int rwlock_read_again(vigil_rwlock *lock);

/*
 * Of a lock in a segment, whose holders can be robbed: see STEALING in recovery/hold.h.
 *
 * rwlock_steal - hold it to write, now; its holders before do not hold it any more. The waiters stay in line.
 * VIGIL_OK, or VIGIL_OWNER_DIED if a writer had died before; VIGIL_ELIMIT; VIGIL_EINVAL if the lock is not in a
 * segment.
 *
 * rwlock_number - for a thread that has just taken such a lock: by which number it holds it, for the calls below. They
 * return VIGIL_ENOTHELD, and change nothing, if it has been stolen since.
 */
int rwlock_steal(vigil_rwlock *lock);
uint32_t rwlock_number(void);
bool rwlock_is_held_by(vigil_rwlock *lock, uint32_t number);
int rwlock_read_unlock_by(vigil_rwlock *lock, uint32_t number);
int rwlock_write_unlock_by(vigil_rwlock *lock, uint32_t number);
int rwlock_write_abandon_by(vigil_rwlock *lock, uint32_t number);
int rwlock_consistent_by(vigil_rwlock *lock, uint32_t number);

#endif
