/* SPDX-License-Identifier: MIT */
/* For each kind of lock, what is to be done for those in its line when somebody has died: see lot/shared.h. */
#include "calls.h"

#include "mutex.h"

_Static_assert(sizeof(struct mutex_release) <= RECOVERY_CALL_BYTES, "it must fit");

static bool mutex_must(uint32_t *word, void *release) {
    return mutex_must_call(word, release);
}

const struct recovery_call recovery_calls[SLOT_KINDS] = {
    [SLOT_MUTEX] = {mutex_must, mutex_call, mutex_may_pass, NULL},
    [SLOT_SEM] = {sem_must_call, sem_call, NULL, sem_give_back},
    [SLOT_RWLOCK] = {rwlock_must_call, rwlock_call, NULL, rwlock_give_back},
    [SLOT_BARRIER] = {barrier_must_call, barrier_call, NULL, NULL},
    [SLOT_ONCE] = {once_must_call, once_call, NULL, NULL},
};
