/* SPDX-License-Identifier: MIT */
/* rwlock.h - what named locks need of a read-write lock besides vigil/rwlock.h. */
#ifndef VIGIL_SYNC_RWLOCK_H
#define VIGIL_SYNC_RWLOCK_H

#include "vigil/rwlock.h"

/* Read while others read, past any waiter: VIGIL_OK or VIGIL_OWNER_DIED. VIGIL_NOT_EQUAL: none reads. Other statuses
 * as those of vigil_rwlock_read_trylock. */
int rwlock_read_again(vigil_rwlock *lock);

#endif
