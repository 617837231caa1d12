/* SPDX-License-Identifier: MIT */
/* revivals.h - what the locks have for lot/shared.h and lot/hold.h: see lot_revival. */
#ifndef VIGIL_REVIVALS_H
#define VIGIL_REVIVALS_H

#include "lot/hold.h"

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
