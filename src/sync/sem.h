/* SPDX-License-Identifier: MIT */
/* sem.h - what named locks need of a semaphore besides vigil/sem.h: to change the number of its permits. */
#ifndef VIGIL_SYNC_SEM_H
#define VIGIL_SYNC_SEM_H

#include "vigil/sem.h"

/* Add permits that no process has acquired. */
int sem_add(vigil_sem *sem, uint32_t permits);
/* Remove one that is available: false if none is. */
bool sem_remove_one(vigil_sem *sem);
/* Remove one that this process has acquired, in place of releasing it. */
int sem_remove_own(vigil_sem *sem);

#endif
