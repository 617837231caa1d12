/* SPDX-License-Identifier: MIT */
/* calls.h - what the locks have for src/recovery: see recovery_call in recovery/recovery.h. */
#ifndef VIGIL_CALLS_H
#define VIGIL_CALLS_H

#include "recovery/hold.h"
#include "recovery/recovery.h"

bool rwlock_must_call(uint32_t *word, void *context);
uint32_t rwlock_call(const struct slot *slot, void *context);
uint32_t rwlock_give_back(uint32_t seen, uint32_t held);

bool barrier_must_call(uint32_t *word, void *context);
uint32_t barrier_call(const struct slot *slot, void *context);

bool once_must_call(uint32_t *word, void *context);
uint32_t once_call(const struct slot *slot, void *context);

bool sem_must_call(uint32_t *word, void *context);
uint32_t sem_call(const struct slot *slot, void *context);
uint32_t sem_give_back(uint32_t seen, uint32_t held);

#endif
