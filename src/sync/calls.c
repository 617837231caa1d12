/* SPDX-License-Identifier: MIT */
/* For each kind of lock, what to do for its line when a process has died: see recovery/recovery.h. */
#include "calls.h"

#include "mutex.h"

_Static_assert(sizeof(struct mutex_release) <= RECOVERY_CALL_BYTES, "it must fit");

const struct recovery_call recovery_calls[SLOT_KINDS] = {
    [SLOT_MUTEX] = {&mutex_recovery, mutex_may_pass, NULL},
    [SLOT_SEM] = {&sem_recovery, NULL, sem_give_back},
    [SLOT_RWLOCK] = {&rwlock_recovery, NULL, rwlock_give_back},
    [SLOT_BARRIER] = {&barrier_recovery, NULL, NULL},
    [SLOT_ONCE] = {&once_recovery, NULL, NULL},
};
